"""The patch: what a pod looks like afterwards, and that doing it twice is doing it once."""

import copy
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from examples import config, decided, plan, pod
from shield_operator.decision import Decision, Inject, Skip, SkipReason
from shield_operator.patch import apply, operations
from shield_operator.plan import ClusterVersion

NATIVE = Inject(plan())
PLAIN = Inject(plan(mode="Container"))
SKIP = Skip(SkipReason.HOST_NETWORK, 'a sentence with "quotes" and {{ braces }}\nand a line break')


def applied(a_pod: dict[str, Any], found: Decision) -> dict[str, Any]:
    changed = copy.deepcopy(a_pod)
    apply(changed, found)
    return changed


def sidecar(a_pod: dict[str, Any]) -> dict[str, Any]:
    spec = a_pod["spec"]
    found = [
        container
        for container in [*spec.get("initContainers", []), *spec["containers"]]
        if container["name"] == "llm-shield-proxy"
    ]
    assert len(found) == 1
    return dict(found[0])


def test_a_native_sidecar_is_the_first_init_container() -> None:
    changed = applied(pod(initContainers=[{"name": "migrate"}]), NATIVE)
    names = [container["name"] for container in changed["spec"]["initContainers"]]
    assert names == ["llm-shield-proxy", "migrate"]


def test_a_plain_sidecar_is_the_last_container() -> None:
    changed = applied(pod(), PLAIN)
    assert [container["name"] for container in changed["spec"]["containers"]] == [
        "web",
        "llm-shield-proxy",
    ]
    assert "initContainers" not in changed["spec"]


def test_the_sidecar_carries_our_mark_its_secret_and_no_token() -> None:
    changed = applied(pod(), NATIVE)
    container = sidecar(changed)
    assert container["env"][0] == {"name": "LLM_SHIELD_INJECTED", "value": NATIVE.plan.mark}
    assert NATIVE.plan.mark == f"shop/shield@{NATIVE.plan.fingerprint}"
    assert container["envFrom"] == [{"secretRef": {"name": "keys"}}]
    (mount,) = [
        mount
        for mount in container["volumeMounts"]
        if mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    ]
    (volume,) = [v for v in changed["spec"]["volumes"] if v["name"] == mount["name"]]
    assert mount["readOnly"] is True
    assert "emptyDir" in volume


def test_a_pods_annotation_beats_the_configs_secret() -> None:
    changed = applied(pod(annotations={"llm-shield.io/keys-secret": "mine"}), NATIVE)
    assert sidecar(changed)["envFrom"] == [{"secretRef": {"name": "mine"}}]


def test_without_a_secret_there_is_no_reference_to_one() -> None:
    assert "envFrom" not in sidecar(applied(pod(), Inject(plan(secretName=None))))


@pytest.mark.parametrize(("spec", "user"), [({}, 65532), ({"runAsUser": 10001}, 10001)])
def test_a_pod_that_runs_as_root_does_not_take_the_sidecar_along(
    spec: dict[str, int], user: int
) -> None:
    root = pod(securityContext={"runAsUser": 0, "seccompProfile": {"type": "Unconfined"}})
    changed = applied(root, Inject(plan(securityContext=spec)))
    assert sidecar(changed)["securityContext"]["runAsUser"] == user
    assert changed["spec"]["securityContext"] == root["spec"]["securityContext"]


def test_an_ordinary_pod_leaves_the_user_to_the_image() -> None:
    assert "runAsUser" not in sidecar(applied(pod(), NATIVE))["securityContext"]


def test_the_outcome_of_an_injection() -> None:
    metadata = applied(pod(labels={"app": "web"}, annotations={"note": "mine"}), NATIVE)["metadata"]
    assert metadata["labels"] == {"app": "web", "llm-shield.io/injected": "true"}
    assert metadata["annotations"] == {
        "note": "mine",
        "kubectl.kubernetes.io/default-container": "web",
        "llm-shield.io/injected-config": "shop/shield",
        "llm-shield.io/config-generation": "1",
        "llm-shield.io/injection-hash": NATIVE.plan.fingerprint,
    }


def test_the_outcome_of_a_skip() -> None:
    before = pod(labels={"app": "web"})
    changed = applied(before, SKIP)
    assert changed["metadata"]["labels"] == {
        "app": "web",
        "llm-shield.io/injection-skipped": "host-network",
    }
    assert changed["metadata"]["annotations"] == {"llm-shield.io/skip-reason": SKIP.sentence}
    assert changed["spec"] == before["spec"]


def test_each_outcome_takes_the_other_away() -> None:
    injected = applied(applied(pod(), SKIP), NATIVE)
    assert injected["metadata"] == applied(pod(), NATIVE)["metadata"]
    stale = pod(
        labels={"llm-shield.io/injected": "true"},
        annotations={
            "llm-shield.io/injected-config": "a/b",
            "llm-shield.io/config-generation": "9",
            "llm-shield.io/injection-hash": "f" * 16,
            "llm-shield.io/kept-by-user": "env:X",
        },
    )
    assert applied(stale, SKIP)["metadata"] == applied(pod(), SKIP)["metadata"]


