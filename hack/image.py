"""Builds the operator's image with whatever builder this machine has; `make image`.

pip in the build gets what pip here has: its configuration file and its authority, as secrets that
stay out of the image.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path

from manifests import ROOT

_BUILDERS = ("docker", "podman", "buildah")
_FOR_THE_BUILD = ("index-url", "extra-index-url", "trusted-host", "timeout", "retries")


def version() -> str:
    """The operator's version, which is its image's tag."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    return setup["metadata"]["version"]


def name() -> str:
    """The image's name, as the manifest has it."""
    return f"llm-shield-operator:{version()}"


@contextmanager
def pip_secrets() -> Iterator[Sequence[str]]:
    """Flags for a builder that give pip in the build what pip here has, while they are needed."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    found: dict[str, str] = {}
    for line in listed.splitlines():  # as in: global.index-url='https://…'; later ones win
        key, _, value = line.partition("=")
        found[key.rpartition(".")[2]] = value.strip("'")
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder, "pip.conf")
        lines = [f"{key} = {found[key]}" for key in _FOR_THE_BUILD if key in found]
        configuration.write_text("\n".join(["[global]", *lines, ""]), encoding="utf-8")
        flags = ["--secret", f"id=pip.conf,src={configuration}"]
        if "cert" in found:
            flags += ["--secret", f"id=pip-ca.pem,src={found['cert']}"]
        yield flags


def _builder() -> str | None:
    """The first of the builders that works; an engine's client alone builds nothing."""
    for builder in _BUILDERS:
        if shutil.which(builder) is not None:
            ask = [builder, "info"]
            if subprocess.run(ask, capture_output=True, check=False).returncode == 0:
                return builder
    return None


def main() -> int:
    """Build the image; return the exit status."""
    builder = _builder()
    if builder is None:
        print(f"image: none of {', '.join(_BUILDERS)} works here: install one.", file=sys.stderr)
        return 1
    arguments = sys.argv[1:]
    with pip_secrets() as secrets:
        command = [builder, "build", *secrets, *arguments, "--tag", name(), str(ROOT)]
        return subprocess.run(
            command, env=os.environ | {"DOCKER_BUILDKIT": "1"}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
