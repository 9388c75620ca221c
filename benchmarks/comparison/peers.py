"""How each webhook is started, and where it answers."""

import http.client
import os
import ssl
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from benchmarks.comparison.programs import PEERS, Programs
from benchmarks.comparison.stage import Stage

from controlplane.processes import tied_to_this_process
from localoperator import OperatorProcess, free_port

NOOP: Final = "noop"
GO: Final = "controller-runtime"
PROXY: Final = "proxy"
FLASK: Final = "flask"
KOPF: Final = "kopf"
OURS: Final = "operator"

TITLES: Final = {
    NOOP: "no-op (Go)",
    GO: "controller-runtime (Go)",
    PROXY: "llm-shield-proxy's own (FastAPI, uvicorn)",
    FLASK: "Flask, gunicorn",
    KOPF: "Kopf as it comes",
    OURS: "this operator",
}
PLAIN: Final = "operator-plain"
"""This operator once more, by a webhook configuration like the peers'."""
THROUGH: Final = {**TITLES, PLAIN: "this operator, by a configuration like the peers'"}
"""What is measured through the API server."""
PYTHON_PEERS: Final = (PROXY, FLASK, KOPF)
_PATHS: Final = {
    NOOP: "mutate",
    GO: "mutate",
    PROXY: "v1/k8s/mutate",
    FLASK: "mutate",
    KOPF: "mutate",
}
_START: Final = 60.0
_GRACE: Final = 5.0


class NotReadyError(Exception):
    """A webhook did not come up; the message holds the end of its log."""


class Webhook(ABC):
    """One that runs. A context manager that stops it.

    Attributes:
        name: one of `TITLES`.
        namespace: whose pods it is asked about.
        url: where it answers.
        authority: PEM file of what its certificate is trusted by.
        start_to_ready: seconds from its start to its first answer.
    """

    name: str
    url: str
    authority: Path
    start_to_ready: float

    @property
    def namespace(self) -> str:
        """Whose pods it is asked about."""
        return f"bench-{self.name}"

    @property
    @abstractmethod
    def pid(self) -> int:
        """Of its first process."""

    @abstractmethod
    def stop(self) -> None:
        """Stop it, in order."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Peer(Webhook):
    """Somebody else's, as a process of this machine."""

    def __init__(self, name: str, stage: Stage, programs: Programs, review: bytes) -> None:
        port = free_port()
        self.name = name
        self.url = f"https://127.0.0.1:{port}/{_PATHS[name]}"
        self.authority = stage.folder / "ca.crt"
        log = stage.folder / f"{name}-{port}.log"
        begin = time.monotonic()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [*tied_to_this_process(), *_command(name, stage, programs, port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=stage.folder,
                env={"PATH": os.environ["PATH"], **_environment(name, stage, port)},
            )
        try:
            self.start_to_ready = answered(self.url, review, begin, self._process)
        except NotReadyError as error:
            self.stop()
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:]
            raise NotReadyError("\n".join((f"{name}: {error}", *lines))) from None

    @property
    def pid(self) -> int:
        """Of its first process."""
        return self._process.pid

    def stop(self) -> None:
        """Stop it, in order where it does so in time."""
        self._process.terminate()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Ours(Webhook):
    """This operator, installed by its manifest, under its own account."""

    name = OURS

    def __init__(self, stage: Stage, review: bytes, *, profile: Path | None = None) -> None:
        begin = time.monotonic()
        wrapper = [sys.executable, "-m", "cProfile", "-o", str(profile)] if profile else []
        self.replica = OperatorProcess(stage.control_plane, wrapper=wrapper)
        try:
            url = f"https://127.0.0.1:{self.replica.webhook_port}/inject"
            self.start_to_ready = answered(url, review, begin, None)
            self.url, self.authority = stage.wait_for_operator(self.replica)
        except BaseException:
            self.replica.kill()
            raise

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.replica.pid

    def stop(self) -> None:
        """Stop it in order: it gives its Lease back."""
        self.replica.interrupt()


def answered(
    url: str, review: bytes, begin: float, process: subprocess.Popen[bytes] | None
) -> float:
    """Seconds from `begin` to the first review that the webhook answers.

    Raises:
        NotReadyError: it ended before, or did not in time.
    """
    address = urlsplit(url)
    context = ssl.create_default_context()
    context.check_hostname = False  # that it answers is all that is asked here
    context.verify_mode = ssl.CERT_NONE
    while time.monotonic() < begin + _START:
        if process is not None and process.poll() is not None:
            raise NotReadyError("it ended by itself")
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPSConnection(
                address.hostname or "", address.port, timeout=5, context=context
            )
            try:
                headers = {"Content-Type": "application/json"}
                connection.request("POST", address.path, review, headers)
                response = connection.getresponse()
                response.read()
                if response.status == HTTPStatus.OK:
                    return time.monotonic() - begin
            finally:
                connection.close()
        time.sleep(0.01)
    raise NotReadyError(f"it does not answer within {_START:.0f} s")


def _command(name: str, stage: Stage, programs: Programs, port: int) -> list[str]:
    certificate, key = str(stage.folder / "tls.crt"), str(stage.folder / "tls.key")
    address = f"127.0.0.1:{port}"
    match name:
        case "noop":
            program = str(programs.go / "noop")
            return [program, "-listen", address, "-cert", certificate, "-key", key]
        case "controller-runtime":
            program = str(programs.go / "controllerruntime")
            injection = str(stage.injection())
            folder = str(stage.folder)
            return [program, "-port", str(port), "-cert-dir", folder, "-injection", injection]
        case "proxy":
            return [
                str(programs.proxy / "bin" / "uvicorn"),
                "llm_shield_proxy.api.main:app",
                "--host=127.0.0.1",
                f"--port={port}",
                f"--ssl-certfile={certificate}",
                f"--ssl-keyfile={key}",
            ]
        case "flask":
            return [
                str(programs.flask / "bin" / "gunicorn"),
                f"--certfile={certificate}",
                f"--keyfile={key}",
                f"--bind={address}",
                f"--chdir={PEERS / 'flask'}",
                "webhook:app",
            ]
        case "kopf":
            program = str(Path(sys.executable).with_name("kopf"))
            source = str(PEERS / "kopf" / "webhook.py")
            return [program, "run", "--standalone", "--all-namespaces", source]
    raise ValueError(name)


def _environment(name: str, stage: Stage, port: int) -> dict[str, str]:
    match name:
        case "proxy":
            return {
                "ENABLE_K8S_WEBHOOK": "true",
                "K8S_SIDECAR_SECRET_NAME": "keys",
                "ENABLE_TIER3_ONNX_NER": "false",
                "ENABLE_EXT_PROC": "false",
                "VALID_VIRTUAL_KEYS": "bench",
                "HOME": str(stage.folder),
            }
        case "flask":
            return {"INJECTION": str(stage.injection())}
        case "kopf":
            return {
                "INJECTION": str(stage.injection()),
                "KUBECONFIG": str(stage.control_plane.kubeconfig),
                "PORT": str(port),
                "TLS_CERT": str(stage.folder / "tls.crt"),
                "TLS_KEY": str(stage.folder / "tls.key"),
            }
    return {}
