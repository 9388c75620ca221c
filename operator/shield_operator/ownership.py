"""Which workload a pod belongs to, and how its pods are made anew.

https://kubernetes.io/docs/concepts/workloads/controllers/
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from shield_operator import kinds, pods, raw
from shield_operator.model import Json

OwnerRef: TypeAlias = tuple[str, str, str]
"""Namespace, kind and name of an owner."""
Owners: TypeAlias = Mapping[OwnerRef, Json]
"""Owners that may themselves be owned, by their metadata: ReplicaSets and Jobs."""

OWNED_KINDS: Final = (kinds.REPLICA_SET, kinds.JOB)
_ROLLED_OUT: Final = frozenset(
    kind.kind for kind in (kinds.DEPLOYMENT, kinds.STATEFUL_SET, kinds.DAEMON_SET)
)
_KEPT_UP: Final = frozenset(kind.kind for kind in (kinds.REPLICA_SET, kinds.REPLICATION_CONTROLLER))


@dataclass(frozen=True, slots=True, order=True)
class Workload:
    """What makes pods; or a pod that nothing makes, by itself."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        """As kubectl writes it."""
        return f"{self.kind.lower()}/{self.name}"

    @property
    def remedy(self) -> str:
        """How its pods are made anew: a command to copy, or what else has to be done."""
        where = f"-n {self.namespace}"
        if self.kind in _ROLLED_OUT:
            return f"kubectl rollout restart {self} {where}"
        if self.kind in _KEPT_UP:
            return f"delete its pods, which {self} makes anew"
        match self.kind:
            case kinds.POD.kind | kinds.JOB.kind:
                return f"kubectl delete {self} {where}  # and create it again from its manifest"
            case kinds.CRON_JOB.kind:
                return f"wait: the next run of {self} makes new pods"
            case _:
                return f"restart {self} as its own documentation says"


def workload_of(pod: Json, owners: Owners) -> Workload:
    """The workload at the end of the chain of controllers, as far as it can be seen."""
    metadata = raw.mapping(pod, "metadata")
    namespace = str(metadata.get("namespace") or "")
    found = Workload(namespace, kinds.POD.kind, str(metadata.get("name") or ""))
    holder = pod
    for _ in range(3):  # a pod, its ReplicaSet or Job, and what owns that
        owner = pods.controller(holder)
        if owner is None:
            break
        found = Workload(namespace, str(owner.get("kind")), str(owner.get("name")))
        holder = owners.get((namespace, found.kind, found.name))
    return found
