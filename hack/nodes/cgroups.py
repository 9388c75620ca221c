"""The control groups of a node's pods: made before it, removed after it.

Version 1 (a hierarchy for each controller) or 2 (one for all):
https://kubernetes.io/docs/concepts/architecture/cgroups/
"""

import contextlib
import os
import signal
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_TRIES = 50
_PAUSE = 0.1


def create(name: str) -> None:
    """Make the group under which the kubelet makes all of its own."""
    for hierarchy in _hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):  # version 1 leaves them empty: no processor
            if hierarchy.name == "cpuset" and (hierarchy / file).exists():
                (group / file).write_text((hierarchy / file).read_text())


def remove(name: str) -> None:
    """Kill what is left in the group, and remove it with all in it. What is absent is no matter."""
    for hierarchy in _hierarchies():
        group = hierarchy / name
        for _ in range(_TRIES):
            if not group.exists():
                break
            for path in sorted((group, *group.glob("**/")), reverse=True):
                _kill(path)
                with contextlib.suppress(OSError):  # busy until its processes are reaped
                    path.rmdir()
            time.sleep(_PAUSE)


def names(prefix: str) -> set[str]:
    """Groups of such names that exist."""
    return {path.name for one in _hierarchies() for path in one.glob(f"{prefix}*") if path.is_dir()}


def _hierarchies() -> list[Path]:
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    found = [path for path in ROOT.iterdir() if (path / "cgroup.procs").exists()]
    return sorted({path.resolve() for path in found})  # `cpu` may be a link to `cpu,cpuacct`


def _kill(group: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
