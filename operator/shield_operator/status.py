"""A config's status: one function computes it, one compares it with what is written.

https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import ClassVar, Final, TypeAlias

from shield_operator import raw
from shield_operator.drift import Plans, PodCounts
from shield_operator.model import Json, SecretState
from shield_operator.selection import IndexedConfig, is_cluster_default
from shield_operator.settings import Settings

READY: Final = "Ready"
UP_TO_DATE: Final = "UpToDate"


class ReadyReason(StrEnum):
    """Why a config is ready, or not."""

    ACCEPTED = "Accepted"
    INVALID = "Invalid"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105  # a reason

    @property
    def status(self) -> str:
        """``True`` or ``False``, as conditions spell it."""
        return "True" if self is ReadyReason.ACCEPTED else "False"


class UpToDateReason(StrEnum):
    """Why a config's pods are up to date, or not."""

    ALL_CURRENT = "AllCurrent"
    OUTDATED_PODS = "OutdatedPods"


_LONGEST_MESSAGE: Final = 32768
"""Characters that a condition's message may have."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The ``Ready`` condition, but for its time."""

    reason: ReadyReason
    message: str
    type: ClassVar = READY

    @property
    def status(self) -> str:
        """``True`` or ``False``, as conditions spell it."""
        return self.reason.status


@dataclass(frozen=True, slots=True)
class UpToDate:
    """The ``UpToDate`` condition, but for its time."""

    reason: UpToDateReason
    message: str
    type: ClassVar = UP_TO_DATE

    @property
    def status(self) -> str:
        """``True`` or ``False``, as conditions spell it."""
        return "True" if self.reason is UpToDateReason.ALL_CURRENT else "False"


Condition: TypeAlias = Ready | UpToDate


def referenced_secrets(entry: IndexedConfig, settings: Settings) -> tuple[str, ...]:
    """The Secrets to look for in the config's namespace.

    None for the cluster's default, whose pods look for it in namespaces of their own.
    """
    if is_cluster_default(entry.ref, settings) or entry.plan is None:
        return ()
    return entry.plan.secrets(entry.plan.secret_name)


def ready(entry: IndexedConfig, secrets: Mapping[str, SecretState]) -> Ready:
    """Whether pods can get this config's sidecar, and start with it."""
    if entry.problems:
        return Ready(ReadyReason.INVALID, "; ".join(entry.problems)[:_LONGEST_MESSAGE])
    absent = _absent(secrets)
    if absent:
        message = _not_there(absent, entry.ref.namespace)
        return Ready(ReadyReason.SECRET_NOT_FOUND, message)
    if entry.plan is not None and entry.plan.sidecar is None:
        message = "pods are wired and placed, without a sidecar (mode None)"
        return Ready(ReadyReason.ACCEPTED, message)
    if entry.plan is not None and entry.plan.secret_name is None:
        message = "pods get the sidecar; without a Secret it answers every request with 401"
        return Ready(ReadyReason.ACCEPTED, message)
    return Ready(ReadyReason.ACCEPTED, "pods get the sidecar")


def _absent(secrets: Mapping[str, SecretState]) -> list[str]:
    return sorted(name for name, state in secrets.items() if state is SecretState.ABSENT)


def _not_there(absent: Sequence[str], namespace: str) -> str:
    if len(absent) == 1:
        return (
            f"Secret {absent[0]} is not in namespace {namespace}: create it; "
            "until then new pods wait for it"
        )
    return (
        f"Secrets {', '.join(absent[:-1])} and {absent[-1]} are not in namespace {namespace}: "
        "create them; until then new pods wait for them"
    )


