"""``kubectl shield uninject``: manifests in, manifests without the sidecar out."""

from collections.abc import Iterable, Iterator

import click

from shield_operator.cli.changing import change_all, write_changed
from shield_operator.cli.inputs import (
    SceneOptions,
    file_options,
    read_files,
    read_scene,
    scene_options,
)
from shield_operator.rehearsal import Removal, uninjected


@click.command(
    epilog="Example: kubectl get deployment web -n shop -o yaml | kubectl shield uninject -f - "
    "-c config.yaml"
)
@file_options
@scene_options
@click.option("--diff", is_flag=True, help="Write what changes, instead of the manifests.")
def uninject(
    filenames: tuple[str, ...], *, recursive: bool, options: SceneOptions, diff: bool
) -> None:
    """Take out of manifests what injection put in.

    Everything that carries our names goes. With the config that it was injected by, what that sets
    on the application goes too: arguments, variables, scheduling rules, pull Secrets. Where the
    manifest said the same before, that goes as well.

    Exits with 1 where the input is bad.
    """
    files = read_files(filenames, recursive=recursive)
    scene = read_scene(options, files)
    texts, removals = change_all(files, lambda document: uninjected(document, scene))
    for line in (*_remarks(removals), _summary(removals)):
        click.echo(line, err=True)
    write_changed(files, texts, diff=diff)


def _remarks(removals: Iterable[Removal]) -> Iterator[str]:
    """What may stay; one line for all workloads that would need the same config."""
    without: dict[str, list[str]] = {}
    for removal in removals:
        if removal.wiring_stays:
            without.setdefault(str(removal.config), []).append(removal.who)
        elif removal.differs:
            yield (
                f"{removal.who}: warning: ShieldSidecarConfig {removal.config} has changed since: "
                "what it set on the application then may stay"
            )
    for config, (first, *more) in without.items():
        others = f" and {len(more)} more" if more else ""
        yield (
            f"{first}{others}: warning: what ShieldSidecarConfig {config} set on the application, "
            "if anything, stays: give that config with -c"
        )


def _summary(removals: list[Removal]) -> str:
    found = sum(removal.found for removal in removals)
    return f"{found} uninjected, {len(removals) - found} untouched"
