"""The patch: what a pod looks like afterwards, and that doing it twice is doing it once."""

import copy
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from examples import config, decided, index, plan, pod
from shield_operator.decision import Decision, Inject, Skip, SkipReason
from shield_operator.patch import apply, operations
from shield_operator.patch.draft import Draft
from shield_operator.plan import ClusterVersion
from strategies import CONFIGS, PODS

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

NAMED = [
    {**found, "metadata": {**found["metadata"], "name": kind}} for kind, found in CONFIGS.items()
]
INJECTIONS = [Inject(entry.plan) for entry in index(*NAMED) if entry.plan is not None]
assert len(INJECTIONS) == len(CONFIGS)
DECISIONS = st.sampled_from([*INJECTIONS, SKIP])


@given(PODS, DECISIONS)
@hypothesis_settings(max_examples=600, deadline=None)
def test_twice_is_once_and_the_operations_say_the_same(
    a_pod: dict[str, Any], found: Decision
) -> None:
    once = applied(a_pod, found)
    assert applied(once, found) == once
    before = json.dumps(a_pod)
    found_operations = operations(a_pod, found)
    assert json.dumps(a_pod) == before
    patched = jsonpatch.apply_patch(a_pod, found_operations)
    assert json.dumps(patched, sort_keys=True) == json.dumps(once, sort_keys=True)
    assert operations(once, found) == []


def containers_within(value: Any) -> Iterator[Any]:
    """Every object and list in JSON."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers_within(inner)


@given(PODS, st.sampled_from(INJECTIONS))
@hypothesis_settings(max_examples=100, deadline=None)
def test_a_pod_that_is_changed_in_place_shares_nothing_with_the_plan(
    a_pod: dict[str, Any], found: Inject
) -> None:
    before = json.dumps(asdict(found.plan), sort_keys=True)
    changed = json.loads(json.dumps(a_pod))  # so that it shares nothing with itself
    apply(changed, found)
    parts = [*containers_within(changed)]
    assert len({id(part) for part in parts}) == len(parts)
    for part in parts:
        part.clear()
    assert json.dumps(asdict(found.plan), sort_keys=True) == before


@given(PODS, DECISIONS)
@hypothesis_settings(max_examples=100, deadline=None)
def test_the_operations_leave_the_plan_as_it_is(a_pod: dict[str, Any], found: Decision) -> None:
    before = json.dumps([asdict(one.plan) for one in INJECTIONS], sort_keys=True)
    operations(a_pod, found)
    assert json.dumps([asdict(one.plan) for one in INJECTIONS], sort_keys=True) == before


def test_what_is_not_changed_is_not_copied() -> None:
    """A large pod costs no more than a small one."""
    a_pod = pod(containers=[{"name": "web", "env": []}, {"name": "other"}], initContainers=[{}])
    draft = Draft(a_pod)
    draft.put(("spec", "containers", 0, "env"), [{"name": "X"}])
    draft.append(("spec", "containers", 0, "env"), [{"name": "Y"}])
    changed = draft.pod
    assert changed["spec"]["containers"][0]["env"] == [{"name": "X"}, {"name": "Y"}]
    assert changed["spec"]["containers"][1] is a_pod["spec"]["containers"][1]
    assert changed["spec"]["initContainers"] is a_pod["spec"]["initContainers"]
    assert changed["metadata"] is a_pod["metadata"]
    assert a_pod["spec"]["containers"][0] == {"name": "web", "env": []}


@pytest.mark.parametrize(
    ("key", "pointer"), [("a/b", "/metadata/a~1b"), ("~", "/metadata/~0"), ("~1", "/metadata/~01")]
)
def test_keys_are_escaped(key: str, pointer: str) -> None:
    draft = Draft({"metadata": {}})
    draft.put(("metadata", key), "x")
    assert draft.operations == [{"op": "add", "path": pointer, "value": "x"}]


def test_absent_parents_are_made_by_one_operation() -> None:
    draft = Draft({"metadata": {"labels": None}})
    draft.put(("metadata", "labels", "app"), "web")
    draft.put(("spec", "affinity", "podAffinity"), {})
    assert draft.operations == [
        {"op": "replace", "path": "/metadata/labels", "value": {"app": "web"}},
        {"op": "add", "path": "/spec", "value": {"affinity": {"podAffinity": {}}}},
    ]


def test_a_position_past_the_end_is_the_end() -> None:
    draft = Draft({"list": ["a"]})
    draft.insert(("list",), 5, "b")
    assert draft.operations == [{"op": "add", "path": "/list/1", "value": "b"}]


SET_ON_CONTAINERS = ("args", "env", "volumeMounts")
ADDED_TO = ("containers", "initContainers", "volumes", "imagePullSecrets", "tolerations")
SET_IN = ("nodeSelector", "affinity")


@given(PODS, DECISIONS)
@hypothesis_settings(max_examples=600, deadline=None)
def test_nothing_of_the_users_is_lost_or_reordered(a_pod: dict[str, Any], found: Decision) -> None:
    changed = applied(a_pod, found)
    for field, before in a_pod["spec"].items():
        after = changed["spec"][field]
        if field in ("containers", "initContainers"):
            assert_containers_are_kept(before or [], after or [])
        elif field in ADDED_TO:
            assert is_subsequence(before or [], after or [])
        elif field == "hostIPC":
            assert after is True or before is False  # the API server drops a false
        elif field in SET_IN:
            assert (before or {}).items() <= (after or {}).items()
        else:
            assert after == before
    for field, before in a_pod["metadata"].items():
        after = changed["metadata"][field]
        if field in ("labels", "annotations"):
            users = {k: v for k, v in (before or {}).items() if not k.startswith(OURS) and v}
            assert users.items() <= after.items()
        else:
            assert after == before


OURS = "llm-shield.io/"


def assert_containers_are_kept(before: list[Any], after: list[Any]) -> None:
    names = [container["name"] for container in before]
    assert is_subsequence(names, [container["name"] for container in after])
    found = {container["name"]: container for container in after}
    for container in before:
        changed = found[container["name"]]
        for field, value in container.items():
            if field in SET_ON_CONTAINERS:
                users = [*map(but_for_a_path, value or [])]
                assert is_subsequence(users, [*map(but_for_a_path, changed[field] or [])])
            else:
                assert changed[field] == value


def but_for_a_path(item: Any) -> Any:
    """An item of a container's list; of a search path only what the user had."""
    if isinstance(item, dict) and item.get("name") == "PYTHONPATH" and not item.get("valueFrom"):
        first, _, rest = (item.get("value") or "").partition(":")
        return {**item, "value": rest if first == "/opt/connector" else (item.get("value") or "")}
    return item


