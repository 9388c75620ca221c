"""The Go programs and the peers' virtual environments: built once into the cache folder.

Beside the control plane's, in a folder whose name is a digest of all that decides the outcome.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from controlplane import BuildError, cache
from controlplane.errors import tail
from environments import environment

ROOT: Final = Path(__file__).resolve().parents[2]
PEERS: Final = ROOT / "benchmarks" / "peers"
_COMMANDS: Final = ("controllerruntime", "creations", "loadgen", "noop")
_FLASK: Final = PEERS / "flask" / "requirements.txt"
_PROXY: Final = ROOT / "tests" / "e2e" / "contexts" / "proxy" / "requirements.txt"


@dataclass(frozen=True)
class Programs:
    """Where they are: the Go programs in one folder, and an environment for each Python peer."""

    go: Path
    flask: Path
    proxy: Path


def ensure() -> Programs:
    """Build what is missing: minutes once, milliseconds after that.

    Raises:
        BuildError: Go or pip failed.
    """
    return Programs(go=_go(), flask=environment(_FLASK), proxy=environment(_PROXY))


def _go() -> Path:
    go = shutil.which("go")
    if go is None:
        raise BuildError("`go` is not on PATH: install Go (https://go.dev/doc/install).")
    digest = hashlib.sha256()
    for source in sorted([*PEERS.rglob("*.go"), PEERS / "go.mod", PEERS / "go.sum"]):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    folder = cache.folder("peers") / digest.hexdigest()[:12]
    return cache.made_once(folder, partial(_build, go))


def _build(go: str, folder: Path) -> None:
    print("building the load generators and the Go webhooks (minutes, once)", file=sys.stderr)
    command = [go, "build", "-mod=readonly", "-p", "1", "-trimpath", "-ldflags", "-s -w"]
    packages = [f"./cmd/{name}" for name in _COMMANDS]
    done = subprocess.run(
        [*command, "-o", f"{folder}/", *packages],
        cwd=PEERS,
        env=os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(f"building them failed:\n{tail(done.stdout + done.stderr)}")
