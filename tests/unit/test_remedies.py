"""What `status` and `explain` advise, where making pods anew would be no use."""

from typing import Any

import pytest

import examples
from shield_operator.explanation import explain
from shield_operator.model import SecretState
from shield_operator.ownership import Workload
from shield_operator.plan import NEWEST_SUPPORTED
from shield_operator.remedies import in_template, remedy
from shield_operator.selection import ConfigIndex

WEB = Workload("shop", "Deployment", "web")
RESTART = "kubectl rollout restart deployment/web -n shop"


def advised(
    *configs: dict[str, Any],
    secret: SecretState = SecretState.PRESENT,
    asks: str = "true",
    **shape: Any,
) -> tuple[str, bool]:
    index = ConfigIndex.of(examples.settings(), NEWEST_SUPPORTED, configs)
    labels, secrets = {"llm-shield.io/inject": asks}, {"keys": secret}
    pod = examples.pod(**shape)
    anew = explain(pod, "shop", labels, secrets, index, index.settings)
    found = remedy(WEB, pod, anew, secrets)
    return found.sentence, found.helps


def test_the_command_alone_where_it_helps() -> None:
    assert advised(examples.config()) == (RESTART, True)
    assert advised(examples.config(), secret=SecretState.UNKNOWN) == (RESTART, True)


@pytest.mark.parametrize(
    ("configs", "secret", "first"),
    [
        ((), SecretState.PRESENT, "first create a ShieldSidecarConfig in namespace shop"),
        ((examples.config(),), SecretState.ABSENT, "first create Secret keys in namespace shop;"),
        ((examples.config(port=0),), SecretState.PRESENT, "first mend the config ("),
    ],
)
def test_what_is_missing_comes_before_the_command(
    configs: tuple[dict[str, Any], ...], secret: SecretState, first: str
) -> None:
    told, helps = advised(*configs, secret=secret)
    assert told.startswith(first)
    assert told.endswith(f"; then: {RESTART}")
    assert helps


def test_no_command_where_the_next_pod_would_be_skipped_or_does_not_ask() -> None:
    told, helps = advised(examples.config(), hostNetwork=True)
    assert "would not get the sidecar (host-network)" in told
    assert "kubectl" not in told
    assert not helps
    assert "nothing asks for it" in advised(examples.config(), asks="false")[0]


def test_a_sidecar_in_the_template_is_not_restarted_away() -> None:
    told = in_template(WEB).sentence
    assert told.startswith("the sidecar stands in the template of deployment/web: inject its")
    assert "rollout" not in told
