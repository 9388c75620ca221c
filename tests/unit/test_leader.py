"""Who leads: one at a time, by the rules of client-go, with a clock that stands still."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from shield_operator import leader
from shield_operator.cluster import Conflict, Lease, Unreachable
from shield_operator.cluster.lease import LeaseRecord
from shield_operator.leader import DURATION, PATIENCE, Leader, identity
from shield_operator.metrics import Metrics


class World:
    """A clock, and the one Lease that all candidates share, with the API server's own conflicts."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.version = 0
        self.record: LeaseRecord | None = None
        self.down = False
        self.requests: list[str] = []

    def clock(self) -> float:
        return self.time

    def candidate(self, name: str) -> Leader:
        lease = cast("Lease", _Lease(self, name))
        return Leader(lease, Metrics(), now=lambda: datetime.now(UTC), clock=self.clock)


class _Lease:
    def __init__(self, world: World, name: str) -> None:
        self.identity = name
        self._world = world
        self._version = 0

    async def read(self) -> LeaseRecord | None:
        self._world.requests.append("GET")
        if self._world.down:
            raise Unreachable("cannot read the Lease: out of reach")
        self._version = self._world.version
        return self._world.record

    async def create(self, duration: float, now: datetime) -> None:
        del now
        if self._world.record is not None:
            raise Conflict("409")
        self._write(LeaseRecord(self.identity, duration, "t", "t"))

    async def take(self, duration: float, now: datetime) -> None:
        del now
        self._write(LeaseRecord(self.identity, duration, "t", str(self._world.version)))

    async def renew(self, last: LeaseRecord, duration: float, now: datetime) -> None:
        del now
        self._write(replace(last, duration=duration, renewed=str(self._world.version)))

    async def release(self) -> None:
        assert self._world.record is not None
        self._write(replace(self._world.record, holder=None))

    def _write(self, record: LeaseRecord) -> None:
        self._world.requests.append("PUT")
        if self._world.down:
            raise Unreachable("cannot write the Lease: out of reach")
        if self._version != self._world.version:
            raise Conflict("409")
        self._world.version += 1
        self._version = self._world.version
        self._world.record = record


@pytest.fixture
def world() -> World:
    return World()


def look(*candidates: Leader) -> None:
    """Each looks at the Lease once, one after the other."""

    async def all_of_them() -> None:
        for candidate in candidates:
            await candidate._look()

    asyncio.run(all_of_them())


def test_the_first_one_leads_and_the_others_stand_by(world: World) -> None:
    first, second = world.candidate("a"), world.candidate("b")
    look(first, second)
    assert (first.leads(), second.leads()) == (True, False)
    for _ in range(20):
        world.time += 2
        look(first, second)
        assert (first.leads(), second.leads()) == (True, False)


def test_a_renewal_is_one_request_and_two_more_where_somebody_touched_the_lease(
    world: World,
) -> None:
    """A slow API server has to answer one request in time, not two."""
    candidate = world.candidate("a")
    look(candidate, candidate)
    for _ in range(5):
        world.requests.clear()
        world.time += 2
        look(candidate)
        assert world.requests == ["PUT"]
    world.version += 1  # somebody labelled it
    world.requests.clear()
    look(candidate)
    assert world.requests == ["PUT", "GET", "PUT"]
    assert candidate.leads()
    world.requests.clear()
    look(candidate)
    assert world.requests == ["PUT"]


def test_one_that_resigned_leads_no_more_whatever_is_under_way(world: World) -> None:
    candidate = world.candidate("a")
    look(candidate)
    assert candidate.leads()
    candidate.resign()
    assert not candidate.leads()
    look(candidate)
    assert not candidate.leads()


def test_one_that_vanishes_is_followed_within_fifteen_seconds(world: World) -> None:
    first, second = world.candidate("a"), world.candidate("b")
    look(first, second)
    vanished = world.time
    while not second.leads():
        world.time += leader.RETRY
        assert not (first.leads() and second.leads())
        look(second)
    assert DURATION < world.time - vanished <= 15 - leader.RETRY


def test_one_that_was_frozen_finds_out_before_it_looks_again(world: World) -> None:
    first, second = world.candidate("a"), world.candidate("b")
    look(first, second)
    world.time += PATIENCE
    assert not first.leads()
    world.time += DURATION
    look(second)
    assert second.leads()
    look(first)
    assert (first.leads(), second.leads()) == (False, True)


