"""``kubectl shield check`` and ``version``: from an empty cluster to a healthy one and beyond."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import examples
from apiserver.test_cli_explain import viewer_of
from controlplane import ControlPlane
from localoperator import NAMESPACE, OperatorProcess, free_port, install
from manifests import INSTALL
from plugin import shield, shield_json
from shield_operator import __version__
from shield_operator.certificates import issue_bundle
from support import (
    INJECT,
    WEBHOOKS,
    apply,
    create,
    create_pod,
    eventually,
    get,
    make_namespace,
)

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/llm-shield-operator-tls"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


def results(cluster: ControlPlane, *arguments: str) -> dict[str, tuple[str, str]]:
    """Each check's result, with what it saw."""
    found = shield_json("check", *arguments, kubeconfig=cluster.kubeconfig)
    assert [one["number"] for one in found] == list(range(1, len(found) + 1))
    return {one["check"]: (one["result"], one["saw"]) for one in found}


def failed(cluster: ControlPlane, *arguments: str) -> list[str]:
    return [name for name, (result, _) in results(cluster, *arguments).items() if result == "bad"]


def lead(cluster: ControlPlane) -> None:
    """Hold the Lease, where no replica does: a renewal that `check` can see needs no more."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "a-replica", "leaseDurationSeconds": 10, "renewTime": now}
    if get(cluster, f"{LEASE}/llm-shield-operator") is None:
        create(cluster, LEASE, {"metadata": {"name": "llm-shield-operator"}, "spec": spec})
    else:
        cluster.request("PATCH", f"{LEASE}/llm-shield-operator", {"spec": spec})


def test_from_an_empty_cluster_to_a_healthy_one() -> None:
    with ControlPlane.start() as cluster:
        before = shield("check", "--pre", kubeconfig=cluster.kubeconfig)
        assert before.exit_code == 0, before.output
        assert "✗" not in before.stdout
        empty = shield("check", kubeconfig=cluster.kubeconfig)
        assert empty.exit_code == 1
        assert " 2 ✗ definition " in empty.stdout
        assert "→ kubectl apply -f install.yaml, with your image" in empty.stdout

        install(cluster)
        make_namespace(cluster, "shop", INJECT)
        with OperatorProcess(cluster) as replica:
            replica.wait_ready()
            found = results(cluster)
            assert {name for name, (result, _) in found.items() if result == "bad"} == set()
            assert found["leader"][1].endswith("holds the Lease, and renews it")
            assert found["operator"][0] == "unknown"
            assert "it runs outside of the cluster, at https://127.0.0.1:" in found["operator"][1]
            asked = "tried in namespace shop: the operator was asked, and would skip it "
            assert found["a pod"] == ("good", f"{asked}(no-sidecar-config)")
            apply(cluster, examples.config())
            healthy = "tried in namespace shop: it would get the sidecar"
            eventually(lambda: results(cluster)["a pod"] == ("good", healthy))
            asked_by_itself = results(cluster, "--namespace", "default")["a pod"]
            assert asked_by_itself[0] == "good"
            assert results(cluster, "--namespace", "kube-system")["a pod"][0] == "unknown"
            assert get(cluster, "/api/v1/namespaces/shop/pods")["items"] == []


def test_whoever_may_not_install_is_told_before(
    control_plane: ControlPlane, namespace: str
) -> None:
    kubeconfig = viewer_of(control_plane, namespace)
    found = shield("check", "--pre", kubeconfig=kubeconfig)
    assert found.exit_code == 1
    assert "you may not create namespaces" in found.stdout
    assert "→ ask somebody with the role cluster-admin to install it" in found.stdout


@pytest.mark.usefixtures("operator")
def test_what_may_not_be_looked_at_is_never_called_good(
    control_plane: ControlPlane, namespace: str
) -> None:
    kubeconfig = viewer_of(control_plane, namespace)
    found = {
        one["check"]: (one["result"], one["saw"])
        for one in shield_json("check", kubeconfig=kubeconfig)
    }
    assert {name for name, (result, _) in found.items() if result == "good"} == {
        "API server",
        "native sidecars",
    }
    assert {name for name, (result, _) in found.items() if result == "bad"} == set()
    assert found["webhooks"][1].startswith("cannot read mutatingwebhookconfiguration")
    text = shield("check", kubeconfig=kubeconfig)
    assert text.exit_code == 0
    assert text.stdout.splitlines()[-1] == "none of 11 checks failed, 9 could not be made"


def test_the_wrong_authority(own_control_plane: ControlPlane) -> None:
    """Nobody answers the API server any more; check says which of many possible reasons it is.

    The operator would put it right within seconds, so it loses the permission for that first.
    """
    cluster = own_control_plane
    make_namespace(cluster, "shop", INJECT)
    with OperatorProcess(cluster) as replica:
        replica.wait_ready()
        role = get(cluster, "/apis/rbac.authorization.k8s.io/v1/clusterroles/llm-shield-operator")
        rules = [rule for rule in role["rules"] if "delete" not in rule["verbs"]]
        cluster.kubectl("replace", "-f", "-", input=json.dumps({**role, "rules": rules}))
        wrong = issue_bundle(["localhost"], datetime.now(UTC)).signer
        live = get(cluster, WEBHOOKS)
        for hook in live["webhooks"]:
            hook["clientConfig"]["caBundle"] = base64.b64encode(wrong).decode()
        cluster.kubectl("replace", "-f", "-", input=json.dumps(live))

        found = results(cluster)
        assert found["CA bundle"][0] == "bad"
        assert "is not the authority in Secret" in found["CA bundle"][1]
        assert found["replicas"][0] == "bad"
        assert found["permissions"][0] == "bad"
        assert "may not get mutatingwebhookconfigurations" in found["permissions"][1]
        assert found["a pod"][0] == "bad"
        assert "x509" in found["a pod"][1]
        text = shield("check", kubeconfig=cluster.kubeconfig)
        assert text.exit_code == 1
        assert "→ the CA bundle does not fit what is served" in text.stdout
        status, _ = create_pod(cluster, "shop", examples.pod())
        assert status == 500

        cluster.kubectl("replace", "-f", "-", input=json.dumps(role | {"metadata": name_of(role)}))
        eventually(lambda: results(cluster)["a pod"][0] == "good", timeout=30)
        assert failed(cluster) == []


def name_of(role: Any) -> Any:
    return {"name": role["metadata"]["name"], "labels": role["metadata"]["labels"]}


def test_what_else_can_break(own_control_plane: ControlPlane) -> None:
    cluster = own_control_plane
    make_namespace(cluster, "shop", INJECT)
    with OperatorProcess(cluster) as replica:
        replica.wait_ready()
        replica.kill()
        gone = results(cluster)
        assert gone["a pod"][0] == "bad"
        assert "connection refused" in gone["a pod"][1]
        assert gone["replicas"][0] == "unknown"
        # Nobody heals any of the following.
        old = issue_bundle(["x"], datetime.now(UTC) - timedelta(days=80)).as_secret_data()
        data = {key: base64.b64encode(value).decode() for key, value in old.items()}
        cluster.request("PATCH", SECRET, {"data": data})
        found = results(cluster)
        assert found["certificate"][0] == "bad"
        assert found["CA bundle"][0] == "bad"
        live = get(cluster, WEBHOOKS)
        live["webhooks"][0]["namespaceSelector"]["matchExpressions"].append(
            {"key": "team", "operator": "In", "values": ["a"]}
        )
        live["webhooks"] = [
            {**hook, "failurePolicy": "Ignore", "matchConditions": [*hook["matchConditions"], own]}
            for hook, own in zip(
                live["webhooks"],
                [{"name": f"theirs-{i}", "expression": "true"} for i in range(2)],
                strict=True,
            )
        ]
        cluster.kubectl("replace", "-f", "-", input=json.dumps(live))
        result, saw = results(cluster)["webhooks"]
        assert (result, saw) == (
            "bad",
            "changed by somebody: namespaceSelector of namespace.inject.llm-shield.io",
        )
        # Under Ignore, nobody answers and the pod starts bare: no error, and yet not well.
        result, saw = results(cluster)["a pod"]
        assert (result, "it would start bare" in saw) == ("bad", True)
        live = get(cluster, WEBHOOKS)
        live["webhooks"] = live["webhooks"][1:]
        cluster.kubectl("replace", "-f", "-", input=json.dumps(live))
        missing = results(cluster)["webhooks"]
        assert missing == ("bad", "namespace.inject.llm-shield.io is missing")
        cluster.request("DELETE", WEBHOOKS)
        assert results(cluster)["webhooks"][0] == "bad"
        cluster.request("PATCH", SECRET, {"data": {"tls.crt": "", "ca.crt": ""}})
        assert results(cluster)["certificate"][0] == "bad"
        cluster.request("DELETE", SECRET)
        assert results(cluster)["certificate"][0] == "unknown"


def test_the_lease(own_control_plane: ControlPlane) -> None:
    """No clock is compared: a holder leads while its renewals are seen."""
    cluster = own_control_plane
    assert results(cluster)["leader"][0] == "bad"
    lead(cluster)
    assert results(cluster)["leader"] == ("bad", "a-replica holds the Lease, and does not renew it")
    stop = False

    def renewing() -> None:
        while not stop:
            lead(cluster)

    thread = threading.Thread(target=renewing)
    thread.start()
    try:
        found = results(cluster)["leader"]
    finally:
        stop = True
        thread.join()
    assert found == ("good", "a-replica holds the Lease, and renews it")
    cluster.request("PATCH", f"{LEASE}/llm-shield-operator", {"spec": {"holderIdentity": ""}})
    assert results(cluster)["leader"] == ("bad", "nobody holds the Lease")


def lister_of(cluster: ControlPlane) -> Path:
    """Somebody who may list pods everywhere, and not talk to them."""
    cluster.kubectl("create", "serviceaccount", "lister", "-n", "default")
    cluster.kubectl("create", "clusterrole", "lister", "--verb=list,get", "--resource=pods")
    account = "--serviceaccount=default:lister"
    cluster.kubectl("create", "clusterrolebinding", "lister", "--clusterrole=lister", account)
    return cluster.kubeconfig_for("lister", "default")


def own_address() -> str:
    """An address of this machine; not loopback's, to which the API server proxies nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.18.0.1", 9))  # sends nothing
        found: str = probe.getsockname()[0]
        return found


