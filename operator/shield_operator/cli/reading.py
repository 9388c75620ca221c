"""What a command reads of a cluster before it can say what becomes of a pod."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shield_operator import kinds, names, raw
from shield_operator.cluster import Forbidden, NotFound
from shield_operator.decision import Inject, decide, needed_secrets
from shield_operator.installation import Installation, installation_of
from shield_operator.model import ConfigRef, Json, SecretState
from shield_operator.plan import Plan
from shield_operator.selection import ConfigIndex

if TYPE_CHECKING:
    from shield_operator.cluster import Viewer


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All but the pod: what `decide` is told, read from a cluster."""

    installation: Installation
    configs: ConfigIndex
    resources: Mapping[ConfigRef, Json]
    """The configs as the API server has them."""
    namespace: Json
    """The Namespace, or None where it cannot be read."""
    notes: tuple[str, ...]
    """What could not be read, and what is assumed instead."""

    @property
    def namespace_labels(self) -> Mapping[str, str] | None:
        """None where they are not known."""
        if self.namespace is None:
            return None
        return raw.strings(self.namespace, "metadata", "labels")


async def read_installation(
    viewer: Viewer, operator_namespace: str | None
) -> tuple[Installation, list[str]]:
    """The operator's settings, and what could not be read of them."""
    where = operator_namespace or names.OPERATOR_NAMESPACE
    notes = []
    deployment: Json = None
    try:
        deployment = await viewer.find(kinds.DEPLOYMENT, names.OPERATOR, where)
    except Forbidden:
        notes.append(
            f"Deployment {where}/{names.OPERATOR} cannot be read: the operator's settings are "
            "taken to be the default ones"
        )
    found = installation_of(deployment, os.environ, where)
    if found.unknown:
        notes.append(f"not known of the operator's settings: {', '.join(found.unknown)}")
    return found, notes


async def read_surroundings(
    viewer: Viewer, namespace: str, operator_namespace: str | None = None
) -> Surroundings:
    """Read what concerns the pods of a namespace.

    Raises:
        ClusterError: where too little can be read to say anything.
        SettingsError: where the environment holds what cannot be used.
    """
    installation, notes = await read_installation(viewer, operator_namespace)
    settings = installation.settings
    found = await viewer.configs(namespace)
    if namespace != settings.namespace:
        try:
            default = await viewer.find(kinds.CONFIG, names.DEFAULT_CONFIG, settings.namespace)
        except Forbidden:
            notes.append(
                f"{names.KIND} {settings.namespace}/{names.DEFAULT_CONFIG} cannot be read: taken "
                "as not there"
            )
        else:
            found += [default] if default is not None else []
    its_namespace: Json = None
    try:
        its_namespace = await viewer.find(kinds.NAMESPACE, namespace)
        if its_namespace is None:
            raise NotFound(f"there is no namespace {namespace}")
    except Forbidden:
        notes.append(f"namespace {namespace} cannot be read: taken as one that asks")
    return Surroundings(
        installation,
        ConfigIndex.of(settings, await viewer.version(), found),
        {_ref(resource): resource for resource in found},
        its_namespace,
        tuple(notes),
    )


async def read_secrets(
    viewer: Viewer, pod: Json, namespace: str, surroundings: Surroundings
) -> Mapping[str, SecretState]:
    """Whether the Secrets are there that the pod would wait for."""
    settings = surroundings.installation.settings
    labels = surroundings.namespace_labels
    decision = decide(pod, namespace, labels, {}, surroundings.configs, settings)
    states = {}
    plan: Plan | None = decision.plan if isinstance(decision, Inject) else None
    for name in needed_secrets(pod, plan) if plan else ():
        try:
            exists = await viewer.secret_exists(namespace, name)
        except Forbidden:
            continue
        states[name] = SecretState.PRESENT if exists else SecretState.ABSENT
    return states


def _ref(resource: Json) -> ConfigRef:
    metadata = raw.mapping(resource, "metadata")
    return ConfigRef(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
