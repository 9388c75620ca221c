"""`kubectl apply -f manifests/install.yaml`, and nothing else."""

from e2e.cluster import NAMESPACE, Cluster
from manifests import INSTALL
from support import WEBHOOKS, eventually, get


def test_both_replicas_are_ready_on_one_node(cluster: Cluster) -> None:
    pods = cluster.pods(NAMESPACE)
    assert [pod["spec"]["nodeName"] for pod in pods] == ["worker", "worker"]
    assert [pod["status"]["containerStatuses"][0]["ready"] for pod in pods] == [True, True]
    assert [pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods] == [0, 0]


def test_the_api_server_asks_them_by_their_service(cluster: Cluster) -> None:
    configuration = get(cluster.control_plane, WEBHOOKS)
    for webhook in configuration["webhooks"]:
        service = webhook["clientConfig"]["service"]
        assert (service["name"], service["namespace"]) == ("llm-shield-operator", NAMESPACE)
        assert webhook["clientConfig"]["caBundle"]

    def served() -> bool:
        slices = cluster.get("endpointslices", f"--namespace={NAMESPACE}")["items"]
        endpoints = [one for each in slices for one in each.get("endpoints") or ()]
        return [one["conditions"]["ready"] for one in endpoints] == [True, True]

    eventually(served)


def test_nothing_of_the_manifest_is_changed_by_the_cluster(cluster: Cluster) -> None:
    """So that who keeps manifests in a repository sees no difference for ever."""
    assert cluster.kubectl("diff", "-f", str(INSTALL)) == ""
