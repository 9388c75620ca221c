"""Whether the watch of the configs still hears: what a list shows, it must bring too, in the end.

Watches have gone deaf without a sign: the connection stands, and nothing comes. A list shows it.
The API server being away does not look like that, since then lists fail as well; nor does a Kopf
that is being started again, which lists everything by itself.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from shield_operator import raw
from shield_operator.model import Json

PATIENCE: Final = 360.0
"""Seconds for which lists may show something before it is brought.

Longer than a dead connection can go unnoticed (``kopf_runner.py``), whose replacement makes all
good without a new start. Time, and not a number of lists: those come in bursts, after an outage and
whenever Kopf lists too.
"""


@dataclass(frozen=True, slots=True)
class _Missed:
    """A config in one generation: the first of those that lists have shown and nobody brought."""

    generation: int
    described: str
    since: float


class Hearing:
    """Compares what the watch brings with what lists show, for each config by its uid.

    Deletions do not count: Kopf misses those that happen while it reconnects.

    Args:
        clock: seconds from anywhere.
        patience: seconds for which lists may show something before it is brought.
    """

    def __init__(self, clock: Callable[[], float], patience: float = PATIENCE) -> None:
        self._clock = clock
        self._patience = patience
        self._brought: dict[str, int] = {}
        self._missed: dict[str, _Missed] = {}
        self._listed_at = clock()
        self._agreed_at: float | None = None
        """When a list last showed nothing but what had been brought, or the rest of it was."""

    def begin(self) -> None:
        """The watch begins anew, and will bring everything."""
        self._brought.clear()
        self._missed.clear()

    def bring(self, resource: Json) -> None:
        """The watch brought this config."""
        uid, generation = _identity(resource)
        self._brought[uid] = generation
        missed = self._missed.get(uid)
        if missed is not None and missed.generation <= generation:
            del self._missed[uid]
            self._agree()

    def bring_deletion(self, resource: Json) -> None:
        """The watch brought the end of this config."""
        uid, _ = _identity(resource)
        self._brought.pop(uid, None)
        if self._missed.pop(uid, None) is not None:
            self._agree()

    def show(self, resources: Iterable[Json]) -> None:
        """A list showed these configs, and no others."""
        now = self._clock()
        if now - self._listed_at > self._patience / 2:
            self._missed.clear()  # lists failed, and the watch had no better chance
        self._listed_at = now
        shown, missed = set(), {}
        for resource in resources:
            uid, generation = _identity(resource)
            shown.add(uid)
            first = self._missed.get(uid)
            if first is not None:
                missed[uid] = first
            elif self._brought.get(uid, -1) < generation:
                missed[uid] = _Missed(generation, _described(resource), now)
        for uid in self._brought.keys() - shown:
            del self._brought[uid]
        self._missed = missed
        self._agree()

    def age(self) -> float:
        """Seconds since the watch had last brought all that a list showed; NaN before that."""
        return math.nan if self._agreed_at is None else self._clock() - self._agreed_at

    def deaf(self) -> tuple[str, ...]:
        """Why the watch must be taken for deaf; empty where it need not.

        From the first list that showed it to the last: where none comes, nothing is known.
        """
        worst = min(self._missed.values(), key=lambda missed: missed.since, default=None)
        if worst is None or self._listed_at - worst.since < self._patience:
            return ()
        sentence = (
            f"the watch of the configs is deaf: for {self._listed_at - worst.since:.0f} s "
            f"lists have shown {worst.described}, and it has not brought it"
        )
        return (sentence,)

    def _agree(self) -> None:
        if not self._missed:
            self._agreed_at = self._clock()


def _identity(resource: Json) -> tuple[str, int]:
    metadata = raw.mapping(resource, "metadata")
    return str(metadata.get("uid")), int(metadata.get("generation") or 0)


def _described(resource: Json) -> str:
    metadata = raw.mapping(resource, "metadata")
    where = f"{metadata.get('namespace')}/{metadata.get('name')}"
    return f"generation {metadata.get('generation')} of {where}"