def test_replicas_answer_through_the_api_server(own_control_plane: ControlPlane) -> None:
    """The manifest's own Deployment, with its pod's place taken by a replica of this machine."""
    cluster = own_control_plane
    address, webhook_port, health_port = own_address(), free_port(), free_port()
    make_namespace(cluster, "shop", INJECT)
    documents = list(yaml.safe_load_all(INSTALL.read_text(encoding="utf-8")))
    (deployment,) = [one for one in documents if one["kind"] == "Deployment"]
    deployment["spec"]["replicas"] = 1
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["env"] += [
        {"name": "HEALTH_PORT", "value": str(health_port)},
        {"name": "FAILURE_POLICY", "value": "Ignore"},
    ]
    apply(cluster, deployment)
    pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
    pod = eventually(lambda: next(iter(get(cluster, pods)["items"]), None))
    name = pod["metadata"]["name"]
    assert results(cluster)["operator"] == ("bad", "0 of 1 replicas are available")
    assert results(cluster)["replicas"][0] == "bad"

    environment = {
        "WEBHOOK_URL": f"https://{address}:{webhook_port}",
        "WEBHOOK_PORT": str(webhook_port),
        "HEALTH_PORT": str(health_port),
    }
    with OperatorProcess(cluster, environment=environment) as replica:
        replica.health_port = health_port
        replica.wait_ready()
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [ready],
        }
        cluster.request("PATCH", f"{pods}/{name}/status", {"status": status})
        eventually(lambda: results(cluster)["operator"][0] == "good")
        found = results(cluster)
        assert found["replicas"] == ("good", "1 of 1 answer ready")
        # The Deployment says Ignore, the operator that runs was told nothing of it.
        hooks = ("namespace.inject.llm-shield.io", "pod.inject.llm-shield.io")
        changed = ", ".join(f"failurePolicy of {hook}" for hook in hooks)
        assert found["webhooks"][1] == f"changed by somebody: {changed}"
        version = shield("version", kubeconfig=cluster.kubeconfig)
        assert version.exit_code == 0
        lines = [line.split(maxsplit=1) for line in version.stdout.splitlines()]
        assert lines[0] == ["kubectl", f"shield  {__version__}"]
        assert lines[1] == ["operator", "0.1.0"]
        assert lines[2][0] == "Kubernetes"
        assert lines[2][1].startswith("v1.")
        kubeconfig = lister_of(cluster)
        seen_by_lister = shield_json("check", kubeconfig=kubeconfig)
        (asked,) = [one for one in seen_by_lister if one["check"] == "replicas"]
        assert asked["result"] == "unknown"
        assert "pods/proxy" in asked["saw"]
        replica.terminate()  # it serves on for a while, and says that it goes
        eventually(lambda: "the operator is stopping" in results(cluster)["replicas"][1])


