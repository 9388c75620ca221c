"""How a command ends that could not do what it was asked to."""

from collections.abc import Iterable
from typing import NoReturn

import click


def fail(sentences: Iterable[str]) -> NoReturn:
    """Say what is wrong, a line each, and exit with 1."""
    for sentence in sentences:
        click.echo(f"error: {sentence}", err=True)
    raise SystemExit(1)
