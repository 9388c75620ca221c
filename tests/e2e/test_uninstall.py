"""`kubectl delete -f manifests/install.yaml`; of this folder's tests the last, by its name."""

from e2e import objects
from e2e.cluster import NAMESPACE, Cluster
from e2e.shop import Shop
from manifests import INSTALL
from support import WEBHOOKS, eventually, get, has_sidecar


def test_uninstalling_leaves_nothing_and_applications_run_on(cluster: Cluster, shop: Shop) -> None:
    shop.apply(objects.workload("Deployment", "lasting", objects.template("lasting")))
    cluster.rolled_out("deployment/lasting", shop.name)
    (before,) = cluster.pods(shop.name, "app=lasting")

    cluster.kubectl("delete", "-f", str(INSTALL), "--timeout=100s")
    eventually(lambda: get(cluster.control_plane, WEBHOOKS) is None, timeout=60)
    eventually(lambda: get(cluster.control_plane, f"/api/v1/namespaces/{NAMESPACE}") is None)
    for kind in ("clusterroles", "clusterrolebindings", "customresourcedefinitions"):
        names = cluster.kubectl("get", kind, "--output=name")
        assert "llm-shield" not in names

    answer = shop.exec("deployment/lasting", "python3", "/usr/local/bin/client.py", objects.PROMPT)
    assert answer.startswith("You said"), "who has the sidecar keeps it"
    cluster.kubectl(
        "delete", "pod", before["metadata"]["name"], "--wait=false", f"--namespace={shop.name}"
    )
    cluster.rolled_out("deployment/lasting", shop.name)
    after = [
        pod
        for pod in cluster.pods(shop.name, "app=lasting")
        if "deletionTimestamp" not in pod["metadata"]
    ]
    assert [has_sidecar(pod) for pod in after] == [False], "nothing blocks pods"
