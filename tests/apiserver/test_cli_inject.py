"""``kubectl shield inject`` beside a real cluster, and what kubectl makes of what it gives."""

import json
from pathlib import Path

import pytest
import yaml

import examples
from controlplane import ControlPlane
from plugin import shield
from support import apply, create_pod, get, has_sidecar, wait_reason

pytestmark = pytest.mark.usefixtures("operator")

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 0
  selector: {matchLabels: &labels {app: web}}
  template:
    metadata: {labels: *labels}
    spec:
      containers:
      - {name: web, image: example.com/web:1, env: [{name: A, value: "012"}]}
      volumes:
      - {name: v, configMap: {name: c, defaultMode: 0644}}
"""


@pytest.fixture
def manifest(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Path:
    """A Deployment for a namespace that asks, and has a config."""
    control_plane.kubectl("label", "namespace", namespace, "llm-shield.io/inject=enabled")
    secret = {"apiVersion": "v1", "kind": "Secret"}
    apply(
        control_plane,
        {**secret, "metadata": {"name": "keys", "namespace": namespace}},
        examples.config(namespace=namespace, application={"baseUrlEnv": [{"name": "URL"}]}),
    )
    wait_reason(control_plane, namespace, "shield", "Accepted")
    file = tmp_path / "web.yaml"
    file.write_text(DEPLOYMENT)
    return file


def test_what_the_cluster_knows_gives_the_pod_that_the_webhook_makes(
    control_plane: ControlPlane, namespace: str, manifest: Path
) -> None:
    result = shield(
        "inject", "-f", str(manifest), "-n", namespace, "--from-cluster",
        kubeconfig=control_plane.kubeconfig,
    )  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "1 injected, 0 untouched\n")
    template = yaml.safe_load(result.stdout)["spec"]["template"]
    bare = yaml.safe_load(DEPLOYMENT)["spec"]["template"]
    status, made = create_pod(
        control_plane, namespace, {**bare, "metadata": {**bare["metadata"], "name": "by-webhook"}}
    )
    assert status == 201, made
    assert has_sidecar(made)
    metadata = template["metadata"]
    assert metadata["labels"] == made["metadata"]["labels"]
    assert metadata["annotations"] == made["metadata"]["annotations"]


def test_kubectl_takes_what_comes_out_and_gives_back_what_went_in(
    control_plane: ControlPlane, namespace: str, manifest: Path
) -> None:
    kubeconfig = control_plane.kubeconfig
    where = ("-n", namespace, "--from-cluster")
    injected = shield("inject", "-f", str(manifest), *where, kubeconfig=kubeconfig).stdout
    control_plane.kubectl("apply", "--server-side", "-n", namespace, "-f", "-", input=injected)
    live = get(control_plane, f"/apis/apps/v1/namespaces/{namespace}/deployments/web")
    spec = live["spec"]["template"]["spec"]
    assert has_sidecar(live["spec"]["template"])
    assert spec["volumes"][0]["configMap"]["defaultMode"] == 0o644
    assert spec["containers"][0]["env"][0] == {"name": "A", "value": "012"}

    (manifest.parent / "live.json").write_text(json.dumps({**live, "apiVersion": "apps/v1",
                                                           "kind": "Deployment"}))  # fmt: skip
    file = str(manifest.parent / "live.json")
    result = shield("uninject", "-f", file, *where, kubeconfig=kubeconfig)
    assert (result.exit_code, result.stderr) == (0, "1 uninjected, 0 untouched\n")
    assert "llm-shield" not in json.dumps(json.loads(result.stdout)["spec"])
    container = json.loads(result.stdout)["spec"]["template"]["spec"]["containers"][0]
    assert [variable["name"] for variable in container["env"]] == ["A"]


def test_a_config_beside_the_clusters_own_wins(
    control_plane: ControlPlane, namespace: str, manifest: Path
) -> None:
    config = manifest.parent / "config.yaml"
    config.write_text(yaml.safe_dump(examples.config(namespace=namespace, port=8123)))
    result = shield(
        "inject", "-f", str(manifest), "-n", namespace, "--from-cluster", "-c", str(config),
        kubeconfig=control_plane.kubeconfig,
    )  # fmt: skip
    assert "containerPort: 8123" in result.stdout
    assert "value: http://127.0.0.1" not in result.stdout


def test_a_context_that_is_not_there(control_plane: ControlPlane, manifest: Path) -> None:
    result = shield(
        "inject", "-f", str(manifest), "--from-cluster", "--context", "nowhere",
        kubeconfig=control_plane.kubeconfig,
    )  # fmt: skip
    assert result.exit_code == 1
    assert "nowhere" in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_n_the_contexts_namespace_counts_as_for_kubectl_apply(
    control_plane: ControlPlane, namespace: str, manifest: Path, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    content = yaml.safe_load(control_plane.kubeconfig.read_text())
    for context in content["contexts"]:
        context["context"]["namespace"] = namespace
    kubeconfig.write_text(yaml.safe_dump(content))
    arguments = ("inject", "-f", str(manifest), "--from-cluster")
    result = shield(*arguments, kubeconfig=kubeconfig)
    assert (result.exit_code, result.stderr) == (0, "1 injected, 0 untouched\n")
    elsewhere = shield(*arguments, "-n", "default", kubeconfig=kubeconfig)
    assert elsewhere.stderr == "0 injected, 1 untouched\n"


@pytest.mark.parametrize("command", ["inject", "explain"])
def test_a_namespace_that_is_not_there(
    control_plane: ControlPlane, manifest: Path, command: str
) -> None:
    result = shield(
        command, "-f", str(manifest), "-n", "nowhere", "--from-cluster",
        kubeconfig=control_plane.kubeconfig,
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "there is no namespace nowhere" in result.stderr
