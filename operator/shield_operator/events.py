"""Kubernetes Events as data: what is told, and of which object.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/

They are of ``events.k8s.io/v1``, which has taken the place of the core group's; ``kubectl
describe`` and ``kubectl get events`` show both alike. A reason is a word of an enum of ours, in
their spelling.

* A config whose condition ``Ready`` turns False, or True again, or is False for another reason: an
  event of that reason on the config. One that is right from its first day has none.
* A pod that is skipped: an event on its controller, such as a ReplicaSet. The pod itself has no uid
  by then, and often no name; and a controller shows nobody the warnings that it gets. A pod that
  nobody controls has no event: whoever makes it gets the warnings. One that is denied has none of
  ours: its controller tells of that by itself (``FailedCreate``).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from shield_operator import kinds, names, pods, raw
from shield_operator.decision import SkipReason
from shield_operator.model import Json
from shield_operator.status import Ready, ready_before

_LONGEST_NOTE: Final = 1024
"""Bytes."""
_LONGEST_NAME: Final = 253
"""Characters of what an owner reference may say: it comes with a pod, and from anybody."""


class EventType(StrEnum):
    """Whether somebody has to do something."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, but for the time."""

    about: Subject
    type: EventType
    reason: str
    action: str
    """What was being done; a verb."""
    note: str
    """What happened, and what to do."""

    def manifest(self, instance: str, now: datetime) -> Json:
        """The resource to create, as the replica of this name tells of it."""
        about = self.about
        return {
            "apiVersion": f"{kinds.EVENT.group}/{kinds.EVENT.version}",
            "kind": kinds.EVENT.kind,
            "metadata": {"namespace": about.namespace, "generateName": f"{names.OPERATOR}-"},
            "eventTime": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": f"{names.DOMAIN}/{names.OPERATOR}",
            "reportingInstance": instance[:128],
            "action": self.action,
            "reason": self.reason,
            "type": self.type.value,
            "note": _cut(self.note),
            "regarding": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
        }


def readiness_event(resource: Json, condition: Ready, before: Json) -> Event | None:
    """What to tell of a config whose ``Ready`` says something new.

    Args:
        resource: the config.
        condition: what its status says now.
        before: the status as it was.
    """
    is_ready = condition.status == "True"
    if is_ready and ready_before(before) is not False:
        return None
    metadata = raw.mapping(resource, "metadata")
    about = Subject(
        f"{names.API_GROUP}/{names.API_VERSION}",
        names.KIND,
        str(metadata.get("namespace")),
        str(metadata.get("name")),
        str(metadata.get("uid")),
    )
    kind = EventType.NORMAL if is_ready else EventType.WARNING
    return Event(about, kind, condition.reason.value, "Check", condition.message)


def skip_event(owner: Subject, reason: SkipReason, sentence: str) -> Event:
    """What to tell the controller of a pod that was skipped."""
    return Event(owner, EventType.WARNING, in_camel_case(reason), "Inject", sentence)


def in_camel_case(reason: SkipReason) -> str:
    """A reason as events spell it: ``NoSidecarConfig``."""
    return "".join(word.capitalize() for word in reason.value.split("-"))


def owner_of(pod: Json, namespace: str) -> Subject | None:
    """The controller of a pod that is being created there; None where nobody controls it.

    A person can write owner references too, but only an object of the same namespace is told of,
    and the API server checks the rest.
    """
    owner = pods.controller(pod)
    if owner is None:
        return None
    said = [owner.get(field) for field in ("apiVersion", "kind", "name", "uid")]
    match [text for text in said if isinstance(text, str) and _is_sound(text)]:
        case [api_version, kind, name, uid]:
            return Subject(api_version, kind, namespace, name, uid)
        case _:
            return None


def _is_sound(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_NAME and text.isprintable()


def _cut(note: str) -> str:
    """The note on one line, as long as the API server takes it."""
    line = " ".join(note[: 2 * _LONGEST_NOTE].split())
    content = line.encode(errors="replace")  # a stranger's review may hold half a character
    if len(content) <= _LONGEST_NOTE:
        return content.decode()
    return f"{content[: _LONGEST_NOTE - 3].decode(errors='ignore')}…"
