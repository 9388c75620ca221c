"""Writing each config's status: when the config changes, and when its Secret comes or goes."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from shield_operator import names
from shield_operator.cluster import Cluster, ClusterError, NotFound, Unreachable
from shield_operator.contention import RewriteLimit
from shield_operator.model import ConfigRef, SecretState
from shield_operator.state import State
from shield_operator.status import ready, referenced_secrets, status_to_write
from shield_operator.text import one_line

logger = logging.getLogger(__name__)


class Reconciler:
    """Holds the configs whose status may be out of date, and brings them up to date."""

    def __init__(
        self,
        cluster: Cluster,
        state: State,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._now = now
        self._pending: set[ConfigRef] = set()
        self._limit = RewriteLimit()

    def enqueue(self, ref: ConfigRef) -> None:
        """Look at this config in the next run."""
        self._pending.add(ref)

    def enqueue_all(self) -> None:
        """Look at every config in the next run."""
        self._pending.update(entry.ref for entry in self._state.configs)

    async def reconcile(self) -> None:
        """Bring every pending status up to date; one that fails stays pending.

        Raises:
            ClusterError: the last failure, after the others were done; at once where the API
                server is out of reach.
        """
        failure: ClusterError | None = None
        failed: set[ConfigRef] = set()
        while self._pending:
            ref = self._pending.pop()
            try:
                await self._reconcile(ref)
            except Unreachable:
                self._pending |= {ref, *failed}
                raise
            except ClusterError as error:
                failure = error
                failed.add(ref)
        self._pending |= failed
        if failure is not None:
            raise failure

    async def _reconcile(self, ref: ConfigRef) -> None:
        entry = self._state.configs.get(ref)
        if entry is None:
            self._limit.forget(ref)
            return
        secrets = {}
        for name in referenced_secrets(entry, self._state.settings):
            exists = await self._cluster.secret_exists(ref.namespace, name)
            secrets[name] = SecretState.PRESENT if exists else SecretState.ABSENT
        condition = ready(entry, secrets)
        status = status_to_write(entry, condition, self._state.statuses.get(ref), self._now())
        content = (condition, entry.config.generation)
        if status is None or not self._limit.allows(ref, content):
            return
        try:
            written = await self._cluster.apply_status(ref, status)
        except NotFound:
            return  # deleted meanwhile; the watch will say so
        self._limit.note(ref, content)
        self._state.status_written(ref, written)
        logger.info("%s %s: %s, %s", names.KIND, ref, condition.reason, one_line(condition.message))
