"""Each golden case through the running operator and the real API server, and then again."""

import json
from http import HTTPStatus
from typing import Any

import jsonpatch
import pytest

import examples
from controlplane import ControlPlane
from golden.cases import CASES, Case
from localoperator import OperatorProcess
from shield_operator.model import is_dns_subdomain
from shield_operator.names import KEYS_SECRET_ANNOTATION
from shield_operator.pods import annotations
from shield_operator.selection import is_opted_in
from support import WebhookClient, apply, create_pod, make_namespace, operations, wait_reason


@pytest.fixture(scope="module")
def namespaces(control_plane: ControlPlane, operator: OperatorProcess) -> ControlPlane:
    """Every case's namespace with its configs and all Secrets, and the operator knows them."""
    del operator
    for case in CASES:
        metadata = case.namespace["metadata"]
        make_namespace(control_plane, metadata["name"], metadata.get("labels"))
    everything = [config for case in CASES for config in case.configs]
    secrets = {
        (config["metadata"]["namespace"], config["spec"]["secretName"])
        for config in everything
        if "secretName" in config["spec"]
    }
    secrets |= {
        (case.namespace["metadata"]["name"], secret)
        for case in CASES
        if is_dns_subdomain(secret := annotations(case.pod).get(KEYS_SECRET_ANNOTATION, ""))
    }
    apply(
        control_plane,
        *(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": ns, "name": name}}
            for ns, name in sorted(secrets)
        ),
        *everything,
    )
    for config in everything:
        metadata = config["metadata"]
        reason = "Accepted" if "image" in config["spec"] else "Invalid"
        wait_reason(control_plane, metadata["namespace"], metadata["name"], reason)
    return control_plane


def is_asked(case: Case) -> bool:
    """Whether the API server asks the webhook about the case's pod."""
    metadata = case.namespace["metadata"]
    labels = case.pod["metadata"].get("labels") or {}
    return is_opted_in(labels, metadata["name"], metadata.get("labels", {}), examples.settings())


ASKED = [case for case in CASES if is_asked(case)]


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_the_webhook_answers_as_expected(case: Case, namespaces: ControlPlane) -> None:
    """Straight to the webhook: exactly the expected pod, and the expected warnings."""
    webhook = WebhookClient(namespaces)
    namespace = case.namespace["metadata"]["name"]
    response = webhook.review(namespace, case.pod)
    assert response["allowed"] is True
    patched: Any = jsonpatch.apply_patch(case.pod, operations(response))
    assert patched == case.expected
    warnings = case.reason.splitlines()[1:]
    assert response.get("warnings", []) == warnings
    assert operations(webhook.review(namespace, patched)) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_api_server_takes_the_result(case: Case, namespaces: ControlPlane) -> None:
    """Through the API server, which asks the webhook, validates the result, and defaults it."""
    namespace = case.namespace["metadata"]["name"]
    status, pod = create_pod(namespaces, namespace, case.pod)
    assert status == HTTPStatus.CREATED, json.dumps(pod)
    assert outcome(pod) == outcome(case.expected)
    assert names(pod) == names(case.expected)


def outcome(pod: Any) -> dict[str, str]:
    metadata = pod["metadata"]
    found = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return {key: value for key, value in found.items() if key.startswith("llm-shield.io/")}


def names(pod: Any) -> list[str]:
    spec = pod["spec"]
    return [c["name"] for c in [*(spec.get("initContainers") or []), *spec["containers"]]]
