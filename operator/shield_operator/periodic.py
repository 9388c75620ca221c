"""A step that is repeated for as long as the operator runs."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from shield_operator.cluster import ClusterError
from shield_operator.metrics import Metrics

logger = logging.getLogger(__name__)

_FIRST_BACKOFF: Final = 1.0
_LONGEST_BACKOFF: Final = 5.0
"""Seconds. After an outage each loop is back within this time."""


class Periodic:
    """Runs `step` every `interval` seconds, and at once when woken.

    A step that the API server or the system lets down is tried again after 1 s, then 2 s, up to
    5 s; what went wrong is logged once, and not again until it changes. Any other exception is a
    bug: it is logged with its traceback, and tried again in the same way. It must not end the
    operator, which answers admissions without this step; the next process would meet the same.

    Args:
        name: of the step, in the metric and the log.
        step: what is repeated.
        interval: seconds between two runs.
        metrics: counts the failures.
        recovered: called when the step succeeds again after it has failed.
        needed: whether nothing works without this step for now, so that a bug in it does end the
            operator.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[None]],
        interval: float,
        metrics: Metrics,
        *,
        recovered: Callable[[], None] | None = None,
        needed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._name = name
        self._step = step
        self._interval = interval
        self._failures = metrics.loop_failures.labels(name)
        self._recovered = recovered
        self._needed = needed
        self._woken = asyncio.Event()
        self._waker: asyncio.TimerHandle | None = None
        self._last_failure: str | None = None

    def wake(self) -> None:
        """Run the step now, or once more after the run that is under way."""
        self._woken.set()

    def wake_after(self, quiet: float) -> None:
        """Run the step once nobody has asked for that for so many seconds: once for all of them."""
        if self._waker is not None:
            self._waker.cancel()
        self._waker = asyncio.get_running_loop().call_later(quiet, self.wake)

    async def run(self) -> None:
        """Repeat until cancelled.

        Raises:
            Exception: what a bug has raised in a step that is needed.
        """
        backoff = _FIRST_BACKOFF
        while True:
            self._woken.clear()
            try:
                await self._step()
            except Exception as error:
                self._failures.inc()
                expected = isinstance(error, (ClusterError, OSError))
                if not expected and self._needed():
                    raise
                self._log_failure(error, expected=expected)
                await asyncio.sleep(backoff * random.uniform(0.8, 1.0))  # noqa: S311  # jitter
                backoff = min(2 * backoff, _LONGEST_BACKOFF)
                continue
            if self._last_failure is not None:
                logger.info("recovered from: %s", self._last_failure)
                if self._recovered is not None:
                    self._recovered()
            self._last_failure = None
            backoff = _FIRST_BACKOFF
            try:
                async with asyncio.timeout(self._interval):
                    await self._woken.wait()
            except TimeoutError:
                pass

    def _log_failure(self, error: Exception, *, expected: bool) -> None:
        sentence = str(error) if expected else f"a bug in the loop {self._name!r}: {error!r}"
        if sentence != self._last_failure:
            if expected:
                logger.warning("%s; trying again", sentence)
            else:
                logger.error("%s; trying again", sentence, exc_info=error)
        self._last_failure = sentence
