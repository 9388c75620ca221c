"""Looking a Secret up while a pod is being admitted, where no status says whether it is there."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from shield_operator.allowance import Allowance
from shield_operator.cluster import ClusterError
from shield_operator.model import SecretState
from shield_operator.text import one_line

logger = logging.getLogger(__name__)

KEPT: Final = 30.0
"""Seconds for which an answer is believed."""
KEPT_UNKNOWN: Final = 5.0
"""Seconds after a look-up that failed, before the next one."""
PATIENCE: Final = 0.5
"""Seconds that an admission waits for an answer; its outcome does not depend on it."""
MOST_KEPT: Final = 2048
MOST_UNDER_WAY: Final = 64
AT_ONCE: Final = 8
"""Requests to the API server; the other questions wait for their turn."""
BURST: Final = 50
A_SECOND: Final = 20.0
"""Questions: names come with pods, and anybody may make them up. Beyond it they are unknown."""

_Secret: TypeAlias = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class _Answer:
    state: SecretState
    until: float


@dataclass(frozen=True, slots=True)
class _Question:
    task: asyncio.Task[None]
    until: float
    """When nobody waits for it any more; it goes on, for those who come later."""


class SecretLookup:
    """Asks the API server whether Secrets exist, and remembers what it said for a while.

    Args:
        exists: asks it about a namespace and a name.
        clock: seconds from anywhere.
    """

    def __init__(
        self,
        exists: Callable[[str, str], Awaitable[bool]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._exists = exists
        self._clock = clock
        self._answers: dict[_Secret, _Answer] = {}
        self._under_way: dict[_Secret, _Question] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._allowance = Allowance(BURST, A_SECOND, clock())

    async def states(self, namespace: str, secrets: Collection[str]) -> Mapping[str, SecretState]:
        """The state of each of these Secrets; unknown where there is no answer in time."""
        questions = [
            question for name in secrets if (question := self._question((namespace, name)))
        ]
        if questions:
            seconds = max(question.until for question in questions) - self._clock()
            await asyncio.wait({one.task for one in questions}, timeout=max(seconds, 0.0))
        return {name: self._known((namespace, name)) for name in secrets}

    def _known(self, secret: _Secret) -> SecretState:
        answer = self._answers.get(secret)
        return SecretState.UNKNOWN if answer is None else answer.state

    def _question(self, secret: _Secret) -> _Question | None:
        """The question under way about it, or a new one; None where there is no need or no room."""
        answer = self._answers.get(secret)
        if answer is not None and self._clock() < answer.until:
            return None
        self._answers.pop(secret, None)
        question = self._under_way.get(secret)
        if question is not None or len(self._under_way) >= MOST_UNDER_WAY:
            return question
        if self._allowance.take(self._clock()):
            task = asyncio.create_task(self._ask(secret))
            question = self._under_way[secret] = _Question(task, self._clock() + PATIENCE)
        return question

    async def _ask(self, secret: _Secret) -> None:
        state, kept = SecretState.UNKNOWN, KEPT_UNKNOWN
        try:
            async with self._turns:
                exists = await self._exists(*secret)
            state, kept = SecretState.PRESENT if exists else SecretState.ABSENT, KEPT
        except ClusterError as error:
            logger.debug("%s", one_line(str(error)))
        finally:
            del self._under_way[secret]
            self._keep(secret, _Answer(state, self._clock() + kept))

    def _keep(self, secret: _Secret, answer: _Answer) -> None:
        """Remember it, and forget the oldest where there are too many."""
        self._answers[secret] = answer
        if len(self._answers) > MOST_KEPT:
            del self._answers[next(iter(self._answers))]
