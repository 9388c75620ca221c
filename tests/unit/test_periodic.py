"""Loops: they outlive the API server, and say so once."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shield_operator import periodic
from shield_operator.cluster import Unreachable
from shield_operator.metrics import Metrics
from shield_operator.periodic import Periodic


def made(step: Callable[[], Awaitable[None]], interval: float, **more: Any) -> Periodic:
    return Periodic("test", step, interval, more.pop("metrics", Metrics()), **more)


async def run_until(loop: Periodic, holds: Callable[[], bool], tries: int = 5000) -> None:
    """Run the loop until something holds (then stop it), or until it ends by itself."""
    task = asyncio.create_task(loop.run())
    for _ in range(tries):
        await asyncio.sleep(0.001)
        if holds() or task.done():
            break
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def test_it_runs_at_once_and_at_intervals() -> None:
    runs: list[int] = []

    async def step() -> None:
        runs.append(1)

    asyncio.run(run_until(made(step, 0.001), lambda: len(runs) >= 3))
    assert len(runs) == 3


def test_woken_while_it_runs_it_runs_once_more() -> None:
    runs: list[int] = []

    async def step() -> None:
        runs.append(1)
        if len(runs) == 1:
            loop.wake()

    loop = made(step, 1000)
    asyncio.run(run_until(loop, lambda: len(runs) >= 2))
    assert len(runs) == 2


def test_not_woken_it_waits_for_the_interval() -> None:
    runs: list[int] = []

    async def step() -> None:
        runs.append(1)

    asyncio.run(run_until(made(step, 1000), lambda: False, tries=50))
    assert len(runs) == 1


def test_a_failure_is_logged_once_and_recovery_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(periodic, "_FIRST_BACKOFF", 0.001)
    runs: list[int] = []

    async def step() -> None:
        runs.append(1)
        if len(runs) < 4:
            raise Unreachable("cannot do it: out of reach")

    caplog.set_level(logging.INFO)
    asyncio.run(run_until(made(step, 0.001), lambda: len(runs) >= 6))
    messages = [
        record.getMessage() for record in caplog.records if "out of reach" in record.message
    ]
    assert messages == [
        "cannot do it: out of reach; trying again",
        "recovered from: cannot do it: out of reach",
    ]


def test_a_full_disk_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "_FIRST_BACKOFF", 0.001)
    runs: list[int] = []

    async def step() -> None:
        runs.append(1)
        raise OSError(28, "No space left on device")

    asyncio.run(run_until(made(step, 1000), lambda: len(runs) >= 3))
    assert len(runs) == 3


def test_a_bug_ends_nothing_and_is_logged_once_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(periodic, "_FIRST_BACKOFF", 0.001)
    runs: list[int] = []
    metrics = Metrics()

    async def step() -> None:
        runs.append(1)
        if len(runs) < 4:
            raise ZeroDivisionError

    asyncio.run(run_until(made(step, 0.001, metrics=metrics), lambda: len(runs) >= 5))
    assert len(runs) == 5
    (record,) = [one for one in caplog.records if one.levelno > logging.INFO]
    assert record.getMessage() == "a bug in the loop 'test': ZeroDivisionError(); trying again"
    assert record.exc_info
    assert b'llm_shield_loop_failures_total{loop="test"} 3.0' in metrics.render()


def test_a_bug_where_nothing_works_without_the_step_ends_it() -> None:
    async def step() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_until(made(step, 1, needed=lambda: True), lambda: False))


def test_a_recovery_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "_FIRST_BACKOFF", 0.001)
    runs: list[int] = []
    told: list[int] = []

    async def step() -> None:
        runs.append(1)
        if len(runs) in {2, 3}:
            raise Unreachable("cannot do it: out of reach")

    loop = made(step, 0.001, recovered=lambda: told.append(len(runs)))
    asyncio.run(run_until(loop, lambda: len(runs) >= 6))
    assert told == [4]


def test_asked_for_a_thousand_times_at_once_it_runs_once_and_soon() -> None:
    """Kopf brings what it has listed one by one; each of them is no reason to list again."""
    runs: list[int] = []

    async def step() -> None:
        runs.append(1)

    async def script() -> None:
        loop = made(step, 1000)
        task = asyncio.create_task(loop.run())
        await asyncio.sleep(0.01)
        for number in range(1000):
            loop.wake_after(0.2)
            if number % 10 == 0:
                await asyncio.sleep(0)
        assert len(runs) == 1
        await asyncio.sleep(0.5)
        task.cancel()

    asyncio.run(script())
    assert len(runs) == 2
