"""The webhook configuration: exactly the design's, and compared without fighting others."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

import examples
from shield_operator.certificates import issue_bundle
from shield_operator.webhook import ca_bundles, carries, configuration, differs

CA = b"-----BEGIN CERTIFICATE-----\n"
WANTED = configuration(examples.settings(), CA, "uid-1")


def webhooks(**environment: str) -> dict[str, Any]:
    found = configuration(examples.settings(**environment), CA, "uid-1")
    return {hook["name"]: hook for hook in found["webhooks"]}


def test_the_two_webhooks_are_disjoint_and_leave_system_namespaces_out() -> None:
    by_namespace, by_pod = webhooks().values()
    system = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", "kube-public", "kube-node-lease", "llm-shield-system"],
    }
    key = "llm-shield.io/inject"
    assert by_namespace["namespaceSelector"]["matchExpressions"] == [
        {"key": key, "operator": "In", "values": ["true", "enabled"]},
        system,
    ]
    assert by_namespace["objectSelector"]["matchExpressions"] == [
        {"key": key, "operator": "NotIn", "values": ["false", "disabled"]}
    ]
    assert by_pod["namespaceSelector"]["matchExpressions"] == [
        {"key": key, "operator": "NotIn", "values": ["true", "enabled", "false", "disabled"]},
        system,
    ]
    assert by_pod["objectSelector"]["matchExpressions"] == [
        {"key": key, "operator": "In", "values": ["true", "enabled"]}
    ]


def test_what_both_have_in_common() -> None:
    assert list(webhooks()) == ["namespace.inject.llm-shield.io", "pod.inject.llm-shield.io"]
    for hook in webhooks().values():
        assert hook["failurePolicy"] == "Fail"
        assert hook["timeoutSeconds"] == 5
        assert hook["reinvocationPolicy"] == "IfNeeded"
        assert hook["sideEffects"] == "None"
        assert hook["matchPolicy"] == "Equivalent"
        (rule,) = hook["rules"]
        assert rule["operations"] == ["CREATE"]
        assert rule["resources"] == ["pods"]
        assert "system:nodes" in hook["matchConditions"][0]["expression"]


def test_settings_reach_the_webhooks() -> None:
    hook = webhooks(
        FAILURE_POLICY="Ignore",
        WEBHOOK_TIMEOUT_SECONDS="2",
        POD_NAMESPACE="ops",
        WEBHOOK_SERVICE="svc",
    )["pod.inject.llm-shield.io"]
    assert (hook["failurePolicy"], hook["timeoutSeconds"]) == ("Ignore", 2)
    service = hook["clientConfig"]["service"]
    assert service == {"namespace": "ops", "name": "svc", "path": "/inject", "port": 443}
    outside = webhooks(WEBHOOK_URL="https://127.0.0.1:9443")["pod.inject.llm-shield.io"]
    assert outside["clientConfig"]["url"] == "https://127.0.0.1:9443/inject"
    assert "service" not in outside["clientConfig"]


def test_the_cluster_role_owns_it_without_blocking() -> None:
    (owner,) = WANTED["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == (
        "ClusterRole",
        "llm-shield-operator",
        "uid-1",
    )
    assert "blockOwnerDeletion" not in owner


def live() -> Any:
    """Ours as the API server gives it back, with what others have added beside it."""
    found = copy.deepcopy(WANTED)
    found["metadata"] |= {"uid": "x", "generation": 3, "managedFields": []}
    found["metadata"]["annotations"]["their.io/note"] = "x"
    found["metadata"]["ownerReferences"].append({"kind": "Thing", "name": "t", "uid": "uid-2"})
    found["webhooks"].append({"name": "their.webhook.io"})
    found["webhooks"][0]["matchConditions"].append({"name": "theirs", "expression": "true"})
    return found


def test_what_others_add_is_no_difference() -> None:
    assert not differs(live(), WANTED)


def _edit(path: str, value: Any) -> Any:
    found = live()
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    place = found
    for part in parents:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("webhooks", []),
        ("webhooks/1", None),
        ("webhooks/0/failurePolicy", "Ignore"),
        ("webhooks/0/clientConfig/caBundle", "x"),
        ("webhooks/0/rules/0/operations", ["CREATE", "UPDATE"]),
        ("webhooks/0/namespaceSelector/matchLabels", {"a": "b"}),
        ("webhooks/0/objectSelector/matchExpressions", []),
        ("webhooks/0/matchConditions", []),
        ("webhooks/0/timeoutSeconds", 30),
        ("metadata/ownerReferences", []),
        ("metadata/annotations", None),
    ],
)
def test_what_is_done_to_ours_is_a_difference(path: str, value: Any) -> None:
    assert differs(_edit(path, value), WANTED)


def test_a_foreign_expression_in_a_selector_is_a_difference() -> None:
    found = live()
    found["webhooks"][0]["namespaceSelector"]["matchExpressions"].append(
        {"key": "x", "operator": "Exists"}
    )
    assert differs(found, WANTED)


AUTHORITY = issue_bundle(["127.0.0.1"], datetime(2026, 11, 29, tzinfo=UTC)).signer
OTHER = issue_bundle(["127.0.0.1"], datetime(2026, 11, 29, tzinfo=UTC)).signer


def test_it_is_told_which_authorities_it_carries() -> None:
    live = configuration(examples.settings(), AUTHORITY + OTHER, "uid")
    assert ca_bundles(live) == (AUTHORITY + OTHER, AUTHORITY + OTHER)
    assert carries(live, AUTHORITY)
    assert carries(live, OTHER + AUTHORITY)
    del live["webhooks"][1]["clientConfig"]["caBundle"]
    assert ca_bundles(live) == (AUTHORITY + OTHER, b"")
    assert not carries(live, AUTHORITY)
    del live["webhooks"][1]
    assert not carries(live, AUTHORITY)
    assert not carries(None, AUTHORITY)
    assert ca_bundles(None) == ()
    assert not carries(configuration(examples.settings(), OTHER, "uid"), AUTHORITY)
