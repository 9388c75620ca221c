"""Telling what became of pods: every one in the debug log, and what is new to whom it concerns.

A controller makes its pods by the same template, so what became of one becomes of the next. Told
of, in the log and by an event on the controller, is the first that goes without the sidecar, and in
the log the first that has it again.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from shield_operator import kinds, pods
from shield_operator.allowance import Allowance
from shield_operator.decision import SkipReason
from shield_operator.events import Event, Subject, owner_of, skip_event
from shield_operator.review import Review
from shield_operator.text import one_line

logger = logging.getLogger(__name__)

MOST_KEPT: Final = 4096
"""Controllers without the sidecar that are remembered."""
BURST: Final = 20
A_SECOND: Final = 1.0
"""Lines in the log, but for debugging; anybody may make pods."""

_Outcome: TypeAlias = tuple[str, str]
"""The outcome and, where there is one, the reason."""


class Outcomes:
    """Told of every pod that was answered for; keeps in mind those that did not get the sidecar.

    Args:
        record: has an event written, later.
        clock: seconds from anywhere.
    """

    def __init__(
        self, record: Callable[[Event], None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._record = record
        self._clock = clock
        self._bare: dict[Subject, _Outcome] = {}
        self._allowance = Allowance(BURST, A_SECOND, clock())

    def note(self, review: Review, outcome: str, reason: str, sentence: str) -> None:
        """A pod was answered for.

        Args:
            review: the question.
            outcome: as in the metric.
            reason: why it was skipped or denied, else nothing.
            sentence: the same as a sentence.
        """
        if logger.isEnabledFor(logging.DEBUG):
            fields = _fields(review, (outcome, reason))
            logger.debug("%s: %s %s", review, outcome, reason, extra=fields)
        if review.is_dry_run or not (reason or self._bare):
            return
        owner = owner_of(review.pod, review.namespace)
        if owner is not None and outcome == "skipped":
            self._record(skip_event(owner, SkipReason(reason), sentence))
        if self._is_news(owner or _itself(review), (outcome, reason)):
            self._tell(review, owner, (outcome, reason), sentence)

    def _is_news(self, subject: Subject, outcome: _Outcome) -> bool:
        """Whether this is not what became of the last pod; remembers it for the next."""
        before = self._bare.pop(subject, None)
        if not outcome[1]:
            return before is not None
        self._bare[subject] = outcome
        if len(self._bare) > MOST_KEPT:
            del self._bare[next(iter(self._bare))]
        return before != outcome

    def _tell(
        self, review: Review, owner: Subject | None, outcome: _Outcome, sentence: str
    ) -> None:
        if not self._allowance.take(self._clock()):
            return
        who = f"pods of {owner}" if owner else str(review)
        what = f"{outcome[0]} ({outcome[1]}): {sentence}" if outcome[1] else outcome[0]
        fields = {**_fields(review, outcome), **({"owner": str(owner)} if owner else {})}
        logger.info("%s: %s", who, one_line(what, 1024), extra=fields)


def _itself(review: Review) -> Subject:
    """A pod that nobody controls, by as much of its name as it has."""
    name = pods.described(review.pod)
    return Subject(kinds.POD.version, kinds.POD.kind, review.namespace, name, "")


def _fields(review: Review, outcome: _Outcome) -> Mapping[str, str]:
    """What a line of the log holds besides its text, in JSON."""
    fields = {"namespace": review.namespace, "pod": pods.described(review.pod)}
    fields["outcome"] = outcome[0]
    return {**fields, "reason": outcome[1]} if outcome[1] else fields
