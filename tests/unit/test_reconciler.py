"""Writing statuses: each once, all of them in the end, whatever fails in between."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest

import examples
from examples import config
from shield_operator.cluster import Cluster, Conflict, Forbidden, NotFound, Refused, Unreachable
from shield_operator.events import Event
from shield_operator.model import ConfigRef
from shield_operator.reconciler import Reconciler
from shield_operator.state import State, config_ref

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


class Statuses:
    """Takes statuses as the API server does, after it failed as often as told."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str]] = []
        self.failures: dict[str, list[Exception]] = {}
        self.secrets = {"keys"}
        self.looks = 0
        self.leads = True

    async def secret_exists(self, _: str, name: str) -> bool:
        self.looks += 1
        return name in self.secrets

    async def apply_status(self, ref: ConfigRef, status: Any) -> Any:
        if self.failures.get(ref.name):
            raise self.failures[ref.name].pop(0)
        self.written.append((ref.name, status["conditions"][0]["reason"]))
        return config(ref.name) | {"status": status}


@pytest.fixture
def cluster() -> Statuses:
    return Statuses()


@pytest.fixture
def state() -> State:
    found = State(examples.settings())
    for name in ("a", "b", "c"):
        found.config_changed(config(name))
    return found


@pytest.fixture
def reconciler(cluster: Statuses, state: State) -> Reconciler:
    found = Reconciler(cast("Cluster", cluster), state, lambda: cluster.leads, now=lambda: NOW)
    found.enqueue_all()
    return found


def reconcile(reconciler: Reconciler) -> None:
    asyncio.run(reconciler.reconcile())


def test_each_is_written_once(cluster: Statuses, reconciler: Reconciler) -> None:
    reconcile(reconciler)
    assert sorted(cluster.written) == [(name, "Accepted") for name in "abc"]
    reconciler.enqueue_all()
    reconcile(reconciler)
    assert len(cluster.written) == 3


def test_a_secret_that_comes_and_goes_is_followed(
    cluster: Statuses, reconciler: Reconciler
) -> None:
    turns: list[tuple[set[str], str]] = [(set(), "SecretNotFound"), ({"keys"}, "Accepted")]
    for secrets, reason in turns:
        cluster.secrets = secrets
        reconciler.enqueue(ConfigRef("shop", "a"))
        reconcile(reconciler)
        assert ("a", reason) == [entry for entry in cluster.written if entry[0] == "a"][-1]


@pytest.mark.parametrize("failure", [Conflict("409"), Refused("500")])
def test_one_that_fails_keeps_nobody_else_waiting_and_is_tried_again(
    cluster: Statuses, reconciler: Reconciler, failure: Exception
) -> None:
    cluster.failures["b"] = [failure, failure]
    for _ in range(2):
        with pytest.raises(type(failure)):
            reconcile(reconciler)
        assert sorted(cluster.written) == [("a", "Accepted"), ("c", "Accepted")]
    reconcile(reconciler)
    assert ("b", "Accepted") in cluster.written


def test_a_config_that_trips_over_a_bug_stops_no_other(
    cluster: Statuses, reconciler: Reconciler
) -> None:
    cluster.failures["b"] = [ZeroDivisionError("poison")]
    cluster.failures["c"] = [Conflict("409")]
    with pytest.raises(ZeroDivisionError) as raised:
        reconcile(reconciler)
    assert raised.value.__notes__ == [
        "while the status of ShieldSidecarConfig shop/b was looked at"
    ]
    assert cluster.written == [("a", "Accepted")]
    reconcile(reconciler)
    assert sorted(cluster.written) == [(name, "Accepted") for name in "abc"]


def test_failed_writes_do_not_use_up_the_patience(
    cluster: Statuses, reconciler: Reconciler
) -> None:
    cluster.failures["a"] = [Forbidden("403")] * 20
    for _ in range(20):
        with pytest.raises(Forbidden):
            reconcile(reconciler)
    reconcile(reconciler)
    assert ("a", "Accepted") in cluster.written


def test_an_outage_loses_nothing(cluster: Statuses, reconciler: Reconciler) -> None:
    cluster.failures = {name: [Unreachable("down")] for name in "abc"}
    for _ in range(3):
        with pytest.raises(Unreachable):
            reconcile(reconciler)
    reconcile(reconciler)
    assert len(cluster.written) == 3


