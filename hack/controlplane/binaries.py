"""The control plane's programs: found where the user has them, or built once.

The versions are those of `go.mod` in this folder, or others on demand (`pins`). A build lands in

    ${XDG_CACHE_HOME:-~/.cache}/llm-shield-operator/controlplane/<version>-<digest>/

where the digest covers everything that decides the outcome (`go.mod`, `go.sum`, the flags), so a
changed pin is a new folder and an old one is never stale. Where `KUBEBUILDER_ASSETS` is set, as
for controller-runtime's envtest, the programs found there win, and only the missing ones are built
(setup-envtest brings no kube-controller-manager); that the versions fit is then the user's choice.
"""

import contextlib
import fcntl
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from controlplane import cache, pins
from controlplane.errors import BuildError, tail

_ETCD = "go.etcd.io/etcd/server/v3"
_HELM = {"helm3": "helm.sh/helm/v3", "helm4": "helm.sh/helm/v4"}
"""Helm's module by the program's name: both versions of Helm are in use."""
_PROGRESS_SECONDS = 10
_LOCK_POLL_SECONDS = 0.2

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Binaries:
    """Paths of the four programs, each known to exist."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path


@dataclass(frozen=True)
class _Program:
    """One program to build: its file's name (KUBEBUILDER_ASSETS has the same) and its source."""

    name: str
    package: str
    module: str

    @property
    def title(self) -> str:
        return f"{self.name} {pins.version(self.module, self.source)}"

    @property
    def source(self) -> Path:
        """The folder of its `go.mod`; Helm, which is no part of the control plane, has its own."""
        return pins.HELM if self.name in _HELM else pins.source(self.name)

    @property
    def directory(self) -> Path:
        """The folder for exactly these pins and flags; it need not exist yet."""
        digest = hashlib.sha256()
        for name in ("go.mod", "go.sum"):
            digest.update((self.source / name).read_bytes())
        for program in _PROGRAMS.values():
            if (program.name in _HELM) == (self.name in _HELM):
                flags = _flags(program.module, self.source)
                digest.update("\0".join((program.package, *flags)).encode())
        version = "helm" if self.name in _HELM else pins.version(pins.KUBERNETES, self.source)
        return _cache() / f"{version}-{digest.hexdigest()[:12]}"


def _flags(module: str, source: Path) -> tuple[str, ...]:
    """Flags of `go build`; without the `-X` a server would call itself v0.0.0."""
    link = "-s -w"
    if module == pins.KUBERNETES:
        version = pins.version(module, source)
        major, minor, _ = version.split(".", 2)
        variables = "k8s.io/component-base/version"
        link += (
            f" -X {variables}.gitVersion=v{version}"
            f" -X {variables}.gitMajor={major}"
            f" -X {variables}.gitMinor={minor}"
        )
    if module in _HELM.values():
        link += f" -X {module}/internal/version.version=v{pins.version(module, source)}"
    if module == _HELM["helm3"]:  # which would think itself in a cluster of 1.20 without one
        _, minor, _ = pins.version("k8s.io/client-go", source).split(".", 2)
        for package in ("pkg/chartutil", "pkg/lint/rules"):
            link += f" -X {module}/{package}.k8sVersionMajor=1"
            link += f" -X {module}/{package}.k8sVersionMinor={minor}"
    return ("-trimpath", "-ldflags", link)


_CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
_NODES = ("kube-scheduler", "kubelet", "kube-proxy")
_PROGRAMS = {
    name: _Program(name, _ETCD, _ETCD)
    if name == "etcd"
    else _Program(name, f"{pins.KUBERNETES}/cmd/{name}", pins.KUBERNETES)
    for name in (*_CONTROL_PLANE, *_NODES)
} | {name: _Program(name, f"{module}/cmd/helm", module) for name, module in _HELM.items()}

PROGRAMS = frozenset(_PROGRAMS)
"""The names that `ensure_programs` knows."""


def to_stderr(line: str) -> None:
    """Show a line of progress at once, also where stderr is a file or a CI log."""
    print(line, file=sys.stderr, flush=True)


def ensure(progress: Progress = to_stderr) -> Binaries:
    """Return the control plane's programs, as `ensure_programs` does.

    Raises:
        BuildError: Go is missing or failed, or KUBEBUILDER_ASSETS names no folder.
    """
    paths = ensure_programs(_CONTROL_PLANE, progress)
    return Binaries(
        etcd=paths["etcd"],
        kube_apiserver=paths["kube-apiserver"],
        kube_controller_manager=paths["kube-controller-manager"],
        kubectl=paths["kubectl"],
    )


