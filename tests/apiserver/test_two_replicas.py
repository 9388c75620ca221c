"""Two replicas behind one address: one certificate, and either of them is enough."""

import base64
import ssl
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

import examples
from authorities import OwnAuthority, spoiled_authority
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess
from relay import Relay
from shield_operator.certificates import KeyPair, issue_bundle, read_bundle, split_certificates
from shield_operator.certificates.issuing import issue_leaf
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
    end = read_bundle(decoded(own_control_plane)).leaf_validity.not_after.timestamp()
    for replica in replicas:
        assert replica.metric("llm_shield_certificate_not_after_seconds") == end
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


def decoded(control_plane: ControlPlane) -> dict[str, bytes]:
    """The content of the shared Secret; nothing where it is absent."""
    data = (secret(control_plane) or {"data": {}})["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}


def wait_changed(
    control_plane: ControlPlane, replicas: Replicas, before: Mapping[str, bytes]
) -> None:
    """Wait until both serve another leaf than before, creating pods all the time."""

    def changed() -> bool:
        assert_injects(control_plane, 1)
        leaf = decoded(control_plane).get("tls.crt", before["tls.crt"]).decode().split()
        return leaf != before["tls.crt"].decode().split() and all(
            served_certificate(replica).split() == leaf for replica in replicas
        )

    eventually(changed, timeout=40)
    for hook in get(control_plane, WEBHOOKS)["webhooks"]:
        bundle = base64.b64decode(hook["clientConfig"]["caBundle"])
        authorities = split_certificates(bundle)
        # The old one stays for a while, for whoever still serves it.
        assert set(authorities) >= set(split_certificates(before["ca.crt"]))
        assert set(authorities) >= set(split_certificates(decoded(control_plane)["ca.crt"]))


def test_a_deleted_secret_is_issued_anew_and_nobody_notices(
    own_control_plane: ControlPlane, replicas: Replicas
) -> None:
    before = decoded(own_control_plane)
    own_control_plane.kubectl("delete", "secret", f"{NAME}-tls", f"--namespace={NAMESPACE}")
    wait_changed(own_control_plane, replicas, before)
    assert any("created Secret" in replica.log_tail(100) for replica in replicas)


def test_garbage_in_the_secret_is_replaced_and_nobody_notices(
    own_control_plane: ControlPlane, replicas: Replicas
) -> None:
    other = issue_bundle(["127.0.0.1"], datetime.now(UTC)).as_secret_data()
    for garbage, complaint in (
        ({"tls.key": b"garbage"}, "tls.key is not a private key"),
        ({"tls.crt": b""}, "tls.crt is not a certificate"),
        ({"ca.crt": None}, "ca.crt is missing"),
        ({"tls.crt": other["tls.crt"]}, "tls.key is not the key of tls.crt"),
    ):
        before = decoded(own_control_plane)
        put_into_secret(own_control_plane, garbage)
        wait_changed(own_control_plane, replicas, before)
        assert any(complaint in replica.log_tail(100) for replica in replicas)


def test_an_authority_damaged_deep_inside_is_replaced_and_nobody_notices(
    own_control_plane: ControlPlane, replicas: Replicas
) -> None:
    """Rather than ending both replicas, and each one that starts after them."""
    before = decoded(own_control_plane)
    put_into_secret(own_control_plane, {"ca.crt": spoiled_authority(before["ca.crt"])})
    wait_changed(own_control_plane, replicas, before)
    assert any("holds what cannot be read" in replica.log_tail(100) for replica in replicas)


def test_a_replaced_authority_is_published_before_it_serves_and_nobody_notices(
    own_control_plane: ControlPlane, replicas: Replicas
) -> None:
    before = decoded(own_control_plane)
    put_into_secret(own_control_plane, OwnAuthority("rsa").secret_data("IP:127.0.0.1"))
    wait_changed(own_control_plane, replicas, before)


def test_a_leaf_about_to_end_is_renewed_and_nobody_notices(
    own_control_plane: ControlPlane, replicas: Replicas
) -> None:
    before = decoded(own_control_plane)
    ending = issue_leaf(
        KeyPair(before["ca.crt"], before["ca.key"]),
        sorted(read_bundle(before).hosts),
        datetime.now(UTC) - timedelta(days=90) + timedelta(minutes=1),
    )
    put_into_secret(own_control_plane, {"tls.crt": ending.certificate, "tls.key": ending.key})
    wait_changed(own_control_plane, replicas, {**before, "tls.crt": ending.certificate})
    assert decoded(own_control_plane)["ca.crt"] == before["ca.crt"]
    assert any("it is good from" in replica.log_tail(100) for replica in replicas)


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

        def writes() -> list[float]:
            kinds = ("mutatingwebhookconfigurations", "shieldsidecarconfigs")
            asked = [{"method": "PATCH", "resource": kind} for kind in kinds]
            return [
                r.metric("llm_shield_api_requests_total", **a) for r in (old, new) for a in asked
            ]

        def settled() -> list[float] | None:
            before = writes()
            time.sleep(3)
            return before if writes() == before and max(before) > 0 else None

        found = eventually(settled)
        assert 0 in (sum(found[:2]), sum(found[2:]))  # one replica has written, and both kinds
        assert min(found[:2] if sum(found[:2]) else found[2:]) > 0


def test_a_rollout_from_the_secret_to_files_comes_to_its_end_and_nobody_notices(
    own_control_plane: ControlPlane, relay: Relay, tmp_path: Path
) -> None:
    """The leader goes only when the newcomer is ready, and knows nothing of its authority."""
    make_namespace(own_control_plane, "shop", INJECT)
    apply(own_control_plane, examples.config(namespace="shop", secretName=None))
    url = f"https://127.0.0.1:{relay.port}"
    authority = OwnAuthority("ec", "theirs")
    environment = {}
    for variable, content in zip(
        ("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"),
        (*authority.issue("IP:127.0.0.1"), authority.certificate),
        strict=True,
    ):
        (tmp_path / variable).write_bytes(content)
        environment[variable] = str(tmp_path / variable)

    with OperatorProcess(own_control_plane, webhook_url=url) as old:
        relay.set_backends(old.webhook_port)
        old.wait_ready()
        wait_reason(own_control_plane, "shop", "shield", "Accepted")
        with OperatorProcess(own_control_plane, webhook_url=url, environment=environment) as new:

            def ready() -> bool:
                assert_injects(own_control_plane, 1)
                try:
                    return new.get("/readyz")[0] == HTTPStatus.OK
                except OSError:
                    return False

            eventually(ready, timeout=60)
            relay.set_backends(old.webhook_port, new.webhook_port)
            assert_injects(own_control_plane, 20)
            applied = {"method": "PATCH", "resource": "mutatingwebhookconfigurations"}
            before = old.metric("llm_shield_api_requests_total", **applied)
            time.sleep(5)
            assert old.metric("llm_shield_api_requests_total", **applied) == before
            old.terminate()
            assert_injects(own_control_plane, 20)
            assert old.wait() == 0
            relay.set_backends(new.webhook_port)

            def leads() -> bool:
                assert_injects(own_control_plane, 1)
                return new.metric("llm_shield_leading") == 1

            eventually(leads, timeout=30)
            assert_injects(own_control_plane, 20)
            # Its apply takes the fields back: once more, nobody else owns them.
            for entry in get(own_control_plane, WEBHOOKS)["metadata"]["managedFields"]:
                if "f:caBundle" in str(entry):
                    assert entry["manager"] == NAME
