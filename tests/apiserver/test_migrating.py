"""From LLM-Shield-Proxy's own webhook to the operator, by the steps of docs/migrating.md."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import examples
from controlplane import ControlPlane
from localoperator import OperatorProcess, install
from own_webhook import NAME, OwnWebhook
from support import apply, create_pod, eventually, has_native_sidecars, make_namespace, wait_reason

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "migrating.md"
ASKING = {"llm-shield.io/inject": "true"}


def blocks(step: int, language: str) -> list[str]:
    """The blocks of code of a step."""
    text = DOCUMENT.read_text(encoding="utf-8")
    section = text.partition(f"\n## {step}. ")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.+?)```", section, re.DOTALL)


def run(control_plane: ControlPlane, step: int) -> str:
    """Do what a step says; what it prints."""
    folders = (Path(sys.executable).parent, control_plane.kubectl_path.parent)
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    home = str(control_plane.directory)  # where kubectl keeps what it has learned
    printed = ""
    for block in blocks(step, "sh"):
        result = subprocess.run(
            ["bash", "-euc", block],  # noqa: S607  # wherever the system has it
            env={"PATH": path, "KUBECONFIG": str(control_plane.kubeconfig), "HOME": home},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{block}\n{result.stdout}{result.stderr}"
        printed += result.stdout
    return printed


def proxies(pod: Any) -> list[str]:
    """Whose sidecars the pod has: the operator's carry its mark."""
    spec = pod["spec"]
    found = [*spec.get("initContainers", []), *spec["containers"]]
    return [
        "new" if any(one["name"] == "LLM_SHIELD_INJECTED" for one in c["env"]) else "old"
        for c in found
        if c["name"] == "llm-shield-proxy"
    ]


class Tried(NamedTuple):
    """One pod."""

    begun: str
    """What was being done when it was sent,"""
    answered: str
    """and when it was answered."""
    whose: list[str]
    """Its sidecars, or why it was refused."""


class Pods:
    """Pods that ask, tried in a namespace all the while, as dry runs."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self._control_plane = control_plane
        self._path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
        self._over = threading.Event()
        self.step = ""
        """What is being done meanwhile."""
        self.found: list[Tried] = []

    def go_on(self) -> None:
        while not self._over.is_set():
            begun = self.step
            pod = examples.pod(labels=ASKING)
            status, content = self._control_plane.request("POST", self._path, pod)
            answer = json.loads(content)
            whose = proxies(answer) if status == HTTPStatus.CREATED else [answer["message"]]
            self.found.append(Tried(begun, self.step, whose))
            self._over.wait(0.03)

    @contextmanager
    def all_the_while(self) -> Iterator[None]:
        thread = threading.Thread(target=self.go_on)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()


@pytest.fixture
def cluster() -> Iterator[ControlPlane]:
    """One where the old webhook serves, and a namespace uses it."""
    with (
        ControlPlane.start() as control_plane,
        OwnWebhook(control_plane, image=examples.IMAGE, secret_name="shield-keys"),
    ):
        for name in ("shop", "other"):
            make_namespace(control_plane, name)
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "shield-keys", "namespace": name},
            }
            apply(control_plane, secret, deployment(name))
            wait_for_sidecar(control_plane, name, "old")
        yield control_plane


def deployment(namespace: str) -> Any:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", **ASKING}},
                "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
            },
        },
    }


def configure(control_plane: ControlPlane) -> None:
    """Apply the document's config, and wait until it counts."""
    (config,) = map(yaml.safe_load, blocks(3, "yaml"))
    config["spec"]["image"] = config["spec"]["image"].replace("<64 hex digits>", "0" * 64)
    apply(control_plane, config)
    wait_reason(control_plane, "llm-shield-system", "default", "Accepted")


def wait_for_sidecar(control_plane: ControlPlane, namespace: str, whose: str) -> None:
    """Wait until the Deployment's newest pod has this one, and no other."""

    def look() -> bool:
        listed = control_plane.kubectl("get", "pods", "-l=app=web", "-n", namespace, "-o=yaml")
        pods = yaml.safe_load(listed.stdout)["items"]
        newest = max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], default=None)
        return newest is not None and proxies(newest) == [whose]

    eventually(look)


def test_no_pod_is_bare_or_has_two_proxies_on_the_way_to_the_operator(
    cluster: ControlPlane,
) -> None:
    pods = Pods(cluster, "shop")
    with ExitStack() as stack, pods.all_the_while():
        run(cluster, 1)
        install(cluster)
        stack.enter_context(OperatorProcess(cluster)).wait_ready()
        configure(cluster)
        assert "Outcome: injected" in run(cluster, 3)
        run(cluster, 4)
        pods.step = "moving"
        run(cluster, 5)
        pods.step = "moved"
        wait_for_sidecar(cluster, "shop", "new")
        _, untouched = create_pod(cluster, "other", examples.pod(labels=ASKING))
        assert proxies(untouched) == ["old"]
        assert NAME in run(cluster, 6)
        until = len(pods.found) + 10
        eventually(lambda: len(pods.found) >= until)
    assert {str(one.whose) for one in pods.found if one.answered == ""} == {"['old']"}
    assert {str(one.whose) for one in pods.found if one.begun == "moved"} == {"['new']"}
    meanwhile = [one.whose for one in pods.found if "moving" in (one.begun, one.answered)]
    missed = [whose for whose in meanwhile if whose not in (["old"], ["new"])]
    assert missed in ([], [[]]), "the one that met the change of the label may be bare"


def test_both_webhooks_at_once_refuse_a_pod_as_the_document_warns(cluster: ControlPlane) -> None:
    """Without the steps: the operator's native sidecar is one that the other does not see."""
    install(cluster)
    with OperatorProcess(cluster) as operator:
        operator.wait_ready()
        configure(cluster)
        status, answer = create_pod(cluster, "shop", examples.pod(labels=ASKING))
    if has_native_sidecars(cluster):
        assert status == HTTPStatus.UNPROCESSABLE_ENTITY
        assert answer["message"].endswith('.name: Duplicate value: "llm-shield-proxy"')
    else:
        assert proxies(answer) == ["new"]
