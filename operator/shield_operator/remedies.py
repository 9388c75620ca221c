"""What brings a workload's pods up to date: the command, and what has to be done before it.

Making a pod anew is no use, or does harm, where its successor would not get the sidecar either.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shield_operator import names
from shield_operator.decision import Ignore, Inject, Skip, SkipReason, needed_secrets
from shield_operator.explanation import Explanation
from shield_operator.model import Json, SecretState
from shield_operator.ownership import Workload
from shield_operator.text import one_line

_LONGEST: Final = 300
_CREATED: Final = SkipReason.NO_SIDECAR_CONFIG
_MENDED: Final = (SkipReason.AMBIGUOUS_SIDECAR_CONFIG, SkipReason.INVALID_SIDECAR_CONFIG)


@dataclass(frozen=True, slots=True)
class Remedy:
    """The way out."""

    sentence: str
    """A command to copy, or what else has to be done."""
    helps: bool = True
    """Whether it makes the pods anew; else it says why that would be no use."""


def in_template(workload: Workload) -> Remedy:
    """Of a workload whose own template has the sidecar: the webhook leaves its pods alone."""
    return Remedy(
        f"the sidecar stands in the template of {workload}: inject its manifest again "
        "(kubectl shield inject), or take it out (uninject)",
        helps=False,
    )


def remedy(
    workload: Workload, pod: Json, anew: Explanation, secrets: Mapping[str, SecretState]
) -> Remedy:
    """What to do where `anew` would become of the pods that are made next, such as `pod`."""
    where = f"namespace {workload.namespace}"
    match anew.decision:
        case Skip(reason, sentence) if reason is _CREATED:
            first = f"create a {names.KIND} in {where} ({one_line(sentence, _LONGEST)})"
        case Skip(reason, sentence) if reason in _MENDED:
            first = f"mend the config ({one_line(sentence, _LONGEST)})"
        case Skip(reason, sentence):
            word = "be refused" if anew.denied else "not get the sidecar"
            told = one_line(sentence, _LONGEST)
            return Remedy(f"new pods of {workload} would {word} ({reason}): {told}", helps=False)
        case Ignore():
            told = f"new pods of {workload} would not get the sidecar: nothing asks for it"
            return Remedy(told, helps=False)
        case Inject(plan):
            missing = [
                name
                for name in needed_secrets(pod, plan)
                if secrets.get(name) is SecretState.ABSENT
            ]
            if not missing:
                return Remedy(workload.remedy)
            first = f"create Secret {' and '.join(missing)} in {where}"
    return Remedy(f"first {first}; then: {workload.remedy}")
