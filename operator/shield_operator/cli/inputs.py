"""What commands about manifests are given: files, and what is known of the cluster around them."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click
from click.core import ParameterSource

from shield_operator import kinds, names, raw
from shield_operator.cli.connecting import cluster_options, with_cluster
from shield_operator.cli.failure import fail
from shield_operator.documents import Document, DocumentError, documents, workloads
from shield_operator.installation import deciding
from shield_operator.model import Json, is_label_key, is_label_value
from shield_operator.plan import NEWEST_SUPPORTED, ClusterVersion
from shield_operator.rehearsal import DEFAULT_NAMESPACE, Scene, configs_in, labels_in
from shield_operator.selection import ConfigIndex
from shield_operator.settings import Settings, SettingsError

if TYPE_CHECKING:
    from shield_operator.cluster import Viewer

_Command = TypeVar("_Command", bound=Callable[..., Any])

_SUFFIXES: Final = (".json", ".yaml", ".yml")
"""The files of a folder that kubectl reads."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file that was read."""

    name: str
    documents: tuple[Document, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(document.text for document in self.documents)


@dataclass(frozen=True, slots=True)
class SceneOptions:
    """What the command line says of the cluster that manifests are for."""

    configs: tuple[str, ...] = ()
    namespace: str = DEFAULT_NAMESPACE
    namespace_labels: str | None = None
    kubernetes_version: str | None = None
    from_cluster: bool = False
    kubeconfig: str | None = None
    context: str | None = None


# --- Options --------------------------------------------------------------------------------------


def _with_options(command: _Command, *options: Callable[[_Command], _Command]) -> _Command:
    for option in reversed(options):
        command = option(command)
    return command


def file_options(command: _Command, *, required: bool = True) -> _Command:
    """``-f`` and ``-R``."""
    return _with_options(
        command,
        click.option(
            "-f",
            "--filename",
            "filenames",
            multiple=True,
            required=required,
            type=click.Path(allow_dash=True),
            metavar="FILE",
            help="A file or folder of manifests, or - for standard input. Repeatable.",
        ),
        click.option(
            "-R", "--recursive", is_flag=True, help="Read the folders inside of folders too."
        ),
    )


def scene_options(command: _Command) -> _Command:
    """The options that `SceneOptions` has fields for, given to the command as its `options`."""

    @functools.wraps(command)
    def with_scene(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # any command's
        given = {each.name: kwargs.pop(each.name) for each in fields(SceneOptions)}
        return command(*args, options=SceneOptions(**given), **kwargs)

    return _with_options(
        cast("_Command", with_scene),
        click.option(
            "-c",
            "--config",
            "configs",
            multiple=True,
            type=click.Path(allow_dash=True),
            metavar="FILE",
            help="A file of ShieldSidecarConfigs; those among the manifests count too. One without "
            "metadata.namespace is for the namespace that -n says. Repeatable.",
        ),
        click.option(
            "-n",
            "--namespace",
            default=DEFAULT_NAMESPACE,
            metavar="NAME",
            show_default=True,
            help="The namespace of what names none; with --from-cluster that of kubectl's context "
            "where it is not given.",
        ),
        click.option(
            "--namespace-labels",
            metavar="K=V,…",
            help="The labels of the namespaces. Default: those of the Namespaces among the "
            "manifests, or in the cluster; of others, none.",
        ),
        click.option(
            "--kubernetes-version",
            metavar="VERSION",
            help=f"The cluster's version, such as 1.34.  [default: {NEWEST_SUPPORTED}]",
        ),
        click.option(
            "--from-cluster",
            is_flag=True,
            help="Read configs, namespace labels and version from the cluster (and change nothing "
            "there).",
        ),
        cluster_options,
    )


# --- Files ----------------------------------------------------------------------------------------


def read_files(filenames: Iterable[str], *, recursive: bool = False) -> list[ManifestFile]:
    """The files, or the end of the command with a sentence about the first that cannot be read."""
    found = []
    for name in dict.fromkeys(filenames):
        for path in _files(name, recursive=recursive):
            label = "standard input" if path == "-" else path
            try:
                content = _standard_input() if path == "-" else Path(path).read_bytes()
                found.append(ManifestFile(label, tuple(documents(label, content))))
            except OSError as error:
                fail([f"{label} cannot be read: {error.strerror}"])
            except DocumentError as error:
                fail([str(error)])
    return found


def _standard_input() -> bytes:
    if sys.stdin is None:
        fail(["standard input is closed: give a file"])
    return sys.stdin.buffer.read()


def _files(name: str, *, recursive: bool) -> list[str]:
    folder = Path(name)
    if name == "-" or not folder.is_dir():
        return [name]
    every = folder.rglob("*") if recursive else folder.glob("*")
    found = sorted(str(p) for p in every if p.suffix in _SUFFIXES and p.is_file())
    if not found:
        hint = "" if recursive else "; -R reads the folders inside too"
        fail([f"{name} has no files that end in {', '.join(_SUFFIXES)}{hint}"])
    return found


def namespace_is_given() -> bool:
    """Whether ``-n`` was on the command line, or in the environment."""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source("namespace") if context else None
    return source not in (None, ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)


# --- The scene ------------------------------------------------------------------------------------


def read_scene(options: SceneOptions, files: Iterable[ManifestFile] = ()) -> Scene:
    """The scene that manifests play in, or the end of the command with what is wrong with it."""
    if options.from_cluster and not namespace_is_given():
        options = replace(options, namespace=_contexts_namespace(options))
    given = [document for file in files for document in file.documents]
    try:
        resources = [*configs_in(given, options.namespace), *read_configs(options)]
        labels = labels_in(given)
    except DocumentError as error:
        fail([str(error)])
    version, settings = read_version(options.kubernetes_version), read_settings()
    scene = Scene(
        ConfigIndex.of(settings, version or NEWEST_SUPPORTED, resources),
        options.namespace,
        labels,
        read_labels(options.namespace_labels),
    )
    if not options.from_cluster:
        return scene
    asked = {scene.namespace_of(w) for d in given for w in workloads(d.value)}
    return _from_cluster(options, scene, asked, resources, version)


def _contexts_namespace(options: SceneOptions) -> str:
    """The namespace that kubectl would apply to; nothing is sent for it."""

    async def ask(viewer: Viewer) -> str:
        return viewer.namespace

    return with_cluster(options.kubeconfig, options.context, ask)


def read_settings() -> Settings:
    """The settings of the environment that decide about pods."""
    try:
        return Settings.from_env(deciding(os.environ))
    except SettingsError as error:
        fail(error.problems)


def read_configs(options: SceneOptions) -> list[Json]:
    """The configs of ``-c``, or the end of the command with what is wrong with their files."""
    found: list[Json] = []
    for file in read_files(options.configs):
        here = [*configs_in(file.documents, options.namespace)]
        if not here:
            fail([f"{file.name} holds no ShieldSidecarConfig, which -c wants"])
        found += here
    return found


def read_version(text: str | None) -> ClusterVersion | None:
    """The version of ``--kubernetes-version``, or the end of the command."""
    try:
        return ClusterVersion.parse(text) if text else None
    except ValueError as error:
        fail([f"--kubernetes-version: {error}"])


def read_labels(text: str | None) -> dict[str, str] | None:
    """The labels of ``--namespace-labels``, or the end of the command."""
    if text is None:
        return None
    found = {}
    for part in filter(None, map(str.strip, text.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not is_label_key(key) or not is_label_value(value):
            fail([f"--namespace-labels has {part!r}, which is not KEY=VALUE as labels have it"])
        if key in found:
            fail([f"--namespace-labels has {key} twice: give it once"])
        found[key] = value
    return found


def _from_cluster(
    options: SceneOptions,
    scene: Scene,
    asked: set[str],
    given: list[Json],
    version: ClusterVersion | None,
) -> Scene:
    """The scene, with what the cluster adds: what was given beside it wins."""

    async def ask(viewer: Viewer) -> Scene:
        from shield_operator.cli.reading import read_installation  # noqa: PLC0415
        from shield_operator.cluster import Forbidden, NotFound  # noqa: PLC0415

        installation, notes = await read_installation(viewer, None)
        settings = installation.settings
        found = version or await viewer.version()
        resources: list[Json] = []
        labels = dict(scene.namespace_labels)
        for namespace in sorted(asked):
            resources += await viewer.configs(namespace)
        try:
            default = await viewer.find(kinds.CONFIG, names.DEFAULT_CONFIG, settings.namespace)
            resources += [default] if default is not None else []
        except Forbidden:
            notes.append(f"the configs of namespace {settings.namespace} cannot be read")
        for namespace in sorted(asked - labels.keys()):
            try:
                its_namespace = await viewer.find(kinds.NAMESPACE, namespace)
            except Forbidden:
                notes.append(f"namespace {namespace} cannot be read: taken as without labels")
                continue
            if its_namespace is None:
                raise NotFound(f"there is no namespace {namespace}")
            labels[namespace] = raw.strings(its_namespace, "metadata", "labels")
        for note in notes:
            click.echo(f"note: {note}", err=True)
        index = ConfigIndex.of(settings, found, [*resources, *given])
        return replace(scene, configs=index, namespace_labels=labels)

    return with_cluster(options.kubeconfig, options.context, ask)
