"""``shield-operator``: the command of the container."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any, TypeVar

import click

from shield_operator import __version__
from shield_operator.cli.failure import fail
from shield_operator.settings import Settings, SettingsError

_Command = TypeVar("_Command", bound=Callable[..., Any])


@click.group(name="shield-operator", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
def operator() -> None:
    """Puts the llm-shield-proxy sidecar into pods that ask for it."""


def _settings_options(command: _Command) -> _Command:
    """A flag for each setting but the secret ones, which wins over its environment variable."""
    for setting in reversed(fields(Settings)):
        if setting.metadata["secret"]:  # a command line can be seen by every process
            continue
        variable = setting.metadata["variable"]
        command = click.option(
            f"--{variable.lower().replace('_', '-')}",
            variable,
            help=f"{setting.metadata['help']}  [env: {variable}{_default(setting)}]",
            metavar="VALUE",
        )(command)
    return command


def _default(setting: Field[Any]) -> str:
    value = getattr(Settings(), setting.name)
    return f"; default: {value}" if value else ""


@operator.command(name="run")
@_settings_options
def run_operator(**flags: str | None) -> None:
    """Run one replica until SIGTERM.

    It uses the cluster that it runs in, or that of KUBECONFIG. Outside of a pod it needs
    --webhook-url: where the API server reaches it.
    """
    given = {variable: value for variable, value in flags.items() if value is not None}
    try:
        settings = Settings.from_env({**os.environ, **given})
    except SettingsError as error:
        fail(error.problems)

    # Only now, so that a wrong setting is told at once: these imports take a second.
    import uvloop  # noqa: PLC0415

    from shield_operator import logs, main  # noqa: PLC0415
    from shield_operator.cluster import NoCredentials  # noqa: PLC0415
    from shield_operator.listening import CannotListenError  # noqa: PLC0415

    logs.configure(settings)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main.run(settings))
    except SettingsError as error:
        fail(error.problems)
    except NoCredentials as error:
        fail([str(error)])
    except BaseExceptionGroup as group:
        ours, others = group.split(CannotListenError)
        if ours is None or others is not None:
            raise
        fail([str(error) for error in _leaves(ours)])
    except CannotListenError as error:
        fail([str(error)])


def _leaves(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found
