"""The log: one line a decision for debugging, one a change of outcome, and nobody's secrets."""

import base64
import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
import yaml

import examples
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess, install
from support import (
    INJECT,
    WebhookClient,
    apply,
    create,
    create_pod,
    get,
    make_namespace,
    wait_reason,
)

MARKER = "do-not-log-this"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        install(running)
        make_namespace(running, "shop", INJECT)
        yield running


@pytest.fixture(scope="module")
def operator(cluster: ControlPlane) -> Iterator[OperatorProcess]:
    """One that logs all it can."""
    environment = {"LOG_LEVEL": "DEBUG", "LOG_FORMAT": "json"}
    with OperatorProcess(cluster, environment=environment) as replica:
        yield replica.wait_ready()


def lines(operator: OperatorProcess) -> list[dict[str, Any]]:
    """The log, each line an object."""
    return [json.loads(line) for line in operator.log.read_text(encoding="utf-8").splitlines()]


def marked(pod: Any) -> Any:
    """The pod with secrets wherever one may be."""
    pod["metadata"].setdefault("annotations", {})["example.com/token"] = MARKER
    pod["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": MARKER}]
    pod["spec"]["containers"][0]["args"] = [f"--password={MARKER}"]
    return pod


def test_decisions_and_changes_are_lines_of_their_own(
    cluster: ControlPlane, operator: OperatorProcess
) -> None:
    apply(cluster, examples.config(namespace="shop", secretName=None))
    wait_reason(cluster, "shop", "shield", "Accepted")
    for owned in (examples.pod(owner="Crontab", hostNetwork=True), examples.pod(owner="Crontab")):
        for _ in range(3):
            assert create_pod(cluster, "shop", owned)[0] == HTTPStatus.CREATED
    ours = [line for line in lines(operator) if "outcome" in line]
    changes = [line["outcome"] for line in ours if line["severity"] == "info"]
    assert changes == ["skipped", "injected"]
    decisions = [line["outcome"] for line in ours if line["severity"] == "debug"]
    assert decisions.count("skipped") >= 3  # the API server may ask twice about a pod
    assert decisions.count("injected") >= 3
    first = next(line for line in ours if line["severity"] == "info")
    assert first["reason"] == "host-network"
    assert (first["namespace"], first["pod"]) == ("shop", "web-…")
    assert first["owner"] == "Crontab shop/o"
    assert first["message"].startswith("pods of Crontab shop/o: skipped (host-network): the pod ")


def test_no_secret_and_no_body_is_logged_even_for_debugging(
    cluster: ControlPlane, operator: OperatorProcess
) -> None:
    """Neither of pods, configs, Secrets and reviews, nor of the operator itself."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "marked"}}
    encoded = base64.b64encode(MARKER.encode()).decode()
    create(cluster, "/api/v1/namespaces/shop/secrets", secret | {"data": {"VIRTUAL_KEYS": encoded}})
    env = [{"name": "UPSTREAM_PASSWORD", "value": MARKER}]
    apply(cluster, examples.config("marked", "shop", secretName="marked", env=env))
    wait_reason(cluster, "shop", "marked", "Accepted")
    apply(cluster, examples.config("broken", "shop", image=None, env=env))
    wait_reason(cluster, "shop", "broken", "Invalid")
    chosen = {"llm-shield.io/config": "marked", "llm-shield.io/keys-secret": "absent"}
    broken = {"llm-shield.io/config": "broken"}
    for pod in (
        examples.pod(annotations=chosen),
        examples.pod(annotations=broken),
        examples.pod(annotations=chosen, hostNetwork=True),
    ):
        assert create_pod(cluster, "shop", marked(pod))[0] == HTTPStatus.CREATED
    webhook = WebhookClient(cluster)
    body = webhook.body("shop", marked(examples.pod()))
    assert webhook.request(body[:-20])[0] == HTTPStatus.BAD_REQUEST
    assert webhook.request(body.replace(b"namespace", MARKER.encode()))[0] == 400
    text = operator.log.read_text(encoding="utf-8")
    assert "marked" in text  # it did log what it did
    kubeconfig = cluster.kubeconfig_for(NAME, NAMESPACE).read_text(encoding="utf-8")
    own_token = yaml.safe_load(kubeconfig)["users"][0]["user"]["token"]
    tls = get(cluster, f"/api/v1/namespaces/{NAMESPACE}/secrets/llm-shield-operator-tls")["data"]
    for hidden in (MARKER, encoded, own_token, "PRIVATE KEY", *tls.values()):
        assert hidden not in text
