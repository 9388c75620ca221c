"""What `check` makes of what it sees."""

import base64
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import examples
from shield_operator import webhook
from shield_operator.certificates import issue_bundle
from shield_operator.diagnosis import (
    GRANT,
    Answer,
    Connection,
    Facts,
    FactsBefore,
    Finding,
    Mark,
    Probe,
    Served,
    Unseen,
    as_json,
    check,
    check_before,
    installers_permissions,
    operators_permissions,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
BUNDLE = issue_bundle(["llm-shield-operator.llm-shield-system.svc"], NOW - timedelta(days=1))
SETTINGS = examples.settings()
UNSEEN = Unseen("you may not")
RBAC = Path(__file__).resolve().parents[2] / "manifests" / "base" / "rbac.yaml"


def hooks(authority: bytes = BUNDLE.signer) -> Any:
    return {
        "metadata": {"name": "llm-shield-operator"},
        **webhook.configuration(SETTINGS, authority, "uid"),
    }


DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "llm-shield-operator", "namespace": "llm-shield-system", "generation": 3},
    "spec": {"replicas": 2},
    "status": {"availableReplicas": 2, "observedGeneration": 3},
}
DEFINITION: dict[str, Any] = {
    "metadata": {"name": "shieldsidecarconfigs.llm-shield.io"},
    "spec": {"group": "llm-shield.io", "versions": [{"name": "v1alpha1", "served": True}]},
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}


def healthy(**other: Any) -> Facts:
    given: dict[str, Any] = {
        "version": {"gitVersion": "v1.36.3"},
        "definition": DEFINITION,
        "deployment": DEPLOYMENT,
        "webhooks": hooks(),
        "tls_secret": BUNDLE.as_secret_data(),
        "answers": (Answer("a", 200, "ok\n"), Answer("b", 200, "ok\n")),
        "connection": None,
        "lease": {"spec": {"holderIdentity": "a_1234"}},
        "lease_renewed": True,
        "permissions": dict.fromkeys(operators_permissions(SETTINGS), True),
        "probe": Probe("shop", pod={"metadata": {"labels": {"llm-shield.io/injected": "true"}}}),
    }
    return Facts(**{**given, **other})


def finding(title: str, **other: Any) -> Finding:
    now = other.pop("now", NOW)
    (found,) = [one for one in check(healthy(**other), SETTINGS, now) if one.title == title]
    return found


def test_all_is_well() -> None:
    found = check(healthy(), SETTINGS, NOW)
    assert [one.mark for one in found] == [Mark.GOOD] * len(found)
    assert [one["number"] for one in as_json(found)] == list(range(1, len(found) + 1))
    assert all(one.advice == "" for one in found)


