"""Reading what ``status`` shows.

Metadata in pages; whole pods only where they might ask, and carry no outcome.
"""

from collections.abc import Iterable

from shield_operator import kinds, names, pods, raw
from shield_operator.cli.reading import read_installation
from shield_operator.cli.remedying import add_remedies
from shield_operator.cluster import Forbidden, Viewer
from shield_operator.drift import SELECTORS
from shield_operator.model import Json
from shield_operator.overview import ASKING, UNSEEN, Overview, overview
from shield_operator.ownership import OWNED_KINDS, OwnerRef
from shield_operator.selection import ConfigIndex, excluded_namespaces
from shield_operator.settings import Settings


async def survey(viewer: Viewer, namespace: str | None, operator_namespace: str | None) -> Overview:
    """Look at one namespace, or (None) at all of them.

    Raises:
        ClusterError: where configs or pods cannot be listed.
        SettingsError: where the environment holds what cannot be used.
    """
    installation, notes = await read_installation(viewer, operator_namespace)
    settings = installation.settings
    configs = await viewer.configs(namespace)
    if namespace not in (None, settings.namespace):
        configs += await _default_config(viewer, settings, notes)
    namespaces = await _namespaces(viewer, namespace, notes)
    found = []
    for selector in SELECTORS:
        found += await viewer.list_all(kinds.POD, namespace, selector=selector)
    found += await _unseen_pods(viewer, namespace, namespaces, settings)
    last_resort = ConfigIndex.of(settings, await viewer.version()).last_resort
    result = overview(
        configs,
        found,
        namespaces,
        await _owners(viewer, found, notes),
        settings,
        everywhere=namespace is None,
        settings_fingerprint=last_resort.fingerprint if last_resort else None,
        notes=tuple(notes),
    )
    await add_remedies(viewer, result.workloads, operator_namespace)
    return result


async def _default_config(viewer: Viewer, settings: Settings, notes: list[str]) -> list[Json]:
    try:
        found = await viewer.find(kinds.CONFIG, names.DEFAULT_CONFIG, settings.namespace)
    except Forbidden:
        notes.append(f"whether the cluster has a default config in {settings.namespace} is unknown")
        return []
    return [found] if found is not None else []


async def _namespaces(
    viewer: Viewer, namespace: str | None, notes: list[str]
) -> dict[str, dict[str, str]]:
    """The labels of each namespace that is looked at."""
    try:
        if namespace is None:
            found = await viewer.list_all(kinds.NAMESPACE)
        else:
            one = await viewer.find(kinds.NAMESPACE, namespace)
            found = [one] if one is not None else []
    except Forbidden as error:
        notes.append(f"{error}: pods that only their namespace's label lets in are not seen")
        return {}
    return {
        str(raw.mapping(one, "metadata").get("name")): dict(raw.strings(one, "metadata", "labels"))
        for one in found
    }


async def _unseen_pods(
    viewer: Viewer,
    namespace: str | None,
    namespaces: dict[str, dict[str, str]],
    settings: Settings,
) -> list[Json]:
    """The pods that might ask, and carry no outcome; whole, since their containers tell."""
    asking = [
        name
        for name, labels in namespaces.items()
        if labels.get(names.INJECT_LABEL) in names.IN_VALUES
        and name not in excluded_namespaces(settings)
    ]
    found = []
    for name in asking:
        found += await viewer.list_all(kinds.POD, name, selector=UNSEEN, metadata=False)
    by_themselves = await viewer.list_all(kinds.POD, namespace, selector=ASKING, metadata=False)
    found += [pod for pod in by_themselves if _namespace(pod) not in asking]
    return found


async def _owners(viewer: Viewer, found: Iterable[Json], notes: list[str]) -> dict[OwnerRef, Json]:
    """The ReplicaSets and Jobs that own some of the pods, by their metadata."""
    owners: dict[OwnerRef, Json] = {}
    for kind in OWNED_KINDS:
        where = {
            _namespace(pod)
            for pod in found
            if (owner := pods.controller(pod)) is not None and owner.get("kind") == kind.kind
        }
        for namespace in sorted(where):
            try:
                listed = await viewer.list_all(kind, namespace)
            except Forbidden as error:
                notes.append(f"{error}: pods are shown by their {kind.kind}")
                continue
            for one in listed:
                name = str(raw.mapping(one, "metadata").get("name"))
                owners[namespace, kind.kind, name] = one
    return owners


def _namespace(pod: Json) -> str:
    return str(raw.mapping(pod, "metadata").get("namespace"))
