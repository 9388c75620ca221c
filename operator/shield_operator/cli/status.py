"""``kubectl shield status``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import yaml

from shield_operator import names
from shield_operator.cli import style
from shield_operator.cli.connecting import cluster_options, with_cluster
from shield_operator.explanation import Standing
from shield_operator.overview import ConfigState, Overview, WorkloadState, as_json
from shield_operator.text import one_line, printable

if TYPE_CHECKING:
    from shield_operator.cluster import Viewer


@click.command()
@click.option("-n", "--namespace", metavar="NAME", help="The namespace to look at.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Look at all of them.")
@click.option("--operator-namespace", metavar="NAME", help="Where the operator is installed.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml"]),
    default="text",
    help="How to answer.",
)
@cluster_options
def status(
    namespace: str | None,
    operator_namespace: str | None,
    output: str,
    kubeconfig: str | None,
    context: str | None,
    *,
    all_namespaces: bool,
) -> None:
    """Show the configs, and the pods that have the sidecar, are outdated, or bare.

    Pods are grouped by what makes them, with the command that makes them anew.

    \b
    Examples:
      kubectl shield status -n shop
      kubectl shield status -A -o wide
    """  # noqa: D301  # click's mark for lines to be kept
    if namespace and all_namespaces:
        raise click.UsageError("--namespace and --all-namespaces exclude each other")

    async def work(viewer: Viewer) -> tuple[Overview, str]:
        from shield_operator.cli.surveying import survey  # noqa: PLC0415

        where = None if all_namespaces else namespace or viewer.namespace
        found = await survey(viewer, where, operator_namespace)
        return found, f"namespace {where}" if where else "the cluster"

    found, where = with_cluster(kubeconfig, context, work)
    match output:
        case "json":
            click.echo(json.dumps(as_json(found), indent=2, ensure_ascii=False))
        case "yaml":
            text = yaml.safe_dump(as_json(found), sort_keys=False, allow_unicode=True)
            click.echo(text, nl=False)
        case _:
            is_wide = output == "wide"
            width = None if is_wide else style.terminal_width()
            click.echo(as_text(found, where, width, wide=is_wide))


def as_text(found: Overview, where: str, width: int | None, *, wide: bool = False) -> str:
    """The tables, and what to do."""
    parts = []
    if found.configs:
        text = _table(CONFIG_COLUMNS, list(map(config_row, found.configs)), width, wide=wide)
        parts.append("\n".join([text, *([] if wide else _complaints(found, width))]))
    else:
        parts.append(f"No {names.KIND} in {where}.")
    if found.workloads:
        rows = list(map(workload_row, found.workloads))
        parts.append(_table(WORKLOAD_COLUMNS, rows, width, wide=wide))
    else:
        parts.append(f"No pods that ask for the sidecar in {where}.")
    stale = [one.remedy for one in found.workloads if one.remedy is not None]
    if stale:
        remedies = "\n".join(f"  {printable(one)}" for one in stale)
        parts.append(f"To bring outdated and bare pods up to date:\n{remedies}")
    skipped = [one for one in found.workloads if one.reasons]
    if skipped:
        asked = "\n".join(
            f"  kubectl shield explain {printable(one.example)} -n {one.workload.namespace}"
            for one in skipped
        )
        parts.append(f"Why pods were skipped:\n{asked}")
    parts += [f"note: {printable(note)}" for note in found.notes]
    return "\n\n".join(parts)


def _complaints(found: Overview, width: int | None) -> list[str]:
    """What is wrong with configs, in lines of their own: no column would hold it."""
    return [
        style.wrapped("", f"{one.namespace}/{one.name}: {printable(one.message)}", width, 2)
        for one in found.configs
        if one.ready != "True"
    ]


_WIDE = "*"
CONFIG_COLUMNS = (
    "NAMESPACE",
    "CONFIG",
    "READY",
    "REASON",
    "SECRET",
    "INJECTED",
    "OUTDATED",
    f"{_WIDE}GENERATION",
    f"{_WIDE}IMAGE",
    f"{_WIDE}MESSAGE",
)
WORKLOAD_COLUMNS = (
    "NAMESPACE",
    "WORKLOAD",
    "PODS",
    "INJECTED",
    "OUTDATED",
    "BARE",
    f"{_WIDE}CONFIG",
    "SKIPPED",
)
"""A star stands before those that only ``-o wide`` has."""


def _table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None, *, wide: bool
) -> str:
    shown = [i for i, column in enumerate(columns) if wide or not column.startswith(_WIDE)]
    header = [columns[i].removeprefix(_WIDE) for i in shown]
    cells = [[printable(row[i]) or "-" for i in shown] for row in rows]
    return style.table(header, cells, width)


def config_row(one: ConfigState) -> tuple[str, ...]:
    """A config's cells."""
    return (
        one.namespace,
        one.name,
        one.ready,
        one.reason,
        one.secret,
        _number(one.injected),
        _number(one.outdated),
        _number(one.generation),
        one.image,
        one_line(one.message, 1000),
    )


def workload_row(one: WorkloadState) -> tuple[str, ...]:
    """A workload's cells."""
    reasons = ", ".join(f"{number} {reason}" for reason, number in sorted(one.reasons.items()))
    return (
        one.workload.namespace,
        str(one.workload),
        str(one.pods),
        str(one.injected),
        str(one.standings[Standing.OUTDATED]),
        str(one.standings[Standing.BARE]),
        ",".join(sorted(one.configs)),
        reasons,
    )


def _number(value: int | None) -> str:
    return "" if value is None else str(value)