def test_an_api_server_out_of_reach(tmp_path: Path, control_plane: ControlPlane) -> None:
    config = json.loads(control_plane.kubeconfig.read_text(encoding="utf-8"))
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    found = shield("check", kubeconfig=path)
    assert found.exit_code == 1
    assert found.stdout.startswith(" 1 ✗ API server       cannot read the API server's version: ")
    assert found.stdout.count("✗") == 1
    before = shield("check", "--pre", kubeconfig=path)
    assert (before.exit_code, before.stdout.count("✗")) == (1, 1)
    for command in (["status"], ["explain", "x"], ["version"], ["status", "-A"]):
        one = shield(*command, kubeconfig=path)
        assert (one.exit_code, len(one.stderr.splitlines())) == (1, 1), command
        assert "out of reach" in one.stderr


def test_versions_without_an_operator(control_plane: ControlPlane) -> None:
    found = shield_json("version", kubeconfig=control_plane.kubeconfig)
    assert found["client"] == __version__
    assert found["operator"] is None
    client = shield("version", "--client", kubeconfig=Path("/nowhere"))
    assert (client.exit_code, client.stdout) == (0, f"kubectl shield  {__version__}\n")


def test_as_kubectls_own_plugin(control_plane: ControlPlane) -> None:
    """kubectl finds the program, and asks it what may follow."""
    folder = Path(sys.executable).parent
    environment = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(control_plane.kubeconfig),
    }
    assert shutil.which("kubectl_complete-shield", path=str(folder))

    def kubectl(*arguments: str) -> str:
        command = [str(control_plane.kubectl_path), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    assert kubectl("shield", "version", "--client") == f"kubectl shield  {__version__}\n"
    offered = kubectl("__complete", "shield", "st").splitlines()
    assert offered[0].startswith("status\t")
    assert offered[-1] == ":4"
    assert kubectl("__complete", "shield", "status", "-o", "").splitlines()[:4] == [
        "text",
        "wide",
        "json",
        "yaml",
    ]
