"""Telling of pods: all at debug; what is new at info, and to the controller; no dry run."""

import json
import logging
from typing import Any

import pytest

from examples import pod
from shield_operator import outcomes
from shield_operator.events import Event
from shield_operator.outcomes import BURST, MOST_KEPT, Outcomes
from shield_operator.review import Review, read_review
from support import WebhookClient

SKIPPED = ("skipped", "host-network", "it uses the node's network")
INJECTED = ("injected", "", "")


def review(*, owner: str | None = "ReplicaSet", name: str = "o", **request: Any) -> Review:
    a_pod = pod(owner=owner)
    for reference in a_pod["metadata"].get("ownerReferences", []):
        reference["name"] = name
    body = json.loads(WebhookClient.body("shop", a_pod))
    body["request"] |= request
    return read_review(json.dumps(body).encode())


class Told:
    """What is told, and to whom."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.events: list[Event] = []
        self.time = 1000.0
        self.outcomes = Outcomes(self.events.append, clock=lambda: self.time)
        self._caplog = caplog

    def lines(self, level: int = logging.INFO) -> list[str]:
        return [one.getMessage() for one in self._caplog.records if one.levelno == level]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    caplog.set_level(logging.DEBUG)
    return Told(caplog)


def test_every_decision_is_one_line_for_debugging(told: Told) -> None:
    told.outcomes.note(review(), *INJECTED)
    told.outcomes.note(review(owner=None), *SKIPPED)
    assert told.lines(logging.DEBUG) == [
        "pod shop/web-…: injected ",
        "pod shop/web-…: skipped host-network",
    ]


def test_a_pod_that_is_injected_is_no_news(told: Told) -> None:
    for _ in range(3):
        told.outcomes.note(review(), *INJECTED)
    assert (told.lines(), told.events) == ([], [])


def test_the_first_pod_that_is_skipped_is_news_and_so_is_the_first_injected_after(
    told: Told,
) -> None:
    for outcome in (INJECTED, SKIPPED, SKIPPED, INJECTED, INJECTED, SKIPPED):
        told.outcomes.note(review(), *outcome)
    skipped = "pods of ReplicaSet shop/o: skipped (host-network): it uses the node's network"
    assert told.lines() == [skipped, "pods of ReplicaSet shop/o: injected", skipped]


def test_another_reason_is_news(told: Told) -> None:
    told.outcomes.note(review(), *SKIPPED)
    told.outcomes.note(review(), "skipped", "port-conflict", "another port")
    assert len(told.lines()) == 2


def test_the_controller_is_told_of_each_skipped_pod(told: Told) -> None:
    """The recorder knows which it was told already; the log has other ideas of what is new."""
    told.outcomes.note(review(), *SKIPPED)
    told.outcomes.note(review(), *SKIPPED)
    assert [(one.about.kind, one.reason, one.note) for one in told.events] == [
        ("ReplicaSet", "HostNetwork", SKIPPED[2])
    ] * 2


def test_a_pod_that_nobody_controls_is_in_the_log_and_has_no_event(told: Told) -> None:
    told.outcomes.note(review(owner=None), *SKIPPED)
    assert told.lines() == ["pod shop/web-…: skipped (host-network): it uses the node's network"]
    assert told.events == []


def test_of_a_denied_pod_its_controller_tells_by_itself(told: Told) -> None:
    told.outcomes.note(review(), "denied", "host-network", "it uses the node's network")
    assert len(told.lines()) == 1
    assert told.events == []


def test_a_dry_run_is_told_to_nobody(told: Told) -> None:
    told.outcomes.note(review(dryRun=True), *SKIPPED)
    assert (told.lines(), told.events) == ([], [])
    assert len(told.lines(logging.DEBUG)) == 1
    told.outcomes.note(review(dryRun=False), *SKIPPED)
    assert len(told.events) == 1


def test_pods_by_thousands_do_not_fill_the_log_or_the_memory(told: Told) -> None:
    for number in range(MOST_KEPT + 100):
        told.outcomes.note(review(name=f"web-{number}"), *SKIPPED)
    assert len(told.lines()) == BURST
    assert len(told.outcomes._bare) == MOST_KEPT


def test_lines_carry_their_parts_as_fields(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    told.outcomes.note(review(), *SKIPPED)
    line = vars(caplog.records[-1])
    wanted = {
        "namespace": "shop",
        "pod": "web-…",
        "owner": "ReplicaSet shop/o",
        "outcome": "skipped",
        "reason": "host-network",
    }
    assert {key: line[key] for key in wanted} == wanted


def test_an_injected_pod_costs_no_look_at_its_owners(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "owner_of", lambda *_: 1 / 0)
    told.outcomes.note(review(), *INJECTED)
