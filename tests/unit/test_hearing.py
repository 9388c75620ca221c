"""A watch is deaf when lists keep showing what it does not bring, and never otherwise."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from examples import config
from shield_operator.hearing import PATIENCE, Hearing

INTERVAL = 60.0


class Clock:
    """Stands still between two lists."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hearing(clock: Clock) -> Hearing:
    return Hearing(clock)


@pytest.fixture
def shown(clock: Clock, hearing: Hearing) -> Callable[..., tuple[str, ...]]:
    """Shows configs in lists a minute apart."""

    def show(*resources: Any, seconds: float = PATIENCE) -> tuple[str, ...]:
        hearing.show(resources)
        end = clock.time + seconds
        while clock.time < end:
            clock.time += INTERVAL
            hearing.show(resources)
        return hearing.deaf()

    return show


def resource(generation: int = 1, uid: str = "u", name: str = "a") -> Any:
    found = config(name)
    found["metadata"] |= {"uid": uid, "generation": generation}
    return found


def test_what_was_brought_is_not_missed(hearing: Hearing, shown: Any) -> None:
    hearing.bring(resource())
    assert shown(resource(), seconds=100 * PATIENCE) == ()


def test_what_is_never_brought_is_missed_in_the_end(shown: Any) -> None:
    assert shown(resource(), seconds=PATIENCE - INTERVAL) == ()
    (sentence,) = shown(resource(), seconds=INTERVAL)
    assert sentence.startswith(
        "the watch of the configs is deaf: for 360 s lists have shown generation 1"
    )


def test_lists_that_come_in_a_burst_prove_nothing(hearing: Hearing, clock: Clock) -> None:
    for _ in range(1000):
        hearing.show([resource()])
    assert hearing.deaf() == ()
    clock.time += INTERVAL
    hearing.show([resource()])
    assert hearing.deaf() == ()


def test_an_outage_is_no_deafness(hearing: Hearing, clock: Clock) -> None:
    """Lists fail as long as the watch does, and may come back a little sooner."""
    hearing.show([resource()])
    clock.time += 10 * PATIENCE
    assert hearing.deaf() == ()
    hearing.show([resource()])
    assert hearing.deaf() == ()
    hearing.bring(resource())


def test_a_change_that_is_never_brought_is_missed_too(hearing: Hearing, shown: Any) -> None:
    hearing.bring(resource())
    assert shown(resource(2))
    hearing.bring(resource(2))
    assert hearing.deaf() == ()


def test_one_that_changes_all_the_time_is_heard_a_little_late(
    hearing: Hearing, clock: Clock
) -> None:
    for generation in range(1, 100):
        hearing.show([resource(generation + 1)])
        assert hearing.deaf() == ()
        hearing.bring(resource(generation))
        clock.time += INTERVAL


def test_one_that_changes_all_the_time_and_is_never_brought_is_missed(
    hearing: Hearing, clock: Clock
) -> None:
    for generation in range(1, 8):
        hearing.show([resource(generation)])
        clock.time += INTERVAL
    assert hearing.deaf()


def test_deletions_that_kopf_misses_are_no_deafness(hearing: Hearing, shown: Any) -> None:
    hearing.bring(resource())
    assert shown(seconds=100 * PATIENCE) == ()


def test_what_is_gone_or_made_anew_is_not_missed_any_more(hearing: Hearing, shown: Any) -> None:
    assert shown(resource())
    hearing.bring(resource(uid="new"))
    assert shown(resource(uid="new"), seconds=100 * PATIENCE) == ()
    assert shown(resource(uid="other", name="b"))
    hearing.bring_deletion(resource(uid="other", name="b"))
    assert hearing.deaf() == ()


def test_a_watch_that_begins_anew_has_all_its_patience_again(hearing: Hearing, shown: Any) -> None:
    """A Kopf that is started again and again, for want of a permission, is no reason to die."""
    for _ in range(20):
        assert shown(resource(), seconds=PATIENCE - INTERVAL) == ()
        hearing.begin()


def test_the_watchs_age_is_unknown_before_the_first_list(hearing: Hearing) -> None:
    assert math.isnan(hearing.age())


def test_the_watchs_age_begins_anew_with_each_list_that_shows_nothing_new(
    hearing: Hearing, clock: Clock
) -> None:
    hearing.bring(resource())
    for _ in range(3):
        hearing.show([resource()])
        assert hearing.age() == 0
        clock.time += INTERVAL
    assert hearing.age() == INTERVAL


def test_the_watchs_age_grows_while_lists_fail_or_show_what_is_not_brought(
    hearing: Hearing, clock: Clock
) -> None:
    hearing.show([])
    clock.time += INTERVAL
    hearing.show([resource()])
    clock.time += INTERVAL
    hearing.show([resource(2)])
    assert hearing.age() == 2 * INTERVAL
    hearing.bring(resource())
    assert hearing.age() == 0


def test_what_is_gone_makes_no_watch_old(hearing: Hearing, clock: Clock) -> None:
    hearing.show([resource()])
    clock.time += INTERVAL
    hearing.bring_deletion(resource())
    assert hearing.age() == 0
