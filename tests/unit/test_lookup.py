"""Looking Secrets up while pods wait: briefly, together, and not twice."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from shield_operator import lookup
from shield_operator.cluster import Unreachable
from shield_operator.lookup import (
    A_SECOND,
    AT_ONCE,
    BURST,
    KEPT,
    KEPT_UNKNOWN,
    MOST_KEPT,
    SecretLookup,
)
from shield_operator.model import SecretState

PRESENT, ABSENT, UNKNOWN = SecretState.PRESENT, SecretState.ABSENT, SecretState.UNKNOWN


class Secrets:
    """An API server that knows some Secrets, and counts how often it is asked."""

    def __init__(self, *there: str) -> None:
        self.there = set(there)
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.down = False
        self.time = 1000.0
        self.lookup = SecretLookup(self.exists, clock=lambda: self.time)

    async def exists(self, namespace: str, name: str) -> bool:
        self.asked.append(f"{namespace}/{name}")
        await self.answers.wait()
        if self.down:
            raise Unreachable("down")
        return name in self.there


def run(script: Callable[[Secrets], Awaitable[None]], *there: str) -> Secrets:
    async def with_secrets() -> Secrets:
        secrets = Secrets(*there)
        await script(secrets)
        secrets.answers.set()
        await asyncio.sleep(0)
        return secrets

    return asyncio.run(with_secrets())


def test_an_answer_is_kept_for_thirty_seconds() -> None:
    async def script(secrets: Secrets) -> None:
        for _ in range(3):
            assert await secrets.lookup.states("shop", ["a", "b"]) == {"a": PRESENT, "b": ABSENT}
        secrets.there = {"b"}
        secrets.time += KEPT - 1
        assert await secrets.lookup.states("shop", ["a", "b"]) == {"a": PRESENT, "b": ABSENT}
        secrets.time += 1
        assert await secrets.lookup.states("shop", ["a", "b"]) == {"a": ABSENT, "b": PRESENT}

    assert run(script, "a").asked == ["shop/a", "shop/b"] * 2


def test_namespaces_are_kept_apart() -> None:
    async def script(secrets: Secrets) -> None:
        await secrets.lookup.states("shop", ["a"])
        await secrets.lookup.states("other", ["a"])

    assert run(script).asked == ["shop/a", "other/a"]


def test_those_who_ask_at_once_share_one_question() -> None:
    async def script(secrets: Secrets) -> None:
        answers = await asyncio.gather(*(secrets.lookup.states("shop", ["a"]) for _ in range(50)))
        assert answers == [{"a": PRESENT}] * 50

    assert run(script, "a").asked == ["shop/a"]


def test_without_an_answer_it_is_unknown_soon_and_the_late_answer_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lookup, "PATIENCE", 0.01)

    async def script(secrets: Secrets) -> None:
        secrets.answers.clear()
        assert await secrets.lookup.states("shop", ["a"]) == {"a": UNKNOWN}
        secrets.time += 5  # whoever comes later does not wait for that question any more
        assert await secrets.lookup.states("shop", ["a"]) == {"a": UNKNOWN}
        secrets.answers.set()
        await asyncio.sleep(0.01)
        assert await secrets.lookup.states("shop", ["a"]) == {"a": PRESENT}

    assert run(script, "a").asked == ["shop/a"]


def test_a_failure_is_unknown_and_asked_again_a_little_later() -> None:
    async def script(secrets: Secrets) -> None:
        secrets.down = True
        assert await secrets.lookup.states("shop", ["a"]) == {"a": UNKNOWN}
        secrets.down = False
        assert await secrets.lookup.states("shop", ["a"]) == {"a": UNKNOWN}
        secrets.time += KEPT_UNKNOWN
        assert await secrets.lookup.states("shop", ["a"]) == {"a": PRESENT}

    assert run(script, "a").asked == ["shop/a"] * 2


def test_made_up_names_do_not_fill_the_memory() -> None:
    async def script(secrets: Secrets) -> None:
        for number in range(MOST_KEPT + 100):
            secrets.time += 1 / A_SECOND
            await secrets.lookup.states("shop", [f"made-up-{number}"])
        assert len(secrets.lookup._answers) == MOST_KEPT

    run(script)


def test_made_up_names_do_not_become_requests_at_the_rate_of_reviews() -> None:
    async def script(secrets: Secrets) -> None:
        for number in range(1000):
            await secrets.lookup.states("shop", [f"made-up-{number}"])
        assert len(secrets.asked) == BURST
        assert await secrets.lookup.states("shop", ["a"]) == {"a": UNKNOWN}
        for number in range(1000):  # 100 a second, for ten seconds
            secrets.time += 0.01
            await secrets.lookup.states("shop", [f"another-{number}"])
        assert len(secrets.asked) == pytest.approx(BURST + 10 * A_SECOND, abs=2)
        secrets.time += 1
        assert await secrets.lookup.states("shop", ["a"]) == {"a": PRESENT}

    run(script, "a")


def test_a_slow_api_server_is_asked_eight_questions_at_once_and_the_others_in_turn() -> None:
    async def script(secrets: Secrets) -> None:
        secrets.answers.clear()
        names = [f"keys-{number}" for number in range(3 * AT_ONCE)]
        waiting = asyncio.ensure_future(secrets.lookup.states("shop", names))
        await asyncio.sleep(0.01)
        assert len(secrets.asked) == AT_ONCE
        secrets.answers.set()
        assert await waiting == dict.fromkeys(names, ABSENT)
        assert len(secrets.asked) == 3 * AT_ONCE

    run(script)
