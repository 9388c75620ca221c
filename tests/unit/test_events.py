"""Events as data: about the right object, in the right words, and never too long."""

from datetime import UTC, datetime
from typing import Any

import pytest

from examples import config, pod
from shield_operator.decision import SkipReason
from shield_operator.events import (
    Event,
    EventType,
    Subject,
    in_camel_case,
    owner_of,
    readiness_event,
    skip_event,
)
from shield_operator.status import Ready, ReadyReason

OWNER = Subject("apps/v1", "ReplicaSet", "shop", "web-abc", "u-1")
NOW = datetime(2026, 11, 29, 12, 0, 0, 5, tzinfo=UTC)


def test_reasons_are_spelled_as_events_are() -> None:
    assert [in_camel_case(reason) for reason in SkipReason] == [
        "InvalidAnnotation",
        "NoSidecarConfig",
        "AmbiguousSidecarConfig",
        "InvalidSidecarConfig",
        "ContainerNameConflict",
        "VolumeNameConflict",
        "PortConflict",
        "TargetContainerNotFound",
        "CommandOverride",
        "PodResources",
        "HostNetwork",
        "UnsupportedOs",
    ]


def test_a_skipped_pod_is_told_of_on_its_controller_in_the_sentence_of_the_pod() -> None:
    event = skip_event(OWNER, SkipReason.PORT_CONFLICT, "give it another port")
    assert event.manifest("me", NOW) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "shop", "generateName": "llm-shield-operator-"},
        "eventTime": "2026-11-29T12:00:00.000005Z",
        "reportingController": "llm-shield.io/llm-shield-operator",
        "reportingInstance": "me",
        "action": "Inject",
        "reason": "PortConflict",
        "type": "Warning",
        "note": "give it another port",
        "regarding": {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "namespace": "shop",
            "name": "web-abc",
            "uid": "u-1",
        },
    }


@pytest.mark.parametrize("text", ["x" * 5000, "ü" * 5000, "€" * 341 + "xx", "a\nb " * 2000])
def test_a_note_fits_whatever_it_is_about(text: str) -> None:
    note = Event(OWNER, EventType.NORMAL, "R", "A", text).manifest("me", NOW)["note"]
    assert 1000 < len(note.encode()) <= 1024
    assert "\n" not in note
    assert note[:3] == " ".join(text[:3].split())


def test_half_a_character_of_a_stranger_is_no_bug_in_a_note() -> None:
    note = Event(OWNER, EventType.NORMAL, "R", "A", "container \ud800x").manifest("me", NOW)["note"]
    assert note == "container ?x"


def reference(**changes: Any) -> dict[str, Any]:
    found = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-abc", "uid": "u-1"}
    return {**found, "controller": True, **changes}


def test_the_controller_is_told_and_no_other_owner() -> None:
    a_pod = pod()
    others = [reference(controller=False, name="other"), reference(name="third", controller=None)]
    a_pod["metadata"]["ownerReferences"] = [*others, reference()]
    assert owner_of(a_pod, "shop") == OWNER
    a_pod["metadata"]["ownerReferences"] = others
    assert owner_of(a_pod, "shop") is None
    assert owner_of(pod(), "shop") is None


@pytest.mark.parametrize("field", ["apiVersion", "kind", "name", "uid"])
@pytest.mark.parametrize("value", [None, "", 3, ["web"], "x" * 254, "a\nb", "\x1b[2J"])
def test_an_owner_that_cannot_be_one_is_none(field: str, value: Any) -> None:
    """Whoever makes a pod writes its owner references, and we meet them before anybody checks."""
    a_pod = pod()
    a_pod["metadata"]["ownerReferences"] = [reference(**{field: value})]
    assert owner_of(a_pod, "shop") is None


def ready(reason: ReadyReason) -> Ready:
    return Ready(reason, f"it is {reason}")


def before(status: str | None) -> Any:
    return {"conditions": [{"type": "Ready", "status": status}]} if status else {}


@pytest.mark.parametrize(
    ("status", "reason", "told"),
    [
        (None, ReadyReason.ACCEPTED, None),
        ("True", ReadyReason.ACCEPTED, None),
        ("False", ReadyReason.ACCEPTED, EventType.NORMAL),
        (None, ReadyReason.INVALID, EventType.WARNING),
        ("True", ReadyReason.INVALID, EventType.WARNING),
        ("True", ReadyReason.SECRET_NOT_FOUND, EventType.WARNING),
        ("False", ReadyReason.SECRET_NOT_FOUND, EventType.WARNING),
    ],
)
def test_a_config_is_told_when_it_fails_and_when_it_is_ready_again(
    status: str | None, reason: ReadyReason, told: EventType | None
) -> None:
    resource = config()
    resource["metadata"]["uid"] = "u-2"
    event = readiness_event(resource, ready(reason), before(status))
    if told is None:
        assert event is None
    else:
        about = Subject("llm-shield.io/v1alpha1", "ShieldSidecarConfig", "shop", "shield", "u-2")
        assert event == Event(about, told, reason.value, "Check", f"it is {reason}")
