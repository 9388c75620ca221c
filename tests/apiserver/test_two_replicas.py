"""Two replicas behind one address: one certificate, and either of them is enough."""

import base64
import ssl
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import pytest

import examples
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess
from relay import Relay
from shield_operator.certificates import issue_bundle
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
    before = secret(own_control_plane)["data"]
    other = issue_bundle(["127.0.0.1"], datetime.now(UTC)).as_secret_data()
    for garbage, complaint in (
        ({"tls.key": b"garbage"}, "tls.key is not a private key"),
        ({"tls.crt": b""}, "tls.crt is not a certificate"),
        ({"ca.crt": None}, "ca.crt is missing"),
        ({"tls.crt": other["tls.crt"]}, "tls.key is not the key of tls.crt"),
    ):
        put_into_secret(own_control_plane, garbage)

        def repaired() -> bool:
            assert_injects(own_control_plane, 1)
            return bool(secret(own_control_plane)["data"] == before)

        eventually(repaired)
        assert any(complaint in replica.log_tail(100) for replica in replicas)


def test_a_secret_that_openssl_reads_badly_is_served_all_the_same(
    own_control_plane: ControlPlane, replicas: Replicas, relay: Relay
) -> None:
    """Without its last line break, as ``--from-literal="$(cat tls.crt)"`` makes it."""
    del replicas
    data = {
        key: base64.b64decode(value) for key, value in secret(own_control_plane)["data"].items()
    }
    put_into_secret(own_control_plane, {key: value.rstrip() for key, value in data.items()})
    url = get(own_control_plane, WEBHOOKS)["webhooks"][0]["clientConfig"]["url"]
    with OperatorProcess(own_control_plane, webhook_url=url.removesuffix("/inject")) as fresh:
        relay.set_backends(fresh.webhook_port)
        fresh.wait_ready()
        assert_injects(own_control_plane, 3)


def put_into_secret(control_plane: ControlPlane, data: Mapping[str, bytes | None]) -> None:
    encoded = {
        key: None if value is None else base64.b64encode(value).decode()
        for key, value in data.items()
    }
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-tls"
    status, answer = control_plane.request("PATCH", path, {"data": encoded})
    assert status == HTTPStatus.OK, answer


def test_of_replicas_of_different_settings_one_is_followed(
    own_control_plane: ControlPlane, relay: Relay
) -> None:
    """As in a rollout that changes a setting: the leader's are written, once; both serve."""
    make_namespace(own_control_plane, "shop", INJECT)
    apply(own_control_plane, examples.config(namespace="shop", image=None, secretName=None))
    url = f"https://127.0.0.1:{relay.port}"
    changed = {"K8S_SIDECAR_IMAGE": examples.IMAGE, "FAILURE_POLICY": "Ignore"}
    with (
        OperatorProcess(own_control_plane, webhook_url=url) as old,
        OperatorProcess(own_control_plane, webhook_url=url, environment=changed) as new,
    ):
        relay.set_backends(old.webhook_port, new.webhook_port)
        old.wait_ready()
        new.wait_ready()
        time.sleep(5)
        for resource in ("mutatingwebhookconfigurations", "shieldsidecarconfigs"):
            asked = {"method": "PATCH", "resource": resource}
            writes = [r.metric("llm_shield_api_requests_total", **asked) for r in (old, new)]
            assert min(writes) == 0
            assert 1 <= max(writes) <= 2  # a status before, and with the pods' count
