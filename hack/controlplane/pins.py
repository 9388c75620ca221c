"""At which versions the programs are built: those of this folder's `go.mod`, or others on demand.

With `KUBERNETES_VERSION=1.30.14` in the environment the API server and the controller manager are
of that version, as for trying the oldest or the newest Kubernetes that the project supports. Their
`go.mod` is derived in the cache folder, from what `k8s.io/kubernetes` of that version says itself:
it takes some thirty modules from its own `staging` folder, and everybody else takes them from where
they are published. The checksums are those of Go's checksum database.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

from controlplane import cache
from controlplane.errors import BuildError, tail

SOURCE = Path(__file__).parent
HELM = SOURCE / "helm"
"""The folder of the `go.mod` that Helm is built by; the chart is tried with it."""
KUBERNETES = "k8s.io/kubernetes"
OTHERS = ("kube-apiserver", "kube-controller-manager")
"""The programs that another version is asked for; kubectl and etcd stay as they are."""

_VARIABLE = "KUBERNETES_VERSION"
_GO = "1.24.0"  # the first that has `tool` in a go.mod


def version(module: str, source: Path = SOURCE) -> str:
    """Return the version, without its "v", at which a folder's `go.mod` requires a module."""
    text = (source / "go.mod").read_text()
    match = re.search(rf"^\s*(?:require\s+)?{re.escape(module)} v(\S+)", text, re.MULTILINE)
    if match is None:
        raise BuildError(f"{source / 'go.mod'} requires no {module}: add it there.")
    return match[1]


def source(program: str) -> Path:
    """Return the folder of the `go.mod` that a program is built by.

    Raises:
        BuildError: there is no such version, or Go is missing or failed.
    """
    wanted = os.environ.get(_VARIABLE, "").removeprefix("v")
    if program not in OTHERS or wanted in {"", version(KUBERNETES)}:
        return SOURCE
    if not re.fullmatch(r"1\.\d+\.\d+", wanted):
        raise BuildError(f"{_VARIABLE} is {wanted!r}: set it to a version such as 1.30.14.")
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    place = cache.folder("controlplane") / "pins" / f"{wanted}-{digest}"
    return cache.made_once(place, partial(_derive, wanted))


def _derive(wanted: str, place: Path) -> None:
    downloaded = _go(place, "mod", "download", "-json", f"{KUBERNETES}@v{wanted}")
    own = Path(json.loads(downloaded)["GoMod"]).read_text()
    staged = re.findall(r"^\s*(?:replace\s+)?(k8s\.io/\S+) => \./staging/", own, re.MULTILINE)
    published = f"v0.{wanted.removeprefix('1.')}"
    go = max((re.findall(r"^go (\S+)", own, re.MULTILINE)[0], _GO), key=_numbers)
    lines = [
        "module shield-operator.invalid/controlplane",
        f"go {go}",
        *(f"tool {KUBERNETES}/cmd/{program}" for program in OTHERS),
        f"require {KUBERNETES} v{wanted}",
        *(f"replace {module} => {module} {published}" for module in staged),
    ]
    (place / "go.mod").write_text("\n".join(lines) + "\n")
    _go(place, "mod", "tidy")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split("."))


def _go(directory: Path, *arguments: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise BuildError(
            "`go` is not on PATH, and another version of Kubernetes must be built once: install Go "
            "(https://go.dev/doc/install)."
        )
    done = subprocess.run(
        [go, *arguments],
        cwd=directory,
        env=os.environ | {"GOWORK": "off", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(f"`go {' '.join(arguments)}` failed:\n{tail(done.stdout + done.stderr)}")
    return done.stdout
