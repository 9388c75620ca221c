"""What the tests do with a cluster over and over: by kubectl, as a user does."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import yaml

from controlplane import KubectlError
from manifests import INSTALL
from nodes import Node

NAMESPACE = "llm-shield-system"
OPERATOR = "deployment/llm-shield-operator"


class Cluster:
    """A cluster of one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.control_plane = node.control_plane

    def install(self) -> str:
        """Install the operator, and wait until both replicas are ready; what kubectl prints."""
        done = self.control_plane.kubectl("apply", "-f", str(INSTALL))
        self.rolled_out(OPERATOR, NAMESPACE)
        return done.stdout + done.stderr

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Run kubectl; what it prints."""
        return self.control_plane.kubectl(*arguments, **options).stdout

    def run(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run kubectl, which may fail."""
        return self.control_plane.kubectl(*arguments, check=False, **options)

    def apply(self, *documents: Any) -> str:
        """``kubectl apply``: what it prints, warnings included."""
        text = yaml.safe_dump_all(documents)
        done = self.control_plane.kubectl("apply", "-f", "-", input=text)
        return done.stdout + done.stderr

    def get(self, *arguments: str) -> Any:
        """``kubectl get -o json``."""
        return json.loads(self.kubectl("get", *arguments, "--output=json"))

    def pods(self, namespace: str, selector: str = "") -> list[Any]:
        """The pods of a namespace."""
        found: list[Any] = self.get("pods", f"--namespace={namespace}", f"--selector={selector}")[
            "items"
        ]
        return found

    def rolled_out(self, workload: str, namespace: str) -> None:
        """Wait until all of a workload's pods are new and ready."""
        with self._explained(namespace):
            self.kubectl("rollout", "status", workload, f"--namespace={namespace}", "--timeout=90s")

    def wait(self, condition: str, what: str, namespace: str) -> None:
        """``kubectl wait --for``."""
        with self._explained(namespace):
            self.kubectl(
                "wait", f"--for={condition}", what, f"--namespace={namespace}", "--timeout=90s"
            )

    @contextmanager
    def _explained(self, namespace: str) -> Iterator[None]:
        """Add to a failure what a person would look at."""
        try:
            yield
        except KubectlError as error:
            self.node.check()
            for command in (
                ("get", "pods", "--output=wide"),
                ("describe", "pods"),
                ("logs", "--selector=app.kubernetes.io/name", "--tail=10", "--prefix"),
            ):
                error.add_note(self.run(*command, f"--namespace={namespace}").stdout[-6000:])
            error.add_note(self.node.log_tail())
            raise
