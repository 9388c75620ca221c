"""Each golden case through the running operator and the real API server, and then again."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from http import HTTPStatus
from typing import Any

import jsonpatch
import pytest

from controlplane import ControlPlane
from golden.cases import CASES, Case
from localoperator import OperatorProcess, install
from shield_operator.model import is_dns_subdomain
from shield_operator.selection import is_opted_in
from support import (
    WebhookClient,
    apply,
    create_pod,
    has_native_sidecars,
    holds,
    make_namespace,
    operations,
    server_version,
    wait_reason,
)


class Clusters:
    """A control plane with a running operator for each kind of settings, with all that it needs."""

    def __init__(self, control_plane: ControlPlane, exit_stack: ExitStack) -> None:
        self._default = control_plane
        self._exit_stack = exit_stack
        self._prepared: dict[str, ControlPlane] = {}

    def of(self, case: Case) -> ControlPlane:
        """Where this case is tried."""
        kind = json.dumps(case.environment, sort_keys=True)
        if kind not in self._prepared:
            cluster = self._default
            environment = dict(case.environment)
            if not has_native_sidecars(cluster):  # as the cases expect them, this version told so
                environment.setdefault("K8S_FEATURE_GATES", "SidecarContainers=true")
            if environment:
                cluster = self._exit_stack.enter_context(ControlPlane.start())
                install(cluster)
                replica = OperatorProcess(cluster, environment=environment)
                self._exit_stack.enter_context(replica).wait_ready()
            prepare(cluster, [one for one in CASES if one.environment == case.environment])
            self._prepared[kind] = cluster
        return self._prepared[kind]


def prepare(cluster: ControlPlane, cases: list[Case]) -> None:
    """Every case's namespace with its configs and Secrets, and the operator knows them."""
    for case in cases:
        metadata = case.namespace["metadata"]
        make_namespace(cluster, metadata["name"], metadata.get("labels"))
    everything = [config for case in cases for config in case.configs]
    apply(cluster, *(secret for case in cases for secret in secrets(case)), *everything)
    for case in cases:
        for entry in case.index():
            reason = "Invalid" if entry.problems else "Accepted"
            wait_reason(cluster, entry.ref.namespace, entry.ref.name, reason)


def secrets(case: Case) -> list[Any]:
    """Every Secret that the case's pod or its configs name, in the pod's namespace."""
    annotations = case.pod["metadata"].get("annotations") or {}
    wanted = {annotations.get("llm-shield.io/keys-secret"), case.settings.sidecar_secret_name}
    for config in case.configs:
        mounts = config["spec"].get("secretMounts", [])
        wanted |= {config["spec"].get("secretName"), *(mount["secretName"] for mount in mounts)}
    namespace = case.namespace["metadata"]["name"]
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name}}
        for name in sorted(name for name in wanted if name and is_dns_subdomain(name))
    ]


@pytest.fixture(scope="module")
def clusters(control_plane: ControlPlane, operator: OperatorProcess) -> Iterator[Clusters]:
    del operator
    with ExitStack() as exit_stack:
        yield Clusters(control_plane, exit_stack)


def is_asked(case: Case) -> bool:
    """Whether the API server asks the webhook about the case's pod."""
    metadata = case.namespace["metadata"]
    labels = case.pod["metadata"].get("labels") or {}
    return is_opted_in(labels, metadata["name"], metadata.get("labels", {}), case.settings)


def denial(case: Case) -> str:
    """What the answer of a case whose pod is refused says; empty where it is not."""
    outcome, *warnings = case.reason.splitlines()
    return warnings[0] if outcome.startswith("denied: ") else ""


UNKNOWN_FIELDS: dict[tuple[int, int], frozenset[str]] = {
    (1, 31): frozenset({"matchLabelKeys", "mismatchLabelKeys"}),
}
"""Fields of an affinity that API servers before a version drop, whoever sends them."""

UNKNOWN_KINDS = {"payload-as-image-volume": (1, 31), "skip-pod-resources": (1, 32)}
"""Cases about what API servers have from a version on: before, the sidecar is injected plainly."""


def is_known(case: Case, cluster: ControlPlane) -> bool:
    """Whether the API server has what the case is about."""
    return server_version(cluster) >= UNKNOWN_KINDS.get(case.name, (0, 0))


def as_known(value: Any, version: tuple[int, int]) -> Any:
    """A value without the fields that an API server of that version drops."""
    if isinstance(value, list):
        return [as_known(one, version) for one in value]
    if not isinstance(value, dict):
        return value
    unknown = {key for since, keys in UNKNOWN_FIELDS.items() if version < since for key in keys}
    return {key: as_known(one, version) for key, one in value.items() if key not in unknown}


ASKED = [case for case in CASES if is_asked(case)]


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_the_webhook_answers_as_expected(case: Case, clusters: Clusters) -> None:
    """Straight to the webhook: exactly the expected pod, and the expected warnings."""
    webhook = WebhookClient(clusters.of(case))
    namespace = case.namespace["metadata"]["name"]
    response = webhook.review(namespace, case.pod)
    assert response["allowed"] is not bool(denial(case))
    if denial(case):
        assert (response["status"]["code"], response["status"]["message"]) == (403, denial(case))
        return
    patched: Any = jsonpatch.apply_patch(case.pod, operations(response))
    if is_known(case, clusters.of(case)) or case.name == "skip-pod-resources":
        assert patched == case.expected
    else:
        assert {"name": "llm-shield-payload", "emptyDir": {}} in patched["spec"]["volumes"]
    warnings = case.reason.splitlines()[1:]
    assert response.get("warnings", []) == warnings
    assert operations(webhook.review(namespace, patched)) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_api_server_takes_the_result(case: Case, clusters: Clusters) -> None:
    """Through the API server, which asks the webhook, validates the result, and defaults it."""
    namespace = case.namespace["metadata"]["name"]
    cluster = clusters.of(case)
    status, pod = create_pod(cluster, namespace, case.pod)
    if denial(case):
        assert status == HTTPStatus.FORBIDDEN
        assert denial(case) in pod["message"]
        return
    assert status == HTTPStatus.CREATED, json.dumps(pod)
    if not is_known(case, cluster):
        assert outcome(pod)["llm-shield.io/injected"] == "true"
        assert "llm-shield-proxy" in names(pod)
        return
    assert outcome(pod) == outcome(case.expected)
    assert names(pod) == names(case.expected)
    assert holds(shape(pod), as_known(shape(case.expected), server_version(cluster)))


def shape(pod: Any) -> Any:
    """The part of a pod that the API server's own plugins add nothing to but defaults."""
    kept = ("affinity", "nodeSelector", "imagePullSecrets", "hostIPC")
    shown = {key: pod["spec"][key] for key in kept if pod["spec"].get(key)}
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    fields = ("args", "command", "env", "envFrom", "image", "resources", "securityContext")
    shown["containers"] = [{key: c[key] for key in fields if c.get(key)} for c in containers]
    return shown


def outcome(pod: Any) -> dict[str, str]:
    metadata = pod["metadata"]
    found = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return {key: value for key, value in found.items() if key.startswith("llm-shield.io/")}


def names(pod: Any) -> list[str]:
    spec = pod["spec"]
    return [c["name"] for c in [*(spec.get("initContainers") or []), *spec["containers"]]]