def test_one_that_cannot_renew_stops_before_another_may_begin(world: World) -> None:
    first, second = world.candidate("a"), world.candidate("b")
    look(first, second)
    world.down = True
    world.time += PATIENCE - 0.1
    look(first)
    assert first.leads()
    world.time += 0.1
    look(first)
    assert not first.leads()
    world.down = False
    look(second)
    assert not second.leads()
    look(first)  # nobody took it
    assert first.leads()


def test_a_lease_that_was_taken_is_given_up_at_once(world: World) -> None:
    first = world.candidate("a")
    look(first)
    world.record = LeaseRecord("somebody", DURATION, "t", "now")
    world.version += 1
    look(first)
    assert not first.leads()


def test_a_deleted_lease_is_made_anew(world: World) -> None:
    first = world.candidate("a")
    look(first)
    world.record = None
    look(first)
    assert first.leads()
    assert world.record is not None


def test_of_two_that_create_it_at_once_one_wins(world: World) -> None:
    first, second = world.candidate("a"), world.candidate("b")

    async def at_once() -> None:
        await asyncio.gather(first._look(), second._look())

    asyncio.run(at_once())
    assert [first.leads(), second.leads()].count(True) == 1


def test_failures_are_logged_once(world: World, caplog: pytest.LogCaptureFixture) -> None:
    candidate = world.candidate("a")
    world.down = True
    look(candidate, candidate, candidate)
    assert [record.getMessage() for record in caplog.records] == [
        "cannot read the Lease: out of reach; trying again"
    ]


# --- The work -------------------------------------------------------------------------------------


class Work:
    """What a leader does, and how far it came."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended = 0

    async def __call__(self) -> None:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(5000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError(holds)


def run(candidate: Leader, work: Any, script: Callable[[], Awaitable[None]]) -> None:
    """Run a candidate while a script goes on; then cancel it."""

    async def both() -> None:
        task = asyncio.ensure_future(candidate.run(work))
        try:
            await script()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(both())


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader, "RETRY", 0.002)


def test_the_work_goes_on_until_the_lease_is_lost_and_begins_anew_with_it(world: World) -> None:
    candidate, work = world.candidate("a"), Work()

    async def script() -> None:
        await until(lambda: work.begun == 1)
        world.down = True
        world.time += PATIENCE
        await until(lambda: work.ended == 1)
        world.down = False
        await until(lambda: work.begun == 2)

    run(candidate, work, script)
    assert work.ended == 2


def test_a_lapse_that_nobody_noticed_begins_the_work_anew(world: World) -> None:
    """What was asked of the leader meanwhile was not taken note of."""
    candidate, work = world.candidate("a"), Work()

    async def script() -> None:
        await until(lambda: work.begun == 1)
        world.time += PATIENCE
        await until(lambda: work.begun == 2)

    run(candidate, work, script)


@pytest.mark.parametrize("cleanly", [True, False])
def test_who_leaves_gives_the_lease_back(world: World, cleanly: bool) -> None:
    candidate, work = world.candidate("a"), Work()

    async def script() -> None:
        await until(lambda: work.begun == 1)
        if cleanly:
            candidate.resign()
            await until(lambda: work.ended == 1)
            await until(lambda: world.record is not None and world.record.holder is None)

    run(candidate, work, script)
    assert world.record is not None
    assert world.record.holder is None
    assert not candidate.leads()
    successor = world.candidate("b")
    look(successor)
    assert successor.leads()


def test_who_does_not_lead_has_nothing_to_give_back(world: World) -> None:
    first, second = world.candidate("a"), world.candidate("b")
    look(first)
    work = Work()

    async def script() -> None:
        await asyncio.sleep(0.01)
        second.resign()

    run(second, work, script)
    assert work.begun == 0
    assert world.record is not None
    assert world.record.holder == "a"


def test_a_bug_in_the_work_is_not_hidden_and_gives_the_lease_back(world: World) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    candidate = world.candidate("a")
    with pytest.raises(ZeroDivisionError):
        asyncio.run(candidate.run(broken))
    assert not candidate.leads()
    assert b"llm_shield_leading 0.0" in candidate._metrics.render()
    assert world.record is not None
    assert world.record.holder is None  # nobody has to wait for its end


def test_no_two_processes_have_one_identity() -> None:
    assert identity("pod") != identity("pod")
    assert identity("pod").startswith("pod_")
