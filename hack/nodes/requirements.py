"""What a node needs of its machine: root, a kernel with namespaces, Debian's programs."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from controlplane.errors import tail
from nodes.errors import NodeError

CNI_PLUGINS = Path("/usr/lib/cni")
_OVERLAY = "overlay"

_PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "unshare": "util-linux",
    "debootstrap": "debootstrap",
    "buildah": "buildah",
    str(CNI_PLUGINS / "ptp"): "containernetworking-plugins",
}
"""Programs, and the Debian packages that have them."""


def require(progress: Callable[[str], None]) -> None:
    """Install what is missing, where this is Debian.

    Raises:
        NodeError: a node cannot run here: why, and what to do about it.
    """
    if sys.platform != "linux":
        raise NodeError("Pods run on Linux only: run this on a Linux machine or a virtual one.")
    if os.geteuid() != 0:
        raise NodeError(
            "A node makes network namespaces, mounts and control groups, which only root may: "
            "run `make e2e` as root, in a virtual machine if you like."
        )
    filesystems = Path("/proc/filesystems").read_text(encoding="utf-8").split()
    if _OVERLAY not in filesystems and Path("/sbin/modprobe").exists():
        subprocess.run(["/sbin/modprobe", _OVERLAY], check=False, capture_output=True)
    missing = _missing()
    if not missing:
        return
    packages = sorted(set(missing.values()))
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
    if shutil.which("apt-get") is None:
        raise NodeError(
            f"{', '.join(missing)} are missing, and there is no apt-get to install them: install "
            "what your distribution calls them."
        )
    progress(f"installing {' '.join(packages)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for step in (["apt-get", "update"], command):
        done = subprocess.run(step, check=False, capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            raise NodeError(f"`{' '.join(step)}` failed:\n{tail(done.stdout + done.stderr)}")
    if left := _missing():
        raise NodeError(f"{', '.join(left)} are missing still: `{' '.join(command)}` brought none.")


def _missing() -> dict[str, str]:
    """Programs that are not here, and the packages that have them."""
    return {name: package for name, package in _PACKAGES.items() if shutil.which(name) is None}
