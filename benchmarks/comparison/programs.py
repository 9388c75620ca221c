"""The Go programs and the peers' virtual environments: built once into the cache folder.

Beside the control plane's, in a folder whose name is a digest of all that decides the outcome.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controlplane import pins
from controlplane.errors import tail

ROOT: Final = Path(__file__).resolve().parents[2]
PEERS: Final = ROOT / "benchmarks" / "peers"
_COMMANDS: Final = ("controllerruntime", "creations", "loadgen", "noop")
_REQUIREMENTS: Final = {
    "flask": PEERS / "flask" / "requirements.txt",
    "proxy": ROOT / "tests" / "e2e" / "contexts" / "proxy" / "requirements.txt",
}


class NotBuiltError(Exception):
    """A program could not be built; the message ends with what the builder said."""


@dataclass(frozen=True)
class Programs:
    """Where they are: the Go programs in one folder, and an environment for each Python peer."""

    go: Path
    flask: Path
    proxy: Path


def ensure() -> Programs:
    """Build what is missing: minutes once, milliseconds after that.

    Raises:
        NotBuiltError: Go or pip failed.
    """
    return Programs(go=_go(), flask=_environment("flask"), proxy=_environment("proxy"))


def _go() -> Path:
    go = shutil.which("go")
    if go is None:
        raise NotBuiltError("`go` is not on PATH: install Go (https://go.dev/doc/install).")
    sources = sorted([*PEERS.rglob("*.go"), PEERS / "go.mod", PEERS / "go.sum"])
    folder = _folder("peers", [source.read_bytes() for source in sources])
    if not folder.exists():
        _say("building the load generators and the Go webhooks (minutes, once)")
        with _unfinished(folder) as scratch:
            command = [go, "build", "-mod=readonly", "-p", "1", "-trimpath", "-ldflags", "-s -w"]
            packages = [f"./cmd/{name}" for name in _COMMANDS]
            environment = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}
            _run([*command, "-o", f"{scratch}/whole/", *packages], environment)
            _keep(Path(scratch, "whole"), folder)
    return folder


def _environment(name: str) -> Path:
    """A virtual environment is not moved once made; a mark says that it is complete."""
    requirements = _REQUIREMENTS[name]
    folder = _folder(f"peer-{name}", [requirements.read_bytes(), sys.version.encode()])
    mark = folder / "complete"
    if not mark.exists():
        _say(f"installing {name} (a minute, once)")
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--require-hashes", "-r", str(requirements)])
        mark.touch()
    return folder


def _folder(name: str, contents: list[bytes]) -> Path:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(hashlib.sha256(content).digest())
    return pins.cache() / f"{name}-{digest.hexdigest()[:12]}"


def _unfinished(folder: Path) -> tempfile.TemporaryDirectory[str]:
    folder.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent)


def _keep(built: Path, folder: Path) -> None:
    with suppress(OSError):  # another process was first, with the same
        built.rename(folder)


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=PEERS,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotBuiltError(f"`{' '.join(command)}` failed:\n{tail(done.stdout + done.stderr)}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
