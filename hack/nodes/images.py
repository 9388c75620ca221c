"""Images without a registry: a base by debootstrap, the rest by buildah, kept in the cache folder.

Built outside of the node's namespaces, where the package registries are; brought into the node's
containerd as archives.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import image
from controlplane import cache
from controlplane.errors import tail
from nodes.errors import NodeError
from nodes.files import PAUSE_IMAGE

BASE = "docker.io/library/debian:trixie-slim"
_SUITE = "trixie"
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info")
"""What Debian's own slim images leave out too."""

_MANY = 100
"""Images and layers that are kept for the next build; some thirty are needed."""

_PAUSE = """\
// Holds a pod's namespaces until it is told to end.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	<-told
}
"""


@dataclass(frozen=True)
class Image:
    """An image to build: its name and the folder that it is built from."""

    name: str
    context: Path


def kept() -> Path:
    """The folder of everything that is kept for the next run."""
    return cache.folder("images")


def prepare(images: Sequence[Image], progress: Callable[[str], None]) -> dict[str, Path]:
    """Build images, of which buildah keeps the layers, and return their archives by name.

    Raises:
        NodeError: a program failed; the message has the end of its output.
    """
    (kept() / "archives").mkdir(parents=True, exist_ok=True)
    if not _image_id(BASE):
        progress(f"making {BASE} by debootstrap (a minute, once)")
        _make_base()
    if not _image_id(PAUSE_IMAGE):
        progress(f"making {PAUSE_IMAGE}")
        _make_pause()
    if len(_buildah("images", "--all", "--quiet").split()) > _MANY:  # of earlier versions
        _buildah("rmi", "--prune", "--force")
    for one in images:
        progress(f"building {one.name}")
        with image.pip_secrets() as secrets:
            _build(one.name, one.context, [*secrets, "--build-arg", f"BASE={BASE}"])
    archives = {name: _archive(name) for name in (PAUSE_IMAGE, *(one.name for one in images))}
    for path in (kept() / "archives").iterdir():
        if path not in archives.values():
            path.unlink()
    return archives


def _make_base() -> None:
    with tempfile.TemporaryDirectory(prefix="base-", dir=kept()) as folder:
        context = Path(folder)
        tree = context / "tree"
        _run("debootstrap", "--variant=minbase", _SUITE, str(tree), _mirror())
        for path in _LEFT_OUT:
            shutil.rmtree(tree / path, ignore_errors=True)
        for path in ("var/cache/apt", "var/lib/apt/lists", "var/log"):
            for entry in (tree / path).iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        # What a reader of the image needs not: each package's documents, from now on.
        (tree / "etc/dpkg/dpkg.cfg.d/slim").write_text(
            "".join(f"path-exclude=/{path}/*\n" for path in _LEFT_OUT), encoding="utf-8"
        )
        _run("tar", "--create", "--file", str(context / "tree.tar"), "--directory", str(tree), ".")
        shutil.rmtree(tree)
        (context / "Dockerfile").write_text(
            'FROM scratch\nADD tree.tar /\nCMD ["bash"]\n', encoding="utf-8"
        )
        _build(BASE, context, [])


def _make_pause() -> None:
    with tempfile.TemporaryDirectory(prefix="pause-", dir=kept()) as folder:
        context = Path(folder)
        (context / "pause.go").write_text(_PAUSE, encoding="utf-8")
        _run(
            "go",
            "build",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
            "pause",
            "pause.go",
            directory=context,
            environment={"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off"},
        )
        (context / "Dockerfile").write_text(
            'FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n',
            encoding="utf-8",
        )
        _build(PAUSE_IMAGE, context, [])


def _mirror() -> str:
    """Where apt here has Debian from."""
    lines = _run(
        "apt-get",
        "indextargets",
        "--format",
        "$(ORIGIN) $(SITE) $(COMPONENT)",
        "Created-By: Packages",
    ).splitlines()
    for line in lines:
        origin, _, rest = line.partition(" ")
        if origin == "Debian" and rest.endswith(" main") and "security" not in rest:
            return rest.removesuffix(" main")
    raise NodeError("apt knows of no archive of Debian: add one to its sources, and update.")


def _build(name: str, context: Path, more: Sequence[str]) -> None:
    _buildah(
        "build",
        "--isolation=chroot",
        "--layers",
        "--pull-never",
        *more,
        "--tag",
        name,
        str(context),
    )


def _image_id(name: str) -> str:
    return _buildah("images", "--quiet", "--no-trunc", "--filter", f"reference={name}").strip()


def _archive(name: str) -> Path:
    """Write an image as an archive, unless that of the very same image is there."""
    digest = hashlib.sha256(f"{name} {_image_id(name)}".encode()).hexdigest()
    path = kept() / "archives" / f"{digest[:16]}.tar"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        _buildah("push", "--quiet", name, f"docker-archive:{unfinished}:{name}")
        unfinished.rename(path)
    return path


def _buildah(*arguments: str) -> str:
    """Run buildah with storage of its own, and mounts that nobody else sees."""
    storage = kept() / "storage"
    return _run(
        "unshare",
        "--mount",
        "buildah",
        "--root",
        str(storage),
        "--runroot",
        str(kept() / "run"),
        "--storage-driver",
        "overlay",
        *arguments,
    )


def _run(
    *command: str, directory: Path | None = None, environment: dict[str, str] | None = None
) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NodeError(
            f"`{' '.join(command)}` failed; its output ends:\n{tail(done.stdout + done.stderr)}"
        )
    return done.stdout
