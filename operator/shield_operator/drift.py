"""Which pods run with which plan: counted from their metadata, page by page, and never kept.

Labels say which pods to look at, annotations say what they are: a label may have come along with a
template. A pod counts for a config of its own namespace, or for the cluster's default; what else it
says of itself is foreign, and counts for nobody.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from shield_operator import names, pods, raw
from shield_operator.decision import SkipReason
from shield_operator.model import ConfigRef, Json
from shield_operator.selection import ConfigIndex, is_cluster_default

SELECTORS: Final = (
    names.INJECTED_LABEL,
    f"{names.INJECTION_SKIPPED_LABEL},!{names.INJECTED_LABEL}",
)
"""Label selectors that together bring every pod with an outcome, each once.

By a label's presence: a template's own value of it may have had to stay.
"""

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{16}")
_SETTINGS_REF: Final = ConfigRef(*names.SETTINGS_CONFIG.split("/"))

Plans: TypeAlias = Mapping[str, int]
"""How many pods of one config run with which plan, by fingerprint."""


@dataclass(frozen=True, slots=True)
class PodCounts:
    """A config's pods."""

    injected: int
    outdated: int | None
    """Those of them with another plan than the present one; None where there is no such plan."""

    @classmethod
    def of(cls, plans: Plans, fingerprint: str | None) -> "PodCounts":
        """The counts, where this is the present plan."""
        injected = sum(plans.values())
        if fingerprint is None:
            return cls(injected, None)
        return cls(injected, injected - plans.get(fingerprint, 0))


@dataclass(slots=True)
class Tally:
    """The pods of one scan, added page by page.

    It keeps numbers only: as many as there are configs, times the plans that a config has had.
    """

    configs: ConfigIndex
    plans: dict[ConfigRef, Counter[str]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    """Pods that asked and were skipped, by reason."""

    def add(self, page: Iterable[Json]) -> None:
        """Count these pods, each given by its metadata."""
        for pod in page:
            annotations = pods.annotations(pod)
            if names.SKIP_REASON_ANNOTATION in annotations:
                self.skipped[_reason(pod)] += 1
            elif ref := self._config_of(pod, annotations):
                self.plans.setdefault(ref, Counter())[_fingerprint(annotations)] += 1

    def counts(self) -> Mapping[str, PodCounts]:
        """Each config that has pods, by what its pods call it, with its counts."""
        found = {}
        for ref, plans in self.plans.items():
            if ref == _SETTINGS_REF:
                plan = self.configs.last_resort
            else:
                entry = self.configs.get(ref)
                plan = entry.plan if entry else None
            found[str(ref)] = PodCounts.of(plans, plan.fingerprint if plan else None)
        return found

    def _config_of(self, pod: Json, annotations: Mapping[str, str]) -> ConfigRef | None:
        namespace, _, name = annotations.get(names.INJECTED_CONFIG_ANNOTATION, "").partition("/")
        ref = ConfigRef(namespace, name)
        if ref == _SETTINGS_REF:
            return ref
        if self.configs.get(ref) is None:
            return None
        own = raw.mapping(pod, "metadata").get("namespace") == namespace
        return ref if own or is_cluster_default(ref, self.configs.settings) else None


def _fingerprint(annotations: Mapping[str, str]) -> str:
    """What the pod says of its plan; nothing that is none, which is outdated in any case."""
    found = annotations.get(names.INJECTION_HASH_ANNOTATION, "")
    return found if _FINGERPRINT.fullmatch(found) else ""


def _reason(pod: Json) -> str:
    """The reason, by the label; any stranger can write that, so only what we know counts."""
    found = pods.labels(pod).get(names.INJECTION_SKIPPED_LABEL, "")
    return found if found in list(SkipReason) else "unknown"
