"""Kopf is started again when it gives up, with patience, and leaves nothing behind."""

import asyncio
import logging
from collections.abc import Callable
from typing import cast

import kopf
import pytest

from shield_operator import kopf_runner
from shield_operator.admission import AdmissionServer
from shield_operator.kopf_runner import KopfRunner


class Kopf:
    """In Kopf's place: tasks that behave as told, one way a start."""

    def __init__(self, *ways: str) -> None:
        self.ways = list(ways)
        self.starts = 0
        self.let_go = asyncio.Event()
        self.options: dict[str, object] = {}

    async def spawn_tasks(self, **options: object) -> list[asyncio.Task[None]]:
        self.options = options
        way = self.ways[min(self.starts, len(self.ways) - 1)]
        self.starts += 1
        return [
            asyncio.create_task(self._run(way), name="kopf"),
            asyncio.create_task(self._run("runs"), name="kopf"),
        ]

    async def _run(self, way: str) -> None:
        if way == "fails":
            raise ConnectionError("the API server\nis odd")
        if way in {"runs", "stays"}:
            try:
                await asyncio.Event().wait()
            finally:
                if way == "stays":
                    await self.let_go.wait()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kopf_runner, "FIRST_BACKOFF", 0.001)
    monkeypatch.setattr(kopf_runner, "LONGEST_BACKOFF", 0.004)


def run(fake: Kopf, monkeypatch: pytest.MonkeyPatch, until: Callable[[], bool]) -> set[str]:
    """Run it until something holds, then stop it; returns the names of tasks that are left."""
    monkeypatch.setattr(kopf, "spawn_tasks", fake.spawn_tasks)
    started: list[int] = []
    runner = KopfRunner(
        kopf.OperatorRegistry, cast("AdmissionServer", None), lambda: started.append(1)
    )

    async def session() -> set[str]:
        stop = asyncio.Event()
        task = asyncio.create_task(runner.run(stop))
        for _ in range(5000):
            await asyncio.sleep(0.001)
            if until():
                break
        stop.set()
        await asyncio.wait_for(task, 5)
        fake.let_go.set()
        await asyncio.sleep(0.01)
        return {task.get_name() for task in asyncio.all_tasks() if task.get_name() == "kopf"}

    left = asyncio.run(session())
    assert len(started) == fake.starts
    return left


@pytest.mark.parametrize("way", ["fails", "ends"])
def test_it_is_started_again_and_leaves_nothing(
    way: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake = Kopf(way, way, way, "runs")
    assert run(fake, monkeypatch, lambda: fake.starts == 4) == set()
    lines = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    why = "the API server is odd" if way == "fails" else "it ended"
    assert len(lines) == 3
    assert all(line.startswith(f"Kopf has given up: {why}; starting it again") for line in lines)


def test_it_waits_longer_each_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake = Kopf("fails")
    run(fake, monkeypatch, lambda: fake.starts == 5)
    waits = [record.args[1] for record in caplog.records if isinstance(record.args, tuple)]
    assert waits[:4] == [0.001, 0.002, 0.004, 0.004]


def test_told_to_stop_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Kopf("runs")
    assert run(fake, monkeypatch, lambda: fake.starts == 1) == set()
    assert fake.starts == 1


def test_a_task_that_does_not_end_does_not_hold_up_the_stop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kopf_runner, "END", 0.05)
    fake = Kopf("stays")
    assert run(fake, monkeypatch, lambda: fake.starts == 1) == set()
    assert "Kopf's task 'kopf' does not end; going on without it" in caplog.text


def test_a_cancellation_as_the_stop_is_set_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """`asyncio.wait_for` of Python 3.11 swallows it where what it waits for is done just then."""
    monkeypatch.setattr(kopf_runner, "FIRST_BACKOFF", 60.0)
    monkeypatch.setattr(kopf_runner, "LONGEST_BACKOFF", 60.0)
    fake = Kopf("fails")
    monkeypatch.setattr(kopf, "spawn_tasks", fake.spawn_tasks)
    runner = KopfRunner(kopf.OperatorRegistry, cast("AdmissionServer", None), lambda: None)

    async def session() -> None:
        stop = asyncio.Event()
        task = asyncio.create_task(runner.run(stop))
        await asyncio.sleep(0.2)
        stop.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(session())


def test_kopf_need_not_ask_for_the_users_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container the user is a number that no file of the image knows; Kopf then gave up."""
    fake = Kopf("runs")
    run(fake, monkeypatch, lambda: fake.starts == 1)
    assert fake.options["identity"] == "llm-shield-operator"


def test_kopf_holds_few_configs_at_a_time_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The heap, once grown, stays: each config under way is a task, and five seconds were many."""
    fake = Kopf("runs")
    run(fake, monkeypatch, until=lambda: fake.starts == 1)
    settings = cast("kopf.OperatorSettings", fake.options["settings"])
    assert settings.watching.chunk_size is not None
    assert settings.watching.chunk_size <= 100
    assert settings.queueing.idle_timeout < 1
