"""The handler behind the server: what becomes of the pod of a review.

Kopf stands between the two, and hands over neither the review nor a patch of ours: they meet in a
context variable.
"""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

import kopf

from shield_operator import patch
from shield_operator.decision import Decision, Ignore, Inject, Skip, decide, needed_secrets
from shield_operator.lookup import SecretLookup
from shield_operator.model import Json
from shield_operator.review import Review
from shield_operator.settings import UninjectedPodPolicy
from shield_operator.state import State


@dataclass(slots=True)
class UnderWay:
    """A review that is being answered: what Kopf does not pass on, there and back."""

    review: Review
    outcome: str = ""
    reason: str = ""
    sentence: str = ""
    operations: list[Json] = field(default_factory=list)
    """The patch; Kopf would make it by comparing the pod before and after."""


CURRENT: Final[ContextVar[UnderWay]] = ContextVar("review")
"""Set by the server around its call of Kopf, which calls the handler."""


async def inject(state: State, lookup: SecretLookup, warnings: list[str]) -> None:
    """Decide about the pod of the review under way, and leave the patch with it.

    The API server is asked about Secrets only that no config of the pod's namespace names, whose
    status tells of them: by an annotation, or by a config from elsewhere.

    Raises:
        kopf.AdmissionError: 403, where the pod is skipped and the settings say to deny it then.
    """
    under_way = CURRENT.get()
    review = under_way.review
    secrets = state.secrets(review.namespace)

    def decided() -> Decision:
        return decide(review.pod, review.namespace, None, secrets, state.configs, state.settings)

    decision = decided()
    if isinstance(decision, Inject):
        needed = needed_secrets(review.pod, decision.plan)
        if elsewhere := [name for name in needed if name not in secrets]:
            found = await lookup.states(review.namespace, elsewhere)
            secrets = {**state.secrets(review.namespace), **found}
            decision = decided()
    match decision:
        case Ignore():
            under_way.outcome = "ignored"
        case Inject():
            under_way.outcome = "injected"
        case Skip(reason, sentence):
            under_way.outcome, under_way.reason = "skipped", reason.value
            under_way.sentence = sentence
            if state.settings.uninjected_pod_policy is UninjectedPodPolicy.DENY:
                under_way.outcome = "denied"
                raise kopf.AdmissionError(f"not injected ({reason}): {sentence}", code=403)
    warnings.extend(decision.warnings)
    under_way.operations = patch.operations(review.pod, decision)
