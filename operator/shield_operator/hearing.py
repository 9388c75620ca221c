"""Whether the watch of the configs still hears: what a list shows, it must bring too, in the end.

Watches have gone deaf without a sign: the connection stands, and nothing comes. A list shows it.
The API server being away does not look like that, since then lists fail as well; nor does a Kopf
that is being started again, which lists everything by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from shield_operator import raw
from shield_operator.model import Json

PATIENCE: Final = 6
"""Lists that may show something before it is brought.

At one a minute, longer than a dead connection can go unnoticed (``kopf_runner.py``), whose
replacement makes all good without a new start.
"""


@dataclass(frozen=True, slots=True)
class _Missed:
    """A config in one generation: the first of those that lists have shown and nobody brought."""

    generation: int
    described: str
    lists: int


class Hearing:
    """Compares what the watch brings with what lists show, for each config by its uid.

    Deletions do not count: Kopf misses those that happen while it reconnects.
    """

    def __init__(self) -> None:
        self._brought: dict[str, int] = {}
        self._missed: dict[str, _Missed] = {}

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

    def bring_deletion(self, resource: Json) -> None:
        """The watch brought the end of this config."""
        uid, _ = _identity(resource)
        self._brought.pop(uid, None)
        self._missed.pop(uid, None)

    def show(self, resources: Iterable[Json]) -> None:
        """A list showed these configs, and no others."""
        brought, missed = {}, {}
        for resource in resources:
            uid, generation = _identity(resource)
            if uid in self._brought:
                brought[uid] = self._brought[uid]
            first = self._missed.get(uid)
            if first is not None:
                missed[uid] = replace(first, lists=first.lists + 1)
            elif brought.get(uid, -1) < generation:
                missed[uid] = _Missed(generation, _described(resource), 1)
        self._brought, self._missed = brought, missed

    def deaf(self) -> tuple[str, ...]:
        """Why the watch must be taken for deaf; empty where it need not."""
        worst = max(self._missed.values(), key=lambda missed: missed.lists, default=None)
        if worst is None or worst.lists < PATIENCE:
            return ()
        sentence = (
            f"the watch of the configs is deaf: {worst.lists} lists have shown {worst.described}, "
            "and it has not brought it"
        )
        return (sentence,)


def _identity(resource: Json) -> tuple[str, int]:
    metadata = raw.mapping(resource, "metadata")
    return str(metadata.get("uid")), int(metadata.get("generation") or 0)


def _described(resource: Json) -> str:
    metadata = raw.mapping(resource, "metadata")
    where = f"{metadata.get('namespace')}/{metadata.get('name')}"
    return f"generation {metadata.get('generation')} of {where}"
