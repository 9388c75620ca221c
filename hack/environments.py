"""Virtual environments of what is tried beside the operator, or compared with it.

Each is installed once, by the hashes of its requirements, into the user's cache folder.
"""

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

from controlplane import BuildError, cache
from controlplane.errors import tail


def environment(requirements: Path) -> Path:
    """Return the folder of the virtual environment that has these requirements, and no others.

    It is not moved once made, so a mark says that it is complete, and a lock that somebody is at
    it.

    Raises:
        BuildError: pip failed.
    """
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = cache.folder("environments") / f"{requirements.parent.name}-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / "complete"
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not mark.exists():
            print(f"installing {requirements.parent.name} (a minute, once)", file=sys.stderr)
            _run([sys.executable, "-m", "venv", "--clear", str(folder)])
            pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
            _run([*pip, "--require-hashes", "--requirement", str(requirements)])
            mark.touch()
    return folder


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"`{' '.join(command)}` failed:\n{tail(done.stdout + done.stderr)}")
