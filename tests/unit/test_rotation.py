"""The shared certificate: the first writer wins, and whatever happens the last good one serves."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

import examples
from authorities import OwnAuthority, spoiled_authority
from shield_operator.certificate_source import served_hosts
from shield_operator.certificates import OVERLAP, Bundle, issue_bundle, read_bundle
from shield_operator.cluster import Cluster, Conflict, Forbidden, NotFound, Unreachable
from shield_operator.rotation import SharedCertificate
from shield_operator.tls import verify

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


def publish(certificate: SharedCertificate) -> bytes:
    """What `Publisher` does: the two webhooks carry what is to be published."""
    authorities = certificate.authorities
    assert authorities is not None
    certificate.saw([authorities, authorities])
    return authorities


def started(secrets: Secrets, clock: Clock) -> SharedCertificate:
    """A replica that serves, alone on an empty cluster."""
    certificate = replica(secrets, clock)
    certificate.saw([])
    assert refresh(certificate)
    publish(certificate)
    return certificate


def stored(secrets: Secrets) -> Bundle:
    assert secrets.data is not None
    return read_bundle(secrets.data)


def test_the_first_replica_makes_it_and_the_second_takes_it(secrets: Secrets, clock: Clock) -> None:
    first, second = replica(secrets, clock), replica(secrets, clock)
    for certificate in (first, second):
        assert refresh(certificate)
        assert not certificate.available.is_set()
        certificate.saw([])
        assert certificate.available.is_set()
    assert first.authorities == second.authorities == stored(secrets).signer
    assert first.leaf == second.leaf == stored(secrets).leaf
    assert secrets.version == 1
    assert not refresh(first)


def test_a_lost_race_takes_the_winners(secrets: Secrets, clock: Clock) -> None:
    winners = issue_bundle((SERVICE,), clock()).as_secret_data()
    secrets.race = winners
    loser = replica(secrets, clock)
    assert refresh(loser)
    assert loser.authorities == winners["ca.crt"]
    assert secrets.data == winners


def test_a_leaf_is_renewed_in_time_under_the_same_authority(secrets: Secrets, clock: Clock) -> None:
    certificate = started(secrets, clock)
    before, authorities = certificate.leaf, certificate.authorities
    clock.now += timedelta(days=59)
    assert not refresh(certificate)
    assert certificate.leaf == before
    clock.now += timedelta(days=2)
    assert not refresh(certificate)  # no new authority: nothing to publish
    assert certificate.leaf == stored(secrets).leaf != before
    assert certificate.authorities == authorities


@pytest.mark.parametrize("change", [None, {"tls.crt": b"garbage", "theirs": b"kept"}])
def test_a_secret_deleted_or_broken_gets_a_new_authority_and_the_last_good_leaf_serves_on(
    secrets: Secrets, clock: Clock, change: dict[str, bytes] | None
) -> None:
    certificate = started(secrets, clock)
    before, leaf = stored(secrets), certificate.leaf
    secrets.data = change
    assert refresh(certificate)
    announced = stored(secrets)
    assert announced.authorities == (before.signer, announced.issuer.certificate)
    assert certificate.leaf == announced.leaf == leaf
    assert not refresh(certificate)  # nothing more before it is published

    assert publish(certificate) == b"".join(announced.authorities)
    refresh(certificate)
    assert stored(secrets).signer == announced.issuer.certificate
    assert certificate.leaf == stored(secrets).leaf != leaf
    clock.now += OVERLAP
    refresh(certificate)
    clock.now += OVERLAP
    refresh(certificate)
    assert publish(certificate) == stored(secrets).signer == announced.issuer.certificate
    if change:
        assert secrets.data is not None
        assert secrets.data["theirs"] == b"kept"


@pytest.mark.parametrize("running", [True, False])
def test_an_authority_damaged_deep_inside_is_replaced_and_nobody_ends(
    secrets: Secrets, clock: Clock, running: bool
) -> None:
    certificate = started(secrets, clock)
    assert secrets.data is not None
    secrets.data["ca.crt"] = spoiled_authority(secrets.data["ca.crt"])
    if not running:
        certificate = replica(secrets, clock)
    assert refresh(certificate)
    publish(certificate)
    assert certificate.leaf == stored(secrets).leaf


def test_a_replaced_secret_is_served_once_it_is_published(secrets: Secrets, clock: Clock) -> None:
    certificate = started(secrets, clock)
    before, leaf = stored(secrets), certificate.leaf
    other = issue_bundle((SERVICE,), clock())
    secrets.data = other.as_secret_data()
    assert refresh(certificate)
    assert certificate.leaf == leaf
    assert publish(certificate) == other.signer + before.signer
    assert certificate.leaf == other.leaf
    assert stored(secrets) == other


def test_another_replica_starts_while_the_authority_changes(secrets: Secrets, clock: Clock) -> None:
    """It serves the old leaf too, until the new authority is published."""
    first = started(secrets, clock)
    live = first.authorities or b""
    secrets.data = None
    refresh(first)
    second = replica(secrets, clock)
    second.saw([live, live])
    assert refresh(second)
    assert second.leaf == first.leaf
    assert second.authorities == first.authorities


def test_an_authority_near_its_end_is_replaced(secrets: Secrets, clock: Clock) -> None:
    certificate = started(secrets, clock)
    before = stored(secrets)
    clock.now += timedelta(days=3650 - 179)
    assert refresh(certificate)
    publish(certificate)
    refresh(certificate)
    assert stored(secrets).signer != before.signer
    assert certificate.leaf == stored(secrets).leaf


def test_garbage_at_the_start_is_replaced_by_a_new_one(secrets: Secrets, clock: Clock) -> None:
    secrets.data = {}
    certificate = replica(secrets, clock)
    assert refresh(certificate)
    assert stored(secrets).signer == certificate.authorities


def test_an_rsa_authority_made_by_openssl_serves_as_well(secrets: Secrets, clock: Clock) -> None:
    secrets.data = OwnAuthority("rsa").secret_data(SERVICE)
    certificate = replica(secrets, clock)
    certificate.saw([])
    before = dict(secrets.data)
    assert refresh(certificate)
    assert secrets.data == before
    assert certificate.leaf == stored(secrets).leaf


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
    assert stored(secrets).hosts == {SERVICE, "127.0.0.1"}


def test_a_right_that_is_missing_shows_at_the_start_and_not_when_it_is_needed(
    secrets: Secrets, clock: Clock
) -> None:
    refresh(replica(secrets, clock))
    secrets.read_only = True
    with pytest.raises(Forbidden):
        refresh(replica(secrets, clock))


def test_an_outage_leaves_everything_as_it_is(secrets: Secrets, clock: Clock) -> None:
    certificate = started(secrets, clock)
    before = (certificate.leaf, certificate.authorities)
    secrets.down = True
    with pytest.raises(Unreachable):
        refresh(certificate)
    assert (certificate.leaf, certificate.authorities) == before


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


def test_a_leaf_that_clients_refuse_is_issued_again(secrets: Secrets, clock: Clock) -> None:
    """It is theirs, for clients only: Go's TLS, and so the API server, refuses such a server."""
    authority = OwnAuthority("ec")
    data = authority.secret_data(SERVICE)
    certificate, key = authority.issue(SERVICE, usage="clientAuth")
    secrets.data = {**data, "tls.crt": certificate, "tls.key": key}
    serving = replica(secrets, clock)
    serving.saw([])
    refresh(serving)
    assert serving.authorities == authority.certificate
    leaf = serving.leaf
    assert leaf is not None
    verify(leaf, authority.certificate, SERVICE)
    version = secrets.version
    refresh(serving)
    assert (secrets.version, serving.leaf) == (version, leaf)


def test_an_authority_whose_leaves_clients_refuse_is_replaced(
    secrets: Secrets, clock: Clock
) -> None:
    """It may sign no certificates, by its key usage, and another leaf of it is no better."""
    secrets.data = OwnAuthority("ec", usage="digitalSignature").secret_data(SERVICE)
    serving = replica(secrets, clock)
    serving.saw([])
    refresh(serving)
    leaf, authorities = serving.leaf, serving.authorities
    assert leaf is not None
    assert authorities is not None
    verify(leaf, authorities, SERVICE)
    version = secrets.version
    refresh(serving)
    assert secrets.version == version


def test_a_leaf_that_clients_refuse_is_issued_again_though_another_replica_wrote_in_between(
    secrets: Secrets, clock: Clock
) -> None:
    authority = OwnAuthority("ec")
    certificate, key = authority.issue(SERVICE, usage="clientAuth")
    refused = {**authority.secret_data(SERVICE), "tls.crt": certificate, "tls.key": key}
    secrets.data = refused
    secrets.race = {"theirs": b"changed"}
    serving = replica(secrets, clock)
    serving.saw([])
    refresh(serving)
    assert serving.leaf == stored(secrets).leaf
    assert stored(secrets).leaf.certificate.split() != certificate.split()
