"""Patience with another writer of what we write."""

import time
from collections.abc import Callable, Container, Hashable
from dataclasses import dataclass
from typing import Final

from shield_operator.model import Json

BURST: Final = 6
"""How often the same thing is written at once, after somebody else has changed it."""
INTERVAL: Final = 60.0
"""Seconds between two more writes of it."""


@dataclass(slots=True)
class _Budget:
    content: Json
    writes: float
    since: float

    def left(self, now: float) -> float:
        """Writes that are allowed by now."""
        return min(BURST, self.writes + (now - self.since) / INTERVAL)


class RewriteLimit:
    """Limits how often the same content is written to the same place again.

    A hand edit is undone at once. Two programs that undo each other would go on for ever, each
    write waking the other; of that, one write a minute is left, by which both can be seen.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._budgets: dict[Hashable, _Budget] = {}

    def allows(self, place: Hashable, content: Json) -> bool:
        """Whether this may be written now."""
        return self._budget(place, content).writes >= 1

    def note(self, place: Hashable, content: Json) -> None:
        """This was written; a write that failed is none."""
        self._budget(place, content).writes -= 1

    def forget(self, place: Hashable) -> None:
        """The place is gone."""
        self._budgets.pop(place, None)

    def forget_all_but(self, places: Container[Hashable]) -> None:
        """All other places are gone; and of these, nothing is known that time has made good."""
        now = self._now()
        self._budgets = {
            place: one
            for place, one in self._budgets.items()
            if place in places and one.left(now) < BURST
        }

    def _budget(self, place: Hashable, content: Json) -> _Budget:
        now = self._now()
        budget = self._budgets.get(place)
        if budget is None or budget.content != content:
            budget = self._budgets[place] = _Budget(content, BURST, now)
        budget.writes = budget.left(now)
        budget.since = now
        return budget
