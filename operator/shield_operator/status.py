"""A config's status: one function computes it, one compares it with what is written.

https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from shield_operator import names, raw
from shield_operator.model import Json, SecretState
from shield_operator.selection import IndexedConfig
from shield_operator.settings import Settings

READY: Final = "Ready"


class ReadyReason(StrEnum):
    """Why a config is ready, or not."""

    ACCEPTED = "Accepted"
    INVALID = "Invalid"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105  # a reason


_LONGEST_MESSAGE: Final = 32768
"""Characters that a condition's message may have."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The ``Ready`` condition, but for its time."""

    reason: ReadyReason
    message: str

    @property
    def status(self) -> str:
        """``True`` or ``False``, as conditions spell it."""
        return "True" if self.reason is ReadyReason.ACCEPTED else "False"


def referenced_secrets(entry: IndexedConfig, settings: Settings) -> tuple[str, ...]:
    """The Secrets to look for in the config's namespace.

    None for the cluster's default, whose pods look for it in namespaces of their own.
    """
    if is_cluster_default(entry, settings) or entry.plan is None:
        return ()
    return entry.plan.secrets(entry.plan.secret_name)


def is_cluster_default(entry: IndexedConfig, settings: Settings) -> bool:
    """Whether this config is for every namespace that has none."""
    return (entry.ref.namespace, entry.ref.name) == (settings.namespace, names.DEFAULT_CONFIG)


def ready(entry: IndexedConfig, secrets: Mapping[str, SecretState]) -> Ready:
    """Whether pods can get this config's sidecar, and start with it."""
    if entry.problems:
        return Ready(ReadyReason.INVALID, "; ".join(entry.problems)[:_LONGEST_MESSAGE])
    absent = sorted(name for name, state in secrets.items() if state is SecretState.ABSENT)
    if absent:
        return Ready(
            ReadyReason.SECRET_NOT_FOUND,
            f"Secret {' and '.join(absent)} is not in namespace {entry.ref.namespace}: "
            "create it; until then new pods wait for it",
        )
    if entry.plan is not None and entry.plan.sidecar is None:
        message = "pods are wired and placed, without a sidecar (mode None)"
        return Ready(ReadyReason.ACCEPTED, message)
    if entry.plan is not None and entry.plan.secret_name is None:
        message = "pods get the sidecar; without a Secret it answers every request with 401"
        return Ready(ReadyReason.ACCEPTED, message)
    return Ready(ReadyReason.ACCEPTED, "pods get the sidecar")


def status_to_write(entry: IndexedConfig, condition: Ready, live: Json, now: datetime) -> Json:
    """The status to apply, or None where the live one says the same already.

    ``lastTransitionTime`` moves only when the condition's status does.
    """
    written = _condition(live)
    since = written.get("lastTransitionTime")
    if since is None or written.get("status") != condition.status:
        since = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted = {
        "type": READY,
        "status": condition.status,
        "reason": condition.reason.value,
        "message": condition.message,
        "observedGeneration": entry.config.generation,
        "lastTransitionTime": since,
    }
    fields: dict[str, Json] = {"observedGeneration": entry.config.generation}
    if entry.plan is not None:
        fields["injectionHash"] = entry.plan.fingerprint
    known = ("observedGeneration", "injectionHash")
    if written == wanted and all(raw.mapping(live).get(key) == fields.get(key) for key in known):
        return None
    return {**fields, "conditions": [wanted]}


def secret_state(resource: Json) -> SecretState:
    """What a config's status says of its Secret: known to every replica, whoever looked it up."""
    generation = raw.mapping(resource, "metadata").get("generation")
    condition = _condition(raw.mapping(resource, "status"))
    if condition.get("observedGeneration") != generation:
        return SecretState.UNKNOWN
    match condition.get("reason"):
        case ReadyReason.ACCEPTED.value:
            return SecretState.PRESENT
        case ReadyReason.SECRET_NOT_FOUND.value:
            return SecretState.ABSENT
        case _:
            return SecretState.UNKNOWN


def _condition(status: Json) -> Mapping[str, Json]:
    conditions = raw.items(status, "conditions")
    return next((one for one in conditions if one.get("type") == READY), {})
