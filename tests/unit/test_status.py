"""A config's status: what it says, and that it is written once a change."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import examples
from examples import config, index
from shield_operator.model import SecretState
from shield_operator.selection import IndexedConfig
from shield_operator.status import (
    ReadyReason,
    absent_secrets,
    news,
    referenced_secrets,
    status_to_write,
    wanted_status,
)

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
PRESENT = {"keys": SecretState.PRESENT}
ABSENT = {"keys": SecretState.ABSENT}


def entry(resource: dict[str, Any] | None = None) -> IndexedConfig:
    (found,) = index(resource or config())
    return found


def written(
    secrets: dict[str, SecretState],
    live: Any = None,
    resource: Any = None,
    later: int = 0,
    plans: dict[str, int] | None = None,
) -> Any:
    wanted = wanted_status(entry(resource), secrets, plans, live)
    return status_to_write(wanted, live, NOW + timedelta(seconds=later))


def condition(status: Any, kind: str = "Ready") -> tuple[str, str, str]:
    (found,) = [one for one in status["conditions"] if one["type"] == kind]
    return found["status"], found["reason"], found["message"]


def test_accepted() -> None:
    status = written(PRESENT)
    assert condition(status) == ("True", "Accepted", "pods get the sidecar")
    assert status["observedGeneration"] == 1
    assert len(status["injectionHash"]) == 16


def test_accepted_without_a_secret_says_what_that_means() -> None:
    state, reason, message = condition(written({}, resource=config(secretName=None)))
    assert (state, reason) == ("True", "Accepted")
    assert "401" in message


def test_secret_not_found_names_it() -> None:
    state, reason, message = condition(written(ABSENT))
    assert (state, reason) == ("False", "SecretNotFound")
    assert message == (
        "Secret keys is not in namespace shop: create it; until then new pods wait for it"
    )
    assert written(ABSENT)["missingSecrets"] == ["keys"]
    assert "missingSecrets" not in written(PRESENT, live=written(ABSENT))


@pytest.mark.parametrize(
    ("names", "said"),
    [(("a", "b"), "Secrets a and b are"), (("c", "a", "b"), "Secrets a, b and c are")],
)
def test_several_secrets_that_are_not_found_are_all_named(names: Any, said: str) -> None:
    status = written(dict.fromkeys(names, SecretState.ABSENT))
    _, _, message = condition(status)
    assert message == (
        f"{said} not in namespace shop: create them; until then new pods wait for them"
    )
    assert status["missingSecrets"] == sorted(names)


def test_invalid_names_every_problem() -> None:
    status = written({}, resource=config(image="x:latest", port=0))
    state, reason, message = condition(status)
    assert (state, reason) == ("False", "Invalid")
    assert "spec.image" in message
    assert "; spec.port" in message
    assert "injectionHash" not in status


def test_a_very_long_message_fits_the_schema() -> None:
    variables = [{"name": f"V{number}", "value": number} for number in range(490)] * 1
    variables[0]["name"] = "x" * 60000
    _, _, message = condition(written({}, resource=config(env=variables)))
    assert len(message) <= 32768


def test_nothing_is_written_when_nothing_changed() -> None:
    status = written(PRESENT)
    assert written(PRESENT, live=status, later=60) is None


def test_the_transition_time_moves_with_the_status_only() -> None:
    first = written(ABSENT)
    changed = config(env=[{"name": "A", "value": "1"}])
    changed["metadata"]["generation"] = 2
    second = written(ABSENT, live=first, resource=changed, later=60)
    assert second["observedGeneration"] == 2
    time = "lastTransitionTime"
    assert second["conditions"][0][time] == first["conditions"][0][time]
    third = written(PRESENT, live=second, resource=changed, later=120)
    assert third["conditions"][0][time] == "2026-11-29T12:02:00Z"


@pytest.mark.parametrize(
    ("resource", "secrets"),
    [
        (config(), ("keys",)),
        (config(secretName=None), ()),
        (config(image=None), ()),
        (config("default", "llm-shield-system"), ()),
        (config("other", "llm-shield-system"), ("keys",)),
    ],
)
def test_which_secrets_are_looked_for(resource: Any, secrets: tuple[str, ...]) -> None:
    assert referenced_secrets(entry(resource), examples.settings()) == secrets


@pytest.mark.parametrize(
    ("reason", "generation", "absent"),
    [
        (ReadyReason.ACCEPTED, 1, frozenset()),
        (ReadyReason.INVALID, 1, None),
        (ReadyReason.ACCEPTED, 0, None),
    ],
)
def test_every_replica_learns_of_the_secrets_from_the_status(
    reason: ReadyReason, generation: int, absent: Any
) -> None:
    found = {"type": "Ready", "reason": reason.value, "observedGeneration": generation}
    resource = config() | {"status": {"conditions": [{"type": "Other"}, found]}}
    assert absent_secrets(resource) == absent
    assert absent_secrets(config()) is None


@pytest.mark.parametrize("names", [("keys",), ("a.and", "b", "is-not-in")])
def test_the_absent_secrets_are_read_back_whatever_the_message_says(names: tuple[str, ...]) -> None:
    secrets = dict.fromkeys(names, SecretState.ABSENT) | {"there": SecretState.PRESENT}
    status = written(secrets)
    status["conditions"][0]["message"] = "Dieses Secret ist nicht da"
    assert absent_secrets(config() | {"status": status}) == frozenset(names)
    del status["missingSecrets"]
    assert absent_secrets(config() | {"status": status}) is None


# --- Pods -----------------------------------------------------------------------------------------


def current() -> str:
    plan = entry().plan
    assert plan is not None
    return plan.fingerprint


def test_without_pods_everything_is_current() -> None:
    status = written(PRESENT, plans={})
    assert status["pods"] == {"injected": 0, "outdated": 0}
    assert condition(status, "UpToDate")[:2] == ("True", "AllCurrent")


def test_outdated_pods_are_counted_and_the_message_says_what_to_do() -> None:
    status = written(PRESENT, plans={current(): 3, "0" * 16: 2, "": 1})
    assert status["pods"] == {"injected": 6, "outdated": 3}
    state, reason, message = condition(status, "UpToDate")
    assert (state, reason) == ("False", "OutdatedPods")
    assert message.startswith("3 of 6 pods")
    assert "recreate them" in message


def test_an_edit_makes_pods_outdated_before_anybody_counts_again() -> None:
    plans = {current(): 3}
    edited = config(port=9000)
    assert written(PRESENT, plans=plans)["pods"] == {"injected": 3, "outdated": 0}
    assert written(PRESENT, plans=plans, resource=edited)["pods"] == {"injected": 3, "outdated": 3}


def test_an_invalid_config_has_no_plan_to_compare_its_pods_with() -> None:
    before = written(PRESENT, plans={current(): 3})
    status = written({}, live=before, plans={current(): 3}, resource=config(port=0))
    assert status["pods"] == {"injected": 3}
    assert [one["type"] for one in status["conditions"]] == ["Ready"]


def test_before_the_first_count_what_another_leader_wrote_of_pods_stays() -> None:
    before = written(PRESENT, plans={current(): 3, "0" * 16: 2})
    assert written(PRESENT, live=before) is None
    status = written(ABSENT, live=before, later=60)
    assert status["pods"] == before["pods"]
    assert condition(status, "UpToDate") == condition(before, "UpToDate")


def test_only_what_a_status_says_anew_is_news() -> None:
    live = written(PRESENT, plans={current(): 3})
    wanted = wanted_status(entry(), PRESENT, {current(): 3, "": 1}, live)
    assert [condition.reason for condition in news(wanted, live)] == ["OutdatedPods"]
    assert [condition.reason for condition in news(wanted, None)] == ["Accepted", "OutdatedPods"]


def test_pods_that_come_and_go_are_written_once_a_change() -> None:
    first = written(PRESENT, plans={current(): 3})
    assert written(PRESENT, live=first, plans={current(): 3}, later=60) is None
    second = written(PRESENT, live=first, plans={current(): 4}, later=60)
    assert second["pods"]["injected"] == 4
    assert second["conditions"] == first["conditions"]
