"""Two replicas behind one address: one certificate, and either of them is enough."""

import base64
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

import examples
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess
from relay import Relay
from support import (
    INJECT,
    WEBHOOKS,
    apply,
    create_pod,
    eventually,
    get,
    has_sidecar,
    make_namespace,
    wait_reason,
)

Replicas = tuple[OperatorProcess, OperatorProcess]


@pytest.fixture
def relay() -> Iterator[Relay]:
    with Relay() as running:
        yield running


@pytest.fixture
def replicas(own_control_plane: ControlPlane, relay: Relay) -> Iterator[Replicas]:
    """Both started at once on an empty cluster, both announcing the relay."""
    make_namespace(own_control_plane, "shop", INJECT)
    apply(own_control_plane, examples.config(namespace="shop", secretName=None))
    url = f"https://127.0.0.1:{relay.port}"
    with (
        OperatorProcess(own_control_plane, webhook_url=url) as first,
        OperatorProcess(own_control_plane, webhook_url=url) as second,
    ):
        relay.set_backends(first.webhook_port, second.webhook_port)
        first.wait_ready()
        second.wait_ready()
        wait_reason(own_control_plane, "shop", "shield", "Accepted")
        yield first, second


def served_certificate(operator: OperatorProcess) -> str:
    return ssl.get_server_certificate(("127.0.0.1", operator.webhook_port))


def secret(control_plane: ControlPlane) -> Any:
    return get(control_plane, f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-tls")


def assert_injects(control_plane: ControlPlane, times: int = 10) -> None:
    for _ in range(times):
        status, pod = create_pod(control_plane, "shop", examples.pod())
        assert status == HTTPStatus.CREATED, pod
        assert has_sidecar(pod)


def test_they_share_one_certificate(own_control_plane: ControlPlane, replicas: Replicas) -> None:
    first, second = replicas
    data = secret(own_control_plane)["data"]
    leaf = base64.b64decode(data["tls.crt"]).decode()
    assert served_certificate(first).split() == served_certificate(second).split() == leaf.split()
    for hook in get(own_control_plane, WEBHOOKS)["webhooks"]:
        assert hook["clientConfig"]["caBundle"] == data["ca.crt"]
    assert_injects(own_control_plane)


@pytest.mark.parametrize("survivor", [0, 1])
def test_either_may_be_stopped(
    own_control_plane: ControlPlane, replicas: Replicas, survivor: int
) -> None:
    replicas[1 - survivor].terminate()
    assert_injects(own_control_plane, 30)
    assert replicas[1 - survivor].wait() == 0
    assert_injects(own_control_plane, 30)


@pytest.mark.parametrize("survivor", [0, 1])
def test_either_may_be_killed(
    own_control_plane: ControlPlane, replicas: Replicas, survivor: int
) -> None:
    """The API server may meet the dead one once on a connection that it kept: never a bare pod."""
    replicas[1 - survivor].kill()
    created = []
    for _ in range(30):
        status, pod = create_pod(own_control_plane, "shop", examples.pod())
        created.append(status)
        assert status != HTTPStatus.CREATED or has_sidecar(pod)
    assert created.count(HTTPStatus.CREATED) >= 29
    assert_injects(own_control_plane)


def test_a_deleted_secret_comes_back_and_nobody_notices(
    own_control_plane: ControlPlane, replicas: Replicas
) -> None:
    first, _ = replicas
    before = secret(own_control_plane)["data"]
    own_control_plane.kubectl("delete", "secret", f"{NAME}-tls", f"--namespace={NAMESPACE}")

    def restored() -> bool:
        assert_injects(own_control_plane, 1)
        return secret(own_control_plane) is not None

    eventually(restored)
    assert secret(own_control_plane)["data"] == before
    assert served_certificate(first)


def test_garbage_in_the_secret_is_replaced_and_nobody_notices(
    own_control_plane: ControlPlane, replicas: Replicas
) -> None:
    first, _ = replicas
    before = secret(own_control_plane)["data"]
    own_control_plane.kubectl(
        "patch",
        "secret",
        f"{NAME}-tls",
        f"--namespace={NAMESPACE}",
        "--type=merge",
        '--patch={"data": {"tls.key": "Z2FyYmFnZQ=="}}',
    )

    def repaired() -> bool:
        assert_injects(own_control_plane, 1)
        return bool(secret(own_control_plane)["data"] == before)

    eventually(repaired)
    assert any("tls.key is not a private key" in r.log_tail(100) for r in replicas)
    assert served_certificate(first)
