"""Taking out what was put in: from any pod, and nothing but that."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from examples import config, index, plan, pod, settings
from shield_operator.decision import Inject, Skip, SkipReason
from shield_operator.patch import apply
from shield_operator.plan import Plan
from shield_operator.uninjection import plan_of, source, uninject
from strategies import CONFIGS, EVERYTHING, PODS

PLANS = {kind: plan(**{"image": None, "secretName": None, **found["spec"]})
         for kind, found in CONFIGS.items()}  # fmt: skip
WIRED = plan(**EVERYTHING)


def injected(a_pod: Any, with_plan: Plan) -> Any:
    changed = copy.deepcopy(a_pod)
    apply(changed, Inject(with_plan))
    return changed


def uninjected(a_pod: Any, with_plan: Plan | None) -> Any:
    changed = copy.deepcopy(a_pod)
    uninject(changed, with_plan)
    return changed


def tidy(value: Any) -> Any:
    """Without what says as much as if it were not there."""
    if isinstance(value, dict):
        below = {key: tidy(one) for key, one in value.items()}
        return {key: one for key, one in below.items() if one not in (None, {}, [])}
    return [tidy(one) for one in value] if isinstance(value, list) else value


@given(PODS, st.sampled_from([*PLANS.values()]))
@hypothesis_settings(max_examples=600, deadline=None)
def test_what_has_nothing_of_ours_comes_back_as_it_was(a_pod: Any, with_plan: Plan) -> None:
    """An empty search path alone cannot be told from none afterwards."""
    paths = (v for c in a_pod["spec"]["containers"] or [] for v in c.get("env") or [])
    assume(all(v.get("value") or v["name"] != "PYTHONPATH" for v in paths))
    bare = uninjected(injected(a_pod, with_plan), with_plan)
    assert tidy(uninjected(injected(bare, with_plan), with_plan)) == tidy(bare)


@given(PODS, st.sampled_from([*PLANS.values()]), st.booleans())
@hypothesis_settings(max_examples=600, deadline=None)
def test_a_second_time_there_is_nothing_left_to_take_out(
    a_pod: Any, with_plan: Plan, knows_the_plan: bool
) -> None:
    known = with_plan if knows_the_plan else None
    once = uninjected(injected(a_pod, with_plan), known)
    assert uninject(copy.deepcopy(once), known) is False


@pytest.mark.parametrize(
    ("args", "left"),
    [
        (["--kv", "shield", "serve", "--chunked"], ["serve"]),
        (["--kv=shield", "serve"], ["serve"]),
        (["--kv", "mine", "--chunked=no"], ["--kv", "mine", "--chunked=no"]),
        (["--kv", "shield"], None),
    ],
)
def test_flags_of_the_plans_value_go_however_they_are_written(
    args: list[str], left: list[str] | None
) -> None:
    a_pod = injected(pod(), WIRED)
    a_pod["spec"]["containers"][0]["args"] = args
    assert uninjected(a_pod, WIRED)["spec"]["containers"][0].get("args") == left


def test_a_container_that_only_has_the_name_is_not_ours() -> None:
    a_pod = pod(containers=[{"name": "web"}, {"name": "llm-shield-proxy", "image": "mine"}])
    skipped = copy.deepcopy(a_pod)
    apply(skipped, Skip(SkipReason.CONTAINER_NAME_CONFLICT, "because"))
    assert skipped != a_pod
    assert uninject(skipped, None) is True
    assert skipped == {**a_pod, "metadata": {"generateName": "web-"}}


def test_another_default_container_is_the_users() -> None:
    annotation = {"kubectl.kubernetes.io/default-container": "log"}
    two = [{"name": "web"}, {"name": "log"}]
    a_pod = injected(pod(annotations=annotation, containers=two), plan())
    assert uninjected(a_pod, plan())["metadata"]["annotations"] == annotation


def test_the_plan_is_that_of_the_config_that_the_pod_names() -> None:
    chosen = settings(K8S_SIDECAR_IMAGE=config()["spec"]["image"])
    configs = index(config(), config(name="other", port=1234), with_settings=chosen)
    entry = next(entry for entry in configs if entry.ref.name == "other")
    assert entry.plan is not None
    a_pod = injected(pod(), entry.plan)
    assert (source(a_pod), plan_of(a_pod, configs)) == ("shop/other", entry.plan)
    assert configs.last_resort is not None
    assert plan_of(injected(pod(), configs.last_resort), configs) == configs.last_resort
    assert plan_of(injected(pod(), entry.plan), index()) is None
    assert plan_of(pod(), configs) is None
