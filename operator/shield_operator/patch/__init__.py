"""From a decision and a pod to the changed pod.

`apply` changes the raw JSON in place, by name and only where something is absent: fields that this
version does not know survive, and a second application changes nothing, which matters because the
API server may call a webhook twice for one pod (``reinvocationPolicy``). The modules:

    additions   what is added to the pod: containers, volumes, pull Secrets
    wiring      what is set on the application's container
    scheduling  where the pod may run
    stamps      the labels and annotations that tell of it
"""

import copy

import jsonpatch

from shield_operator.decision import Decision, Ignore, Inject, Skip
from shield_operator.model import Json
from shield_operator.patch.additions import add
from shield_operator.patch.scheduling import is_same_toleration, schedule
from shield_operator.patch.stamps import stamp_injected, stamp_skipped
from shield_operator.patch.wiring import wire

__all__ = ["apply", "is_same_toleration", "operations"]


def operations(pod: Json, decision: Decision) -> list[Json]:
    """The JSON Patch (RFC 6902) that carries the decision out; empty where nothing changes."""
    changed = copy.deepcopy(pod)
    apply(changed, decision)
    patch: list[Json] = jsonpatch.make_patch(pod, changed).patch
    return patch


def apply(pod: Json, decision: Decision) -> None:
    """Carry the decision out on the pod's JSON, in place. Applying it twice is applying it once."""
    match decision:
        case Ignore():
            pass
        case Inject(plan):
            add(pod, plan)
            kept: list[str] = []
            wire(pod, plan.wiring, kept)
            schedule(pod, plan.scheduling, kept)
            stamp_injected(pod, plan, kept)
        case Skip(reason, sentence):
            stamp_skipped(pod, reason, sentence)