def test_what_cannot_be_seen_is_unknown_never_good() -> None:
    unseen = healthy(
        definition=UNSEEN,
        deployment=UNSEEN,
        webhooks=UNSEEN,
        tls_secret=UNSEEN,
        answers=UNSEEN,
        lease=UNSEEN,
        permissions=UNSEEN,
        probe=UNSEEN,
    )
    marks = {one.title: one.mark for one in check(unseen, SETTINGS, NOW)}
    assert {title for title, mark in marks.items() if mark is Mark.GOOD} == {
        "API server",
        "native sidecars",
    }
    assert Mark.BAD not in marks.values()


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("API server", {"version": UNSEEN}, "you may not"),
    ("API server", {"version": {"gitVersion": "v1.29.9"}}, "it is v1.29.9"),
    ("API server", {"version": {"gitVersion": "nginx"}}, "is not a Kubernetes version"),
    ("definition", {"definition": None}, "there is no CustomResourceDefinition"),
    ("definition", {"definition": {**DEFINITION, "status": {}}}, "is not established"),
    ("definition", {"definition": {**DEFINITION, "spec": {}}}, "does not serve v1alpha1"),
    (
        "definition",
        {"definition": {**DEFINITION, "metadata": {"deletionTimestamp": "x"}}},
        "is being deleted",
    ),
    ("operator", {"deployment": None}, "there is no Deployment"),
    (
        "operator",
        {"deployment": {**DEPLOYMENT, "status": {"availableReplicas": 1}}},
        "1 of 2 replicas are available",
    ),
    (
        "operator",
        {"deployment": {**DEPLOYMENT, "spec": {"replicas": 0}, "status": {}}},
        "0 of 0 replicas are available",
    ),
    (
        "operator",
        {"deployment": {**DEPLOYMENT, "status": {"availableReplicas": 2}}},
        "has not been rolled out",
    ),
    ("webhooks", {"webhooks": None}, "nobody is asked"),
    ("webhooks", {"webhooks": {"webhooks": []}}, "both are missing"),
    ("CA bundle", {"webhooks": hooks(b"")}, "is not the authority in Secret"),
    ("CA bundle", {"tls_secret": {}}, "holds no ca.crt"),
    ("certificate", {"tls_secret": {"tls.crt": b"x"}}, "tls.crt holds no certificate"),
    ("certificate", {"now": NOW + timedelta(days=61)}, "28 days from now"),
    ("certificate", {"now": NOW + timedelta(days=90)}, "it has ended at 2026-08-29"),
    ("certificate", {"now": NOW - timedelta(days=2)}, "it is good from 2026-05-30"),
    (
        "replicas",
        {"answers": (Answer("a", 200, "ok"), Answer("b", 503, "the operator\nis stopping"))},
        "1 of 2 do not answer ready: b: the operator is stopping",
    ),
    ("replicas", {"answers": ()}, "the operator has no pods"),
    ("leader", {"lease": None}, "there is no Lease"),
    ("leader", {"lease": {"spec": {}}}, "nobody holds the Lease"),
    ("leader", {"lease_renewed": False}, "a_1234 holds the Lease, and does not renew it"),
    (
        "permissions",
        {"permissions": dict.fromkeys(operators_permissions(SETTINGS), False)},
        "may not list shieldsidecarconfigs.llm-shield.io, watch shieldsidecarconfigs.llm-shield.io",
    ),
    ("a pod", {"probe": Probe("shop", pod={"metadata": {}})}, "it would start bare"),
]


@pytest.mark.parametrize(("title", "facts", "saw"), BAD, ids=lambda value: str(value)[:40])
def test_what_is_wrong_is_said_with_what_to_do(title: str, facts: dict[str, Any], saw: str) -> None:
    found = finding(title, **facts)
    assert found.mark is Mark.BAD
    assert saw in found.saw
    assert found.advice


def test_a_certificate_is_good_until_the_operator_should_have_renewed_it() -> None:
    assert finding("certificate", now=NOW + timedelta(days=59)).mark is Mark.GOOD


def test_during_a_change_of_the_authority_the_signer_counts() -> None:
    new = issue_bundle(["x"], NOW).signer
    both = {**BUNDLE.as_secret_data(), "ca.crt": BUNDLE.signer + new}
    assert finding("CA bundle", tls_secret=both).mark is Mark.GOOD
    live = hooks(new + BUNDLE.signer)
    assert finding("CA bundle", webhooks=live).mark is Mark.GOOD
    turned = {**both, "ca.crt": new + BUNDLE.signer}
    assert finding("CA bundle", tls_secret=turned).mark is Mark.BAD


def test_one_of_the_webhooks_with_another_authority() -> None:
    live = hooks()
    live["webhooks"][1]["clientConfig"]["caBundle"] = base64.b64encode(b"x").decode()
    found = finding("CA bundle", webhooks=live)
    assert found.saw.startswith("that of pod.inject.llm-shield.io is not")


OURS = ("namespaceSelector", "objectSelector", "rules", "failurePolicy", "timeoutSeconds")


@pytest.mark.parametrize("key", [*OURS, "reinvocationPolicy", "sideEffects", "matchPolicy"])
def test_whatever_was_changed_is_named(key: str) -> None:
    live = hooks()
    del live["webhooks"][1][key]
    found = finding("webhooks", webhooks=live)
    assert found.mark is Mark.BAD
    assert found.saw == f"changed by somebody: {key} of pod.inject.llm-shield.io"


