"""A real local Kubernetes control plane for tests, `make demo` and benchmarks.

What an API server does with a patch, a webhook's certificate, a field manager or a race is only
known by asking one, so the project asks one: etcd, kube-apiserver, kube-controller-manager and
kubectl are built once from Go modules (`go.mod` and `go.sum` in this folder pin them) and run on
the loopback interface. No container engine, no root, no downloads beyond the Go module proxy.
There are no nodes: Deployments make pods, and the pods stay Pending.

    with ControlPlane.start() as control_plane:
        control_plane.kubectl("apply", "-f", "crds/")

The modules, each importing only those above it:

    errors       what can go wrong
    cache        the folder of what is built once
    pins         the versions
    binaries     the programs: found, or built once into the user's cache folder
    credentials  the token file, the service accounts' signing key, kubeconfigs
    commands     each program's files and flags
    exec_tied    a program that does not outlive this one
    processes    one running program with its log: started, checked, stopped
    launcher     the four programs put together: `ControlPlane`
    __main__     `python -m controlplane`, the same for a person at a terminal
"""

from controlplane.binaries import Binaries, ensure, ensure_programs
from controlplane.commands import CONTROLLERS
from controlplane.errors import BuildError, ControlPlaneError, KubectlError, ProgramError
from controlplane.launcher import ControlPlane

__all__ = [
    "CONTROLLERS",
    "Binaries",
    "BuildError",
    "ControlPlane",
    "ControlPlaneError",
    "KubectlError",
    "ProgramError",
    "ensure",
    "ensure_programs",
]
