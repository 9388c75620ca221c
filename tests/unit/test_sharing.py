"""What configs have in common is kept once."""

import gc
import json
import tracemalloc
from typing import Any

import pytest

from examples import config, index, plan
from shield_operator.model import frugal, shared
from shield_operator.selection import ConfigIndex


def test_equal_parts_are_one() -> None:
    assert shared({"a": [1, "x"]}) is shared({"a": [1, "x"]})


def test_numbers_of_another_kind_are_other_parts() -> None:
    assert shared([1]) is not shared([True])
    assert shared([1]) is not shared([1.0])
    assert [*map(type, shared([1, True, 1.0]))] == [int, bool, float]


def test_two_plans_share_their_resources_and_security_context() -> None:
    limits = {"limits": {"cpu": "2"}}
    one, other = (plan(resources=limits, env=[{"name": "N", "value": n}]) for n in "12")
    for key in ("ports", "resources", "startupProbe", "volumeMounts", "securityContext"):
        assert one.sidecar[key] is other.sidecar[key]
    assert one.sidecar["env"] != other.sidecar["env"]


def test_a_config_costs_less_than_4_kb() -> None:
    """That differs from the others by its name, its selector and a variable."""

    def make(count: int) -> ConfigIndex:
        return index(
            *(
                config(
                    f"config-{number}",
                    podSelector={"matchLabels": {"app": f"app-{number}"}},
                    env=[{"name": "TEAM", "value": f"team-{number}"}],
                )
                for number in range(count)
            )
        )

    kept = [make(1)]  # what is made once, for all
    gc.collect()
    tracemalloc.start()
    kept.append(make(200))
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size / 200 < 4096


def test_strings_that_were_met_before_are_the_same() -> None:
    one, other = (json.loads('{"aKey": ["a value", {"b": null}]}') for _ in range(2))
    first, second = frugal(one), frugal(other)
    assert first == one
    (key,), (same,) = first, second
    assert key is same
    assert first["aKey"][0] is second["aKey"][0]


@pytest.mark.parametrize("part", [None, 1, True, 1.5, "", [], {}, "x" * 10_000, {1: {True: "a"}}])
def test_all_else_stays_as_it_is(part: Any) -> None:
    assert repr(frugal(part)) == repr(part)