def is_subsequence(part: list[Any], whole: list[Any]) -> bool:
    rest = iter(whole)
    return all(any(item == candidate for candidate in rest) for item in part)


@given(PODS, st.sampled_from(sorted(CONFIGS)))
@hypothesis_settings(max_examples=600, deadline=None)
def test_a_pod_that_was_decided_about_stays_as_it_is(a_pod: dict[str, Any], kind: str) -> None:
    configs = [CONFIGS[kind]]
    found = decided(a_pod, configs)
    once = applied(a_pod, found)
    assert operations(once, decided(once, configs)) == []


def test_no_two_operations_are_computed_against_the_same_list() -> None:
    """Two init containers, and two volumes, added at once: both are there, in their order."""
    both = decided(pod(initContainers=[{"name": "own"}]), [CONFIGS["everything"]])
    before = pod(initContainers=[{"name": "own"}])
    patched: Any = jsonpatch.apply_patch(before, operations(before, both))
    assert [container["name"] for container in patched["spec"]["initContainers"]] == [
        "llm-shield-proxy",
        "llm-shield-payload-stage",
        "own",
    ]
    assert [volume["name"] for volume in patched["spec"]["volumes"]] == [
        "llm-shield-tmp",
        "llm-shield-no-token",
        "llm-shield-secret-ca",
        "llm-shield-payload",
    ]


def test_pull_secrets_are_merged_by_name_and_a_pods_own_list_comes_first() -> None:
    secrets = config(imagePullSecrets=[{"name": "mine"}, {"name": "regcred"}])

    def merged(annotation: str | None = None) -> list[str]:
        annotations = {"llm-shield.io/image-pull-secrets": annotation} if annotation else None
        a_pod = pod(annotations=annotations, imagePullSecrets=[{"name": "mine"}])
        changed = applied(a_pod, decided(a_pod, [secrets]))
        return [secret["name"] for secret in changed["spec"]["imagePullSecrets"]]

    assert merged() == ["mine", "regcred"]
    assert merged(" first,, second ,first") == ["mine", "first", "second"]
    assert merged(" , ") == ["mine", "regcred"]


def test_old_clusters_get_a_plain_container() -> None:
    changed = applied(pod(), Inject(plan(ClusterVersion(1, 30))))
    assert changed["spec"]["containers"][-1]["name"] == "llm-shield-proxy"
