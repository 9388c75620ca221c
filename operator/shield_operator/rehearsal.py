"""What would happen to the pods of manifests: the webhook's decision, without a cluster.

A manifest says less than an admission review: which namespace it is for and what that namespace's
labels are comes from beside it, and a template has no owner yet.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from shield_operator import names, patch, raw
from shield_operator.decision import Decision, Ignore, Skip, decide
from shield_operator.documents import Document, Workload, configs, namespaces, workloads
from shield_operator.model import Json, is_dns_subdomain
from shield_operator.selection import ConfigIndex
from shield_operator.settings import Settings, UninjectedPodPolicy
from shield_operator.text import one_line
from shield_operator.uninjection import plan_of, source, uninject

DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Scene:
    """The cluster that manifests are for, as far as a decision depends on it."""

    configs: ConfigIndex
    namespace: str = DEFAULT_NAMESPACE
    """Of what names none."""
    namespace_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels by namespace; of others none are known."""
    labels_of_all: Mapping[str, str] | None = None
    """Labels that every namespace has, whatever is known."""

    @property
    def settings(self) -> Settings:
        """The operator's settings."""
        return self.configs.settings

    def namespace_of(self, workload: Workload) -> str:
        """The namespace that an object is for."""
        return workload.namespace or self.namespace

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace, as far as they are known."""
        if self.labels_of_all is not None:
            return self.labels_of_all
        return self.namespace_labels.get(namespace, {})

    def decide(self, workload: Workload) -> Decision:
        """What the webhook would decide about the workload's pods."""
        namespace = self.namespace_of(workload)
        with without_owners(workload):
            return decide(
                workload.pod,
                namespace,
                self.labels_of(namespace),
                {},
                self.configs,
                self.settings,
                made_by=workload.maker,
            )


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a workload."""

    who: str
    """``Kind/namespace/name``."""
    decision: Decision
    denied: bool = False
    """Whether its pods would be refused."""


def configs_in(documents: Iterable[Document], namespace: str) -> Iterator[Json]:
    """The configs of documents, as the API server would have them: of a namespace, and new."""
    for document in documents:
        for config in configs(document.value):
            document.check()
            if config.get("apiVersion") != f"{names.API_GROUP}/{names.API_VERSION}":
                document.refuse(
                    f"a {names.KIND} of another version than {names.API_GROUP}/{names.API_VERSION}"
                )
            if not is_dns_subdomain(str(raw.mapping(config, "metadata").get("name") or "")):
                document.refuse(f"a {names.KIND} without a valid metadata.name: give it one")
            metadata = {"namespace": namespace, "generation": 1}
            given = {k: v for k, v in raw.mapping(config, "metadata").items() if v is not None}
            yield {**config, "metadata": metadata | given}


def labels_in(documents: Iterable[Document]) -> dict[str, Mapping[str, str]]:
    """The labels of the namespaces that documents hold."""
    found: dict[str, Mapping[str, str]] = {}
    for document in documents:
        here = dict(namespaces(document.value))
        if here:
            document.check()
        found |= here
    return found


def injected(document: Document, scene: Scene) -> tuple[str, list[Outcome]]:
    """The document's text after injection, and what became of its workloads.

    Raises:
        DocumentError: where it holds a workload, and something that no API server would take.
    """
    value, found = _workloads(document)
    outcomes, changes = [], False
    for workload in found:
        decision = scene.decide(workload)
        policy = scene.settings.uninjected_pod_policy
        denied = isinstance(decision, Skip) and policy is UninjectedPodPolicy.DENY
        outcomes.append(Outcome(_who(workload, scene), decision, denied))
        if denied or isinstance(decision, Ignore):
            continue
        with without_owners(workload):
            patch.apply(workload.pod, decision)
        changes = True
    is_changed = changes and value != document.value
    return document.with_value(value) if is_changed else document.text, outcomes


@dataclass(frozen=True, slots=True)
class Removal:
    """What was taken out of a workload."""

    who: str
    found: bool
    """Whether there was anything of ours."""
    config: str | None = None
    """The config that it was injected by."""
    wiring_stays: bool = False
    """Whether that config is not known, so that what it wired could not be taken out."""
    differs: bool = False
    """Whether the config has changed since."""


def uninjected(document: Document, scene: Scene) -> tuple[str, list[Removal]]:
    """The document's text without what injection added, and what became of its workloads.

    Raises:
        DocumentError: where it holds a workload, and something that no API server would take.
    """
    value, found = _workloads(document)
    removals = []
    for workload in found:
        config, plan = source(workload.pod), plan_of(workload.pod, scene.configs)
        seal = raw.strings(workload.pod, "metadata", "annotations").get(
            names.INJECTION_HASH_ANNOTATION
        )
        removals.append(
            Removal(
                _who(workload, scene),
                uninject(workload.pod, plan),
                config,
                wiring_stays=config is not None and plan is None,
                differs=plan is not None and seal is not None and seal != plan.fingerprint,
            )
        )
    is_changed = any(removal.found for removal in removals) and value != document.value
    return document.with_value(value) if is_changed else document.text, removals


def workloads_of(document: Document) -> list[Workload]:
    """The workloads of a document.

    Raises:
        DocumentError: where it holds one, and something that no API server would take.
    """
    return _workloads(document)[1]


def _workloads(document: Document) -> tuple[Json, list[Workload]]:
    """A value to change, in which no two parts are the same object, and its workloads."""
    if next(workloads(document.value), None) is None:
        return document.value, []
    document.check()
    value = json.loads(json.dumps(document.value))
    return value, [*workloads(value)]


def _who(workload: Workload, scene: Scene) -> str:
    return one_line(f"{workload.kind}/{scene.namespace_of(workload)}/{workload.name}")


@contextmanager
def without_owners(workload: Workload) -> Iterator[None]:
    """A template's pods get their owner from their controller, whatever a template says."""
    metadata = raw.mapping(workload.pod, "metadata")
    if workload.kind == "Pod" or "ownerReferences" not in metadata:
        yield
        return
    given = workload.pod["metadata"]
    workload.pod["metadata"] = {k: v for k, v in given.items() if k != "ownerReferences"}
    try:
        yield
    finally:
        workload.pod["metadata"]["ownerReferences"] = given["ownerReferences"]