def up_to_date(counts: PodCounts) -> UpToDate | None:
    """Whether the config's pods are as it would make them now; nothing where it makes none."""
    if counts.outdated is None:
        return None
    if counts.outdated == 0:
        return UpToDate(UpToDateReason.ALL_CURRENT, "every pod of this config has its present plan")
    return UpToDate(
        UpToDateReason.OUTDATED_PODS,
        f"{counts.outdated} of {counts.injected} pods have another plan than the present one: "
        "recreate them, for example with kubectl rollout restart",
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """A status, but for the times in it."""

    conditions: tuple[Condition, ...]
    fields: Mapping[str, Json]
    kept: tuple[str, ...] = ()
    """Types of conditions that stay as they are written."""


def wanted_status(
    entry: IndexedConfig,
    secrets: Mapping[str, SecretState],
    plans: Plans | None,
    live: Json,
) -> Wanted:
    """What the status must say.

    Args:
        entry: the config.
        secrets: what is known of the Secrets that it refers to.
        plans: its pods; None before the first scan, when what is written of them stays.
        live: the status as it is written.
    """
    conditions: list[Condition] = [ready(entry, secrets)]
    fields: dict[str, Json] = {"observedGeneration": entry.config.generation}
    if entry.plan is not None:
        fields["injectionHash"] = entry.plan.fingerprint
    if absent := _absent(secrets):
        fields["missingSecrets"] = absent
    if plans is None:
        if "pods" in raw.mapping(live):
            fields["pods"] = live["pods"]
        return Wanted(tuple(conditions), fields, kept=(UP_TO_DATE,))
    counts = PodCounts.of(plans, entry.plan.fingerprint if entry.plan else None)
    fields["pods"] = {"injected": counts.injected}
    if (condition := up_to_date(counts)) is not None:
        fields["pods"]["outdated"] = counts.outdated
        conditions.append(condition)
    return Wanted(tuple(conditions), fields)


def status_to_write(wanted: Wanted, live: Json, now: datetime) -> Json:
    """The status to apply, or None where the live one says the same already.

    ``lastTransitionTime`` moves only when the condition's status does.
    """
    conditions = []
    for condition in wanted.conditions:
        written = _condition(live, condition.type)
        since = written.get("lastTransitionTime")
        if since is None or written.get("status") != condition.status:
            since = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions.append(
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason.value,
                "message": condition.message,
                "observedGeneration": wanted.fields["observedGeneration"],
                "lastTransitionTime": since,
            }
        )
    conditions += [dict(found) for kind in wanted.kept if (found := _condition(live, kind))]
    status = {**wanted.fields, "conditions": conditions}
    return None if status == _ours(live) else status


def news(wanted: Wanted, live: Json) -> tuple[Condition, ...]:
    """The conditions that say something else than what is written."""
    return tuple(
        condition
        for condition in wanted.conditions
        if (written := _condition(live, condition.type)).get("reason") != condition.reason.value
        or written.get("message") != condition.message
    )


def _ours(live: Json) -> Json:
    """What of a live status is the operator's; the conditions of others are not."""
    known = ("observedGeneration", "injectionHash", "missingSecrets", "pods")
    found = {key: live[key] for key in known if key in raw.mapping(live)}
    conditions = [_condition(live, kind) for kind in (READY, UP_TO_DATE)]
    return {**found, "conditions": [one for one in conditions if one]}


_NONE: Final[frozenset[str]] = frozenset()
"""One for all configs: each new one would take 216 bytes."""


def absent_secrets(resource: Json) -> frozenset[str] | None:
    """Which Secrets a config's status says are not there; None where it does not say.

    Known to every replica, whoever looked them up.
    """
    generation = raw.mapping(resource, "metadata").get("generation")
    status = raw.mapping(resource, "status")
    condition = _condition(status, READY)
    if condition.get("observedGeneration") != generation:
        return None
    match condition.get("reason"):
        case ReadyReason.ACCEPTED.value:
            return _NONE
        case ReadyReason.SECRET_NOT_FOUND.value if isinstance(status.get("missingSecrets"), list):
            return frozenset(map(str, status["missingSecrets"]))
        case _:
            return None


def ready_before(live: Json) -> bool | None:
    """Whether a live status says that the config is ready; None where it does not say."""
    return {"True": True, "False": False}.get(str(_condition(live, READY).get("status")))


def ready_reason(resource: Json) -> ReadyReason | None:
    """Why a config is ready or not, as its status says of its present generation; else None."""
    generation = raw.mapping(resource, "metadata").get("generation")
    condition = _condition(raw.mapping(resource, "status"), READY)
    if condition.get("observedGeneration") != generation:
        return None
    return next((one for one in ReadyReason if one.value == condition.get("reason")), None)


def _condition(status: Json, kind: str) -> Mapping[str, Json]:
    conditions = raw.items(status, "conditions")
    return next((one for one in conditions if one.get("type") == kind), {})
