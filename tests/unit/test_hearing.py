"""A watch is deaf when lists keep showing what it does not bring, and never otherwise."""

from typing import Any

from examples import config
from shield_operator.hearing import PATIENCE, Hearing


def resource(generation: int = 1, uid: str = "u", name: str = "a") -> Any:
    found = config(name)
    found["metadata"] |= {"uid": uid, "generation": generation}
    return found


def shown(hearing: Hearing, *resources: Any, times: int = PATIENCE) -> tuple[str, ...]:
    for _ in range(times):
        hearing.show(resources)
    return hearing.deaf()


def test_what_was_brought_is_not_missed() -> None:
    hearing = Hearing()
    hearing.bring(resource())
    assert shown(hearing, resource(), times=100) == ()


def test_what_is_never_brought_is_missed_in_the_end() -> None:
    hearing = Hearing()
    assert shown(hearing, resource(), times=PATIENCE - 1) == ()
    (sentence,) = shown(hearing, resource(), times=1)
    assert sentence.startswith("the watch of the configs is deaf: 6 lists have shown generation 1")


def test_a_change_that_is_never_brought_is_missed_too() -> None:
    hearing = Hearing()
    hearing.bring(resource())
    assert shown(hearing, resource(2))
    hearing.bring(resource(2))
    assert hearing.deaf() == ()


def test_one_that_changes_all_the_time_is_heard_a_little_late() -> None:
    hearing = Hearing()
    for generation in range(1, 100):
        hearing.show([resource(generation + 1)])
        assert hearing.deaf() == ()
        hearing.bring(resource(generation))


def test_one_that_changes_all_the_time_and_is_never_brought_is_missed() -> None:
    hearing = Hearing()
    for generation in range(1, PATIENCE + 1):
        hearing.show([resource(generation)])
    assert hearing.deaf()


def test_deletions_that_kopf_misses_are_no_deafness() -> None:
    hearing = Hearing()
    hearing.bring(resource())
    assert shown(hearing, times=100) == ()


def test_what_is_gone_or_made_anew_is_not_missed_any_more() -> None:
    hearing = Hearing()
    assert shown(hearing, resource())
    hearing.bring(resource(uid="new"))
    assert shown(hearing, resource(uid="new"), times=100) == ()
    assert shown(hearing, resource(uid="other", name="b"))
    hearing.bring_deletion(resource(uid="other", name="b"))
    assert hearing.deaf() == ()


def test_a_watch_that_begins_anew_has_all_its_patience_again() -> None:
    """A Kopf that is started again and again, for want of a permission, is no reason to die."""
    hearing = Hearing()
    for _ in range(20):
        assert shown(hearing, resource(), times=PATIENCE - 1) == ()
        hearing.begin()
