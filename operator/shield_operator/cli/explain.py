"""``kubectl shield explain``."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from shield_operator import kinds
from shield_operator.cli import style
from shield_operator.cli.connecting import with_cluster
from shield_operator.cli.failure import fail
from shield_operator.cli.inputs import (
    SceneOptions,
    file_options,
    namespace_is_given,
    read_configs,
    read_files,
    read_labels,
    read_scene,
    read_version,
    scene_options,
)
from shield_operator.documents import DocumentError, Workload
from shield_operator.explanation import MARKS, Subject, Verdict, lines, subject_json
from shield_operator.explanation import explain as explain_pod
from shield_operator.rehearsal import Scene, without_owners, workloads_of

if TYPE_CHECKING:
    from shield_operator.cluster import Viewer
    from shield_operator.kinds import Kind
    from shield_operator.model import Json

NOT_SHIELDED = 3
"""Exit status where something does not get, or does not have, the sidecar."""


@click.command()
@click.argument("target", required=False, metavar="[POD | KIND/NAME]")
@functools.partial(file_options, required=False)
@scene_options
@click.option("--operator-namespace", metavar="NAME", help="Where the operator is installed.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to answer."
)
def explain(
    target: str | None,
    filenames: tuple[str, ...],
    operator_namespace: str | None,
    output: str,
    *,
    recursive: bool,
    options: SceneOptions,
) -> None:
    """Tell why a pod gets the sidecar, or does not: each rule, and what it saw.

    Of a pod that runs, also what became of it when it was created, and why. A namespace that is
    not given is the one of kubectl's context. What is given by -c, --namespace-labels and
    --kubernetes-version counts as if the cluster had it.

    \b
    Examples:
      kubectl shield explain web-7d4b9c-x2x5l -n shop
      kubectl shield explain deployment/web -n shop -o json
      kubectl shield explain -f deployment.yaml -c config.yaml

    Exit status: 0 where it has or gets the sidecar, 3 where not, 1 where nothing could be told.
    """  # noqa: D301  # click's mark for lines to be kept
    if (target is None) is not bool(filenames):
        raise click.UsageError("name a pod, KIND/NAME, or a file with -f, and one of them only")
    if target is None:
        subjects = _subjects_of_files(filenames, options, recursive=recursive)
    else:
        namespace = options.namespace if namespace_is_given() else None
        subjects = [_live_subject(target, namespace, operator_namespace, options)]
    if output == "json":
        found: Json = [subject_json(subject) for subject in subjects]
        found = found[0] if target is not None else found
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(as_text(subject) for subject in subjects), nl=False)
    if not all(subject.is_shielded for subject in subjects):
        raise SystemExit(NOT_SHIELDED)


def _subjects_of_files(
    filenames: tuple[str, ...], options: SceneOptions, *, recursive: bool
) -> list[Subject]:
    """What there is to tell of each workload of the files."""
    files = read_files(filenames, recursive=recursive)
    scene = read_scene(options, files)
    try:
        found = [
            _subject_of(workload, scene)
            for file in files
            for document in file.documents
            for workload in workloads_of(document)
        ]
    except DocumentError as error:
        fail([str(error)])
    if not found:
        fail([f"{', '.join(filenames)} holds neither pods nor workloads"])
    return found


def _subject_of(workload: Workload, scene: Scene) -> Subject:
    namespace = scene.namespace_of(workload)
    with without_owners(workload):
        explanation = explain_pod(
            workload.pod,
            namespace,
            scene.labels_of(namespace),
            {},
            scene.configs,
            scene.settings,
            made_by=workload.maker,
        )
    whose = "pod" if workload.maker is None else f"template of {workload.kind.lower()}"
    return Subject(f"{whose} {namespace}/{workload.name}", explanation)


def _live_subject(
    target: str, namespace: str | None, operator_namespace: str | None, options: SceneOptions
) -> Subject:
    """What there is to tell of a pod or a workload of the cluster."""
    kind, name = _target(target)
    labels = read_labels(options.namespace_labels)
    version = read_version(options.kubernetes_version)

    async def work(viewer: Viewer) -> Subject:
        from shield_operator.cli.live import Instead, live_subject  # noqa: PLC0415

        where = namespace or viewer.namespace
        configs = read_configs(replace(options, namespace=where))
        instead = Instead(configs, labels, version)
        return await live_subject(viewer, kind, name, where, operator_namespace, instead)

    return with_cluster(options.kubeconfig, options.context, work)


def _target(text: str) -> tuple[Kind, str]:
    kind_name, slash, name = text.rpartition("/")
    kind = kinds.named(kind_name) if slash else kinds.POD
    if kind is None or not name:
        known = ", ".join(one.singular for one in (kinds.POD, *kinds.WORKLOADS))
        fail((f"{text} is neither a pod's name nor KIND/NAME, where KIND is one of {known}",))
    return kind, name


def as_text(subject: Subject) -> str:
    """The explanation for a person, as wide as the terminal."""
    width = style.terminal_width()
    text = ""
    for verdict, line in lines(subject):
        if verdict:
            rule, _, saw = line.partition("  ")
            indent = len(line) - len(saw.lstrip()) + 4
            first = style.padded(f"  {style.mark(MARKS[Verdict(verdict)])} {rule}", indent)
            text += style.wrapped(first, saw.lstrip(), width, indent)
        else:
            indent = len(line) - len(line.lstrip())
            text += style.wrapped(" " * indent, line.lstrip(), width, indent + 2)
        text += "\n"
    return text
