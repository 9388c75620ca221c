"""What a replica knows: watch and list together, whatever order they come in."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import examples
from examples import config
from shield_operator.hearing import Hearing
from shield_operator.model import ConfigRef, SecretState
from shield_operator.plan import ClusterVersion
from shield_operator.selection import ConfigIndex
from shield_operator.state import State
from shield_operator.status import ReadyReason


def state() -> State:
    return State(examples.settings())


def known(a_state: State) -> set[str]:
    return {entry.ref.name for entry in a_state.configs}


def relist(
    a_state: State, *resources: dict[str, Any], during: Any = lambda: None
) -> set[ConfigRef]:
    async def pages() -> AsyncIterator[list[Any]]:
        yield list(resources[:1])
        yield list(resources[1:])
        during()

    return asyncio.run(a_state.relist(pages()))


def test_nothing_is_ready_at_the_start() -> None:
    assert len(state().not_ready()) == 4


def test_ready_until_it_drains() -> None:
    found = state()
    found.listed = found.serving = found.connected = found.published = True
    assert found.not_ready() == ()
    found.draining = True
    assert found.not_ready() == ("the operator is stopping",)


def test_a_list_makes_it_listed_and_says_what_changed() -> None:
    found = state()
    assert relist(found, config("a"), config("b")) == {
        ConfigRef("shop", "a"),
        ConfigRef("shop", "b"),
    }
    assert found.listed
    assert relist(found, config("a"), config("b")) == set()


def test_a_list_takes_away_what_the_watch_missed() -> None:
    found = state()
    found.config_changed(config("gone"))
    assert relist(found, config("there")) == {ConfigRef("shop", "gone"), ConfigRef("shop", "there")}
    assert known(found) == {"there"}
    assert found.status(ConfigRef("shop", "gone")) is None
    assert found.status(ConfigRef("shop", "there")) is not None


def test_what_the_watch_brings_during_a_list_is_newer() -> None:
    found = state()
    found.config_changed(config("deleted"))

    def meanwhile() -> None:
        found.config_changed(config("created"))
        found.config_changed(config("changed", port=9000))
        found.config_deleted(config("deleted"))

    relist(found, config("changed"), config("deleted"), during=meanwhile)
    assert known(found) == {"created", "changed"}
    entry = found.configs.get(ConfigRef("shop", "changed"))
    assert entry is not None
    assert entry.plan is not None
    assert entry.plan.port == 9000


def test_a_late_deletion_leaves_the_successor_alone() -> None:
    """`kubectl replace --force`: the events of two objects of one name may change places."""

    def of(uid: str) -> dict[str, Any]:
        resource = config("a")
        resource["metadata"]["uid"] = uid
        return resource

    found = state()
    found.config_changed(of("old"))
    found.config_changed(of("new"))
    found.config_deleted(of("old"))
    assert known(found) == {"a"}
    found.config_deleted(of("new"))
    assert known(found) == set()


def test_a_list_that_fails_changes_nothing() -> None:
    found = state()
    found.config_changed(config("a"))

    async def pages() -> AsyncIterator[list[Any]]:
        yield [config("b")]
        raise OSError

    async def attempt() -> None:
        try:
            await found.relist(pages())
        except OSError:
            return

    asyncio.run(attempt())
    assert known(found) == {"a"}
    assert not found.listed


def test_an_unchanged_config_keeps_its_snapshot() -> None:
    found = state()
    found.config_changed(config("a"))
    before = found.configs
    found.config_changed(config("a") | {"status": {"observedGeneration": 1}})
    assert found.configs is before
    assert found.status(ConfigRef("shop", "a")) == {"observedGeneration": 1}


def test_secret_states_come_from_the_statuses() -> None:
    found = state()
    found.config_changed(config("a"))
    assert found.secrets("shop") == {"keys": SecretState.UNKNOWN}
    condition = {
        "type": "Ready",
        "reason": "SecretNotFound",
        "message": "",
        "observedGeneration": 1,
    }
    status = {"conditions": [condition], "missingSecrets": ["keys"]}
    found.config_changed(config("a") | {"status": status})
    assert found.secrets("shop") == {"keys": SecretState.ABSENT}
    assert found.secrets("elsewhere") == {}
    found.config_changed(config("b"))  # of the same Secret, and not looked at yet
    assert found.secrets("shop") == {"keys": SecretState.ABSENT}


def test_the_echo_of_our_own_write_is_no_news() -> None:
    def version(number: int, **spec: Any) -> dict[str, Any]:
        resource = config("a", **spec)
        resource["metadata"] |= {"resourceVersion": str(number), "generation": 1 + len(spec)}
        return resource

    found = state()
    assert found.config_changed(version(1))
    found.status_written(ConfigRef("shop", "a"), version(2))
    assert not found.config_changed(version(2))
    assert found.config_changed(version(3))  # somebody annotated it
    found.status_written(ConfigRef("shop", "a"), version(5, port=9000))
    assert found.config_changed(version(5, port=9000))  # an edit that came together with the echo


def test_the_echo_of_a_write_during_a_list_is_no_news_either() -> None:
    def version(number: int) -> dict[str, Any]:
        resource = of_generation(1, 9000)
        resource["metadata"]["resourceVersion"] = str(number)
        return resource

    found = state()
    found.config_changed(version(1))
    ref = ConfigRef("shop", "a")
    relist(found, version(1), during=lambda: found.status_written(ref, version(2)))
    assert not found.config_changed(version(2))


def test_what_a_list_brought_is_no_news_from_the_watch() -> None:
    found = state()
    relist(found, config("a"))
    assert not found.config_changed(config("a"))


def of_generation(generation: int, port: int, uid: str = "u") -> dict[str, Any]:
    resource = config("a", port=port)
    resource["metadata"] |= {"uid": uid, "generation": generation}
    return resource


def test_a_late_event_does_not_bring_an_old_generation_back() -> None:
    found = state()
    relist(found, of_generation(3, 9003))
    assert not found.config_changed(of_generation(2, 9002))
    entry = found.configs.get(ConfigRef("shop", "a"))
    assert entry is not None
    assert entry.plan is not None
    assert entry.plan.port == 9003
    assert found.config_changed(of_generation(1, 9001, uid="its successor"))


def test_an_event_is_heard_even_where_it_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(0, 10000, 60))
    found = State(examples.settings(), Hearing(lambda: next(seconds)))
    with monkeypatch.context() as patched:
        patched.setattr(ConfigIndex, "with_resource", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            found.config_changed(config("a"))
    for _ in range(10):
        relist(found, config("a"))
    assert found.not_alive() == ()


def test_a_watch_that_never_brings_what_lists_show_is_deaf() -> None:
    seconds = iter(range(0, 1000, 60))
    found = State(examples.settings(), Hearing(lambda: next(seconds)))
    for _ in range(7):
        assert found.not_alive() == ()
        relist(found, config("a"))
    (sentence,) = found.not_alive()
    assert "lists have shown generation 1 of shop/a" in sentence


def with_status(name: str, reason: str, status: str = "False", *, seen: int = 1) -> dict[str, Any]:
    condition = {"type": "Ready", "status": status, "reason": reason, "observedGeneration": seen}
    return config(name) | {"status": {"conditions": [condition]}}


def numbers(a_state: State) -> dict[ReadyReason | None, int]:
    counted = {reason: a_state.number_of(reason) for reason in (*ReadyReason, None)}
    return {reason: number for reason, number in counted.items() if number}


def test_configs_are_counted_by_what_their_status_says() -> None:
    found = state()
    assert numbers(found) == {}
    relist(found, config("a"), with_status("b", "Accepted", "True"))
    assert numbers(found) == {None: 1, ReadyReason.ACCEPTED: 1}
    found.config_changed(with_status("a", "Invalid"))
    found.config_changed(with_status("c", "SecretNotFound"))
    assert numbers(found) == {
        ReadyReason.ACCEPTED: 1,
        ReadyReason.INVALID: 1,
        ReadyReason.SECRET_NOT_FOUND: 1,
    }
    found.config_deleted(config("b"))
    relist(found, with_status("c", "SecretNotFound"))
    assert numbers(found) == {ReadyReason.SECRET_NOT_FOUND: 1}


@pytest.mark.parametrize(
    "resource", [with_status("a", "Accepted", seen=0), with_status("a", "AWordOfAStranger")]
)
def test_a_status_of_another_generation_or_of_strangers_says_nothing(resource: Any) -> None:
    found = state()
    found.config_changed(resource)
    assert numbers(found) == {None: 1}


def test_an_upgraded_cluster_gets_new_plans() -> None:
    found = state()
    found.config_changed(config("a"))
    assert [entry.plan.native for entry in found.configs if entry.plan] == [False]
    assert found.version_read(ClusterVersion(1, 36))
    assert not found.version_read(ClusterVersion(1, 36))
    assert [entry.plan.native for entry in found.configs if entry.plan] == [True]
