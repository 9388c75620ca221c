"""Which pods are in, and which config each of them gets.

`ConfigIndex` is an immutable snapshot of every config in the cluster with its plan; a change makes
a new snapshot that shares all that did not change, so a reader never sees half a change.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import TypeAlias

from shield_operator import names
from shield_operator.model import (
    ConfigRef,
    InvalidConfig,
    Json,
    LabelSelector,
    Problems,
    ShieldConfig,
    parse,
)
from shield_operator.plan import ClusterVersion, Plan, compile_plan, settings_config
from shield_operator.settings import Settings

# --- Who is in ------------------------------------------------------------------------------------


def excluded_namespaces(settings: Settings) -> tuple[str, ...]:
    """Namespaces that are always out: the cluster's own, and ours (we could not heal ourselves)."""
    return (*names.CLUSTER_NAMESPACES, settings.namespace)


class OptIn(Enum):
    """Why a pod is in, or out."""

    EXCLUDED_NAMESPACE = auto()
    POD_OUT = auto()
    NAMESPACE_OUT = auto()
    NOBODY_ASKED = auto()
    SELECTORS_ASKED = auto()
    NAMESPACE_IN = auto()
    POD_IN = auto()

    @property
    def is_in(self) -> bool:
        """Whether the pod asks for the sidecar."""
        return self in (OptIn.SELECTORS_ASKED, OptIn.NAMESPACE_IN, OptIn.POD_IN)


def opt_in(
    pod_labels: Mapping[str, str],
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    settings: Settings,
) -> OptIn:
    """Whether the pod asks for the sidecar, and why: the webhooks' selectors, said in Python.

    ``None`` for the namespace's labels means that the selectors were asked already (an admission
    review carries no namespace); then only the pod can still say no.
    """
    if namespace in excluded_namespaces(settings):
        return OptIn.EXCLUDED_NAMESPACE
    pod_says = pod_labels.get(names.INJECT_LABEL)
    if pod_says in names.OUT_VALUES:
        return OptIn.POD_OUT
    if namespace_labels is None:
        return OptIn.SELECTORS_ASKED
    namespace_says = namespace_labels.get(names.INJECT_LABEL)
    if namespace_says in names.OUT_VALUES:
        return OptIn.NAMESPACE_OUT
    if namespace_says in names.IN_VALUES:
        return OptIn.NAMESPACE_IN
    return OptIn.POD_IN if pod_says in names.IN_VALUES else OptIn.NOBODY_ASKED


def is_opted_in(
    pod_labels: Mapping[str, str],
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    settings: Settings,
) -> bool:
    """Whether the pod asks for the sidecar; see `opt_in`."""
    return opt_in(pod_labels, namespace, namespace_labels, settings).is_in


def is_cluster_default(ref: ConfigRef, settings: Settings) -> bool:
    """Whether this config is for every namespace that has none."""
    return (ref.namespace, ref.name) == (settings.namespace, names.DEFAULT_CONFIG)


# --- The index ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexedConfig:
    """A config and what became of it: a plan, or the reasons why there is none."""

    config: ShieldConfig | InvalidConfig
    plan: Plan | None
    problems: Problems

    @property
    def ref(self) -> ConfigRef:
        """Which config this is."""
        return self.config.ref

    @property
    def selector(self) -> LabelSelector:
        """The pods that it is for."""
        return self.config.pod_selector


@dataclass(frozen=True, slots=True)
class ConfigIndex:
    """Every config of the cluster, by namespace and name, compiled for this cluster's version."""

    settings: Settings
    version: ClusterVersion
    namespaces: Mapping[str, Mapping[str, IndexedConfig]]
    last_resort: Plan | None
    """The plan that the settings alone make, where they name an image."""

    @classmethod
    def of(
        cls, settings: Settings, version: ClusterVersion, resources: Iterable[Json] = ()
    ) -> "ConfigIndex":
        """The index of these ``ShieldSidecarConfig`` resources."""
        return _index(settings, version, map(parse, resources))

    def get(self, ref: ConfigRef) -> IndexedConfig | None:
        """The config of that namespace and name."""
        return self.namespaces.get(ref.namespace, {}).get(ref.name)

    def __iter__(self) -> Iterator[IndexedConfig]:
        return (entry for configs in self.namespaces.values() for entry in configs.values())

    def with_resource(self, resource: Json) -> "ConfigIndex":
        """This index after a config was created or changed."""
        config = parse(resource)
        known = self.get(config.ref)
        if known is not None and known.config == config:
            return self
        configs = {**self.namespaces.get(config.ref.namespace, {})}
        configs[config.ref.name] = _compiled(config, self.settings, self.version)
        return self._with_namespace(config.ref.namespace, configs)

    def without(self, ref: ConfigRef) -> "ConfigIndex":
        """This index after a config was deleted."""
        if self.get(ref) is None:
            return self
        configs = {**self.namespaces[ref.namespace]}
        del configs[ref.name]
        return self._with_namespace(ref.namespace, configs)

    def with_version(self, version: ClusterVersion) -> "ConfigIndex":
        """This index after the cluster was upgraded."""
        if version == self.version:
            return self
        return _index(self.settings, version, (entry.config for entry in self))

    def with_configs(
        self,
        configs: Iterable[ShieldConfig | InvalidConfig],
        *,
        keep: Iterable[IndexedConfig] = (),
    ) -> "ConfigIndex":
        """This index after all configs were listed: what is not among them is gone, but `keep`."""
        compiled = (_compiled(config, self.settings, self.version) for config in configs)
        return replace(self, namespaces=_by_namespace([*keep, *compiled]))

    def _with_namespace(
        self, namespace: str, configs: Mapping[str, IndexedConfig]
    ) -> "ConfigIndex":
        namespaces = {**self.namespaces, namespace: configs}
        if not configs:
            del namespaces[namespace]
        return replace(self, namespaces=MappingProxyType(namespaces))


