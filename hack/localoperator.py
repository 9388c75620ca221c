"""The operator beside a local control plane: installed by its own manifest, run as a process.

Used by `make demo` and by the tests. The process runs the console script, under the service
account that ``manifests/install.yaml`` makes and with nothing but that account's permissions.
"""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Self

import yaml

from controlplane import ControlPlane
from controlplane.processes import tied_to_this_process
from manifests import INSTALL

NAME = "llm-shield-operator"
NAMESPACE = "llm-shield-system"

_NOT_A_WORKLOAD = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Namespace",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    }
)
_DEFINITION = "crd/shieldsidecarconfigs.llm-shield.io"


_WITH_PACES = """
import importlib, json, sys
for name, value in json.loads(sys.argv.pop(1)).items():
    module, _, constant = name.rpartition(".")
    found = importlib.import_module(f"shield_operator.{module}")
    assert isinstance(getattr(found, constant), (int, float)), name
    setattr(found, constant, value)
from shield_operator.cli import operator
operator(prog_name="shield-operator")
"""
"""The console script, with other numbers in place of some constants."""


class OperatorError(Exception):
    """The operator did not come up, or went away; the message holds the end of its log."""


def install(control_plane: ControlPlane) -> None:
    """Apply all of ``install.yaml`` but what only a cluster with nodes can use."""
    documents = list(yaml.safe_load_all(INSTALL.read_text(encoding="utf-8")))
    wanted = [document for document in documents if document["kind"] in _NOT_A_WORKLOAD]
    control_plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(wanted))
    control_plane.kubectl("wait", "--for=condition=Established", _DEFINITION)


_PORTS = range(20_000, 32_768)
"""Below those that Linux gives to clients: none of many connections may take one meanwhile."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    while True:
        port = random.choice(_PORTS)  # noqa: S311  # so that two programs do not choose the same
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def fetch(port: int, path: str) -> tuple[int, str]:
    """What a program on 127.0.0.1 answers to a plain GET: status and text.

    Raises:
        OSError: nothing listens there.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class OperatorProcess:
    """One replica, as a process of this machine. A context manager that kills it in the end.

    Attributes:
        log: the file that it logs to.
        webhook_port: where it serves admissions.
        health_port: where it serves ``/livez``, ``/readyz`` and ``/metrics``.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        *,
        webhook_url: str | None = None,
        kubeconfig: Path | None = None,
        environment: Mapping[str, str] | None = None,
        paces: Mapping[str, float] | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        """Start it.

        Args:
            control_plane: where it works, and keeps its log.
            webhook_url: where it says that it is, unless at its own address.
            kubeconfig: whose permissions it has, unless its own service account's.
            environment: more settings.
            paces: constants of its modules that a test has no time for, such as
                ``main.RELIST_INTERVAL``.
            wrapper: the command that runs the console script, such as a profiler's.
        """
        self.webhook_port = free_port()
        self.health_port = free_port()
        while self.health_port == self.webhook_port:
            self.health_port = free_port()
        self.log = control_plane.directory / f"operator-{self.webhook_port}.log"
        settings = {
            "KUBECONFIG": str(kubeconfig or control_plane.kubeconfig_for(NAME, NAMESPACE)),
            "LOG_FORMAT": "text",
            "WEBHOOK_PORT": str(self.webhook_port),
            "HEALTH_PORT": str(self.health_port),
            "WEBHOOK_URL": webhook_url or f"https://127.0.0.1:{self.webhook_port}",
        }
        program = [str(Path(sys.executable).with_name("shield-operator"))]
        if paces:
            program = [sys.executable, "-c", _WITH_PACES, json.dumps(paces)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*tied_to_this_process(), *wrapper, *program, "run"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ["PATH"], **settings, **(environment or {})},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Its process number, as for measuring it."""
        return self._process.pid

    def wait_ready(self, timeout: float = 30.0) -> Self:
        """Wait until ``/readyz`` says ok.

        Raises:
            OperatorError: it did not within `timeout` seconds, or ended before.
        """
        deadline = time.monotonic() + timeout
        status, text = 0, "no answer"
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise OperatorError(f"the operator ended by itself:\n{self.log_tail()}")
            with suppress(OSError):
                status, text = self.get("/readyz")
            if status == HTTPStatus.OK:
                return self
            time.sleep(0.05)
        raise OperatorError(f"the operator is not ready ({text.strip()}):\n{self.log_tail()}")

    def get(self, path: str) -> tuple[int, str]:
        """What the health port answers: status and text.

        Raises:
            OSError: nothing listens there.
        """
        return fetch(self.health_port, path)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's values, over all that these labels do not tell apart."""
        wanted = {f'{label}="{value}"' for label, value in labels.items()}
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            series, _, value = line.rpartition(" ")
            found, _, rest = series.partition("{")
            if found == name and wanted <= set(rest.removesuffix("}").split(",")):
                total += float(value)
        return total

    def peak_memory(self) -> int:
        """Bytes that it has had resident at the most (Linux)."""
        return self._memory("VmHWM")

    def resident_memory(self) -> int:
        """Bytes that it has resident now (Linux)."""
        return self._memory("VmRSS")

    def _memory(self, which: str) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        (line,) = [line for line in status.splitlines() if line.startswith(f"{which}:")]
        return int(line.split()[1]) * 1024

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of its log."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def terminate(self) -> None:
        """Ask it to stop, as a kubelet does; it serves on for a while."""
        self._process.send_signal(signal.SIGTERM)

    def interrupt(self) -> int:
        """Stop it at once, in order (Ctrl-C); returns its exit status."""
        self._process.send_signal(signal.SIGINT)
        return self.wait()

    def freeze(self) -> None:
        """Stop it where it is, until `thaw`: its connections stay, and nothing answers on them."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Make it vanish."""
        self._process.kill()
        self._process.wait()

    def wait(self, timeout: float = 30.0) -> int:
        """Its exit status, once it has stopped.

        Raises:
            OperatorError: it did not within `timeout` seconds.
        """
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise OperatorError(f"the operator does not stop:\n{self.log_tail()}") from None