def ensure_programs(names: Collection[str], progress: Progress = to_stderr) -> Mapping[str, Path]:
    """Return programs by name, building the missing ones: minutes once, milliseconds after that.

    Concurrent callers, of this process or of others, build once: the second waits for the first.

    Args:
        names: such as `kubelet`; the control plane's, the nodes', `helm3` and `helm4`.
        progress: takes one line about every ten seconds of building or waiting.

    Raises:
        BuildError: Go is missing or failed, or KUBEBUILDER_ASSETS names no folder.
    """
    in_assets = _in_assets()
    paths = {name: in_assets.get(name) or _PROGRAMS[name].directory / name for name in names}

    def missing() -> list[str]:
        return [name for name, path in paths.items() if not path.exists()]

    if missing():
        go = shutil.which("go")
        if go is None:
            raise BuildError(
                f"`go` is not on PATH, and {', '.join(missing())} must be built once for the local "
                "control plane: install Go (https://go.dev/doc/install), or set KUBEBUILDER_ASSETS "
                "to a folder that has them."
            )
        _cache().mkdir(parents=True, exist_ok=True)
        with _lock(_cache(), progress):
            for unfinished in _cache().glob("*/.building-*"):  # of a build that was killed
                shutil.rmtree(unfinished, ignore_errors=True)
            for name in missing():
                _build(_PROGRAMS[name], go=go, progress=progress)
    return paths


def _cache() -> Path:
    return cache.folder("controlplane")


def _in_assets() -> dict[str, Path]:
    """Return the programs that the user's KUBEBUILDER_ASSETS folder has."""
    variable = os.environ.get("KUBEBUILDER_ASSETS")
    if not variable:
        return {}
    folder = Path(variable).absolute()
    if not folder.is_dir():
        raise BuildError(
            f"KUBEBUILDER_ASSETS is set to {folder}, which is no folder: unset it, or set it to "
            "the folder that `setup-envtest use -p path` prints."
        )
    found = {name: folder / name for name in _PROGRAMS}
    return {name: path for name, path in found.items() if os.access(path, os.X_OK)}


@contextlib.contextmanager
def _lock(directory: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's build lock; the kernel frees it with the process, however that ends."""
    begin = time.monotonic()
    shown = begin - _PROGRESS_SECONDS
    with (directory / ".lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                now = time.monotonic()
                if now - shown >= _PROGRESS_SECONDS:
                    shown = now
                    progress(f"waiting for another build of the control plane, {now - begin:.0f} s")
                time.sleep(_LOCK_POLL_SECONDS)
        yield


def _build(program: _Program, *, go: str, progress: Progress) -> None:
    """Build one program beside its place and move it there, so that a file there is complete."""
    begin = time.monotonic()
    directory = program.directory
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".building-", dir=directory) as scratch:
        listed = _go(
            [go, "list", "-mod=readonly", "-deps", program.package],
            action=f"listing the packages of {program.title}",
            describe=lambda log: f"{log.count('go: downloading ')} modules downloaded",
            progress=progress,
            source=program.source,
            scratch=Path(scratch),
        )
        packages = frozenset(listed.split())

        def compiled(log: str) -> str:
            # `go build -v` names what it compiles; what Go's cache already has it passes over.
            count = len(packages.intersection(log.splitlines()))
            return f"{count} of {len(packages)} packages (cached ones are not counted)"

        output = Path(scratch, program.name)
        _go(
            # -mod overrides a GOFLAGS that would have Go edit go.mod or look for a vendor folder.
            [
                go,
                "build",
                "-mod=readonly",
                "-v",
                *_flags(program.module, program.source),
                "-o",
                str(output),
                program.package,
            ],
            action=f"building {program.title}",
            describe=compiled,
            progress=progress,
            source=program.source,
            scratch=Path(scratch),
        )
        output.replace(directory / program.name)
    progress(f"built {program.title} in {time.monotonic() - begin:.0f} s")


def _go(
    command: list[str],
    *,
    action: str,
    describe: Callable[[str], str],
    progress: Progress,
    source: Path,
    scratch: Path,
) -> str:
    """Run Go in a folder with progress and return its standard output.

    Args:
        command: the Go command.
        action: what it does, in words.
        describe: how far it is, told from its standard error so far.
        progress: takes a line of both about every ten seconds.
        source: that folder, with its `go.mod`.
        scratch: a folder for its output.
    """
    # A program with cgo would need a C compiler and its libraries; a go.work is not ours to follow.
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    output, log = scratch / "stdout", scratch / "stderr"
    with (
        output.open("w") as stdout,
        log.open("w") as stderr,
        subprocess.Popen(
            command, cwd=source, env=environment, stdout=stdout, stderr=stderr
        ) as process,
    ):
        try:
            for ticks in itertools.count(1):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(timeout=_PROGRESS_SECONDS)
                    break
                seconds = ticks * _PROGRESS_SECONDS
                progress(f"{action}: {describe(log.read_text())}, {seconds} s")
        except BaseException:
            process.terminate()
            raise
    if status != 0:
        raise BuildError(f"{action} failed; Go's output ends:\n{tail(log.read_text())}")
    return output.read_text()
