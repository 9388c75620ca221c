"""Marks, colours and tables at a terminal."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import click

from shield_operator.cli.output import is_coloured

_COLOURS: Final[Mapping[str, str]] = {
    "✓": "green",
    "✗": "red",
    "\N{EN DASH}": "yellow",
}


def mark(symbol: str) -> str:
    """A mark, in its colour where colours are wanted."""
    return click.style(symbol, fg=_COLOURS.get(symbol)) if is_coloured() else symbol


def terminal_width() -> int | None:
    """Columns that a line may have; None where the output goes somewhere else."""
    if not sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return None
    return shutil.get_terminal_size().columns


def padded(text: str, width: int) -> str:
    """`text` with spaces behind it; its colours take no room."""
    return text + " " * (width - len(click.unstyle(text)))


def wrapped(first: str, text: str, width: int | None, indent: int) -> str:
    """`text` behind `first`, broken between words where it is wider than the terminal."""
    if width is None or len(click.unstyle(first)) + len(text) <= width:
        return first + text
    room = max(width - indent, 20)
    rows, row = [], ""
    for word in text.split(" "):
        if row and len(row) + 1 + len(word) > room:
            rows.append(row)
            row = word
        else:
            row = f"{row} {word}" if row else word
    rows.append(row)
    return first + f"\n{' ' * indent}".join(rows)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Columns as kubectl sets them; the last one is cut where the terminal ends."""
    every = [header, *rows]
    widths = [max(len(row[i]) for row in every) for i in range(len(header))]
    text = []
    for row in every:
        cells = [f"{cell:<{w}}" for cell, w in zip(row[:-1], widths[:-1], strict=True)]
        before = "".join(f"{cell}   " for cell in cells)
        last = row[-1]
        if width is not None and len(before) + len(last) > width:
            last = f"{last[: max(width - len(before) - 1, 8)]}…"
        text.append(f"{before}{last}".rstrip())
    return "\n".join(text)
