"""From a decision and a pod to the operations that change the pod.

The change is made by name and only where something is absent: fields that this version does not
know survive, and a second application changes nothing, which matters because the API server may
call a webhook twice for one pod (``reinvocationPolicy``). The modules:

    draft       a pod under change, which writes down each change as an operation
    additions   what is added to the pod: containers, volumes, pull Secrets
    wiring      what is set on the application's container
    scheduling  where the pod may run
    stamps      the labels and annotations that tell of it
"""

from shield_operator.decision import Decision, Ignore, Inject, Skip
from shield_operator.model import Json
from shield_operator.patch.additions import add
from shield_operator.patch.draft import Draft
from shield_operator.patch.scheduling import is_same_toleration, schedule
from shield_operator.patch.stamps import stamp_injected, stamp_skipped
from shield_operator.patch.wiring import wire

__all__ = ["apply", "is_same_toleration", "operations"]


def operations(pod: Json, decision: Decision) -> list[Json]:
    """The JSON Patch (RFC 6902) that carries the decision out; empty where nothing changes.

    Parts of the plan are in it as they are: never change it.
    """
    draft = Draft(pod)
    _carry_out(draft, decision)
    return draft.operations


def apply(pod: Json, decision: Decision) -> None:
    """Carry the decision out on the pod's JSON, in place. Applying it twice is applying it once."""
    draft = Draft(pod, shares=False)
    _carry_out(draft, decision)
    pod.update(draft.pod)


def _carry_out(draft: Draft, decision: Decision) -> None:
    match decision:
        case Ignore():
            pass
        case Inject(plan):
            add(draft, plan)
            kept: list[str] = []
            wire(draft, plan.wiring, kept)
            schedule(draft, plan.scheduling, kept)
            stamp_injected(draft, plan, kept)
        case Skip(reason, sentence):
            stamp_skipped(draft, reason, sentence)
