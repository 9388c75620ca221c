"""`make demo` shows what it promises, and cleans up however it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import ControlPlane
from manifests import ROOT
from support import eventually, has_native_sidecars

DEMO = [sys.executable, str(ROOT / "hack" / "demo.py")]


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which everything temporary lands in a folder that must be empty after."""
    yield os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT / "hack")}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("controlplane-")] == []


def test_the_demo_shows_what_it_promises(
    environment: dict[str, str], control_plane: ControlPlane
) -> None:
    native = "init container  llm-shield-proxy (native sidecar: starts first, runs on)"
    plain = "container       llm-shield-proxy"
    done = subprocess.run(
        DEMO, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in (
        "shield   True    Accepted   shield-keys",
        native if has_native_sidecars(control_plane) else plain,
        "label           llm-shield.io/injected: true",
        "annotation      llm-shield.io/injected-config: shield-demo/shield",
        "label           llm-shield.io/injection-skipped: host-network",
        "is labelled llm-shield.io/inject=disabled: untouched",
        "All of it took ",
    ):
        assert line in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_kept_running_it_ends_cleanly_when_told(
    environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    printed = tmp_path / "printed"
    with (
        printed.open("wb") as output,
        subprocess.Popen([*DEMO, "--keep"], env=environment, stdout=output) as demo,
    ):
        try:
            eventually(lambda: "Ctrl-C stops and removes everything" in printed.read_text(), 60)
            assert "export KUBECONFIG=" in printed.read_text()
            demo.send_signal(number)
            assert demo.wait(30) == 0
        finally:
            demo.kill()