def test_somebody_elses_match_condition_is_told() -> None:
    live = hooks()
    live["webhooks"][0]["matchConditions"].append({"name": "theirs", "expression": "true"})
    found = finding("webhooks", webhooks=live)
    assert found.mark is Mark.GOOD
    assert "somebody has added match condition theirs to namespace.inject" in found.saw


def test_outside_of_the_cluster_the_webhooks_are_judged_by_themselves() -> None:
    """Nobody can read such an operator's settings: what the live object shows is taken for them."""
    settings = examples.settings(
        WEBHOOK_URL="https://127.0.0.1:9443", FAILURE_POLICY="Ignore", WEBHOOK_TIMEOUT_SECONDS="9"
    )
    live = webhook.configuration(settings, BUNDLE.signer, "uid")
    trusted = Connection(Served.TRUSTED, until=NOW + timedelta(days=30))
    outside = {"deployment": None, "webhooks": live, "answers": (), "connection": trusted}
    assert finding("webhooks", **outside).mark is Mark.GOOD
    assert finding("operator", **outside).mark is Mark.UNKNOWN
    assert finding("replicas", **outside).mark is Mark.GOOD
    files = {**outside, "tls_secret": None}
    assert finding("CA bundle", **files).mark is Mark.GOOD
    assert finding("certificate", **files).mark is Mark.GOOD
    ending = {**files, "connection": Connection(Served.TRUSTED, until=NOW + timedelta(days=6))}
    assert finding("certificate", **ending).mark is Mark.BAD
    other = {**files, "connection": Connection(Served.NOT_TRUSTED, "self-signed certificate")}
    assert finding("CA bundle", **other).mark is Mark.BAD
    assert "self-signed" in finding("CA bundle", **other).saw
    away = {**files, "connection": Connection(Served.OUT_OF_REACH, "no answer")}
    assert finding("CA bundle", **away).mark is Mark.UNKNOWN


def test_certificates_in_files_inside_of_the_cluster_are_left_to_the_probe() -> None:
    assert finding("CA bundle", tls_secret=None).mark is Mark.UNKNOWN
    assert finding("certificate", tls_secret=None).mark is Mark.UNKNOWN


def test_a_certificate_that_was_not_looked_at_is_not_called_missing() -> None:
    for connection in (None, Unseen("not reached"), Connection(Served.OUT_OF_REACH, "no answer")):
        unseen = {"tls_secret": Unseen("secrets may not be looked at"), "connection": connection}
        found = finding("certificate", **unseen)
        assert (found.mark, found.saw) == (Mark.UNKNOWN, "secrets may not be looked at")
    absent = {"tls_secret": None, "connection": Connection(Served.OUT_OF_REACH, "no answer")}
    assert "there is no Secret" in finding("certificate", **absent).saw


CALL = 'failed calling webhook "pod.inject.llm-shield.io": failed to call webhook: Post "https://x"'


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        ("tls: failed to verify certificate: x509: unknown authority", "the CA bundle does not"),
        ("dial tcp 10.0.0.1:9443: connect: connection refused", "nothing listens there"),
        ("no endpoints available for service", "no replica is ready"),
        ("context deadline exceeded", "let it reach port 9443"),
        ("net/http: request canceled (Client.Timeout exceeded): timeout", "let it reach port 9443"),
        ('service "llm-shield-operator" not found', "the Service is missing"),
        ("the server has asked for the client to provide credentials", "presents no token"),
        ("something new", "the operator's log says more"),
    ],
)
def test_a_webhook_that_is_not_reached(why: str, advice: str) -> None:
    found = finding("a pod", probe=Probe("shop", refusal=f"{CALL}: {why}"))
    assert found.mark is Mark.BAD
    assert found.advice.startswith(advice) or advice in found.advice


