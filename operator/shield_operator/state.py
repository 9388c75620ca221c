"""What one replica knows: the one mutable object, written by the loops and read by everyone."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from shield_operator import raw
from shield_operator.coding import decode, encode
from shield_operator.drift import Plans
from shield_operator.hearing import Hearing
from shield_operator.model import (
    ConfigRef,
    InvalidConfig,
    Json,
    SecretState,
    ShieldConfig,
    parse,
)
from shield_operator.plan import OLDEST_SUPPORTED, ClusterVersion
from shield_operator.selection import ConfigIndex, IndexedConfig
from shield_operator.settings import Settings
from shield_operator.status import (
    ReadyReason,
    absent_secrets,
    ready_reason,
    referenced_secrets,
)


class State:
    """The configs with their statuses, and how far this replica has come.

    Everything happens in one event loop, so a method without ``await`` is atomic.

    Args:
        settings: the operator's.
        watch: compares what the watch brings with the lists.
    """

    def __init__(self, settings: Settings, watch: Hearing | None = None) -> None:
        self.settings = settings
        self.configs = ConfigIndex.of(settings, OLDEST_SUPPORTED)
        self.listed = False
        """Whether the configs were listed once: before that, no answer can be right."""
        self.serving = False
        """Whether the listener is up, with a certificate."""
        self.connected = False
        """Whether Kopf has handed over its way to the handler."""
        self.published = False
        """Whether the webhook configuration has carried our authority. Once true it stays true: a
        bad edit of it must not take all replicas out at once."""
        self.draining = False
        """Whether SIGTERM came: finish what is under way, and take no new connections."""
        self.plans: Mapping[ConfigRef, Plans] | None = None
        """Each config's pods, as of the leader's last scan; None where there was none."""
        self.watch = watch or Hearing(time.monotonic)
        self._seen: dict[ConfigRef, _Seen] = {}
        self._numbers: Counter[ReadyReason | None] = Counter()
        self._changed_during_list: set[ConfigRef] | None = None

    def not_ready(self) -> tuple[str, ...]:
        """What is still missing before admissions can be sent here; empty where nothing is."""
        missing = {
            "the configs have not been listed yet": not self.listed,
            "the listener is not up yet": not self.serving,
            "Kopf has not connected the admission handler yet": not self.connected,
            "the webhook configuration has not carried the certificate yet": not self.published,
            "the operator is stopping": self.draining,
        }
        return tuple(sentence for sentence, is_missing in missing.items() if is_missing)

    def not_alive(self) -> tuple[str, ...]:
        """What only a new start can put right; empty where nothing is. Never the API server."""
        return self.watch.deaf()

    def version_read(self, version: ClusterVersion) -> bool:
        """The cluster's version is known; returns whether that is news."""
        before = self.configs
        self.configs = before.with_version(version)
        return self.configs is not before

    # --- Configs ----------------------------------------------------------------------------------

    def config_changed(self, resource: Json) -> bool:
        """The watch says that a config was created or changed, or its status was.

        Returns:
            Whether that is news: the echo of our own write is none, nor what a list has brought.
        """
        self.watch.bring(resource)  # first: it has been heard, whatever becomes of it
        ref = config_ref(resource)
        if self._is_older(ref, resource):
            return False
        before, seen = self.configs, self._seen.get(ref)
        self.configs = before.with_resource(resource)
        self._note(ref, resource)
        self._touched(ref)
        is_as_seen = seen is not None and seen.version == self._seen[ref].version
        return self.configs is not before or not is_as_seen

    def config_deleted(self, resource: Json) -> None:
        """A config is gone; if there is another one of its name by now, that one stays.

        Kopf keeps the order of events for each object, not for two objects of one name.
        """
        ref = config_ref(resource)
        self.watch.bring_deletion(resource)
        if (seen := self._seen.get(ref)) is None or seen.uid != _uid(resource):
            return
        self.configs = self.configs.without(ref)
        self._forget(ref)
        self._touched(ref)

    def status_written(self, ref: ConfigRef, resource: Json) -> None:
        """We wrote a config's status; the watch will bring the same a little later."""
        if self.configs.get(ref) is not None:
            self._note(ref, resource)
            self._touched(ref)

    async def relist(self, pages: AsyncIterator[list[Json]]) -> set[ConfigRef]:
        """Make the index what a list says, and return the configs that it did not hold so.

        Kopf's watch misses deletions while it reconnects. What the watch brings or we write while
        the list is under way is newer than the list, and stays. Each page is read as it comes and
        then let go: thousands of configs as the API server tells them would leave a heap behind
        that is four times what is kept of them.
        """
        self._changed_during_list = set()
        listed: dict[ConfigRef, _Seen] = {}
        parsed: dict[ConfigRef, ShieldConfig | InvalidConfig] = {}
        try:
            async for page in pages:
                for resource in page:
                    ref = config_ref(resource)
                    listed[ref] = self._look_at(ref, resource)
                    if not self._is_as_listed(self.configs.get(ref), resource):
                        parsed[ref] = parse(resource)
            newer = self._changed_during_list
        finally:
            self._changed_during_list = None
        before = self.configs
        self.watch.show(seen.identity(ref) for ref, seen in listed.items())
        for ref in newer:
            listed.pop(ref, None)
            parsed.pop(ref, None)
        kept = (
            entry
            for entry in before
            if entry.ref in newer or (entry.ref in listed and entry.ref not in parsed)
        )
        self.configs = before.with_configs(parsed.values(), keep=kept)
        for ref, seen in listed.items():
            self._keep(ref, seen)
        for ref in self._seen.keys() - listed.keys() - newer:
            self._forget(ref)
        self.listed = True
        refs = {entry.ref for entry in before} | {entry.ref for entry in self.configs}
        return {ref for ref in refs if before.get(ref) != self.configs.get(ref)}

    def status(self, ref: ConfigRef) -> Json:
        """A config's ``status`` as last seen; None where there is no such config."""
        seen = self._seen.get(ref)
        return None if seen is None else decode(seen.status)

    def plans_of(self, ref: ConfigRef) -> Plans | None:
        """The plans that a config's pods run with; None before the first scan."""
        return None if self.plans is None else self.plans.get(ref, {})

    def number_of(self, reason: ReadyReason | None) -> int:
        """How many configs are ready, or not, for this reason; None: of which none is known."""
        return self._numbers[reason]

    def secrets(self, namespace: str) -> Mapping[str, SecretState]:
        """What is known of the Secrets that the configs of a namespace name.

        A name that is not among them is looked for by nobody.
        """
        known = {}
        for entry in self.configs.namespaces.get(namespace, {}).values():
            seen = self._seen.get(entry.ref)
            absent = seen.absent_secrets if seen else None
            for name in referenced_secrets(entry, self.settings):
                if absent is not None:
                    known[name] = SecretState.ABSENT if name in absent else SecretState.PRESENT
                else:
                    known.setdefault(name, SecretState.UNKNOWN)
        return known

    def _look_at(self, ref: ConfigRef, resource: Json) -> "_Seen":
        """What there is to keep of a config; of the very version that we know, what we have."""
        seen = self._seen.get(ref)
        version = raw.mapping(resource, "metadata").get("resourceVersion")
        if version is not None and seen and (seen.version, seen.uid) == (version, _uid(resource)):
            return seen
        return _Seen.of(resource)

    def _is_as_listed(self, entry: IndexedConfig | None, resource: Json) -> bool:
        """Whether a listed config is the one that we know, in the generation that we know."""
        if entry is None:
            return False
        generation = raw.mapping(resource, "metadata").get("generation")
        seen = self._seen.get(entry.ref)
        same = seen is not None and seen.uid == _uid(resource)
        return same and generation is not None and generation == entry.config.generation

    def _is_older(self, ref: ConfigRef, resource: Json) -> bool:
        """Whether a list has brought this config in a later generation already."""
        known, seen = self.configs.get(ref), self._seen.get(ref)
        if known is None or seen is None or seen.uid != _uid(resource):
            return False
        generation = raw.mapping(resource, "metadata").get("generation")
        return int(generation or 0) < int(known.config.generation or 0)

    def _note(self, ref: ConfigRef, resource: Json) -> None:
        self._keep(ref, self._look_at(ref, resource))

    def _keep(self, ref: ConfigRef, seen: "_Seen") -> None:
        if seen is self._seen.get(ref):
            return
        entry = self.configs.get(ref)
        self._forget(ref)
        self._seen[ref if entry is None else entry.ref] = seen  # one ref is enough
        self._numbers[seen.ready_reason] += 1

    def _forget(self, ref: ConfigRef) -> None:
        if (seen := self._seen.pop(ref, None)) is not None:
            self._numbers[seen.ready_reason] -= 1

    def _touched(self, ref: ConfigRef) -> None:
        if self._changed_during_list is not None:
            self._changed_during_list.add(ref)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A config as last seen, but for its spec; there are thousands, so it is small."""

    uid: str
    version: str
    """Its ``resourceVersion``."""
    generation: int | None
    status: bytes
    """As JSON, which takes half of what its objects do."""
    absent_secrets: frozenset[str] | None
    ready_reason: ReadyReason | None

    @classmethod
    def of(cls, resource: Json) -> "_Seen":
        metadata = raw.mapping(resource, "metadata")
        return cls(
            _uid(resource),
            str(metadata.get("resourceVersion")),
            metadata.get("generation"),
            # A copy: what the encoder returns has grown in a larger buffer, of which the rest
            # would stay.
            bytes(memoryview(encode(raw.mapping(resource, "status")))),
            absent_secrets(resource),
            ready_reason(resource),
        )

    def identity(self, ref: ConfigRef) -> Json:
        """Its metadata."""
        where = {"namespace": ref.namespace, "name": ref.name}
        return {"metadata": {**where, "uid": self.uid or None, "generation": self.generation}}


def _uid(resource: Json) -> str:
    return str(raw.mapping(resource, "metadata").get("uid") or "")


def config_ref(resource: Json) -> ConfigRef:
    """Which config a resource is."""
    metadata = raw.mapping(resource, "metadata")
    return ConfigRef(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
