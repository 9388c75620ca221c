"""Kubernetes Events: what `kubectl describe` shows of configs, and of what makes skipped pods."""

import time
from http import HTTPStatus
from typing import Any

import pytest

import examples
from controlplane import ControlPlane
from localoperator import OperatorProcess
from support import (
    INJECT,
    WebhookClient,
    apply,
    create,
    create_pod,
    eventually,
    get,
    make_namespace,
    wait_reason,
)

SENTENCE = "the pod uses the node's network"


@pytest.fixture
def shop(control_plane: ControlPlane, operator: OperatorProcess, namespace: str) -> str:
    """A namespace that is in, with a config that needs no Secret."""
    assert operator.get("/readyz")[0] == HTTPStatus.OK
    control_plane.kubectl("label", "namespace", namespace, "llm-shield.io/inject=enabled")
    apply(control_plane, examples.config(namespace=namespace, secretName=None))
    wait_reason(control_plane, namespace, "shield", "Accepted")
    return namespace


def events(control_plane: ControlPlane, namespace: str) -> list[Any]:
    """Those that we wrote there, the oldest first."""
    found = get(control_plane, f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    ours = [one for one in found if one["reportingController"].startswith("llm-shield.io/")]
    return sorted(ours, key=lambda one: str(one["eventTime"]))


def told(control_plane: ControlPlane, namespace: str) -> list[tuple[str, str, str]]:
    """Type and reason of each, and the kind of what it is about."""
    return [
        (one["type"], one["reason"], one["regarding"]["kind"])
        for one in events(control_plane, namespace)
    ]


def deployment(namespace: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": examples.pod(**spec)["spec"]},
        },
    }


def owned_pod(name: str, **spec: Any) -> dict[str, Any]:
    """A pod of a controller that is not there; nobody checks that when the pod is created."""
    pod = examples.pod(owner="Crontab", **spec)
    pod["metadata"]["ownerReferences"][0] |= {"name": name, "uid": name}
    return pod


def test_kubectl_describe_of_a_replica_set_says_why_its_pods_go_without(
    control_plane: ControlPlane, shop: str
) -> None:
    """Once for three pods: they were skipped for the same reason."""
    apply(control_plane, deployment(shop, hostNetwork=True))
    pods = f"/api/v1/namespaces/{shop}/pods"
    eventually(lambda: len(get(control_plane, pods)["items"]) == 3)
    eventually(lambda: events(control_plane, shop))
    time.sleep(1)
    (event,) = events(control_plane, shop)
    (replica_set,) = get(control_plane, f"/apis/apps/v1/namespaces/{shop}/replicasets")["items"]
    assert event["regarding"]["uid"] == replica_set["metadata"]["uid"]
    pod = get(control_plane, pods)["items"][0]
    assert event["note"] == pod["metadata"]["annotations"]["llm-shield.io/skip-reason"]
    described = control_plane.kubectl("describe", "rs", f"--namespace={shop}").stdout
    (line,) = [line for line in described.splitlines() if " HostNetwork " in line]
    assert line.split()[0] == "Warning"
    assert "llm-shield.io/llm-shield-operator" in line


def test_kubectl_describe_of_a_config_tells_how_it_went(
    control_plane: ControlPlane, shop: str
) -> None:
    def changed(reason: str, **spec: Any) -> None:
        apply(control_plane, examples.config(namespace=shop, **spec))
        wait_reason(control_plane, shop, "shield", reason)

    assert told(control_plane, shop) == []  # it is right since its first day
    changed("SecretNotFound", secretName="keys")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    create(control_plane, f"/api/v1/namespaces/{shop}/secrets", secret)
    changed("Accepted", secretName="keys", port=9000)
    changed("Accepted", secretName="keys", port=9001)
    changed("Invalid", secretName="keys", image=None)
    wanted = [
        ("Warning", "SecretNotFound", "ShieldSidecarConfig"),
        ("Normal", "Accepted", "ShieldSidecarConfig"),
        ("Warning", "Invalid", "ShieldSidecarConfig"),
    ]
    eventually(lambda: told(control_plane, shop) == wanted)
    described = control_plane.kubectl("describe", "ssc", "shield", f"--namespace={shop}").stdout
    _, _, shown = described.partition("Events:")
    assert "Secret keys is not in namespace" in shown
    assert "spec.image" in shown


def test_a_dry_run_leaves_no_event(control_plane: ControlPlane, shop: str) -> None:
    pods = f"/api/v1/namespaces/{shop}/pods"
    dry = owned_pod("dry", hostNetwork=True)
    status, content = control_plane.request("POST", f"{pods}?dryRun=All", dry)
    assert status == HTTPStatus.CREATED, content
    assert b"injection-skipped" in content
    assert create_pod(control_plane, shop, owned_pod("real", hostNetwork=True))[0] == 201
    eventually(lambda: events(control_plane, shop))
    time.sleep(1)
    assert [one["regarding"]["name"] for one in events(control_plane, shop)] == ["real"]


def test_of_pods_that_get_the_sidecar_or_belong_to_nobody_there_is_no_event(
    control_plane: ControlPlane, shop: str, operator: OperatorProcess
) -> None:
    for pod in (
        owned_pod("injected"),
        owned_pod("out", labels={"llm-shield.io/inject": "false"}),
        examples.pod(hostNetwork=True),
    ):
        assert create_pod(control_plane, shop, pod)[0] == HTTPStatus.CREATED
    assert f"pod {shop}/web-…: skipped (host-network): " in operator.log_tail(100)
    time.sleep(1)
    assert told(control_plane, shop) == []


def test_a_new_leader_does_not_repeat_what_was_told(own_control_plane: ControlPlane) -> None:
    make_namespace(own_control_plane, "shop", INJECT)
    for number in range(3):
        apply(own_control_plane, examples.config(f"config-{number}", "shop"))
    for _ in range(2):
        with OperatorProcess(own_control_plane) as operator:
            operator.wait_ready()
            wait_reason(own_control_plane, "shop", "config-2", "SecretNotFound")
            eventually(lambda: len(events(own_control_plane, "shop")) == 3)
            time.sleep(2)
            assert operator.interrupt() == 0
    assert len(events(own_control_plane, "shop")) == 3


def test_no_answer_waits_for_its_event(own_control_plane: ControlPlane) -> None:
    """The API server hangs: the pods of a hundred controllers are answered for all the same."""
    make_namespace(own_control_plane, "shop", INJECT)
    apply(own_control_plane, examples.config(namespace="shop", secretName=None))
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        webhook = WebhookClient(own_control_plane)
        own_control_plane.pause()
        begin = time.monotonic()
        for number in range(100):
            response = webhook.review("shop", owned_pod(f"web-{number}", hostNetwork=True))
            assert response["allowed"]
        assert time.monotonic() - begin < 10
        assert operator.metric("llm_shield_events_total", about="pod", result="dropped") >= 50
        own_control_plane.resume()
        eventually(
            lambda: operator.metric("llm_shield_events_total", about="pod", result="written") > 0,
            timeout=60,
        )
