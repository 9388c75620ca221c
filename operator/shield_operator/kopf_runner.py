"""Running Kopf beside our own loops, and again when it gives up."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

import kopf

from shield_operator import names
from shield_operator.admission import AdmissionServer
from shield_operator.text import one_line

logger = logging.getLogger(__name__)

FIRST_BACKOFF: Final = 1.0
LONGEST_BACKOFF: Final = 30.0
"""Seconds before Kopf is started again after it has given up."""

END: Final = 5.0
"""Seconds that Kopf's tasks may take to end."""

_WATCH: Final = 240
"""Seconds after which a watch is begun anew, so that a silently dead one does not last."""
_CHUNK: Final = 50
"""Configs a page of Kopf's list. With `_IDLE` it keeps their number from mattering: each config
that is being looked at is a task with a queue, and a heap, once grown, is not given back."""
_IDLE: Final = 0.1
"""Seconds that such a task waits for more of its config; the next event begins another one."""
_SILENCE: Final = 70
"""Seconds without anything from a watch after which it counts as dead: the API server sends a
bookmark every minute. https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks"""


class KopfRunner:
    """Runs Kopf until told to stop.

    Kopf ends itself where its account loses a permission or its token, or where the API server
    answers in a way that it does not expect. Admissions are answered meanwhile (the listener is not
    Kopf's), and the configs are listed once a minute; so Kopf is started again, and nothing else.

    Args:
        registry: makes Kopf's registrations anew.
        server: takes over Kopf's way to the handler.
        started: called after each start; Kopf has then taken the process's signals for itself.
    """

    def __init__(
        self,
        registry: Callable[[], kopf.OperatorRegistry],
        server: AdmissionServer,
        started: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._server = server
        self._started = started

    async def run(self, stop: asyncio.Event) -> None:
        """Run it, again and again, until `stop` is set."""
        backoff = FIRST_BACKOFF
        now = asyncio.get_running_loop().time
        while not stop.is_set():
            begin = now()
            try:
                await self._run_once(stop)
                why = "it ended"
            except Exception as error:  # noqa: BLE001  # whatever it is, the next try may do
                why = one_line(str(error) or repr(error))
            if stop.is_set():
                return
            if now() - begin > LONGEST_BACKOFF:
                backoff = FIRST_BACKOFF
            logger.error("Kopf has given up: %s; starting it again in %.0f s", why, backoff)
            with suppress(TimeoutError):
                async with asyncio.timeout(backoff):
                    await stop.wait()
            backoff = min(2 * backoff, LONGEST_BACKOFF)

    async def _run_once(self, stop: asyncio.Event) -> None:
        """Run Kopf until one of its tasks ends, or `stop` is set.

        Raises:
            Exception: what made it give up.
        """
        tasks = await kopf.spawn_tasks(
            registry=self._registry(),
            settings=self._settings(),
            # Else Kopf asks for the user's name, and a container's user is often a bare number.
            identity=_IDENTITY,
            memo=_NOTHING,
            standalone=True,
            clusterwide=True,
        )
        self._started()
        stopped = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait([*tasks, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Not `kopf.run_tasks`: that ends all other tasks of the process too, ours included.
            for task in (*tasks, stopped):
                task.cancel()
            _, left = await asyncio.wait([*tasks, stopped], timeout=END)
            for task in left:
                logger.error("Kopf's task %r does not end; going on without it", task.get_name())
        for task in done:
            task.result()

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.admission.server = self._server
        settings.admission.managed = None  # docs/adr/0001-own-webhook-configuration.md
        settings.posting.enabled = False
        settings.watching.server_timeout = _WATCH
        settings.watching.client_timeout = _WATCH + 10
        settings.watching.inactivity_timeout = _SILENCE
        settings.watching.chunk_size = _CHUNK
        settings.queueing.idle_timeout = _IDLE
        settings.networking.request_timeout = 30
        settings.networking.connect_timeout = 10
        settings.networking.error_backoffs = _Backoffs()
        settings.process.ultimate_exiting_timeout = None  # it would kill us after a restart of Kopf
        return settings


_NOTHING: Final = cast("Any", ())
"""What handlers may note of an object, which Kopf copies for each: a tuple is its own copy."""
_IDENTITY: Final = cast("Any", names.OPERATOR)  # Kopf does not export its type
"""What Kopf's replicas would know each other by, if they were to; `leader.py` does that."""


class _Backoffs:
    """Seconds between Kopf's tries of a request, without end: watches outlast the API server."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1, 2), itertools.repeat(5))
