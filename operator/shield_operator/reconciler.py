"""Writing each config's status: when the config changes, its Secret comes or goes, or its pods."""

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from shield_operator import names
from shield_operator.cluster import Cluster, ClusterError, NotFound, Unreachable
from shield_operator.contention import RewriteLimit
from shield_operator.events import Event, readiness_event
from shield_operator.model import ConfigRef, SecretState
from shield_operator.selection import IndexedConfig
from shield_operator.state import State
from shield_operator.status import Ready, news, referenced_secrets, status_to_write, wanted_status
from shield_operator.text import one_line

logger = logging.getLogger(__name__)


class Reconciler:
    """Holds the configs whose status may be out of date, and brings them up to date.

    Args:
        cluster: the API server.
        state: the configs.
        leads: whether this replica may write, asked before each write.
        record: has an event written.
        now: the time that goes into conditions.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: State,
        leads: Callable[[], bool],
        *,
        record: Callable[[Event], None] = lambda _: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._leads = leads
        self._record = record
        self._now = now
        self._pending: set[ConfigRef] = set()
        self._secrets: dict[ConfigRef, Mapping[str, SecretState]] = {}
        """What was found at the last look; a config that is not here is looked at again."""
        self._limit = RewriteLimit()

    def enqueue(self, ref: ConfigRef) -> None:
        """Look at this config and its Secrets in the next run."""
        self._pending.add(ref)
        self._secrets.pop(ref, None)

    def enqueue_all(self) -> None:
        """Look at every config and its Secrets in the next run."""
        self._secrets.clear()
        refs = {entry.ref for entry in self._state.configs}
        self._limit.forget_all_but(refs)  # who does not lead is not told of those that go
        self._pending.update(refs)

    def enqueue_counted(self, refs: Iterable[ConfigRef]) -> None:
        """Look at these configs in the next run; their pods changed, their Secrets did not."""
        self._pending.update(refs)

    async def reconcile(self) -> None:
        """Bring every pending status up to date; one that fails stays pending.

        Raises:
            ClusterError: the last failure, after the others were done; at once where the API
                server is out of reach.
            Exception: what a bug has raised for one of them, after the others were done.
        """
        failure: Exception | None = None
        failed: set[ConfigRef] = set()
        while self._pending and self._leads():
            ref = self._pending.pop()
            try:
                await self._reconcile(ref)
            except Unreachable:
                self._pending |= {ref, *failed}
                raise
            except Exception as error:  # noqa: BLE001  # one poison config keeps nobody waiting
                if not isinstance(error, ClusterError):
                    error.add_note(f"while the status of {names.KIND} {ref} was looked at")
                if failure is None or isinstance(failure, ClusterError):
                    failure = error
                failed.add(ref)
        self._pending |= failed
        if failure is not None:
            raise failure

    async def _reconcile(self, ref: ConfigRef) -> None:
        entry = self._state.configs.get(ref)
        if entry is None:
            self._limit.forget(ref)
            self._secrets.pop(ref, None)
            return
        secrets = await self._look(entry)
        if self._state.configs.get(ref) is not entry:
            return  # changed meanwhile, and therefore pending again, or gone
        live = self._state.status(ref)
        wanted = wanted_status(entry, secrets, self._state.plans_of(ref), live)
        status = status_to_write(wanted, live, self._now())
        if status is None or not self._limit.allows(ref, wanted) or not self._leads():
            return
        try:
            written = await self._cluster.apply_status(ref, status)
        except NotFound:
            return  # deleted meanwhile; the watch will say so
        self._limit.note(ref, wanted)
        self._state.status_written(ref, written)
        for condition in news(wanted, live):
            logger.info(
                "%s %s: %s, %s", names.KIND, ref, condition.reason, one_line(condition.message)
            )
            if isinstance(condition, Ready) and (
                event := readiness_event(written, condition, live)
            ):
                self._record(event)

    async def _look(self, entry: IndexedConfig) -> Mapping[str, SecretState]:
        """The Secrets that the config refers to: as known, or looked up where they are not."""
        ref, wanted = entry.ref, referenced_secrets(entry, self._state.settings)
        known = self._secrets.get(ref)
        if known is not None and known.keys() == set(wanted):
            return known
        found = {}
        for name in wanted:
            exists = await self._cluster.secret_exists(ref.namespace, name)
            found[name] = SecretState.PRESENT if exists else SecretState.ABSENT
        if ref not in self._pending:  # else something happened meanwhile: look again
            self._secrets[ref] = _shared(tuple(found.items()))
        return found


@lru_cache(maxsize=1024)
def _shared(found: tuple[tuple[str, SecretState], ...]) -> Mapping[str, SecretState]:
    """What was found, kept once: most configs of a cluster name Secrets alike."""
    return dict(found)
