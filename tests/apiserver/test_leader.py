"""One replica writes: whoever holds the Lease, and nobody who does not hold it any more."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
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
    ready_condition,
    wait_reason,
)

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
WRITTEN_BY_ONE = ("mutatingwebhookconfigurations", "shieldsidecarconfigs")


@pytest.fixture
def replicas(own_control_plane: ControlPlane) -> Iterator[tuple[OperatorProcess, OperatorProcess]]:
    """The leader and the other one, behind one address."""
    make_namespace(own_control_plane, "shop", INJECT)
    with Relay() as relay:
        url = f"https://127.0.0.1:{relay.port}"
        with (
            OperatorProcess(own_control_plane, webhook_url=url) as first,
            OperatorProcess(own_control_plane, webhook_url=url) as second,
        ):
            relay.set_backends(first.webhook_port, second.webhook_port)
            first.wait_ready()
            second.wait_ready()
            yield (first, second) if leads(first) else (second, first)


def leads(replica: OperatorProcess) -> bool:
    return replica.metric("llm_shield_leading") == 1


def writes(replica: OperatorProcess) -> float:
    return sum(
        replica.metric("llm_shield_api_requests_total", method="PATCH", resource=resource)
        for resource in WRITTEN_BY_ONE
    )


def lease_requests(replica: OperatorProcess, method: str) -> float:
    return replica.metric("llm_shield_api_requests_total", method=method, resource="leases")


def holder(control_plane: ControlPlane) -> str:
    found: str = get(control_plane, LEASE)["spec"].get("holderIdentity", "")
    return found


def new_config(control_plane: ControlPlane, name: str) -> None:
    apply(control_plane, examples.config(name, "shop", secretName=None))


def test_only_one_writes_and_both_are_ready(
    own_control_plane: ControlPlane, replicas: tuple[OperatorProcess, OperatorProcess]
) -> None:
    leader, other = replicas
    assert (leads(leader), leads(other)) == (True, False)
    for number in range(5):
        new_config(own_control_plane, f"config-{number}")
    for number in range(5):
        wait_reason(own_control_plane, "shop", f"config-{number}", "Accepted")
    own_control_plane.kubectl("delete", "mutatingwebhookconfiguration", NAME)
    eventually(lambda: get(own_control_plane, WEBHOOKS))
    assert writes(leader) >= 7
    assert writes(other) == 0
    put, read = lease_requests(leader, "PUT"), lease_requests(leader, "GET")
    eventually(lambda: lease_requests(leader, "PUT") >= put + 3)
    assert lease_requests(leader, "GET") == read  # a renewal is one request
    renewed = get(own_control_plane, LEASE)["spec"]["renewTime"]
    age = datetime.now(UTC) - datetime.fromisoformat(renewed)
    assert -1 < age.total_seconds() < 10  # UTC, wherever this machine thinks that it is


def test_after_a_kill_the_other_one_writes_within_fifteen_seconds(
    own_control_plane: ControlPlane, replicas: tuple[OperatorProcess, OperatorProcess]
) -> None:
    leader, other = replicas
    leader.kill()
    killed = time.monotonic()
    new_config(own_control_plane, "shield")
    _, pod = eventually(lambda: injected(own_control_plane), 5)
    assert has_sidecar(pod)  # which needs no leader
    wait_reason(own_control_plane, "shop", "shield", "Accepted")
    assert time.monotonic() - killed < 15
    assert leads(other)


def injected(control_plane: ControlPlane) -> Any:
    """A pod, once the API server has found the replica that lives."""
    answer = create_pod(control_plane, "shop", examples.pod())
    return answer if answer[0] == HTTPStatus.CREATED and has_sidecar(answer[1]) else None


def test_after_a_clean_stop_the_other_one_writes_at_once(
    own_control_plane: ControlPlane, replicas: tuple[OperatorProcess, OperatorProcess]
) -> None:
    leader, other = replicas
    leader.terminate()
    stopped = time.monotonic()
    new_config(own_control_plane, "shield")
    wait_reason(own_control_plane, "shop", "shield", "Accepted")
    assert time.monotonic() - stopped < 8  # it waits two seconds between two looks
    assert leads(other)
    assert not leads(leader)
    _, pod = create_pod(own_control_plane, "shop", examples.pod())
    assert has_sidecar(pod)
    assert leader.wait() == 0
    assert holder(own_control_plane) not in {"", None}


def test_a_frozen_leader_does_not_write_once_its_lease_is_somebody_elses(
    own_control_plane: ControlPlane,
) -> None:
    """Nobody else is there who would do its work, so a write could only be its own."""
    make_namespace(own_control_plane, "shop", INJECT)
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        eventually(lambda: leads(operator))
        operator.freeze()
        hold(own_control_plane, "somebody")
        new_config(own_control_plane, "shield")
        edit = {"webhooks": [], "metadata": {"annotations": {"edited": "true"}}}
        assert own_control_plane.request("PATCH", WEBHOOKS, edit)[0] == HTTPStatus.OK
        time.sleep(7)
        operator.thaw()
        eventually(lambda: not leads(operator))
        time.sleep(4)
        assert get(own_control_plane, WEBHOOKS).get("webhooks", []) == []
        assert ready_condition(own_control_plane, "shop", "shield") is None
        assert operator.get("/readyz")[0] == HTTPStatus.OK
        hold(own_control_plane, "")
        wait_reason(own_control_plane, "shop", "shield", "Accepted")
        eventually(lambda: len(get(own_control_plane, WEBHOOKS).get("webhooks", [])) == 2)


def hold(control_plane: ControlPlane, identity: str) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": identity, "leaseDurationSeconds": 3600, "renewTime": now}
    status, answer = control_plane.request("PATCH", LEASE, {"spec": spec})
    assert status == HTTPStatus.OK, answer


def test_a_leader_that_may_not_renew_stops_writing_and_serves_on(
    own_control_plane: ControlPlane,
) -> None:
    make_namespace(own_control_plane, "shop", INJECT)
    new_config(own_control_plane, "shield")
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        wait_reason(own_control_plane, "shop", "shield", "Accepted")
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles/{NAME}"
        rules = get(own_control_plane, path)["rules"]
        without = [rule for rule in rules if rule["resources"] != ["leases"]]
        own_control_plane.request("PATCH", path, {"rules": without})
        eventually(lambda: not leads(operator))
        eventually(lambda: f"cannot read Lease {NAMESPACE}/{NAME}" in operator.log_tail(100))
        assert operator.log_tail(1000).count("cannot read Lease") == 1
        assert operator.log_tail(1000).count("cannot write Lease") <= 1
        new_config(own_control_plane, "another")
        apply(own_control_plane, examples.config("shield", "shop", secretName=None, port=9000))
        time.sleep(2)
        assert ready_condition(own_control_plane, "shop", "another") is None
        assert operator.get("/readyz")[0] == HTTPStatus.OK
        own_control_plane.kubectl("delete", "ssc", "another", "--namespace=shop")
        _, pod = create_pod(own_control_plane, "shop", examples.pod())
        assert has_sidecar(pod)
        own_control_plane.request("PATCH", path, {"rules": rules})
        wait_reason(own_control_plane, "shop", "shield", "Accepted")
        assert "Traceback" not in operator.log_tail(1000)
