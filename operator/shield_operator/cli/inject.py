"""``kubectl shield inject``: manifests in, manifests with the sidecar out."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import click

from shield_operator.cli.changing import change_all, write_changed
from shield_operator.cli.inputs import (
    SceneOptions,
    file_options,
    read_files,
    read_scene,
    scene_options,
)
from shield_operator.decision import Ignore, Inject, Skip
from shield_operator.rehearsal import Outcome, injected

_SKIPPED: Final = 3
"""The exit code where something that asked for the sidecar does not get it."""


@click.command(
    epilog="Example: kubectl shield inject -f deployment.yaml -c config.yaml -n shop "
    "--namespace-labels llm-shield.io/inject=enabled | kubectl apply -f -"
)
@file_options
@scene_options
@click.option("--diff", is_flag=True, help="Write what changes, instead of the manifests.")
def inject(
    filenames: tuple[str, ...], *, recursive: bool, options: SceneOptions, diff: bool
) -> None:
    """Put the sidecar into manifests, as the webhook would into their pods.

    Pods and all workloads of Kubernetes itself are looked at, also in Lists; everything else passes
    through as it is. A namespace or a pod asks for the sidecar by the label llm-shield.io/inject.
    Reasons and warnings go to standard error.

    Exits with 3 where something asked and could not have it, and with 1 where the input is bad.
    """
    files = read_files(filenames, recursive=recursive)
    scene = read_scene(options, files)
    texts, outcomes = change_all(files, lambda document: injected(document, scene))
    written_anew = [
        f"{file.name}: comments are lost where a document had to be written anew"
        for file, text in zip(files, texts, strict=True)
        if text.count("#") < file.text.count("#")
    ]
    for line in (*written_anew, *_remarks(outcomes), _summary(outcomes)):
        click.echo(line, err=True)
    write_changed(files, texts, diff=diff)
    if any(isinstance(outcome.decision, Skip) for outcome in outcomes):
        raise SystemExit(_SKIPPED)


def _remarks(outcomes: Iterable[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        warnings = outcome.decision.warnings
        if isinstance(outcome.decision, Skip):
            what = "refused" if outcome.denied else "not injected"
            reason, sentence = outcome.decision.reason, outcome.decision.sentence
            yield f"{outcome.who}: {what} ({reason}): {sentence}"
            warnings = warnings[1:]  # the first is the same, cut to what an API server passes on
        for warning in warnings:
            yield f"{outcome.who}: warning: {warning}"


def _summary(outcomes: list[Outcome]) -> str:
    injected_ones = sum(isinstance(outcome.decision, Inject) for outcome in outcomes)
    skipped = Counter(o.decision.reason for o in outcomes if isinstance(o.decision, Skip))
    untouched = sum(isinstance(outcome.decision, Ignore) for outcome in outcomes)
    reasons = ", ".join(f"{reason}: {n}" if n > 1 else reason for reason, n in skipped.items())
    parts = [f"{injected_ones} injected"]
    if skipped:
        parts.append(f"{skipped.total()} skipped ({reasons})")
    return ", ".join([*parts, f"{untouched} untouched"])
