"""``kubectl shield explain``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from shield_operator import kinds
from shield_operator.cli import style
from shield_operator.cli.connecting import cluster_options, with_cluster
from shield_operator.cli.failure import fail
from shield_operator.explanation import MARKS, Subject, Verdict, lines, subject_json

if TYPE_CHECKING:
    from shield_operator.cluster import Viewer
    from shield_operator.kinds import Kind

NOT_SHIELDED = 3
"""Exit status where something does not get, or does not have, the sidecar."""


@click.command()
@click.argument("target", required=False, metavar="[POD | KIND/NAME]")
@click.option("-n", "--namespace", metavar="NAME", help="The namespace of the pod or workload.")
@click.option("--operator-namespace", metavar="NAME", help="Where the operator is installed.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to answer."
)
@cluster_options
def explain(
    target: str | None,
    namespace: str | None,
    operator_namespace: str | None,
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Tell why a pod gets the sidecar, or does not: each rule, and what it saw.

    \b
    Examples:
      kubectl shield explain web-7d4b9c-x2x5l -n shop
      kubectl shield explain deployment/web -n shop -o json

    Exit status: 0 where it has or gets the sidecar, 3 where not, 1 where nothing could be told.
    """  # noqa: D301  # click's mark for lines to be kept
    if target is None:
        fail(("name a pod or KIND/NAME",))
    kind, name = _target(target)

    async def work(viewer: Viewer) -> Subject:
        from shield_operator.cli.live import live_subject  # noqa: PLC0415

        where = namespace or viewer.namespace
        return await live_subject(viewer, kind, name, where, operator_namespace)

    show([with_cluster(kubeconfig, context, work)], output)


def _target(text: str) -> tuple[Kind, str]:
    kind_name, slash, name = text.rpartition("/")
    kind = kinds.named(kind_name) if slash else kinds.POD
    if kind is None or not name:
        known = ", ".join(one.singular for one in (kinds.POD, *kinds.WORKLOADS))
        fail((f"{text} is neither a pod's name nor KIND/NAME, where KIND is one of {known}",))
    return kind, name


def show(subjects: list[Subject], output: str) -> None:
    """Print them, and exit with 3 where one has no sidecar."""
    if output == "json":
        found = [subject_json(subject) for subject in subjects]
        click.echo(json.dumps(found[0] if len(found) == 1 else found, indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(as_text(subject) for subject in subjects), nl=False)
    if not all(subject.is_shielded for subject in subjects):
        raise SystemExit(NOT_SHIELDED)


def as_text(subject: Subject) -> str:
    """The explanation for a person, as wide as the terminal."""
    width = style.terminal_width()
    text = ""
    for verdict, line in lines(subject):
        if verdict:
            rule, _, saw = line.partition("  ")
            indent = len(line) - len(saw.lstrip()) + 4
            first = f"  {style.mark(MARKS[Verdict(verdict)])} {rule}".ljust(indent)
            text += style.wrapped(first, saw.lstrip(), width, indent)
        else:
            indent = len(line) - len(line.lstrip()) + 2
            text += style.wrapped("", line, width, indent)
        text += "\n"
    return text
