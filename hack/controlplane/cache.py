"""Where everything is kept that is built, unpacked or installed once: the user's cache folder."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def folder(name: str) -> Path:
    """The folder of that name in the project's part of the cache; it need not exist yet."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root.absolute() / "llm-shield-operator" / name


def made_once(place: Path, make: Callable[[Path], None]) -> Path:
    """Return the folder `place`; where it is not there yet, `make` fills an empty one for it.

    That one is moved there when it is whole, so a build that was killed leaves nothing half made.
    """
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=place.parent) as scratch:
            whole = Path(scratch, "whole")
            whole.mkdir()
            make(whole)
            with suppress(OSError):  # another process was first, with the same
                whole.rename(place)
    return place
