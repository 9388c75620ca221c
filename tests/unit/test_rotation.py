"""The shared certificate: the first writer wins, and whatever happens the last good one serves."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

import examples
from shield_operator.certificates import issue_bundle, read_bundle
from shield_operator.cluster import Cluster, Conflict, Forbidden, NotFound, Unreachable
from shield_operator.rotation import SharedCertificate, served_hosts

SERVICE = "llm-shield-operator.llm-shield-system.svc"


class Secrets:
    """One Secret, with the API server's rules for creating and replacing it."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] | None = None
        self.version = 0
        self.down = False
        self.read_only = False
        self.race: dict[str, bytes] | None = None
        """What another replica writes just before our next write."""

    async def read_tls_secret(self, namespace: str, name: str) -> tuple[dict[str, bytes], str]:
        assert (namespace, name) == ("llm-shield-system", "llm-shield-operator-tls")
        if self.down:
            raise Unreachable("down")
        if self.data is None:
            raise NotFound("absent")
        return self.data, str(self.version)

    async def create_tls_secret(self, _: str, __: str, data: Mapping[str, bytes]) -> None:
        self._lose_race()
        if self.data is not None:
            raise Conflict("there")
        self._write(data)

    async def replace_tls_secret(
        self, _: str, __: str, data: Mapping[str, bytes], resource_version: str
    ) -> None:
        if self.read_only:
            raise Forbidden("may not patch")
        self._lose_race()
        if resource_version != str(self.version):
            raise Conflict("changed")
        self._write(data)

    def _lose_race(self) -> None:
        if self.race is not None:
            self._write(self.race)
            self.race = None

    def _write(self, data: Mapping[str, bytes]) -> None:
        before = self.data
        self.data = {**(before or {}), **data}
        self.version += self.data != before


class Clock:
    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def replica(secrets: Secrets, clock: Clock, **environment: str) -> SharedCertificate:
    settings = examples.settings(**environment)
    return SharedCertificate(cast("Cluster", secrets), settings, now=clock)


def refresh(certificate: SharedCertificate) -> bool:
    return asyncio.run(certificate.refresh())


def leaf(secrets: Secrets) -> bytes:
    assert secrets.data is not None
    return secrets.data["tls.crt"]


def test_the_first_replica_makes_it_and_the_second_takes_it(secrets: Secrets, clock: Clock) -> None:
    first, second = replica(secrets, clock), replica(secrets, clock)
    assert refresh(first)
    assert refresh(second)
    assert first.authority == second.authority
    assert first.available.is_set()
    assert secrets.version == 1
    assert not refresh(first)


def test_a_lost_race_takes_the_winners(secrets: Secrets, clock: Clock) -> None:
    winners = issue_bundle((SERVICE,), clock()).as_secret_data()
    secrets.race = winners
    loser = replica(secrets, clock)
    assert refresh(loser)
    assert loser.authority == winners["ca.crt"]
    assert secrets.data == winners


def test_a_leaf_is_renewed_in_time_under_the_same_authority(secrets: Secrets, clock: Clock) -> None:
    certificate = replica(secrets, clock)
    refresh(certificate)
    before, authority = leaf(secrets), certificate.authority
    clock.now += timedelta(days=59)
    assert not refresh(certificate)
    assert leaf(secrets) == before
    clock.now += timedelta(days=2)
    assert not refresh(certificate)  # no new authority: nothing to publish
    assert leaf(secrets) != before
    assert certificate.authority == authority


def test_a_deleted_secret_comes_back_as_it_was(secrets: Secrets, clock: Clock) -> None:
    certificate = replica(secrets, clock)
    refresh(certificate)
    before, secrets.data = secrets.data, None
    assert not refresh(certificate)
    assert secrets.data == before


def test_garbage_is_replaced_by_the_last_good_one(secrets: Secrets, clock: Clock) -> None:
    certificate = replica(secrets, clock)
    refresh(certificate)
    before = leaf(secrets)
    secrets.data = {"tls.crt": b"garbage", "theirs": b"kept"}
    assert not refresh(certificate)
    assert leaf(secrets) == before
    assert secrets.data["theirs"] == b"kept"


def test_an_authority_that_has_ended_is_replaced(secrets: Secrets, clock: Clock) -> None:
    certificate = replica(secrets, clock)
    refresh(certificate)
    authority = certificate.authority
    clock.now += timedelta(days=3651)
    assert refresh(certificate)
    assert certificate.authority != authority


def test_garbage_at_the_start_is_replaced_by_a_new_one(secrets: Secrets, clock: Clock) -> None:
    secrets.data = {}
    certificate = replica(secrets, clock)
    assert refresh(certificate)
    assert read_bundle(secrets.data).authority.certificate == certificate.authority


def test_replicas_of_different_names_do_not_take_turns(secrets: Secrets, clock: Clock) -> None:
    inside = replica(secrets, clock)
    outside = replica(secrets, clock, WEBHOOK_URL="https://127.0.0.1:9443")
    refresh(inside)
    refresh(outside)
    settled = secrets.version
    for _ in range(3):
        refresh(inside)
        refresh(outside)
    assert secrets.version == settled
    assert secrets.data is not None
    assert read_bundle(secrets.data).hosts == {SERVICE, "127.0.0.1"}


def test_a_right_that_is_missing_shows_at_the_start_and_not_when_it_is_needed(
    secrets: Secrets, clock: Clock
) -> None:
    refresh(replica(secrets, clock))
    secrets.read_only = True
    with pytest.raises(Forbidden):
        refresh(replica(secrets, clock))


def test_an_outage_leaves_everything_as_it_is(secrets: Secrets, clock: Clock) -> None:
    certificate = replica(secrets, clock)
    refresh(certificate)
    authority = certificate.authority
    secrets.down = True
    with pytest.raises(Unreachable):
        refresh(certificate)
    assert certificate.authority == authority


@pytest.mark.parametrize(
    ("environment", "hosts"),
    [
        ({}, (SERVICE,)),
        ({"WEBHOOK_URL": "https://[::1]:9443"}, (SERVICE, "::1")),
        ({"POD_NAMESPACE": "ops", "WEBHOOK_SERVICE": "hook"}, ("hook.ops.svc",)),
    ],
)
def test_served_hosts(environment: dict[str, str], hosts: tuple[str, ...]) -> None:
    assert served_hosts(examples.settings(**environment)) == hosts
