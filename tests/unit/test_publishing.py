"""Publishing the webhook configuration: written where it differs, and by the leader only."""

import asyncio
import base64
import copy
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, cast

import pytest

import examples
from shield_operator.certificate_source import CertificateSource
from shield_operator.certificates import issue_bundle, split_certificates
from shield_operator.cluster import Cluster, Forbidden, NotFound
from shield_operator.publishing import PATIENCE, Publisher
from shield_operator.state import State

NOW = datetime(2026, 11, 29, tzinfo=UTC)
AUTHORITY, OTHER = (issue_bundle(["shield.example"], NOW).signer for _ in range(2))


class Source:
    """A certificate source that has one authority."""

    def __init__(self, authorities: bytes = AUTHORITY) -> None:
        self.authorities = authorities
        self.served = authorities
        self.seen: Collection[bytes] = ()

    @property
    def needs(self) -> bytes:
        return self.served

    @property
    def lacking(self) -> bytes:
        live = [split_certificates(bundle) for bundle in self.seen]
        return b"" if live and all(self.needs in found for found in live) else self.needs

    def saw(self, ca_bundles: Collection[bytes]) -> None:
        self.seen = ca_bundles


class Configurations:
    """Holds one webhook configuration, as the API server does, and counts what is asked of it."""

    def __init__(self) -> None:
        self.live: Any = None
        self.writes = 0
        self.owner: str | None = "uid"
        self.owner_reads = 0
        self.leads = True
        self.now = 0.0
        self.patches: list[Any] = []

    async def cluster_role_uid(self) -> str:
        self.owner_reads += 1
        if self.owner is None:
            raise Forbidden("cannot read ClusterRole: 403")
        return self.owner

    async def read_webhook_configuration(self) -> Any:
        if self.live is None:
            raise NotFound("404")
        return copy.deepcopy(self.live)

    async def apply_webhook_configuration(self, configuration: Any) -> Any:
        self.writes += 1
        self.live = copy.deepcopy(configuration)
        return self.live

    async def add_trust(self, patch: Any) -> Any:
        self.patches.append(patch)
        for hook, change in zip(self.live["webhooks"], patch["webhooks"], strict=True):
            assert hook["name"] == change["name"]
            hook["clientConfig"].update(change["clientConfig"])
        return copy.deepcopy(self.live)


@pytest.fixture
def cluster() -> Configurations:
    return Configurations()


@pytest.fixture
def state() -> State:
    return State(examples.settings())


@pytest.fixture
def source() -> Source:
    return Source()


def made(cluster: Configurations, state: State, source: Source, **settings: str) -> Publisher:
    return Publisher(
        cast("Cluster", cluster),
        examples.settings(**settings),
        state,
        cast("CertificateSource", source),
        lambda: cluster.leads,
        now=lambda: cluster.now,
    )


@pytest.fixture
def publisher(cluster: Configurations, state: State, source: Source) -> Publisher:
    return made(cluster, state, source)


def publish(publisher: Publisher, times: int = 1) -> None:
    async def run() -> None:
        for _ in range(times):
            await publisher.publish()

    asyncio.run(run())


def test_it_is_written_once_and_then_only_looked_at(
    cluster: Configurations, state: State, publisher: Publisher
) -> None:
    publish(publisher, 10)
    assert (cluster.writes, cluster.owner_reads) == (1, 1)
    assert state.published


def test_an_edit_is_undone_after_the_owner_was_looked_at(
    cluster: Configurations, publisher: Publisher
) -> None:
    publish(publisher)
    cluster.live["webhooks"][0]["failurePolicy"] = "Ignore"
    publish(publisher, 3)
    assert (cluster.writes, cluster.owner_reads) == (2, 2)
    assert cluster.live["webhooks"][0]["failurePolicy"] == "Fail"


def test_without_its_owner_nothing_is_written(
    cluster: Configurations, publisher: Publisher
) -> None:
    """The operator is being uninstalled; what it wrote now would stay, and refuse pods."""
    publish(publisher)
    cluster.live, cluster.owner = None, None
    with pytest.raises(Forbidden, match="the webhook configuration is not written"):
        publish(publisher)
    assert cluster.live is None


def test_who_does_not_lead_writes_nothing(
    cluster: Configurations, state: State, publisher: Publisher
) -> None:
    cluster.leads = False
    publish(publisher, 3)
    assert (cluster.writes, state.published) == (0, False)


def test_who_does_not_lead_sees_that_another_has_published(
    cluster: Configurations, state: State, source: Source, publisher: Publisher
) -> None:
    def sees(authority: bytes) -> bool:
        source.authorities = source.served = authority
        asyncio.run(publisher.look())
        return state.published

    cluster.leads = False
    assert not sees(AUTHORITY)
    assert list(source.seen) == []
    cluster.leads = True
    publish(made(cluster, State(examples.settings()), Source(), FAILURE_POLICY="Ignore"))
    cluster.leads = False
    assert not sees(OTHER)
    assert set(source.seen) == {AUTHORITY}
    assert sees(AUTHORITY)
    assert cluster.writes == 1


def test_who_waits_long_for_its_authority_adds_it_and_nothing_else(
    cluster: Configurations, state: State, source: Source
) -> None:
    """Where the leader has another source of certificates, nobody else would."""
    publish(made(cluster, State(examples.settings()), Source(OTHER), FAILURE_POLICY="Ignore"))
    cluster.leads = False
    waiting = made(cluster, state, source)
    for _ in range(3):
        asyncio.run(waiting.look())
        cluster.now += PATIENCE / 3
    assert (len(cluster.patches), state.published) == (0, False)
    before = copy.deepcopy(cluster.live)
    asyncio.run(waiting.look())
    asyncio.run(waiting.look())
    assert (len(cluster.patches), state.published) == (1, True)
    for hook, old in zip(cluster.live["webhooks"], before["webhooks"], strict=True):
        assert ca_bundle(hook) == OTHER + AUTHORITY
        old["clientConfig"]["caBundle"] = hook["clientConfig"]["caBundle"]
    assert cluster.live == before


def test_who_waits_does_not_make_up_for_a_configuration_that_is_gone(
    cluster: Configurations, publisher: Publisher
) -> None:
    cluster.leads = False
    for _ in range(3):
        asyncio.run(publisher.look())
        cluster.now += PATIENCE
    assert cluster.live is None
    assert not cluster.patches


def ca_bundle(hook: Any) -> bytes:
    return base64.b64decode(hook["clientConfig"]["caBundle"])


def test_a_replica_is_ready_when_its_own_authority_is_live_whatever_else_is_to_be_published(
    cluster: Configurations, state: State, source: Source, publisher: Publisher
) -> None:
    publish(made(cluster, State(examples.settings()), Source()))
    cluster.leads = False
    source.authorities = AUTHORITY + OTHER  # a stranger's, that is not there any more
    asyncio.run(publisher.look())
    assert state.published


@pytest.mark.parametrize("webhooks_left", [None, 0, 1])
def test_a_configuration_without_our_webhooks_is_restored_each_time_however_often(
    cluster: Configurations, publisher: Publisher, webhooks_left: int | None
) -> None:
    """Pods start bare meanwhile; only edits of fields are undone once a minute in the end."""
    publish(publisher)
    for _ in range(20):
        if webhooks_left is None:
            cluster.live = None
        else:
            del cluster.live["webhooks"][webhooks_left:]
        publish(publisher)
        assert len(cluster.live["webhooks"]) == 2
    before = cluster.writes
    for _ in range(20):
        cluster.live["webhooks"][0]["failurePolicy"] = "Ignore"
        publish(publisher)
    assert cluster.writes - before == 6
