"""Secrets: their coming and going is noticed, and almost no pod waits for a look at them."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

import examples
from controlplane import ControlPlane
from localoperator import NAMESPACE, OperatorProcess, install
from support import (
    INJECT,
    WebhookClient,
    apply,
    create,
    create_pod,
    eventually,
    make_namespace,
    wait_reason,
)

QUIET = 600.0
"""Seconds: not within a test."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        install(running)
        yield running


def replica(cluster: ControlPlane, **paces: float) -> OperatorProcess:
    """One that looks at its own certificate once, so that its looks at Secrets can be counted."""
    found = {f"main.{name}": pace for name, pace in paces.items()}
    return OperatorProcess(cluster, paces={"main.CERTIFICATE_INTERVAL": QUIET, **found})


def looks(operator: OperatorProcess) -> float:
    return operator.metric("llm_shield_api_requests_total", method="GET", resource="secrets")


def make_secret(cluster: ControlPlane, namespace: str, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    create(cluster, f"/api/v1/namespaces/{namespace}/secrets", body)


def test_a_secret_that_comes_and_goes_is_noticed_by_itself(cluster: ControlPlane) -> None:
    make_namespace(cluster, "shop", INJECT)
    with replica(cluster, SECRETS_INTERVAL=1.0) as operator:
        operator.wait_ready()
        apply(cluster, examples.config(namespace="shop"))
        condition = wait_reason(cluster, "shop", "shield", "SecretNotFound")
        assert "Secret keys is not in namespace shop" in condition["message"]
        make_secret(cluster, "shop", "keys")
        wait_reason(cluster, "shop", "shield", "Accepted")
        cluster.kubectl("delete", "secret", "keys", "--namespace=shop")
        wait_reason(cluster, "shop", "shield", "SecretNotFound")
        assert operator.interrupt() == 0


@pytest.fixture(scope="module")
def operator(cluster: ControlPlane) -> Iterator[OperatorProcess]:
    """One that looks at Secrets when a config changes, and not in between."""
    with replica(cluster, SECRETS_INTERVAL=QUIET) as found:
        found.wait_ready()
        eventually(lambda: found.metric("llm_shield_leading") == 1)
        yield found


def test_a_change_of_a_config_costs_one_look(
    cluster: ControlPlane, operator: OperatorProcess
) -> None:
    """Not a second one for the echo of the status that was written then.

    Tried twice, since the look that is due every minute may fall into one of the tries.
    """
    costs = []
    for namespace in ("once", "again"):
        make_namespace(cluster, namespace, INJECT)
        make_secret(cluster, namespace, "keys")
        before = looks(operator)
        apply(cluster, examples.config(namespace=namespace))
        wait_reason(cluster, namespace, "shield", "Accepted")
        time.sleep(1)
        created = looks(operator)
        cluster.kubectl("annotate", "ssc/shield", "touched=now", f"--namespace={namespace}")
        time.sleep(1)
        costs += [created - before, looks(operator) - created]
    assert (min(costs[::2]), min(costs[1::2])) == (1, 1)


def requests(operator: OperatorProcess) -> float:
    return operator.metric("llm_shield_api_requests_total")


def test_a_pod_costs_no_call_to_the_api_server(
    cluster: ControlPlane, operator: OperatorProcess
) -> None:
    make_namespace(cluster, "many", INJECT)
    apply(cluster, examples.config(namespace="many"))
    wait_reason(cluster, "many", "shield", "SecretNotFound")
    webhook = WebhookClient(cluster, operator.webhook_port)
    before, begin = requests(operator), time.monotonic()
    for _ in range(200):
        response = webhook.review("many", examples.pod())
        assert response["warnings"] == [
            "Secret keys is not in namespace many: the pod will wait until it is"
        ]
    seconds = time.monotonic() - begin
    assert requests(operator) - before < 50 + 5 * seconds  # what its loops do by themselves


def test_names_that_no_status_tells_of_are_looked_up_once(
    cluster: ControlPlane, operator: OperatorProcess
) -> None:
    make_namespace(cluster, "own", INJECT)
    apply(cluster, examples.config(namespace="own", secretName=None))
    wait_reason(cluster, "own", "shield", "Accepted")
    make_secret(cluster, "own", "there")
    before = looks(operator)
    for name, warns in (("there", False), ("missing", True)):
        pod = examples.pod(annotations={"llm-shield.io/keys-secret": name})
        webhook = WebhookClient(cluster, operator.webhook_port)
        for _ in range(20):
            assert told(webhook.review("own", pod), name) is warns
    assert looks(operator) - before == 2


def told(response: Any, name: str) -> bool:
    """Whether the maker of the pod is told that the Secret is not there."""
    return any(line.startswith(f"Secret {name} is not in") for line in response.get("warnings", ()))


def test_the_clusters_default_has_its_secret_looked_up_where_the_pod_is(
    cluster: ControlPlane, operator: OperatorProcess
) -> None:
    for namespace in ("with-keys", "without-keys"):
        make_namespace(cluster, namespace, INJECT)
    make_secret(cluster, "with-keys", "keys")
    apply(cluster, examples.config("default", NAMESPACE))
    wait_reason(cluster, NAMESPACE, "default", "Accepted")
    webhook = WebhookClient(cluster, operator.webhook_port)
    assert told(webhook.review("without-keys", examples.pod()), "keys")
    assert not told(webhook.review("with-keys", examples.pod()), "keys")
    cluster.kubectl("delete", "ssc", "default", f"--namespace={NAMESPACE}")


def test_a_frozen_api_server_delays_a_pod_by_half_a_second_at_most(
    cluster: ControlPlane, operator: OperatorProcess
) -> None:
    """Another API server of the same cluster may ask while the one that we ask is frozen."""
    make_namespace(cluster, "frozen", INJECT)
    apply(cluster, examples.config(namespace="frozen", secretName=None))
    wait_reason(cluster, "frozen", "shield", "Accepted")
    webhook = WebhookClient(cluster, operator.webhook_port)
    pod = examples.pod(annotations={"llm-shield.io/keys-secret": "unknown"})
    cluster.pause()
    try:
        for longest in (2.0, 0.5):  # nobody waits for the same name again
            begin = time.monotonic()
            response = webhook.review("frozen", pod)
            assert time.monotonic() - begin < longest
            assert response["patchType"] == "JSONPatch"
            assert not told(response, "unknown")
            time.sleep(0.5)
    finally:
        cluster.resume()
    assert create_pod(cluster, "frozen", pod)[0] == 201
