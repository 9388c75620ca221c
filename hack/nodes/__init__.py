"""A real node beside the local control plane: pods run, as in a cluster.

containerd, runc and the network plugins are Debian's; kubelet, kube-proxy and kube-scheduler are
built as the control plane's programs are. All of it runs in namespaces of its own (`machine`), so
it needs root, meets no other container engine, and leaves nothing behind. There is no registry of
images: they are built here (`images`) and brought in as archives.

    archives = images.prepare([...], progress)      # outside, where the package registries are
    machine.run([...])                              # a command inside, such as pytest, where
    with Node(control_plane, programs()) as node:   # a node can be
        node.start(archives)

The modules, each importing only those above it:

    errors        what can go wrong
    requirements  root, and Debian's programs
    cgroups       control groups: made, emptied, removed
    machine       the namespaces, and what no namespace holds
    files         each program's files and flags
    images        images without a registry
    node          the programs put together: `Node`
    __main__      the first process inside
"""

from collections.abc import Mapping
from pathlib import Path

from controlplane.binaries import ensure_programs
from nodes.errors import NodeError
from nodes.files import APISERVER_ARGS, CONTROLLERS
from nodes.node import Node

__all__ = ["APISERVER_ARGS", "CONTROLLERS", "Node", "NodeError", "programs"]


def programs() -> Mapping[str, Path]:
    """The node's programs by name, built once."""
    return ensure_programs(("kube-scheduler", "kubelet", "kube-proxy"))
