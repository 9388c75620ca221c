"""Changing certificates under load: never a leaf served that the API server does not trust."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from shield_operator.certificates import (
    OVERLAP,
    Bundle,
    CertificateError,
    Trust,
    issue_bundle,
    read_bundle,
)

START = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOSTS = ("llm-shield-operator.llm-shield-system.svc",)
OLD, NEW, NEWER = (issue_bundle(HOSTS, START) for _ in range(3))


def minutes(number: float) -> datetime:
    return START + timedelta(minutes=number)


def serving(bundle: Bundle) -> Trust:
    """A replica that serves this bundle, which is published."""
    trust = Trust()
    trust.want(bundle.certificate, START)
    trust.saw([bundle.signer, bundle.signer], START)
    assert trust.serve(START)
    return trust


def test_at_the_very_first_start_the_leaf_is_served_at_once() -> None:
    trust = Trust()
    assert trust.authorities(START) == ()
    trust.want(OLD.certificate, START)
    assert not trust.serve(START)  # not before it is known that nothing is published
    trust.saw([], START)
    assert trust.serve(START)
    assert trust.authorities(START) == (OLD.signer,)


def test_a_replica_that_comes_later_waits_until_its_authority_is_published() -> None:
    """And publishes what it finds with its own: others may serve a leaf of that."""
    trust = Trust()
    trust.saw([OLD.signer, OLD.signer], START)
    trust.want(NEW.certificate, START)
    assert not trust.serve(START)
    assert trust.authorities(START) == (NEW.signer, OLD.signer)
    trust.saw([NEW.signer + OLD.signer, OLD.signer], START)
    assert not trust.serve(START)  # one of the two webhooks does not carry it yet
    trust.saw([NEW.signer + OLD.signer] * 2, START)
    assert trust.serve(START)


def test_a_replaced_bundle_is_published_before_it_is_served() -> None:
    trust = serving(OLD)
    trust.want(NEW.certificate, START)
    assert not trust.serve(START)
    assert trust.served == OLD.certificate
    assert trust.authorities(START) == (NEW.signer, OLD.signer)
    trust.saw([NEW.signer + OLD.signer], START)
    assert trust.serve(START)
    assert not trust.serve(START)


def test_the_old_authority_is_dropped_after_the_overlap() -> None:
    trust = serving(OLD)
    trust.want(NEW.certificate, minutes(1))
    both = [NEW.signer + OLD.signer] * 2
    trust.saw(both, minutes(2))
    assert trust.serve(minutes(2))
    for minute in (3, 11):
        trust.saw(both, minutes(minute))
        assert trust.authorities(minutes(minute)) == (NEW.signer, OLD.signer)
    trust.saw(both, minutes(12))
    assert trust.authorities(minutes(12)) == (NEW.signer,)
    trust.saw([NEW.signer] * 2, minutes(12))
    assert trust.authorities(minutes(12)) == (NEW.signer,)


def test_a_strangers_authority_stays_for_the_overlap_and_is_not_put_back() -> None:
    trust = serving(OLD)
    trust.saw([NEW.signer] * 2, minutes(1))  # another replica's, or somebody's edit
    assert trust.authorities(minutes(1)) == (OLD.signer, NEW.signer)
    trust.saw([OLD.signer + NEW.signer] * 2, minutes(10))
    assert trust.authorities(minutes(10)) == (OLD.signer, NEW.signer)
    assert trust.authorities(minutes(11)) == (OLD.signer,)
    trust.saw([OLD.signer] * 2, minutes(11))
    trust.saw([OLD.signer + NEWER.signer] * 2, minutes(12))
    trust.saw([OLD.signer] * 2, minutes(13))
    assert trust.authorities(minutes(13)) == (OLD.signer,)


def test_what_is_no_certificate_is_not_published() -> None:
    trust = serving(OLD)
    trust.saw([b"garbage", b""], START)
    assert trust.live == frozenset()
    assert trust.authorities(START) == (OLD.signer,)
    assert trust.served == OLD.certificate


def test_a_renewed_leaf_of_the_same_authority_need_not_wait() -> None:
    trust = serving(OLD)
    later = START + timedelta(days=61)
    found = OLD.next(HOSTS, later, ())
    assert found is not None
    trust.want(found[0].certificate, later)
    assert trust.serve(later)


def test_500_announcements_in_a_row_do_not_make_the_bundle_grow() -> None:
    """As when somebody breaks the Secret again and again; the served leaf is always trusted."""
    trust, reader, bundle = serving(OLD), serving(OLD), OLD
    for number in range(500):
        now = START + timedelta(seconds=number)
        bundle = bundle.announce(now)
        assert bundle.authorities == (OLD.signer, bundle.issuer.certificate)
        trust.want(bundle.certificate, now)
        live = trust.authorities(now)
        assert live[:2] == bundle.authorities
        assert len(live) < 40
        reader.saw([b"".join(live)] * 2, now)  # never reads the Secret, so they are strangers
        assert len(reader.authorities(now)) < 40
        assert OLD.signer in reader.authorities(now)
    after = now + OVERLAP
    assert trust.authorities(after) == bundle.authorities


def test_what_is_served_is_trusted_beside_however_many_are_wanted() -> None:
    trust = serving(OLD)
    many = tuple(b"authority %d" % number for number in range(40))
    trust.want(replace(NEW.certificate, authorities=(NEW.signer, *many)), START)
    assert set(trust.authorities(START)) == {OLD.signer, NEW.signer, *many}


AWAY = OVERLAP / 4
"""For how long a replica does not look, and nobody writes; really it is seconds."""


class Replica:
    """One replica, with the clock of its last looks."""

    def __init__(self, now: datetime) -> None:
        self.trust = Trust()
        self.last_good: Bundle | None = None
        self.looked = now
        self.observed = now


class Cluster:
    """Three replicas, one Secret, one webhook configuration, and somebody who meddles.

    Each step of a replica is atomic, as the API server's optimistic concurrency makes it. Which one
    comes next, and how much time passes, is arbitrary, as long as nobody is away for `AWAY`.
    """

    def __init__(self) -> None:
        self.now = START
        self.secret: dict[str, bytes] | None = None
        self.live: bytes | None = None
        self.written = self.now
        self.replicas = [Replica(self.now) for _ in range(3)]
        for index in range(3):
            self.look(index)
            self.publish(index)

    def look(self, index: int) -> None:
        """What `SharedCertificate.refresh` does."""
        replica = self.replicas[index]
        replica.looked = self.now
        try:
            bundle = read_bundle(self.secret or {})
        except CertificateError:
            last = replica.last_good
            bundle = last.announce(self.now) if last else issue_bundle(HOSTS, self.now)
        else:
            found = bundle.next(HOSTS, self.now, replica.trust.live)
            bundle = found[0] if found else bundle
        self.secret = bundle.as_secret_data()
        replica.last_good = bundle
        replica.trust.want(bundle.certificate, self.now)
        replica.trust.serve(self.now)
        self.check()

    def publish(self, index: int) -> None:
        """What `Publisher.publish` does on the replica that leads."""
        self.observe(index)
        self.written = self.now
        replica = self.replicas[index]
        authorities = b"".join(replica.trust.authorities(self.now))
        if authorities and authorities != self.live:
            self.live = authorities
            self.observe(index)

    def observe(self, index: int) -> None:
        """What it does on the others."""
        replica = self.replicas[index]
        replica.observed = self.now
        replica.trust.saw([] if self.live is None else [self.live, self.live], self.now)
        replica.trust.serve(self.now)
        self.check()

    def restart(self, index: int) -> None:
        """A replica begins anew, and knows nothing."""
        self.replicas[index] = Replica(self.now)

    def replace(self, _: int) -> None:
        """Somebody puts another authority and leaf into the Secret."""
        self.secret = issue_bundle(HOSTS, self.now).as_secret_data()

    def delete(self, _: int) -> None:
        """Somebody deletes the Secret."""
        self.secret = None

    def spoil(self, index: int) -> None:
        """Somebody breaks the Secret."""
        part = ("tls.key", "ca.crt", "tls.crt")[index]
        self.secret = {**(self.secret or {}), part: b"garbage"}

    def wait(self, index: int) -> None:
        """Time passes; who would have been away for too long looks, and writes, in time."""
        then = self.now + timedelta(seconds=(5, 60, 150)[index])
        for number, replica in enumerate(self.replicas):
            if then - replica.looked > AWAY:
                self.look(number)
            if then - replica.observed > AWAY:
                self.observe(number)
        if then - self.written > AWAY:
            self.publish(index)
        self.now = then

    def quiet(self, index: int) -> None:
        """Everybody looks all the time, until the end of leaf or authority comes near."""
        if self.now.year < 2040:
            self.settle()
            self.now += timedelta(days=(40, 61, 3480)[index])
            for number, replica in enumerate(self.replicas):
                replica.looked = self.now
                self.observe(number)
            self.written = self.now

    def settle(self) -> None:
        """Everybody looks, writes and waits, until nothing more is to be done."""
        for _ in range(6):
            for index in range(3):
                self.look(index)
                self.publish(index)
            self.now += timedelta(minutes=6)

    def check(self) -> None:
        """Every served leaf is trusted."""
        for replica in self.replicas:
            for needed in replica.trust.served.needs if replica.trust.served else ():
                assert self.live is None or needed in self.live


STEPS = (
    *(Cluster.look, Cluster.publish, Cluster.observe, Cluster.wait) * 3,
    *(Cluster.restart, Cluster.replace, Cluster.delete, Cluster.spoil),
    Cluster.quiet,
)


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 2)), min_size=20, max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_served_leaf_is_trusted_whatever_happens_in_whatever_order(
    steps: list[tuple[Callable[[Cluster, int], None], int]],
) -> None:
    """And in the end all serve the same, and nothing of before is trusted any more."""
    cluster = Cluster()
    for step, index in steps:
        step(cluster, index)
    cluster.settle()
    cluster.settle()
    bundle = read_bundle(cluster.secret or {})
    assert cluster.live == bundle.signer
    assert bundle.authorities == (bundle.signer,)
    assert [replica.trust.served for replica in cluster.replicas] == [bundle.certificate] * 3
