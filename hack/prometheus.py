"""A real Prometheus for trying alerts and panels: Debian's, unpacked beside the control plane's.

Unpacked, not installed: Debian's package would start a service of its own. Used by
`make test-monitoring`.
"""

import json
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import yaml

from controlplane import BuildError, ControlPlane, cache, processes
from controlplane.errors import tail
from localoperator import fetch, free_port

_PACKAGE = "prometheus"


def ensure(name: str) -> Path:
    """The path of ``prometheus`` or ``promtool``: the user's, or Debian's in the cache folder.

    Raises:
        BuildError: it is not here, and this is no Debian that could bring it.
    """
    if found := shutil.which(name):
        return Path(found)
    folder = cache.made_once(cache.folder(_PACKAGE), _unpack)
    return folder / "usr" / "bin" / name


def _unpack(folder: Path) -> None:
    if shutil.which("apt-get") is None:
        raise BuildError(
            "prometheus is not on PATH, and there is no apt-get to bring it: install Prometheus "
            "(https://prometheus.io/download/)."
        )
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        _run(["apt-get", "download", _PACKAGE], scratch)
        (package,) = Path(scratch).glob("*.deb")
        _run(["dpkg-deb", "--extract", str(package), str(folder)], scratch)


def _run(command: list[str], directory: str) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(
            f"`{' '.join(command)}` failed (does `apt-get update` help?):\n{tail(done.stderr)}"
        )


class Prometheus:
    """A running Prometheus that scrapes every second. A context manager that stops it."""

    def __init__(
        self,
        control_plane: ControlPlane,
        token: Path,
        replicas: Sequence[str],
        rules: Mapping[str, Any],
    ) -> None:
        """Start it.

        Args:
            control_plane: whose API server it scrapes too, and beside whose data it keeps its own.
            token: a file with a bearer token that the API server lets read its metrics.
            replicas: the operators' health addresses, ``host:port``.
            rules: the content of a rule file.
        """
        directory = control_plane.directory / "prometheus"
        directory.mkdir()
        (directory / "rules.yml").write_text(yaml.safe_dump(dict(rules)), encoding="utf-8")
        address = urllib.parse.urlsplit(control_plane.url).netloc
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {
                    "job_name": "llm-shield-operator",
                    "static_configs": [{"targets": list(replicas)}],
                },
                {
                    "job_name": "apiserver",
                    "scheme": "https",
                    "authorization": {"credentials_file": str(token)},
                    "tls_config": {"ca_file": str(control_plane.ca_file)},
                    "static_configs": [{"targets": [address]}],
                },
            ],
        }
        (directory / "prometheus.yml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
        self._port = free_port()
        self._program = processes.Program(
            [
                str(ensure("prometheus")),
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address=127.0.0.1:{self._port}",
            ],
            directory=directory,
        )
        self._program.start()

    def __enter__(self) -> Self:
        deadline = time.monotonic() + 30
        while not self._is_ready():
            self._program.check()
            if time.monotonic() > deadline:
                raise self._program.failure("did not become ready within 30 s")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        processes.stop([self._program], grace=5.0)

    def _is_ready(self) -> bool:
        with suppress(OSError):
            return fetch(self._port, "/-/ready")[0] == HTTPStatus.OK
        return False

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """The labels and values of an expression's samples now.

        Raises:
            OSError: Prometheus cannot make sense of it.
        """
        found = self._data("/api/v1/query", query=expression)["result"]
        return [(sample["metric"], float(sample["value"][1])) for sample in found]

    def rules(self) -> list[Any]:
        """Its rules as it knows them: each with ``name``, ``state``, ``health``, ``lastError``."""
        groups = self._data("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _data(self, path: str, **parameters: str) -> dict[str, Any]:
        status, text = fetch(self._port, f"{path}?{urllib.parse.urlencode(parameters)}")
        if status != HTTPStatus.OK:
            raise OSError(f"Prometheus answered {status}: {text}")
        found: dict[str, Any] = json.loads(text)["data"]
        return found
