"""Writing events: once, few, in nobody's way, and in no memory that grows."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from shield_operator import recording
from shield_operator.cluster import Forbidden
from shield_operator.events import Event, EventType, Subject
from shield_operator.metrics import Metrics
from shield_operator.model import Json
from shield_operator.recording import BURST, MOST_KEPT, MOST_WAITING, REPEATED_AFTER, Recorder


def event(name: str = "web", reason: str = "HostNetwork") -> Event:
    about = Subject("apps/v1", "ReplicaSet", "shop", name, "u")
    return Event(about, EventType.WARNING, reason, "Inject", "a sentence")


class Replica:
    """A recorder, with what it wrote and a clock that stands still."""

    loop: asyncio.Runner

    def __init__(self, **more: Any) -> None:
        self.time = 1000.0
        self.written: list[tuple[str, str]] = []
        self.failures: list[Exception] = []
        self.stuck = False
        self.metrics = Metrics()
        self.recorder = Recorder(
            "pod", self.create, self.metrics, "me", clock=lambda: self.time, **more
        )

    async def create(self, namespace: str, manifest: Json) -> None:
        assert namespace == "shop"
        if self.stuck:
            await asyncio.Event().wait()
        if self.failures:
            raise self.failures.pop(0)
        self.written.append((manifest["regarding"]["name"], manifest["reason"]))

    def counted(self, result: str) -> float:
        return float(self.metrics.events.labels("pod", result)._value.get())

    def run(self, *events: Event) -> None:
        """Record these, and let everything be written that can be."""

        async def go() -> None:
            for one in events:
                self.recorder.record(one)
            assert len(self.written) == before  # none before the answer
            running = asyncio.ensure_future(self.recorder.run())
            for _ in range(20 + 10 * len(events)):
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.wait([running])
            assert running.cancelled()

        before = len(self.written)
        self.loop.run(go())


@pytest.fixture(autouse=True)
def _one_loop_without_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(recording, "PAUSE", 0.0)
    with asyncio.Runner() as Replica.loop:
        yield


def test_an_object_is_told_a_reason_once_in_ten_minutes() -> None:
    replica = Replica()
    replica.run(event(), event(), event(reason="PortConflict"), event("other"), event())
    told = [("web", "HostNetwork"), ("web", "PortConflict"), ("other", "HostNetwork")]
    assert replica.written == told
    replica.time += REPEATED_AFTER - 1
    replica.run(event())
    assert replica.written == told
    replica.time += 1
    replica.run(event())
    assert replica.written == [*told, ("web", "HostNetwork")]
    assert (replica.counted("written"), replica.counted("dropped")) == (4, 0)


def test_a_recorder_of_changes_repeats_itself() -> None:
    replica = Replica(repeated_after=0.0)
    replica.run(event(), event(reason="PortConflict"), event())
    assert len(replica.written) == 3


def test_beyond_the_burst_events_are_dropped_counted_and_told_later() -> None:
    replica = Replica()
    events = [event(f"web-{number}") for number in range(BURST + 5)]
    replica.run(*events)
    assert len(replica.written) == BURST
    assert replica.counted("dropped") == 5
    replica.time += 2.0
    replica.run(*events)
    assert replica.written[BURST:] == [(f"web-{BURST + n}", "HostNetwork") for n in range(2)]


def test_an_api_server_that_does_not_answer_fills_the_queue_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "BURST", 1e9)
    replica = Replica()
    replica.stuck = True
    replica.run(*(event(f"web-{number}") for number in range(3 * MOST_WAITING)))
    assert replica.counted("dropped") == 2 * MOST_WAITING
    assert replica.written == []


def test_one_that_fails_is_counted_logged_once_and_not_tried_again_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    replica = Replica()
    refused = "cannot write an event in shop: no"
    replica.failures = [Forbidden(refused), Forbidden(refused)]
    replica.run(event("a"), event("b"), event("c"))
    assert replica.written == [("c", "HostNetwork")]
    assert (replica.counted("failed"), replica.counted("written")) == (2, 1)
    assert [record.getMessage() for record in caplog.records] == [refused]
    replica.run(event("a"), event("c"))  # the next pod of the same kind
    assert replica.written[1:] == [("a", "HostNetwork")]


def test_a_bug_does_not_end_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    replica = Replica()
    replica.failures = [ZeroDivisionError("poison")]
    replica.run(event("a"), event("b"))
    assert replica.written == [("b", "HostNetwork")]
    assert "a bug while an event was written" in caplog.text


def test_objects_that_come_and_go_take_no_memory() -> None:
    replica = Replica()
    replica.recorder._waiting = asyncio.Queue(10 * MOST_KEPT)
    for number in range(2 * MOST_KEPT):
        replica.time += 1.0
        replica.recorder.record(event(f"web-{number}"))
    assert len(replica.recorder._told) == MOST_KEPT
    assert replica.counted("dropped") == 0
