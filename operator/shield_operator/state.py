"""What one replica knows: the one mutable object, written by the loops and read by everyone."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Final

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
    frugal,
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
        self._statuses: dict[ConfigRef, bytes] = {}
        """Each config's ``status`` as last seen; as JSON it takes half of what its objects do."""
        self._absent_secrets: dict[ConfigRef, frozenset[str] | None] = {}
        self._ready_reasons: dict[ConfigRef, ReadyReason | None] = {}
        self._numbers: Counter[ReadyReason | None] = Counter()
        self._uids: dict[ConfigRef, str] = {}
        self._versions: dict[ConfigRef, str] = {}
        """Each config's ``resourceVersion`` as last seen."""
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
        before, version = self.configs, self._versions.get(ref)
        self.configs = before.with_resource(resource)
        self._note(ref, resource)
        self._touched(ref)
        return self.configs is not before or self._versions[ref] != version

    def config_deleted(self, resource: Json) -> None:
        """A config is gone; if there is another one of its name by now, that one stays.

        Kopf keeps the order of events for each object, not for two objects of one name.
        """
        ref = config_ref(resource)
        self.watch.bring_deletion(resource)
        if self._uids.get(ref) != _uid(resource):
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
        listed: dict[ConfigRef, Json] = {}
        parsed: dict[ConfigRef, ShieldConfig | InvalidConfig] = {}
        try:
            async for page in pages:
                for resource in page:
                    ref = config_ref(resource)
                    listed[ref] = self._without_spec(ref, resource)
                    if not self._is_as_listed(self.configs.get(ref), resource):
                        parsed[ref] = parse(resource)
            newer = self._changed_during_list
        finally:
            self._changed_during_list = None
        before = self.configs
        self.watch.show(listed.values())
        for ref in newer:
            listed.pop(ref, None)
            parsed.pop(ref, None)
        kept = (
            entry
            for entry in before
            if entry.ref in newer or (entry.ref in listed and entry.ref not in parsed)
        )
        self.configs = before.with_configs(parsed.values(), keep=kept)
        for ref, resource in listed.items():
            self._note(ref, resource)
        for ref in self._statuses.keys() - listed.keys() - newer:
            self._forget(ref)
        self.listed = True
        refs = {entry.ref for entry in before} | {entry.ref for entry in self.configs}
        return {ref for ref in refs if before.get(ref) != self.configs.get(ref)}

    def status(self, ref: ConfigRef) -> Json:
        """A config's ``status`` as last seen; None where there is no such config."""
        known = self._statuses.get(ref)
        return None if known is None else decode(known)

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
            absent = self._absent_secrets.get(entry.ref)
            for name in referenced_secrets(entry, self.settings):
                if absent is not None:
                    known[name] = SecretState.ABSENT if name in absent else SecretState.PRESENT
                else:
                    known.setdefault(name, SecretState.UNKNOWN)
        return known

    def _without_spec(self, ref: ConfigRef, resource: Json) -> Json:
        """What there is to note of a config."""
        metadata = raw.mapping(resource, "metadata")
        noted = {"metadata": {key: metadata[key] for key in _NOTED if key in metadata}}
        if not self._is_noted(ref, resource):
            noted["status"] = frugal(raw.mapping(resource, "status"))
        return noted

    def _is_noted(self, ref: ConfigRef, resource: Json) -> bool:
        """Whether we know this very version of a config."""
        version = raw.mapping(resource, "metadata").get("resourceVersion")
        known = self._versions.get(ref), self._uids.get(ref)
        return version is not None and known == (version, _uid(resource))

    def _is_as_listed(self, entry: IndexedConfig | None, resource: Json) -> bool:
        """Whether a listed config is the one that we know, in the generation that we know."""
        if entry is None:
            return False
        generation = raw.mapping(resource, "metadata").get("generation")
        same = (generation, _uid(resource)) == (entry.config.generation, self._uids.get(entry.ref))
        return same and generation is not None

    def _is_older(self, ref: ConfigRef, resource: Json) -> bool:
        """Whether a list has brought this config in a later generation already."""
        known = self.configs.get(ref)
        if known is None or self._uids.get(ref) != _uid(resource):
            return False
        generation = raw.mapping(resource, "metadata").get("generation")
        return int(generation or 0) < int(known.config.generation or 0)

    def _note(self, ref: ConfigRef, resource: Json) -> None:
        if self._is_noted(ref, resource):
            return
        entry = self.configs.get(ref)
        ref = ref if entry is None else entry.ref  # one of them is enough
        # A copy: what the encoder returns has grown in a larger buffer, of which the rest stays.
        self._statuses[ref] = bytes(memoryview(encode(raw.mapping(resource, "status"))))
        self._absent_secrets[ref] = absent_secrets(resource)
        self._uncount(ref)
        self._ready_reasons[ref] = reason = ready_reason(resource)
        self._numbers[reason] += 1
        self._uids[ref] = _uid(resource)
        self._versions[ref] = str(raw.mapping(resource, "metadata").get("resourceVersion"))

    def _uncount(self, ref: ConfigRef) -> None:
        if ref in self._ready_reasons:
            self._numbers[self._ready_reasons.pop(ref)] -= 1

    def _forget(self, ref: ConfigRef) -> None:
        self._uncount(ref)
        for known in (self._statuses, self._absent_secrets, self._uids, self._versions):
            known.pop(ref, None)

    def _touched(self, ref: ConfigRef) -> None:
        if self._changed_during_list is not None:
            self._changed_during_list.add(ref)


_NOTED: Final = ("namespace", "name", "uid", "generation", "resourceVersion")


def _uid(resource: Json) -> str:
    return str(raw.mapping(resource, "metadata").get("uid") or "")


def config_ref(resource: Json) -> ConfigRef:
    """Which config a resource is."""
    metadata = raw.mapping(resource, "metadata")
    return ConfigRef(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
