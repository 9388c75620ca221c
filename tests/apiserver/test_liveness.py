"""What /livez sees: a watch that has gone deaf, and nothing that a new start would not mend."""

import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

import examples
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess
from relay import Relay
from support import INJECT, apply, create_pod, eventually, has_sidecar, make_namespace

PACES = {"main.RELIST_INTERVAL": 0.5}
"""A list every half second; six of them that show what the watch does not bring take three."""
PATIENT = {"main.RELIST_INTERVAL": 2.0}
"""Here they take twelve: after an outage Kopf waits five and more before it tries again."""


@pytest.fixture
def relay(own_control_plane: ControlPlane) -> Iterator[Relay]:
    """Between the operator and its API server."""
    with Relay() as running:
        running.set_backends(port(own_control_plane.url))
        yield running


def port(url: str) -> int:
    return int(url.rpartition(":")[2])


def through(relay: Relay, control_plane: ControlPlane) -> Path:
    """The operator's kubeconfig, by way of the relay."""
    direct = control_plane.kubeconfig_for(NAME, NAMESPACE)
    text = direct.read_text(encoding="utf-8")
    indirect = direct.with_name("through-relay.kubeconfig")
    indirect.write_text(text.replace(f":{port(control_plane.url)}", f":{relay.port}"))
    return indirect


def test_a_deaf_watch_is_told_and_admissions_go_on(
    own_control_plane: ControlPlane, relay: Relay
) -> None:
    make_namespace(own_control_plane, "shop", INJECT)
    kubeconfig = through(relay, own_control_plane)
    with OperatorProcess(own_control_plane, kubeconfig=kubeconfig, paces=PACES) as operator:
        operator.wait_ready()
        apply(own_control_plane, examples.config("early", "shop", secretName=None))
        time.sleep(2)
        assert operator.get("/livez") == (HTTPStatus.OK, "ok\n")
        relay.stall()
        apply(own_control_plane, examples.config("late", "shop", secretName=None, port=9000))
        status, text = eventually(lambda: not_alive(operator), 30)
        assert status == HTTPStatus.SERVICE_UNAVAILABLE
        assert "lists have shown generation 1 of shop/late, and it has not brought it" in text
        # Meanwhile the lists bring what the watch does not.
        chosen = examples.pod(annotations={"llm-shield.io/config": "late"})
        _, pod = create_pod(own_control_plane, "shop", chosen)
        assert has_sidecar(pod)
    with OperatorProcess(own_control_plane, kubeconfig=kubeconfig, paces=PACES) as restarted:
        restarted.wait_ready()
        time.sleep(5)
        assert restarted.get("/livez")[0] == HTTPStatus.OK


def not_alive(operator: OperatorProcess) -> tuple[int, str] | None:
    answer = operator.get("/livez")
    return answer if answer[0] != HTTPStatus.OK else None


def test_an_api_server_that_is_away_or_frozen_is_no_reason_to_die(
    own_control_plane: ControlPlane,
) -> None:
    make_namespace(own_control_plane, "shop", INJECT)
    apply(own_control_plane, examples.config(namespace="shop", secretName=None))
    with OperatorProcess(own_control_plane, paces=PATIENT) as operator:
        operator.wait_ready()
        own_control_plane.stop_apiserver()
        assert_alive(operator, 5)
        own_control_plane.start_apiserver()
        apply(own_control_plane, examples.config("another", "shop", secretName=None, port=9000))
        assert_alive(operator, 14)
        own_control_plane.pause()
        assert_alive(operator, 5)
        own_control_plane.resume()
        apply(own_control_plane, examples.config("third", "shop", secretName=None, port=9001))
        assert_alive(operator, 14)
        assert operator.get("/readyz")[0] == HTTPStatus.OK


def assert_alive(operator: OperatorProcess, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert operator.get("/livez") == (HTTPStatus.OK, "ok\n")
        time.sleep(0.2)
