"""A machine within the machine: the namespaces in which a node and whoever tests it run.

Everything that a node does to a machine it does to namespaces of its own: interfaces, routes and
iptables rules to a network namespace, mounts to a mount namespace, processes to a process
namespace. When the first process in there ends, the kernel ends all the others, and with them go
the mounts and the network; so nothing is left behind, also where a test run is killed, and a
containerd that is there already is never met. The network is cut off from the world.

Two things are no namespace's: control groups and files. They lie under a name and in a folder that
tell whose they are, and are removed by whoever made them, or else by the next.

    run       outside: makes the folder and the control group, enters, cleans up
    inside    inside: mounts and addresses, then the command
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from controlplane.processes import tied_to_this_process
from nodes import cgroups

PREFIX = "llm-shield-node-"
ADDRESS = "198.19.255.1"
"""The machine's own address in there, which pods reach. RFC 2544: nobody's network."""

_DIRECTORY = "NODE_DIRECTORY"
_PRIVATE = {
    "run": "/run",
    "log": "/var/log",
    "kubelet": "/var/lib/kubelet",
    "cni": "/var/lib/cni",
}
"""Folders of the run's, and the places of the machine's that they lie over."""

_KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What a kubelet sets for the whole machine; it is shown files that say it is so already."""


def directory() -> Path | None:
    """The run's folder, in there; None outside."""
    value = os.environ.get(_DIRECTORY)
    return Path(value) if value else None


def run(command: Sequence[str]) -> int:
    """Run a command in there, and return its exit status when all is cleaned up."""
    for name in _abandoned():
        _remove(name)
    name = f"{PREFIX}{os.getpid()}"
    folder = _folder(name)
    temporary = folder / "tmp"
    temporary.mkdir(mode=0o755, parents=True)
    places = [Path(place) for place in _PRIVATE.values() if not Path(place).exists()]
    try:
        for place in places:
            place.mkdir(parents=True)
        cgroups.create(name)
        process = subprocess.Popen(
            [
                *tied_to_this_process(),
                str(shutil.which("unshare")),
                *("--mount", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"),
                *(sys.executable, "-m", "nodes", "inside", str(folder), *command),
            ],
            env=os.environ | {_DIRECTORY: str(folder), "TMPDIR": str(temporary)},
        )
        return _stay_until_it_ends(process)
    finally:
        _remove(name)
        for place in places:
            with contextlib.suppress(OSError):  # somebody else has begun to use it
                place.rmdir()


def inside(folder: Path, command: Sequence[str]) -> int:
    """Be the first process in there: furnish it, run the command, and reap what is orphaned."""
    _furnish(folder)
    signal.signal(signal.SIGINT, lambda *_: None)  # the command gets it too
    child = os.posix_spawn(command[0], list(command), os.environ)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def _furnish(folder: Path) -> None:
    # Shared among those in here, as kubelets ask for; outside, nothing is seen of it.
    _call("mount", "--make-rshared", "/")
    settings = folder / "settings"
    for name, value in _KERNEL_SETTINGS.items():
        file = settings / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n", encoding="utf-8")
        if (place := Path("/proc/sys", name)).exists():
            _call("mount", "--bind", str(file), str(place))
    for name, place_name in _PRIVATE.items():
        (folder / name).mkdir()
        _call("mount", "--bind", str(folder / name), place_name)
    _call("ip", "link", "set", "lo", "up")
    _call("ip", "link", "add", "node", "type", "veth", "peer", "name", "nowhere")
    _call("ip", "address", "add", f"{ADDRESS}/32", "dev", "node")
    for name in ("node", "nowhere"):
        _call("ip", "link", "set", name, "up")
    # Some ask which interface the default route has. What leaves by it gets nowhere.
    _call("ip", "route", "add", "default", "dev", "node")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="utf-8")


def _call(*command: str) -> None:
    subprocess.run(command, check=True)


def _folder(name: str) -> Path:
    return Path(tempfile.gettempdir(), name)


def _abandoned() -> set[str]:
    """Names of runs whose maker is gone, as after a power cut or SIGKILL."""
    found = {path.name for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*")}
    found |= cgroups.names(PREFIX)
    return {name for name in found if not Path("/proc", name.removeprefix(PREFIX)).exists()}


def _remove(name: str) -> None:
    cgroups.remove(name)
    shutil.rmtree(_folder(name), ignore_errors=True)


def _stay_until_it_ends(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process; what would end this one ends that one first, then all is cleaned up.

    Ctrl-C reaches the command by itself, since the terminal sends it to the whole group.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: process.kill())
    interrupt = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.signal(signal.SIGINT, interrupt)
