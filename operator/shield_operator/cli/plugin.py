"""``kubectl shield``: the plugin's commands, each in a module of its own."""

from typing import Final

import click

from shield_operator.cli.check import check
from shield_operator.cli.completion import complete_for_kubectl, completion
from shield_operator.cli.explain import explain
from shield_operator.cli.inject import inject
from shield_operator.cli.status import status
from shield_operator.cli.uninject import uninject
from shield_operator.cli.version import version

_COMMANDS: Final = (inject, uninject, explain, status, check, completion, version)


@click.group(name="kubectl shield", context_settings={"help_option_names": ["-h", "--help"]})
def kubectl_shield() -> None:
    """Look at the LLM Shield from kubectl."""


for _command in _COMMANDS:
    kubectl_shield.add_command(_command)


def complete() -> None:
    """``kubectl_complete-shield``: what kubectl calls for ``kubectl shield …`` and the Tab key."""
    complete_for_kubectl(kubectl_shield)
