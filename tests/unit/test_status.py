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
    ready,
    referenced_secrets,
    secret_state,
    status_to_write,
)

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
PRESENT = {"keys": SecretState.PRESENT}
ABSENT = {"keys": SecretState.ABSENT}


def entry(resource: dict[str, Any] | None = None) -> IndexedConfig:
    (found,) = index(resource or config())
    return found


def written(
    secrets: dict[str, SecretState], live: Any = None, resource: Any = None, later: int = 0
) -> Any:
    found = entry(resource)
    return status_to_write(found, ready(found, secrets), live, NOW + timedelta(seconds=later))


def condition(status: Any) -> tuple[str, str, str]:
    (found,) = status["conditions"]
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
    assert "Secret keys is not in namespace shop" in message


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
    ("reason", "generation", "state"),
    [
        (ReadyReason.ACCEPTED, 1, SecretState.PRESENT),
        (ReadyReason.SECRET_NOT_FOUND, 1, SecretState.ABSENT),
        (ReadyReason.INVALID, 1, SecretState.UNKNOWN),
        (ReadyReason.SECRET_NOT_FOUND, 0, SecretState.UNKNOWN),
    ],
)
def test_every_replica_learns_of_the_secret_from_the_status(
    reason: ReadyReason, generation: int, state: SecretState
) -> None:
    found = {"type": "Ready", "reason": reason.value, "observedGeneration": generation}
    resource = config() | {"status": {"conditions": [{"type": "Other"}, found]}}
    assert secret_state(resource) is state
    assert secret_state(config()) is SecretState.UNKNOWN
