"""``kubectl shield``: the plugin's commands, each in a module of its own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import click

from shield_operator.cli.check import check
from shield_operator.cli.completion import complete_for_kubectl, completion
from shield_operator.cli.explain import explain
from shield_operator.cli.failure import fail
from shield_operator.cli.inject import inject
from shield_operator.cli.status import status
from shield_operator.cli.uninject import uninject
from shield_operator.cli.version import version

_COMMANDS: Final = (inject, uninject, explain, status, check, completion, version)


class _Plugin(click.Group):
    """Ends like kubectl: with 1 where it was not used as it is meant to be, and in one sentence."""

    def main(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # click's own signature
        """Run, as a program."""
        if sys.stdout is None:
            fail(["standard output is closed"])
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            # Nothing is left to be written at the end, when nobody could tell of a failure.
            sys.stdout = None
            fail([f"cannot write the answer: {error.strerror}"])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:  # noqa: ANN401  # as above
        """Read the options before a command's name."""
        with _misuse():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  # as above
        """Read the command's options, and run it."""
        with _misuse():
            return super().invoke(ctx)


@contextmanager
def _misuse() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        error.exit_code = 1  # type: ignore[misc]  # of this one alone
        raise


@click.group(
    name="kubectl shield",
    cls=_Plugin,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def kubectl_shield() -> None:
    """Look at the LLM Shield from kubectl."""


for _command in _COMMANDS:
    kubectl_shield.add_command(_command)


def complete() -> None:
    """``kubectl_complete-shield``: what kubectl calls for ``kubectl shield …`` and the Tab key."""
    complete_for_kubectl(kubectl_shield)