def _index(
    settings: Settings, version: ClusterVersion, configs: Iterable[ShieldConfig | InvalidConfig]
) -> ConfigIndex:
    entries = (_compiled(config, settings, version) for config in configs)
    fallback = settings_config(settings)
    last_resort = _compiled(fallback, settings, version).plan if fallback else None
    return ConfigIndex(settings, version, _by_namespace(entries), last_resort)


def _by_namespace(
    entries: Iterable[IndexedConfig],
) -> Mapping[str, Mapping[str, IndexedConfig]]:
    namespaces: dict[str, dict[str, IndexedConfig]] = {}
    for entry in entries:
        namespaces.setdefault(entry.ref.namespace, {})[entry.ref.name] = entry
    return MappingProxyType(namespaces)


def _compiled(
    config: ShieldConfig | InvalidConfig, settings: Settings, version: ClusterVersion
) -> IndexedConfig:
    if isinstance(config, InvalidConfig):
        return IndexedConfig(config, None, config.problems)
    match compile_plan(config, settings, version):
        case Plan() as plan:
            return IndexedConfig(config, plan, ())
        case problems:
            return IndexedConfig(config, None, problems)


# --- Which config ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoConfig:
    """Nothing to inject; `why` ends in what to do."""

    why: str


@dataclass(frozen=True, slots=True)
class AmbiguousConfigs:
    """Several configs are equally good."""

    candidates: tuple[IndexedConfig, ...]


Selected: TypeAlias = Plan | IndexedConfig | NoConfig | AmbiguousConfigs
"""A plan; or a config that is not valid; or why there is none."""


class Rule(Enum):
    """By what a config is found; the first that finds any decides."""

    NAMED = auto()  # by the pod's annotation
    SELECTOR = auto()  # its ``podSelector`` matches the pod
    NAMESPACE = auto()  # it is for every pod of its namespace
    CLUSTER_DEFAULT = auto()
    SETTINGS = auto()  # the settings alone


@dataclass(frozen=True, slots=True)
class Found:
    """The configs that come into question for a pod, and by which rule."""

    rule: Rule
    entries: tuple[IndexedConfig, ...] = ()


def candidates(
    annotations: Mapping[str, str],
    labels: Mapping[str, str],
    namespace: str,
    configs: ConfigIndex,
) -> Found:
    """The configs for a pod of these annotations and labels, which should be one.

    The one that the pod names; else those of its namespace whose selector matches, where a selector
    beats none; else the cluster's default; else what the settings make.
    """
    named = annotations.get(names.CONFIG_ANNOTATION)
    if named is not None:
        entry = configs.get(ConfigRef(namespace, named))
        return Found(Rule.NAMED, (entry,) if entry is not None else ())
    matching = tuple(
        entry
        for entry in configs.namespaces.get(namespace, {}).values()
        if entry.selector.matches(labels)
    )
    if selecting := tuple(entry for entry in matching if entry.selector):
        return Found(Rule.SELECTOR, selecting)
    if matching:
        return Found(Rule.NAMESPACE, matching)
    default = configs.get(ConfigRef(configs.settings.namespace, names.DEFAULT_CONFIG))
    if default is not None:
        return Found(Rule.CLUSTER_DEFAULT, (default,))
    return Found(Rule.SETTINGS)


def select(
    annotations: Mapping[str, str],
    labels: Mapping[str, str],
    namespace: str,
    configs: ConfigIndex,
) -> Selected:
    """The config for a pod of these annotations and labels; see `candidates`."""
    found = candidates(annotations, labels, namespace, configs)
    match found.entries:
        case [entry]:
            return entry.plan or entry
        case [_, _, *_]:
            return AmbiguousConfigs(tuple(sorted(found.entries, key=lambda entry: entry.ref.name)))
    if found.rule is Rule.NAMED:
        return NoConfig(
            f"annotation {names.CONFIG_ANNOTATION} names {annotations[names.CONFIG_ANNOTATION]}, "
            f"but namespace {namespace} has no such {names.KIND}: create it or correct the "
            "annotation"
        )
    return configs.last_resort or NoConfig(
        f"no {names.KIND} in namespace {namespace} is for this pod, and the cluster has no "
        f"default: create one in {namespace}"
    )
