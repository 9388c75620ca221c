"""What a config's status says of its pods: how many there are, and how many are outdated.

One installation for the whole file: the leader there counts every second, three pods a page.
"""

import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest

import examples
from controlplane import ControlPlane
from localoperator import NAMESPACE, OperatorProcess, install
from support import CONFIGS, INJECT, apply, create_pod, eventually, get, make_namespace, wait_reason


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        install(running)
        yield running


@pytest.fixture(scope="module", autouse=True)
def leader(cluster: ControlPlane) -> Iterator[OperatorProcess]:
    with OperatorProcess(
        cluster,
        environment={"DRIFT_SCAN_SECONDS": "1"},
        paces={"cluster.requests._PAGE": 3},
    ) as operator:
        yield operator.wait_ready()


def make_pods(cluster: ControlPlane, namespace: str, number: int, **more: Any) -> list[str]:
    """Names of new pods."""
    found = []
    for _ in range(number):
        status, pod = create_pod(cluster, namespace, examples.pod(**more))
        assert status == HTTPStatus.CREATED, pod
        found.append(pod["metadata"]["name"])
    return found


def counts(cluster: ControlPlane, namespace: str, name: str = "shield") -> tuple[int, int] | None:
    status = get(cluster, f"{CONFIGS.format(namespace)}/{name}").get("status", {})
    found = status.get("pods")
    return (found["injected"], found.get("outdated", -1)) if found else None


def up_to_date(cluster: ControlPlane, namespace: str, name: str = "shield") -> tuple[str, str]:
    conditions = get(cluster, f"{CONFIGS.format(namespace)}/{name}")["status"]["conditions"]
    (found,) = [one for one in conditions if one["type"] == "UpToDate"]
    return found["status"], found["reason"]


def new_shop(cluster: ControlPlane, namespace: str, **spec: Any) -> None:
    make_namespace(cluster, namespace, INJECT)
    apply(cluster, examples.config(namespace=namespace, secretName=None, **spec))
    wait_reason(cluster, namespace, "shield", "Accepted")


def test_injected_and_outdated_pods_show_in_kubectl_get(cluster: ControlPlane) -> None:
    new_shop(cluster, "shop")
    eventually(lambda: counts(cluster, "shop") == (0, 0))
    names = make_pods(cluster, "shop", 7)
    eventually(lambda: counts(cluster, "shop") == (7, 0))
    assert up_to_date(cluster, "shop") == ("True", "AllCurrent")
    apply(cluster, examples.config(namespace="shop", secretName=None, port=9000))
    make_pods(cluster, "shop", 1)
    eventually(lambda: counts(cluster, "shop") == (8, 7))
    assert up_to_date(cluster, "shop") == ("False", "OutdatedPods")
    header, row = cluster.kubectl("get", "ssc", "--namespace=shop").stdout.splitlines()
    assert header.split()[:6] == ["NAME", "READY", "REASON", "SECRET", "INJECTED", "OUTDATED"]
    assert row.split()[:5] == ["shield", "True", "Accepted", "8", "7"]  # it has no Secret
    for name in names:
        cluster.request("DELETE", f"/api/v1/namespaces/shop/pods/{name}?gracePeriodSeconds=0")
    eventually(lambda: counts(cluster, "shop") == (1, 0))
    assert up_to_date(cluster, "shop") == ("True", "AllCurrent")


def test_only_pods_that_run_and_that_were_injected_count(
    cluster: ControlPlane, leader: OperatorProcess
) -> None:
    new_shop(cluster, "mixed")
    finished, _ = make_pods(cluster, "mixed", 2)
    make_pods(cluster, "mixed", 2, hostNetwork=True)  # skipped
    make_pods(cluster, "mixed", 1, labels={"llm-shield.io/inject": "false"})
    forged = {"llm-shield.io/injected": "true", "llm-shield.io/inject": "false"}
    make_pods(cluster, "mixed", 1, labels=forged)
    foreign = {"llm-shield.io/injected-config": "elsewhere/shield"}
    make_pods(cluster, "mixed", 1, labels=forged, annotations=foreign)
    path = f"/api/v1/namespaces/mixed/pods/{finished}/status"
    assert cluster.request("PATCH", path, {"status": {"phase": "Succeeded"}})[0] == HTTPStatus.OK
    eventually(lambda: counts(cluster, "mixed") == (1, 0))
    series = {"config": "mixed/shield"}
    eventually(lambda: leader.metric("llm_shield_pods", **series, state="injected") == 1)
    assert leader.metric("llm_shield_pods", **series, state="outdated") == 0
    assert leader.metric("llm_shield_skipped_pods", reason="host-network") == 2


def test_the_clusters_default_counts_its_pods_everywhere(cluster: ControlPlane) -> None:
    apply(cluster, examples.config("default", NAMESPACE, secretName=None))
    wait_reason(cluster, NAMESPACE, "default", "Accepted")
    for namespace in ("east", "west"):
        make_namespace(cluster, namespace, INJECT)
        make_pods(cluster, namespace, 2)
    eventually(lambda: counts(cluster, NAMESPACE, "default") == (4, 0))
    cluster.kubectl("delete", "ssc", "default", f"--namespace={NAMESPACE}")


def test_an_invalid_config_keeps_its_pods_and_does_not_call_them_outdated(
    cluster: ControlPlane,
) -> None:
    new_shop(cluster, "edited")
    make_pods(cluster, "edited", 2)
    eventually(lambda: counts(cluster, "edited") == (2, 0))
    apply(cluster, examples.config(namespace="edited", image=None, secretName=None))
    wait_reason(cluster, "edited", "shield", "Invalid")
    eventually(lambda: counts(cluster, "edited") == (2, -1))
    apply(cluster, examples.config(namespace="edited", secretName=None))
    wait_reason(cluster, "edited", "shield", "Accepted")
    eventually(lambda: counts(cluster, "edited") == (2, 0))


def test_nothing_is_written_while_nothing_changes(
    cluster: ControlPlane, leader: OperatorProcess
) -> None:
    new_shop(cluster, "quiet")
    make_pods(cluster, "quiet", 4)
    eventually(lambda: counts(cluster, "quiet") == (4, 0))
    scans = leader.metric("llm_shield_api_requests_total", method="GET", resource="pods")
    before = leader.metric("llm_shield_api_requests_total", method="PATCH")
    time.sleep(3)
    after = leader.metric("llm_shield_api_requests_total", method="GET", resource="pods")
    assert after - scans >= 4
    assert leader.metric("llm_shield_api_requests_total", method="PATCH") == before


def test_a_new_leader_keeps_what_the_old_one_counted(
    cluster: ControlPlane, leader: OperatorProcess
) -> None:
    """Last, for it ends this file's leader: no count is lost, or written twice, on the way."""
    new_shop(cluster, "handed-over")
    make_pods(cluster, "handed-over", 3)
    eventually(lambda: counts(cluster, "handed-over") == (3, 0))
    before = get(cluster, f"{CONFIGS.format('handed-over')}/shield")["metadata"]["resourceVersion"]
    assert leader.interrupt() == 0
    with OperatorProcess(cluster, environment={"DRIFT_SCAN_SECONDS": "1"}) as successor:
        successor.wait_ready()
        eventually(lambda: successor.metric("llm_shield_pods", config="handed-over/shield") == 3)
        time.sleep(1)
        found = get(cluster, f"{CONFIGS.format('handed-over')}/shield")["metadata"]
        assert found["resourceVersion"] == before
