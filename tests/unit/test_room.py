"""Pod-level resources: who has too little for the sidecar, by Kubernetes' own sums."""

from typing import Any

import pytest

from examples import PAYLOAD_IMAGE, plan, pod
from shield_operator.decision import Inject
from shield_operator.decision.room import shortage
from shield_operator.patch import apply


def container(name: str = "web", **requests: str) -> dict[str, Any]:
    return {"name": name, "image": "example.com/i:1", "resources": {"requests": requests}}


def sidecar(**requests: str) -> dict[str, Any]:
    return {**container("own", **requests), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "short_of"),
    [
        ({}, None),
        ({"resources": {"requests": {"memory": "128Mi"}}}, None),
        ({"resources": {"requests": {"memory": "127Mi"}}}, "memory"),
        ({"resources": {"requests": {"cpu": "0.1", "memory": "1Gi"}}}, None),
        ({"resources": {"requests": {"cpu": "99m", "memory": "1Gi"}}}, "cpu"),
        ({"resources": {"limits": {"memory": "100Mi"}}}, "memory"),
        ({"resources": {"limits": {"memory": "200Mi"}}}, None),
        # Requests that the API server filled in from the containers leave no room.
        ({"resources": {"limits": {"cpu": "1"}}, "containers": [container(cpu="100m")]}, "cpu"),
        (
            {
                "resources": {"requests": {"cpu": "300m"}},
                "containers": [container(cpu="100m"), container("two", cpu="100m")],
            },
            None,
        ),
        # An init container needs its own share beside the native sidecars only.
        (
            {"resources": {"requests": {"cpu": "1"}}, "initContainers": [container("i", cpu="1")]},
            "cpu",
        ),
        (
            {
                "resources": {"requests": {"cpu": "300m"}},
                "initContainers": [container("i", cpu="200m")],
            },
            None,
        ),
        (
            {"resources": {"requests": {"cpu": "300m"}}, "initContainers": [sidecar(cpu="201m")]},
            "cpu",
        ),
        ({"resources": {"requests": {"memory": "garbage"}}}, None),
        ({"resources": {"requests": {"example.com/gpu": "1"}}}, None),
    ],
)
def test_a_native_sidecar(spec: dict[str, Any], short_of: str | None) -> None:
    found = shortage(pod(**spec), plan())
    assert (found is None) == (short_of is None)
    if found and short_of:
        assert f"too little {short_of} for its containers and the sidecar" in found


@pytest.mark.parametrize("mode", ["Native", "Container"])
def test_a_sidecar_that_is_there_already_counts_once(mode: str) -> None:
    """As when the API server asks a second time: what was enough before still is."""
    made = plan(mode=mode)
    just_enough = pod(resources={"requests": {"cpu": "100m", "memory": "128Mi"}})
    assert shortage(just_enough, made) is None
    apply(just_enough, Inject(made))
    assert shortage(just_enough, made) is None


@pytest.mark.parametrize(
    ("limits", "short"),
    [({"memory": "255Mi"}, True), ({"memory": "256Mi"}, False), ({"cpu": "499m"}, True)],
)
def test_a_plain_sidecars_limits_count_too(limits: dict[str, str], short: bool) -> None:
    a_pod = pod(resources={"limits": limits})
    assert (shortage(a_pod, plan(mode="Container")) is not None) == short
    assert shortage(a_pod, plan()) is None


PAYLOAD = {"image": PAYLOAD_IMAGE, "mountPath": "/opt/c"}


@pytest.mark.parametrize(
    ("mode", "granted", "own", "is_short"),
    [
        # The stage runs beside the native sidecar, before the application.
        ("Native", "200m", {}, False),
        ("Native", "199m", {}, True),
        ("Container", "100m", {}, False),
        ("Container", "99m", {}, True),
        ("None", "100m", {}, False),
        ("None", "99m", {}, True),
        # What is there already counts once.
        (
            "Native",
            "200m",
            {"initContainers": [container("llm-shield-payload-stage", cpu="9")]},
            False,
        ),
    ],
)
def test_the_payloads_stage_needs_its_share(
    mode: str, granted: str, own: dict[str, Any], is_short: bool
) -> None:
    a_pod = pod(resources={"requests": {"cpu": granted, "memory": "1Gi"}}, **own)
    found = shortage(a_pod, plan(payload=PAYLOAD, mode=mode))
    assert (found is not None) == is_short
    if found:
        assert "the payload's init container, which asks for 100m" in found
        assert ("lower spec.resources" in found) == (mode != "None")


def test_where_nothing_is_added_nothing_is_short() -> None:
    too_small = pod(resources={"requests": {"cpu": "1m"}}, containers=[container(cpu="1")])
    assert shortage(too_small, plan(mode="None")) is None
