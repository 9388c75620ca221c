"""``kubectl shield check``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import click

from shield_operator.cli import style
from shield_operator.cli.connecting import cluster_options, with_cluster

if TYPE_CHECKING:
    from shield_operator.cluster import Viewer
    from shield_operator.diagnosis import Finding


@click.command()
@click.option("--pre", is_flag=True, help="Before an installation: whether it will go well.")
@click.option(
    "-n", "--namespace", metavar="NAME", help="Where a pod is tried (and thrown away at once)."
)
@click.option("--operator-namespace", metavar="NAME", help="Where the operator is installed.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to answer."
)
@cluster_options
def check(
    namespace: str | None,
    operator_namespace: str | None,
    output: str,
    kubeconfig: str | None,
    context: str | None,
    *,
    pre: bool,
) -> None:
    """Tell whether the installation is healthy, and what to do where it is not.

    What you are not permitted to look at is shown with a dash, and is no failure.

    \b
    Examples:
      kubectl shield check --pre
      kubectl shield check -n shop

    Exit status: 0 where nothing is wrong, 1 where something is.
    """  # noqa: D301  # click's mark for lines to be kept

    async def work(viewer: Viewer) -> list[Finding]:
        from shield_operator import diagnosis  # noqa: PLC0415
        from shield_operator.cli.gathering import gather, gather_before  # noqa: PLC0415

        if pre:
            before, settings = await gather_before(viewer, operator_namespace)
            return diagnosis.check_before(before, settings)
        facts, settings = await gather(viewer, operator_namespace, namespace)
        return diagnosis.check(facts, settings, datetime.now(UTC))

    findings = with_cluster(kubeconfig, context, work)
    if output == "json":
        from shield_operator.diagnosis import as_json  # noqa: PLC0415

        click.echo(json.dumps(as_json(findings), indent=2, ensure_ascii=False))
    else:
        click.echo(as_text(findings, style.terminal_width()))
    if any(finding.mark.value == "bad" for finding in findings):
        raise SystemExit(1)


_MARKS: Final = {"good": "✓", "bad": "✗", "unknown": "\N{EN DASH}"}


def as_text(findings: list[Finding], width: int | None) -> str:
    """The findings, numbered, each with what to do."""
    from shield_operator.text import printable  # noqa: PLC0415

    titles = max(len(finding.title) for finding in findings)
    rows = []
    for number, finding in enumerate(findings, start=1):
        head = f"{number:>2} {style.mark(_MARKS[finding.mark.value])} {finding.title:<{titles}}  "
        indent = titles + 7
        rows.append(style.wrapped(head, printable(finding.saw), width, indent))
        if finding.advice:
            first = f"{' ' * indent}→ "
            rows.append(style.wrapped(first, printable(finding.advice), width, indent + 2))
    wrong = sum(finding.mark.value == "bad" for finding in findings)
    unseen = sum(finding.mark.value == "unknown" for finding in findings)
    told = f"{wrong or 'none'} of {len(findings)} checks failed"
    told += f", {unseen} could not be made" if unseen else ""
    return "\n".join([*rows, "", told])
