"""How a command gets at a cluster: kubectl's own flags, and its errors as one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shield_operator.cli.failure import fail
from shield_operator.settings import SettingsError

if TYPE_CHECKING:
    from shield_operator.cluster import Viewer

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Result = TypeVar("_Result")


def cluster_options(command: _Command) -> _Command:
    """``--kubeconfig`` and ``--context``, which mean what they mean to kubectl."""
    for option in (
        click.option("--context", metavar="NAME", help="The context of the kubeconfig to use."),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            help="The kubeconfig, instead of $KUBECONFIG or ~/.kube/config.",
        ),
    ):
        command = option(command)
    return command


def with_cluster(
    kubeconfig: str | None, context: str | None, work: Callable[[Viewer], Awaitable[_Result]]
) -> _Result:
    """What `work` makes of the cluster; what goes wrong with it ends the command."""
    from shield_operator.cluster import ClusterError, NoCredentials, Viewer  # noqa: PLC0415

    async def run() -> _Result:
        async with Viewer.connect_as_user(kubeconfig, context) as viewer:
            return await work(viewer)

    try:
        return asyncio.run(run())
    except (ClusterError, NoCredentials) as error:
        fail((str(error),))
    except SettingsError as error:
        fail(error.problems)
