"""Where the configs and pods of a namespace, or of the cluster, stand: what ``status`` shows."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from shield_operator import names, pods, raw
from shield_operator.explanation import Stamps, Standing, present_fingerprint
from shield_operator.model import ConfigRef, Json
from shield_operator.ownership import Owners, Workload, workload_of
from shield_operator.remedies import Remedy
from shield_operator.selection import is_cluster_default, is_opted_in
from shield_operator.settings import Settings
from shield_operator.status import READY

UNSEEN: Final = f"!{names.INJECTED_LABEL},!{names.INJECTION_SKIPPED_LABEL}"
"""Selects the others: bare, or ours without its labels, which only the containers tell."""

ASKING: Final = f"{UNSEEN},{names.INJECT_LABEL} in ({','.join(names.IN_VALUES)})"
"""Selects those of them that ask by a label of their own."""


@dataclass(frozen=True, slots=True)
class ConfigState:
    """A config, as the operator has judged it, and the pods that were found of it."""

    namespace: str
    name: str
    ready: str
    """``True``, ``False`` or ``Unknown``."""
    reason: str
    message: str
    secret: str
    image: str
    generation: int | None
    injected: int | None
    """None where its pods may be in namespaces that were not looked at."""
    outdated: int | None
    """None where that is not known."""


@dataclass(slots=True)
class WorkloadState:
    """A workload's pods, those that are not at their end."""

    workload: Workload
    standings: Counter[Standing] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Of the skipped ones."""
    configs: set[str] = field(default_factory=set)
    example: str = ""
    """One of its pods, skipped if any is."""
    way_out: Remedy | None = None
    """What to do about its pods, where that was looked into."""

    @property
    def pods(self) -> int:
        """How many there are that ask, or have asked."""
        return self.standings.total()

    @property
    def injected(self) -> int:
        """How many have the sidecar, or are wired."""
        there = (Standing.CURRENT, Standing.OUTDATED, Standing.UNKNOWN)
        return sum(self.standings[standing] for standing in there)

    @property
    def is_stale(self) -> bool:
        """Whether making its pods anew would change something."""
        return bool(self.standings[Standing.OUTDATED] or self.standings[Standing.BARE])

    @property
    def remedy(self) -> str | None:
        """What to do; None where there is nothing to be done."""
        if not self.is_stale:
            return None
        return self.way_out.sentence if self.way_out else self.workload.remedy


@dataclass(frozen=True, slots=True)
class Overview:
    """All of it, in the order in which it is shown."""

    configs: tuple[ConfigState, ...]
    workloads: tuple[WorkloadState, ...]
    notes: tuple[str, ...] = ()
    """What could not be looked at."""


def overview(
    resources: Iterable[Json],
    found_pods: Iterable[Json],
    namespaces: Mapping[str, Mapping[str, str]],
    owners: Owners,
    settings: Settings,
    *,
    everywhere: bool,
    settings_fingerprint: str | None = None,
    notes: tuple[str, ...] = (),
) -> Overview:
    """Put together what was read of a cluster.

    Args:
        resources: the configs.
        found_pods: pods, by their metadata where they carry an outcome.
        namespaces: the namespaces' labels.
        owners: what may own the pods, and be owned.
        settings: the operator's.
        everywhere: whether the pods of all namespaces were looked for.
        settings_fingerprint: that of the config which the settings make, where they make one.
        notes: what could not be looked at.
    """
    resources = [*resources]
    present = {str(_ref(resource)): present_fingerprint(resource) for resource in resources}
    if settings_fingerprint is not None:
        present[names.SETTINGS_CONFIG] = settings_fingerprint
    workloads: dict[Workload, WorkloadState] = {}
    by_config: dict[str, Counter[Standing]] = {}
    for pod in found_pods:
        stamps = Stamps.of(pod)
        standing = stamps.standing(present.get(stamps.config or ""))
        if standing is Standing.BARE and not _asks(pod, namespaces, settings):
            continue
        workload = workload_of(pod, owners)
        state = workloads.setdefault(workload, WorkloadState(workload))
        state.standings[standing] += 1
        if standing is Standing.SKIPPED:
            state.reasons[stamps.skipped or "unknown"] += 1
        elif stamps.config is not None:
            state.configs.add(stamps.config)
            if _is_its_own(stamps.config, workload.namespace, settings):
                by_config.setdefault(stamps.config, Counter())[standing] += 1
        if standing is Standing.SKIPPED or not state.example:
            state.example = str(raw.mapping(pod, "metadata").get("name"))
    states = [
        _config_state(
            resource,
            by_config.get(str(_ref(resource)), Counter()),
            counted=everywhere or not is_cluster_default(_ref(resource), settings),
        )
        for resource in resources
    ]
    return Overview(
        tuple(sorted(states, key=lambda state: (state.namespace, state.name))),
        tuple(state for _, state in sorted(workloads.items())),
        notes,
    )


def _asks(pod: Json, namespaces: Mapping[str, Mapping[str, str]], settings: Settings) -> bool:
    namespace = str(raw.mapping(pod, "metadata").get("namespace"))
    return is_opted_in(pods.labels(pod), namespace, namespaces.get(namespace, {}), settings)


def _is_its_own(config: str, namespace: str, settings: Settings) -> bool:
    """Whether a pod of this namespace counts for a config: a copied one, of another, does not."""
    ref = ConfigRef(*config.partition("/")[::2])
    return ref.namespace == namespace or is_cluster_default(ref, settings)


def _ref(resource: Json) -> ConfigRef:
    metadata = raw.mapping(resource, "metadata")
    return ConfigRef(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))


def _config_state(resource: Json, standings: Counter[Standing], *, counted: bool) -> ConfigState:
    ref, spec = _ref(resource), raw.mapping(resource, "spec")
    generation = raw.mapping(resource, "metadata").get("generation")
    conditions = raw.items(resource, "status", "conditions")
    ready = next((one for one in conditions if one.get("type") == READY), {})
    if not ready or ready.get("observedGeneration") != generation:
        ready = {
            "status": "Unknown",
            "reason": "NotLookedAt",
            "message": "the operator has not looked at it yet: kubectl shield check tells whether "
            "it runs",
        }
    injected = standings.total() if counted else None
    outdated = standings[Standing.OUTDATED] if counted else None
    return ConfigState(
        namespace=ref.namespace,
        name=ref.name,
        ready=str(ready.get("status")),
        reason=str(ready.get("reason") or ""),
        message=str(ready.get("message") or ""),
        secret=str(spec.get("secretName") or ""),
        image=str(spec.get("image") or ""),
        generation=generation if isinstance(generation, int) else None,
        injected=injected,
        outdated=None if injected and standings[Standing.UNKNOWN] else outdated,
    )


# --- For programs ---------------------------------------------------------------------------------


def as_json(found: Overview) -> dict[str, Json]:
    """All of it as plain objects and lists."""
    return {
        "configs": [
            {
                "namespace": one.namespace,
                "name": one.name,
                "ready": one.ready,
                "reason": one.reason,
                "message": one.message,
                "secretName": one.secret,
                "image": one.image,
                "generation": one.generation,
                "injected": one.injected,
                "outdated": one.outdated,
            }
            for one in found.configs
        ],
        "workloads": [
            {
                "namespace": one.workload.namespace,
                "kind": one.workload.kind,
                "name": one.workload.name,
                "configs": sorted(one.configs),
                "pods": one.pods,
                "injected": one.injected,
                "outdated": one.standings[Standing.OUTDATED],
                "bare": one.standings[Standing.BARE],
                "skipped": dict(sorted(one.reasons.items())),
                "remedy": one.remedy,
            }
            for one in found.workloads
        ],
        "notes": list(found.notes),
    }
