"""The examples, applied as their README says; their pods are looked at."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import ControlPlane
from localoperator import OperatorProcess
from manifests import ROOT
from plugin import shield
from support import eventually, get, has_sidecar, sidecar_of

EXAMPLES = ROOT / "examples"
Pods = dict[str, Any]
"""An example's pods, by the name of their container."""


def container(pod: Any, name: str) -> Any:
    (found,) = [one for one in pod["spec"]["containers"] if one["name"] == name]
    return found


def variables(of: Any) -> dict[str, Any]:
    return {variable["name"]: variable.get("value") for variable in of["env"]}


def keys(pod: Any) -> list[str]:
    return [source["secretRef"]["name"] for source in sidecar_of(pod)["envFrom"]]


def is_native(pod: Any) -> bool:
    """Whether the sidecar is the first init container, and keeps running."""
    (first, *_) = pod["spec"].get("initContainers", [{}])
    return bool(first.get("name") == "llm-shield-proxy" and first["restartPolicy"] == "Always")


def base_url(pods: Pods) -> None:
    application = variables(container(pods["chat"], "chat"))
    assert application == {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}
    proxy = variables(sidecar_of(pods["chat"]))
    assert proxy["UPSTREAM_BASE_URL"] == "https://api.example.com/v1"


def two_teams(pods: Pods) -> None:
    assert keys(pods["chat"]) == ["team-a-keys"]
    assert keys(pods["search"]) == ["team-b-keys"]
    assert sidecar_of(pods["chat"])["image"] != sidecar_of(pods["search"])["image"]
    configs = {
        name: pods[name]["metadata"]["annotations"]["llm-shield.io/injected-config"]
        for name in ("chat", "search", "reports")
    }
    assert {name: config.partition("/")[2] for name, config in configs.items()} == {
        "chat": "team-a",
        "search": "team-b",
        "reports": "others",
    }
    assert not has_sidecar(pods["batch"])


def private_registry(pods: Pods) -> None:
    def secrets(name: str) -> list[str]:
        return [one["name"] for one in pods[name]["spec"]["imagePullSecrets"]]

    assert secrets("chat") == ["applications-password", "registry-password"]
    assert secrets("batch") == ["batch-password"]


def job(pods: Pods) -> None:
    assert is_native(pods["summary"])
    assert is_native(pods["nightly"])


def native_and_plain(pods: Pods) -> None:
    assert is_native(pods["early"])
    assert [one["name"] for one in pods["early"]["spec"]["initContainers"]] == [
        "llm-shield-proxy",
        "warm-up",
    ]
    assert "initContainers" not in pods["late"]["spec"]
    assert has_sidecar(pods["late"])


def scheduling_rules(pods: Pods) -> None:
    for pod in pods.values():
        assert "team" in {one["key"] for one in pod["spec"]["tolerations"] if "key" in one}
    chat, web = pods["chat"]["spec"], pods["web"]["spec"]
    assert has_sidecar(pods["chat"])
    assert not has_sidecar(pods["web"])
    assert (chat["nodeSelector"], web["nodeSelector"]) == ({"pool": "team-a"}, {"pool": "web"})
    assert "affinity" not in chat
    assert "podAntiAffinity" in web["affinity"]


def payload(pods: Pods) -> None:
    engine = container(pods["engine"], "engine")
    assert variables(engine) == {
        "PYTHONPATH": "/opt/connector:/srv",
        "PYTHONHASHSEED": "0",
    }
    assert engine["args"] == [
        "--model",
        "small",
        "--kv-transfer-config",
        '{"kv_connector": "shield"}',
    ]
    (mount,) = [one for one in engine["volumeMounts"] if one["mountPath"] == "/opt/connector"]
    assert mount["readOnly"]
    (stage,) = [
        one
        for one in pods["engine"]["spec"]["initContainers"]
        if one["name"] == "llm-shield-payload-stage"
    ]
    assert stage["command"] == ["cp", "-r", "/files/.", "/opt/connector"]


def restricted(pods: Pods) -> None:
    sidecar = sidecar_of(pods["chat"])
    assert sidecar["securityContext"]["runAsUser"] == 10001
    assert "/etc/certs" in {mount["mountPath"] for mount in sidecar["volumeMounts"]}
    assert variables(sidecar)["SSL_CERT_FILE"] == "/etc/certs/ca.crt"


LOOKS: dict[str, Callable[[Pods], None]] = {
    "base-url": base_url,
    "job": job,
    "native-and-plain": native_and_plain,
    "payload": payload,
    "private-registry": private_registry,
    "restricted": restricted,
    "scheduling-rules": scheduling_rules,
    "two-teams": two_teams,
}


def test_every_example_is_tried_and_in_the_readme() -> None:
    assert sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()) == list(LOOKS)
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in LOOKS if f"| [{name}]({name}/setup.yaml) |" not in readme] == []


@pytest.mark.parametrize("name", LOOKS)
def test_an_example_does_what_it_says(
    control_plane: ControlPlane, operator: OperatorProcess, name: str
) -> None:
    del operator
    namespace = f"--namespace=example-{name}"
    setup, app = EXAMPLES / name / "setup.yaml", EXAMPLES / name / "app.yaml"
    assert control_plane.kubectl("apply", "-f", str(setup)).stderr == ""
    try:
        control_plane.kubectl("wait", "--for=condition=Ready", "ssc", "--all", namespace)
        account = f"/api/v1/namespaces/example-{name}/serviceaccounts/default"
        eventually(lambda: get(control_plane, account))
        assert control_plane.kubectl("apply", "-f", str(app)).stderr == ""
        if name == "job":
            control_plane.kubectl("create", "job", "now", "--from=cronjob/nightly", namespace)
        wanted = len([*yaml.safe_load_all(app.read_text(encoding="utf-8"))])
        path = f"/api/v1/namespaces/example-{name}/pods"

        def made() -> Pods | None:
            found = get(control_plane, path)["items"]
            pods = {pod["spec"]["containers"][0]["name"]: pod for pod in found}
            return pods if len(pods) == wanted else None

        pods = eventually(made)
        for pod in pods.values():
            assert "llm-shield.io/injection-skipped" not in pod["metadata"]["labels"], pod
        LOOKS[name](pods)
    finally:
        control_plane.kubectl("delete", "-f", str(setup), "--wait=false")


@pytest.mark.parametrize("name", LOOKS)
def test_an_example_can_be_looked_at_without_a_cluster(name: str, tmp_path: Path) -> None:
    files = [EXAMPLES / name / "setup.yaml", EXAMPLES / name / "app.yaml"]
    arguments = [part for file in files for part in ("-f", str(file))]
    result = shield("inject", *arguments, "--diff", kubeconfig=tmp_path / "none")
    assert result.exit_code == 0, result.stderr
    assert " injected, " in result.stderr
    assert "skipped" not in result.stderr