def test_a_config_that_is_gone_is_no_failure(
    cluster: Statuses, reconciler: Reconciler, state: State
) -> None:
    cluster.failures["a"] = [NotFound("gone")]
    state.config_deleted(config("b"))
    reconcile(reconciler)
    assert cluster.written == [("c", "Accepted")]


@pytest.mark.parametrize("told", [True, False])
def test_configs_that_come_and_go_leave_nothing_behind(
    reconciler: Reconciler, state: State, told: bool
) -> None:
    for number in range(20):
        passing = config(f"passing-{number}")
        state.config_changed(passing)
        reconciler.enqueue(config_ref(passing))
        reconcile(reconciler)
        state.config_deleted(passing)
        if told:
            reconciler.enqueue(config_ref(passing))
            reconcile(reconciler)
    if not told:
        reconciler.enqueue_all()
    assert len(reconciler._limit._budgets) == 3


def test_who_does_not_lead_writes_nothing_and_forgets_nothing(
    cluster: Statuses, reconciler: Reconciler
) -> None:
    cluster.leads = False
    reconcile(reconciler)
    assert (cluster.written, cluster.looks) == ([], 0)
    cluster.leads = True
    reconcile(reconciler)
    assert len(cluster.written) == 3


def test_a_lease_that_is_lost_during_the_look_stops_the_write(
    cluster: Statuses, reconciler: Reconciler, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose(namespace: str, name: str) -> bool:
        del namespace, name
        cluster.leads = False
        return True

    monkeypatch.setattr(cluster, "secret_exists", lose)
    reconcile(reconciler)
    assert cluster.written == []


def test_pods_that_come_and_go_cost_no_look_at_secrets(
    cluster: Statuses, reconciler: Reconciler, state: State
) -> None:
    reconcile(reconciler)
    assert cluster.looks == 3
    state.plans = {ConfigRef("shop", "a"): {"0" * 16: 2}}
    reconciler.enqueue_counted([ConfigRef("shop", "a")])
    reconcile(reconciler)
    assert cluster.looks == 3
    assert state.status(ConfigRef("shop", "a"))["pods"] == {"injected": 2, "outdated": 2}
    reconciler.enqueue(ConfigRef("shop", "a"))
    reconcile(reconciler)
    assert cluster.looks == 4


def test_a_config_that_changes_during_the_look_is_looked_at_again(
    cluster: Statuses, reconciler: Reconciler, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def change(namespace: str, name: str) -> bool:
        del namespace
        monkeypatch.undo()
        changed = config("a", secretName="other")
        changed["metadata"]["generation"] = 2
        state.config_changed(changed)
        reconciler.enqueue(ConfigRef("shop", "a"))
        return name in cluster.secrets

    reconcile(reconciler)
    monkeypatch.setattr(cluster, "secret_exists", change)
    reconciler.enqueue(ConfigRef("shop", "a"))
    reconcile(reconciler)
    assert cluster.written[3:] == [("a", "SecretNotFound")]


def test_what_changes_is_told_and_what_is_written_already_is_not(
    cluster: Statuses, state: State
) -> None:
    """A new leader finds what the last one wrote, and told."""
    events: list[Event] = []

    def leader() -> Reconciler:
        found = Reconciler(cast("Cluster", cluster), state, lambda: True, record=events.append)
        found.enqueue_all()
        return found

    def told() -> list[tuple[str, str]]:
        return sorted((event.about.name, event.reason) for event in events)

    reconcile(leader())
    assert told() == []  # right since their first day
    cluster.secrets = set()
    reconcile(leader())
    assert told() == [(name, "SecretNotFound") for name in "abc"]
    reconcile(leader())
    assert len(events) == 3
    cluster.secrets = {"keys"}
    reconcile(leader())
    assert [event.reason for event in events[3:]] == ["Accepted"] * 3


def test_a_status_that_could_not_be_written_is_not_told(cluster: Statuses, state: State) -> None:
    events: list[Event] = []
    cluster.secrets = set()
    cluster.failures["a"] = [Conflict("409")]
    found = Reconciler(cast("Cluster", cluster), state, lambda: True, record=events.append)
    found.enqueue_all()
    with pytest.raises(Conflict):
        reconcile(found)
    assert sorted(event.about.name for event in events) == ["b", "c"]
    reconcile(found)
    assert sorted(event.about.name for event in events) == ["a", "b", "c"]
