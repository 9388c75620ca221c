"""Which replica writes: the one that holds the Lease.

Every replica answers admissions; statuses and the webhook configuration are written by one. The
rules are those of client-go's leader election: a holder renews its Lease, and stops writing when it
could not for a while; the others wait until they have seen no renewal for longer than that. Clocks
of different machines are never compared.

https://pkg.go.dev/k8s.io/client-go/tools/leaderelection
"""

import asyncio
import logging
import os
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from shield_operator.cluster import ClusterError, Conflict, Lease, NotFound
from shield_operator.cluster.lease import LeaseRecord
from shield_operator.metrics import Metrics

logger = logging.getLogger(__name__)

DURATION: Final = 10.0
"""Seconds without a renewal after which somebody else may take over."""
PATIENCE: Final = 7.0
"""Seconds without a renewal after which the holder stops writing; well before the others start."""
RETRY: Final = 2.0
"""Seconds between two looks at the Lease, by the holder and by those who wait."""
_RELEASE: Final = 2.0
"""Seconds that giving the Lease back may take."""


def identity(host: str | None = None) -> str:
    """A name for this process that no other has: its pod's, and something at random."""
    return f"{host or os.uname().nodename}_{os.urandom(4).hex()}"


class Leader:
    """Stands for election, and does the leader's work while it leads.

    Args:
        lease: what the leader holds.
        metrics: tells who leads.
        now: the time that goes into the Lease, for people to read.
        clock: seconds from anywhere, which decide.
    """

    def __init__(
        self,
        lease: Lease,
        metrics: Metrics,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lease = lease
        self._metrics = metrics
        self._now = now
        self._clock = clock
        self._leads_until = 0.0
        self._term = 0
        """How often it has come to lead; also after a lapse that nobody else has used."""
        self._seen: tuple[LeaseRecord, float] | None = None
        """The record that was seen last, and when it was seen first."""
        self._held: LeaseRecord | None = None
        """Our own record, where it was seen: it is renewed without being read again."""
        self._resigned = asyncio.Event()
        self._last_failure: str | None = None

    def leads(self) -> bool:
        """Whether this replica may write at this moment: to be asked before every write.

        By the clock, not by what the last renewal said: a process that was frozen meanwhile finds
        out here, before it does anything else.
        """
        return self._holds() and not self._resigned.is_set()

    def _holds(self) -> bool:
        """Whether the Lease is ours; also once resigned, until it is given back."""
        return self._clock() < self._leads_until

    def resign(self) -> None:
        """Write no more, let another replica lead, and do not stand again."""
        self._resigned.set()

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Stand for election until cancelled or resigned; run `work` for as long as it leads.

        `work` is cancelled when the Lease is lost, and run anew when it is won again. What it
        raises ends this too.
        """
        working: asyncio.Task[None] | None = None
        term = 0
        try:
            while not self._resigned.is_set():
                await self._look()
                if self._resigned.is_set():
                    break
                if working is not None and not (self.leads() and term == self._term):
                    logger.warning("leading no more")
                    await _end(working)
                    working = None
                if working is None and self.leads():
                    logger.info("leading, as %s: this replica writes", self._lease.identity)
                    term = self._term
                    working = asyncio.ensure_future(_run(work))
                self._metrics.leading.set(self.leads())
                await self._pause(working)
        finally:
            try:
                if working is not None:
                    await _end(working)
            finally:  # whatever the work has raised
                self._metrics.leading.set(0)
                await self._release()

    async def _pause(self, working: asyncio.Task[None] | None) -> None:
        """Wait for the next look: soon, at once where something happens, never past our time."""
        seconds = RETRY * random.uniform(0.8, 1.0)  # noqa: S311  # jitter
        if self.leads():
            seconds = min(seconds, max(0.0, self._leads_until - self._clock()))
        resigned = asyncio.ensure_future(self._resigned.wait())
        waited_for: set[asyncio.Future[Any]] = {resigned} | ({working} if working else set())
        try:
            done, _ = await asyncio.wait(
                waited_for, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            resigned.cancel()
        if working in done:
            working.result()

    async def _look(self) -> None:
        """Renew the Lease, or take it where it is free; the failure to do so is logged once."""
        try:
            if self._holds():
                async with asyncio.timeout(self._leads_until - self._clock()):
                    await self._hold()
            else:
                await self._hold()
        except Conflict:
            pass  # somebody else was first; the next look shows who
        except TimeoutError:
            self._log_failure("the Lease could not be renewed in time")
        except ClusterError as error:
            self._log_failure(str(error))
        else:
            self._last_failure = None

    async def _hold(self) -> None:
        """One try: of one request, where the Lease is as we left it.

        Raises:
            ClusterError: where it did not come to an answer. What was held is held for its time.
        """
        begin = self._clock()
        if self._held is not None and self._holds():
            with suppress(Conflict, NotFound):  # it is not as we left it: see below
                await self._lease.renew(self._held, DURATION, self._now())
                self._leads_until = begin + PATIENCE
                return
        self._held = None
        record = await self._lease.read()
        if record is None:
            await self._lease.create(DURATION, self._now())
        elif record.holder == self._lease.identity:
            await self._lease.renew(record, DURATION, self._now())
            self._held = record
        elif self._is_free(record, begin):
            await self._lease.take(DURATION, self._now())
        else:
            self._leads_until = 0.0
            return
        if not self._holds():
            self._term += 1
        self._leads_until = begin + PATIENCE

    def _is_free(self, record: LeaseRecord, now: float) -> bool:
        """Whether nobody holds it, or who did has not renewed it for as long as we have watched."""
        if not record.holder:
            return True
        if self._seen is None or self._seen[0] != record:
            self._seen = record, now
        return now - self._seen[1] > record.duration

    async def _release(self) -> None:
        """Give the Lease back, so that the next leader need not wait for its end."""
        if not self._holds():
            return
        self._leads_until = 0.0
        with suppress(ClusterError, TimeoutError):
            async with asyncio.timeout(_RELEASE):
                record = await self._lease.read()  # as it is since the last renewal
                if record is not None and record.holder == self._lease.identity:
                    await self._lease.release()
                    logger.info("leading no more: gave the Lease back")

    def _log_failure(self, sentence: str) -> None:
        if sentence != self._last_failure:
            logger.warning("%s; trying again", sentence)
        self._last_failure = sentence


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()):
        raise error
