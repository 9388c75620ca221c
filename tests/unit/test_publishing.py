"""Publishing the webhook configuration: written where it differs, and by the leader only."""

import asyncio
import copy
from typing import Any, cast

import pytest

import examples
from shield_operator.cluster import Cluster, Forbidden, NotFound
from shield_operator.publishing import Publisher
from shield_operator.state import State

AUTHORITY = b"-----BEGIN CERTIFICATE-----"


class Configurations:
    """Holds one webhook configuration, as the API server does, and counts what is asked of it."""

    def __init__(self) -> None:
        self.live: Any = None
        self.writes = 0
        self.owner: str | None = "uid"
        self.owner_reads = 0
        self.leads = True

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


@pytest.fixture
def cluster() -> Configurations:
    return Configurations()


@pytest.fixture
def state() -> State:
    return State(examples.settings())


@pytest.fixture
def publisher(cluster: Configurations, state: State) -> Publisher:
    fake = cast("Cluster", cluster)
    return Publisher(fake, examples.settings(), state, lambda: cluster.leads)


def publish(publisher: Publisher, times: int = 1) -> None:
    async def run() -> None:
        for _ in range(times):
            await publisher.publish(AUTHORITY)

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
    cluster: Configurations, state: State, publisher: Publisher
) -> None:
    def sees(authority: bytes) -> bool:
        asyncio.run(publisher.look(authority))
        return state.published

    cluster.leads = False
    assert not sees(AUTHORITY)
    leader = Publisher(
        cast("Cluster", cluster),
        examples.settings(FAILURE_POLICY="Ignore"),  # as in a rollout
        State(examples.settings()),
        lambda: True,
    )
    publish(leader)
    assert not sees(b"another authority")
    assert sees(AUTHORITY)
    assert cluster.writes == 1
