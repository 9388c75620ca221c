"""What commands write: manifests as they are, or what is different about them."""

import os
import sys
from collections.abc import Iterable
from typing import Final

import click

from shield_operator.documents import unified

_BYTE_ORDER_MARK: Final = "\ufeff"


def is_coloured() -> bool:
    """Whether to write in colours: to a terminal, unless the user does without.

    https://no-color.org
    """
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def write_manifests(texts: Iterable[str]) -> None:
    """Write files as one, with a boundary between those that bring none."""
    written = ""
    for text in texts:
        new = text.removeprefix(_BYTE_ORDER_MARK) if written else text
        if written and new:
            new = ("" if written.endswith("\n") else "\n") + _bounded(new)
        sys.stdout.buffer.write(new.encode("utf-8"))
        written = new or written
    sys.stdout.buffer.flush()


def _bounded(text: str) -> str:
    return text if text.startswith(("---", "%")) else f"---\n{text}"


def write_difference(name: str, before: str, after: str) -> None:
    """Write what is different, as ``diff -u`` does."""
    coloured = is_coloured()
    for line in unified(name, before, after):
        click.echo(_painted(line) if coloured else line, color=coloured)


def _painted(line: str) -> str:
    if line.startswith(("---", "+++")):
        return click.style(line, bold=True)
    colours = {"+": "green", "-": "red", "@": "cyan"}
    return click.style(line, fg=colours.get(line[:1]))
