"""Writing Kubernetes Events: after what they tell of, few, and in nobody's way."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

from shield_operator.allowance import Allowance
from shield_operator.cluster import ClusterError
from shield_operator.events import Event, Subject
from shield_operator.metrics import Metrics
from shield_operator.model import Json
from shield_operator.text import one_line

logger = logging.getLogger(__name__)

REPEATED_AFTER: Final = 600.0
"""Seconds before an object is told again what it was told already."""
BURST: Final = 20
A_SECOND: Final = 1.0
"""Events of one recorder. Beyond it they are dropped: pods come by thousands, and are free."""
MOST_WAITING: Final = 64
MOST_KEPT: Final = 4096
"""Objects and reasons that are remembered."""
PAUSE: Final = 0.1
"""Seconds before each write: the answer that it tells of goes first."""

_Told: TypeAlias = tuple[Subject, str]


class Recorder:
    """Writes events one after the other; those that there is no room for are dropped, and counted.

    One that cannot be written is not tried again: the next of its kind is.

    Args:
        about: what its events are about, in the metric.
        create: writes one into a namespace.
        metrics: counts them.
        instance: this replica's name.
        repeated_after: seconds before an object is told the same reason again.
        clock: seconds from anywhere.
        now: the time that goes into events.
    """

    def __init__(
        self,
        about: str,
        create: Callable[[str, Json], Awaitable[None]],
        metrics: Metrics,
        instance: str,
        *,
        repeated_after: float = REPEATED_AFTER,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._create = create
        self._instance = instance
        self._repeated_after = repeated_after
        self._clock = clock
        self._now = now
        self._written = metrics.events.labels(about, "written")
        self._failed = metrics.events.labels(about, "failed")
        self._dropped = metrics.events.labels(about, "dropped")
        self._allowance = Allowance(BURST, A_SECOND, clock())
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(MOST_WAITING)
        self._told: dict[_Told, float] = {}
        self._last_failure: str | None = None

    def record(self, event: Event) -> None:
        """Have the event written soon, unless its object has been told so lately."""
        told, now = (event.about, event.reason), self._clock()
        if told in self._told and now - self._told[told] < self._repeated_after:
            return
        if self._waiting.full() or not self._allowance.take(now):
            self._dropped.inc()
            return
        self._keep(told, now)
        self._waiting.put_nowait(event)

    async def run(self) -> None:
        """Write what is recorded, until cancelled."""
        while True:
            event = await self._waiting.get()
            await asyncio.sleep(PAUSE)
            try:
                await self._create(
                    event.about.namespace, event.manifest(self._instance, self._now())
                )
            except Exception as error:  # noqa: BLE001  # an event is not worth the operator's end
                self._failed.inc()
                self._told.pop((event.about, event.reason), None)
                self._log_failure(error)
            else:
                self._written.inc()
                self._last_failure = None

    def _keep(self, told: _Told, now: float) -> None:
        """Remember it, and forget the oldest where there are too many."""
        self._told.pop(told, None)
        self._told[told] = now
        if len(self._told) > MOST_KEPT:
            del self._told[next(iter(self._told))]

    def _log_failure(self, error: Exception) -> None:
        """Once, until another fails in another way, or one is written."""
        expected = isinstance(error, ClusterError)
        sentence = str(error) if expected else f"a bug while an event was written: {error!r}"
        if sentence != self._last_failure:
            level = logging.WARNING if expected else logging.ERROR
            logger.log(level, "%s", one_line(sentence), exc_info=None if expected else error)
        self._last_failure = sentence
