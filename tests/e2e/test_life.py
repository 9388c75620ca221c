"""Updates, evictions and a node's restart, while pods are created without a break."""

import json
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Self

import pytest

from e2e import objects
from e2e.cluster import NAMESPACE, OPERATOR, Cluster
from e2e.shop import Shop
from support import eventually, has_sidecar

_PAUSE = 0.2


class Creating:
    """Creates pods, a few a second, and keeps what became of each."""

    def __init__(self, shop: Shop) -> None:
        self._path = f"/api/v1/namespaces/{shop.name}/pods?dryRun=All"
        self._control_plane = shop.cluster.control_plane
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.admitted = 0
        self.failures: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def more(self, count: int) -> None:
        """Wait until so many more have been admitted."""
        wanted = self.admitted + count
        eventually(lambda: self.admitted >= wanted, timeout=60)

    def _run(self) -> None:
        pod = objects.template("probe") | {"apiVersion": "v1", "kind": "Pod"}
        pod["metadata"]["generateName"] = "probe-"
        while not self._done.wait(_PAUSE):
            status, content = self._control_plane.request("POST", self._path, pod, timeout=30)
            if status == HTTPStatus.CREATED and has_sidecar(json.loads(content)):
                self.admitted += 1
            else:
                self.failures.append(f"{status}: {content.decode()}")


@pytest.fixture
def creating(shop: Shop) -> Iterator[Creating]:
    with Creating(shop) as under_way:
        under_way.more(3)
        yield under_way


def replicas(cluster: Cluster) -> dict[str, Any]:
    return {pod["metadata"]["name"]: pod for pod in cluster.pods(NAMESPACE)}


def test_an_update_of_the_operator_refuses_no_pod(cluster: Cluster, creating: Creating) -> None:
    before = set(replicas(cluster))
    cluster.kubectl("rollout", "restart", OPERATOR, f"--namespace={NAMESPACE}")
    cluster.rolled_out(OPERATOR, NAMESPACE)
    eventually(lambda: not before & set(replicas(cluster)), timeout=60)
    creating.more(5)
    assert creating.failures == []


def test_an_eviction_refuses_no_pod(cluster: Cluster, creating: Creating) -> None:
    """As `kubectl drain` does it: one replica may go, then the budget says to wait."""
    first, second = replicas(cluster)
    assert evict(cluster, first) == HTTPStatus.CREATED
    assert evict(cluster, second) == HTTPStatus.TOO_MANY_REQUESTS
    eventually(lambda: first not in replicas(cluster), timeout=60)
    cluster.rolled_out(OPERATOR, NAMESPACE)
    creating.more(5)
    assert creating.failures == []


def evict(cluster: Cluster, name: str) -> int:
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": NAMESPACE},
    }
    status, _ = cluster.control_plane.request("POST", path, body)
    return status


def test_a_nodes_restart_is_survived(cluster: Cluster, shop: Shop, creating: Creating) -> None:
    """The kubelet and containerd are away for a while, as when a node is updated."""
    before = {name: pod["metadata"]["uid"] for name, pod in replicas(cluster).items()}
    cluster.node.stop_kubelet()
    shop.apply(objects.workload("Deployment", "meanwhile", objects.template("meanwhile")))
    time.sleep(5)
    creating.more(5)
    cluster.node.start_kubelet()
    cluster.node.wait_ready()
    cluster.rolled_out("deployment/meanwhile", shop.name)
    answer = shop.exec(
        "deployment/meanwhile", "python3", "/usr/local/bin/client.py", objects.PROMPT
    )
    assert answer.startswith("You said")
    creating.more(5)
    assert creating.failures == []
    after = replicas(cluster)
    assert {name: pod["metadata"]["uid"] for name, pod in after.items()} == before
    assert all(pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in after.values())
