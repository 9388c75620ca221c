"""Patience with another writer: a hand edit is undone at once, a fight is slowed down."""

from shield_operator.contention import BURST, INTERVAL, RewriteLimit


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def allowed(limit: RewriteLimit, times: int, place: str = "a", content: str = "x") -> int:
    done = 0
    for _ in range(times):
        if limit.allows(place, content):
            limit.note(place, content)
            done += 1
    return done


def test_the_same_again_is_written_a_few_times_and_then_once_a_minute() -> None:
    clock = Clock()
    limit = RewriteLimit(clock)
    assert allowed(limit, 100) == BURST
    for _ in range(3):
        clock.now += INTERVAL
        assert allowed(limit, 100) == 1


def test_writes_that_failed_are_none() -> None:
    limit = RewriteLimit(Clock())
    assert all(limit.allows("a", "x") for _ in range(100))
    assert allowed(limit, 100) == BURST


def test_patience_comes_back_with_quiet() -> None:
    clock = Clock()
    limit = RewriteLimit(clock)
    allowed(limit, 100)
    clock.now += 100 * INTERVAL
    assert allowed(limit, 100) == BURST


def test_something_new_is_written_at_once() -> None:
    limit = RewriteLimit(Clock())
    allowed(limit, 100)
    assert allowed(limit, 1, content="y") == 1


def test_places_do_not_share_it() -> None:
    limit = RewriteLimit(Clock())
    allowed(limit, 100)
    assert allowed(limit, 1, place="b") == 1
    limit.forget("a")
    assert allowed(limit, 1) == 1


def test_what_time_has_made_good_takes_no_memory() -> None:
    clock = Clock()
    limit = RewriteLimit(clock)
    for number in range(100):
        allowed(limit, 1, place=f"config-{number}", content="x" * 1000)
    allowed(limit, 100, place="fought over")
    clock.now += 1.5 * INTERVAL
    everywhere = [*(f"config-{number}" for number in range(100)), "fought over"]
    limit.forget_all_but(everywhere)
    assert list(vars(limit)["_budgets"]) == ["fought over"]
    assert allowed(limit, 100, place="fought over") == 1
    assert allowed(limit, 100, place="config-7") == BURST
