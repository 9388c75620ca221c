"""Scheduling rules: added to what the pod has, and never instead of it."""

from typing import Any

import pytest

from examples import plan, pod
from shield_operator.decision import Inject
from shield_operator.patch import apply

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TOLERATION = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
NODES: dict[str, Any] = {REQUIRED: {"nodeSelectorTerms": [{"matchFields": []}]}}
PODS = {REQUIRED: [{"topologyKey": "zone"}]}


def placed(scheduling: dict[str, Any], **spec: Any) -> tuple[Any, str]:
    changed = pod(**spec)
    apply(changed, Inject(plan(mode="None", scheduling=scheduling)))
    kept = changed["metadata"]["annotations"].get("llm-shield.io/kept-by-user", "")
    return changed["spec"], kept


@pytest.mark.parametrize(
    ("own", "afterwards", "kept"),
    [
        (None, {"pool": "a", "disk": "ssd"}, ""),
        ({"zone": "x"}, {"zone": "x", "pool": "a", "disk": "ssd"}, ""),
        ({"disk": "hdd"}, {"disk": "hdd", "pool": "a"}, "nodeSelector:disk"),
        ({"disk": "ssd"}, {"disk": "ssd", "pool": "a"}, ""),
        ({"disk": ""}, {"disk": "", "pool": "a"}, "nodeSelector:disk"),
    ],
)
def test_node_labels_are_set_by_key(own: Any, afterwards: dict[str, str], kept: str) -> None:
    spec, said = placed({"nodeSelector": {"pool": "a", "disk": "ssd"}}, nodeSelector=own)
    assert spec["nodeSelector"] == afterwards
    assert said == kept


@pytest.mark.parametrize(
    ("own", "count"),
    [
        (None, 1),
        ([], 1),
        ([TOLERATION], 1),
        ([{"key": "team", "value": "a", "effect": "NoSchedule"}], 1),  # Equal is the default
        ([{**TOLERATION, "tolerationSeconds": None}], 1),
        ([{**TOLERATION, "effect": "NoExecute"}], 2),
        ([{"operator": "Exists"}], 2),
    ],
)
def test_a_toleration_is_added_where_the_pod_does_not_have_it(own: Any, count: int) -> None:
    spec, _ = placed({"tolerations": [TOLERATION]}, tolerations=own)
    assert len(spec["tolerations"]) == count
    assert spec["tolerations"][: len(own or [])] == (own or [])


def test_each_kind_of_affinity_is_added_where_the_pod_has_none() -> None:
    rules = {"nodeAffinity": NODES, "podAntiAffinity": PODS}
    assert placed({"affinity": rules})[0]["affinity"] == rules
    own = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}, "podAffinity": PODS}
    spec, kept = placed({"affinity": rules}, affinity=own)
    assert spec["affinity"] == {**own, "podAntiAffinity": PODS}
    assert kept == "affinity:nodeAffinity"


def test_without_rules_nothing_is_added() -> None:
    spec, _ = placed({})
    assert spec == pod()["spec"]