def test_a_users_default_container_is_kept() -> None:
    mine = {"kubectl.kubernetes.io/default-container": "other"}
    assert mine.items() <= applied(pod(annotations=mine), NATIVE)["metadata"]["annotations"].items()


# --- Owned pods: outcome labels are only ever added -----------------------------------------------


@pytest.mark.parametrize("found", [NATIVE, PLAIN, SKIP])
@pytest.mark.parametrize(
    "labels",
    [
        {"llm-shield.io/injected": "no"},
        {"llm-shield.io/injection-skipped": "x"},
        {"llm-shield.io/injected": "true", "llm-shield.io/injection-skipped": "host-network"},
    ],
    ids=str,
)
def test_an_owned_pod_keeps_its_outcome_labels(labels: dict[str, str], found: Decision) -> None:
    changed = applied(pod(labels=labels, owner="ReplicaSet"), found)
    assert labels.items() <= changed["metadata"]["labels"].items()
    stamped = {"llm-shield.io/injected-config", "llm-shield.io/skip-reason"}
    assert len(stamped & changed["metadata"]["annotations"].keys()) == 1


def test_an_owned_pod_without_outcome_labels_gets_them() -> None:
    owned = pod(owner="ReplicaSet")
    assert applied(owned, NATIVE)["metadata"]["labels"] == {"llm-shield.io/injected": "true"}


# --- For any pod ----------------------------------------------------------------------------------

TEXT = st.text(st.sampled_from("ab/~-.\"'{}\n☃"), min_size=1, max_size=6)
NAMES = st.sampled_from(["web", "app", "db", "llm-shield-extra", "llm-shield-proxy-2"])
MAYBE_MAP = st.none() | st.dictionaries(
    TEXT | st.sampled_from(["llm-shield.io/injected", "llm-shield.io/skip-reason"]), TEXT
)
CONTAINERS: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={"env": st.none(), "unknownField": TEXT, "volumeMounts": st.just([])},
    ),
    unique_by=lambda container: str(container["name"]),
    min_size=1,
    max_size=3,
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": MAYBE_MAP,
                "annotations": MAYBE_MAP,
                "generateName": TEXT,
                "ownerReferences": st.just([{"kind": "ReplicaSet", "controller": True}]),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": CONTAINERS},
            optional={
                "initContainers": st.none() | CONTAINERS,
                "volumes": st.none() | st.just([{"name": "data", "emptyDir": {}}]),
                "securityContext": st.none() | st.just({"runAsUser": 0}),
                "somethingNew": st.lists(TEXT),
            },
        ),
    }
)
DECISIONS = st.sampled_from([NATIVE, PLAIN, SKIP])


@given(PODS, DECISIONS)
@hypothesis_settings(max_examples=300, deadline=None)
def test_twice_is_once_and_the_operations_say_the_same(
    a_pod: dict[str, Any], found: Decision
) -> None:
    once = applied(a_pod, found)
    assert applied(once, found) == once
    patched = jsonpatch.apply_patch(a_pod, operations(a_pod, found))
    assert json.dumps(patched, sort_keys=True) == json.dumps(once, sort_keys=True)
    assert operations(once, found) == []


@given(PODS, DECISIONS)
@hypothesis_settings(max_examples=300, deadline=None)
def test_nothing_of_the_users_is_lost_or_reordered(a_pod: dict[str, Any], found: Decision) -> None:
    changed = applied(a_pod, found)
    for field in ("containers", "initContainers", "volumes"):
        before = a_pod["spec"].get(field) or []
        after = [item for item in changed["spec"].get(field) or [] if item in before]
        assert after == before
    known = ("containers", "initContainers", "volumes")
    for field, value in a_pod["spec"].items():
        if field not in known:
            assert changed["spec"][field] == value
    for field in ("labels", "annotations"):
        ours = "llm-shield.io/"
        before_map = a_pod["metadata"].get(field) or {}
        for key, value in before_map.items():
            if not key.startswith(ours):
                assert changed["metadata"][field][key] == value


@given(PODS)
@hypothesis_settings(max_examples=100, deadline=None)
def test_a_pod_that_was_injected_is_then_left_alone(a_pod: dict[str, Any]) -> None:
    for configs in ([config()], [config(mode="Container")]):
        found = decided(a_pod, configs)
        once = applied(a_pod, found)
        assert operations(once, decided(once, configs)) == []


def test_old_clusters_get_a_plain_container() -> None:
    changed = applied(pod(), Inject(plan(ClusterVersion(1, 30))))
    assert changed["spec"]["containers"][-1]["name"] == "llm-shield-proxy"