def test_a_refusal_of_ours_shows_that_the_webhook_is_reached() -> None:
    refusal = (
        'admission webhook "pod.inject.llm-shield.io" denied the request: not injected '
        "(no-sidecar-config): no config"
    )
    assert finding("a pod", probe=Probe("shop", refusal=refusal)).mark is Mark.GOOD


def test_a_refusal_of_others_tells_nothing() -> None:
    found = finding("a pod", probe=Probe("shop", refusal="exceeded quota: pods=10"))
    assert found.mark is Mark.UNKNOWN
    assert "exceeded quota" in found.saw


def test_old_clusters_get_plain_containers_and_are_told_so() -> None:
    found = finding("native sidecars", version={"gitVersion": "v1.30.14"})
    assert found.mark is Mark.GOOD
    assert "plain container" in found.saw


# --- Permissions ----------------------------------------------------------------------------------


def test_the_operators_permissions_are_those_of_the_manifest() -> None:
    """Both ways: nothing is granted that is not checked, and nothing checked that is not."""
    granted = set()
    for document in yaml.safe_load_all(RBAC.read_text(encoding="utf-8")):
        if document["kind"] not in ("Role", "ClusterRole"):
            continue
        namespace = document["metadata"].get("namespace")
        for rule in document["rules"]:
            granted |= {
                (verb, group, resource, name, namespace)
                for verb in rule["verbs"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for name in rule.get("resourceNames", [None])
            }
    checked = {
        (one.verb, one.group, one.resource, one.name, one.namespace)
        for one in operators_permissions(SETTINGS)
    }
    assert checked == granted


def test_the_installers_permissions_are_for_every_kind_of_the_manifest() -> None:
    install = RBAC.parents[1] / "install.yaml"
    kinds = {
        document["kind"].lower()
        for document in yaml.safe_load_all(install.read_text(encoding="utf-8"))
    }
    plurals = {one.resource for one in installers_permissions(SETTINGS)}
    assert {re.sub("s$", "", plural) for plural in plurals} == kinds


def test_an_access_review_takes_a_subresource_apart() -> None:
    (status,) = [one for one in operators_permissions(SETTINGS) if "/" in one.resource]
    assert status.attributes() == {
        "verb": "patch",
        "group": "llm-shield.io",
        "resource": "shieldsidecarconfigs",
        "subresource": "status",
    }


# --- Before an installation -----------------------------------------------------------------------


def before(**other: Any) -> dict[str, Finding]:
    every = (*installers_permissions(SETTINGS), *operators_permissions(SETTINGS))
    given: dict[str, Any] = {
        "version": {"gitVersion": "v1.36.3"},
        "installer": dict.fromkeys(every, True),
    }
    found = check_before(FactsBefore(**{**given, **other}), SETTINGS)
    return {one.title: one for one in found}


def test_before_an_installation_all_is_well() -> None:
    assert {one.mark for one in before().values()} == {Mark.GOOD}


def test_over_an_installation_it_is_told_that_there_is_one() -> None:
    found = before(definition=DEFINITION, deployment=DEPLOYMENT)
    assert {one.mark for one in found.values()} == {Mark.GOOD}
    assert "is there already" in found["definition"].saw
    assert "is there already" in found["operator"].saw


def test_before_an_installation_what_is_missing_is_named() -> None:
    may = dict.fromkeys(installers_permissions(SETTINGS), True)
    cannot_grant = dict.fromkeys(operators_permissions(SETTINGS), False)
    found = before(installer={**cannot_grant, **may})
    assert found["installing"].mark is Mark.GOOD
    assert found["granting"].mark is Mark.BAD
    assert before(installer={**cannot_grant, **may, GRANT: True})["granting"].mark is Mark.GOOD
    assert before(installer=cannot_grant)["installing"].mark is Mark.BAD
    assert before(serves_webhooks=False)["admission webhooks"].mark is Mark.BAD
    assert before(installer=UNSEEN)["installing"].mark is Mark.UNKNOWN
