"""Each golden case, through the decision and the patch, and then again."""

import copy
from typing import Any

import pytest
import yaml

from golden.cases import CASES, FILES, SETTINGS, Case, is_denied, reason_text
from shield_operator.decision import Decision, decide
from shield_operator.patch import apply, operations
from unit.test_model_parity import FIELDS

Outcome = tuple[Any, str]


def decision(case: Case, pod: Any, configs: list[dict[str, Any]] | None = None) -> Decision:
    metadata = case.namespace["metadata"]
    labels = metadata.get("labels", {})
    return decide(pod, metadata["name"], labels, {}, case.index(configs), case.settings)


def outcome(case: Case, configs: list[dict[str, Any]] | None = None) -> Outcome:
    """The pod afterwards, and the reason; a pod that is refused stays as it was."""
    found = decision(case, case.pod, configs)
    changed = case.pod
    if not is_denied(case, found):
        apply(changed, found)
    return changed, reason_text(case, found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case: Case, request: pytest.FixtureRequest) -> None:
    changed, reason = outcome(case)
    if request.config.getoption("--update-golden"):
        text = yaml.safe_dump(changed, sort_keys=False, allow_unicode=True)
        (case.folder / "expected.yaml").write_text(text, encoding="utf-8")
        (case.folder / "reason.txt").write_text(reason, encoding="utf-8")
        return
    assert changed == case.expected
    assert reason == case.reason


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_second_time_nothing_changes(case: Case) -> None:
    once = case.expected
    found = decision(case, once)
    if not is_denied(case, found):
        assert operations(once, found) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_complete_and_has_a_namespace_of_its_own(case: Case) -> None:
    assert {path.name for path in case.folder.iterdir()} - {SETTINGS} == FILES
    assert case.namespace["metadata"]["name"] == f"golden-{case.name}"


# --- No field without a golden case ---------------------------------------------------------------

SEALS = ("llm-shield.io/injection-hash", "llm-shield.io/config-generation")


def without(value: Any, keys: list[str]) -> Any:
    """`value` without the field at that path; the same object where it has none."""
    key, rest = keys[0], keys[1:]
    name = key.removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return value
    if not rest:
        return {other: below for other, below in value.items() if other != name}
    below = value[name]
    if key == name:
        changed = without(below, rest)
        return value if changed is below else {**value, name: changed}
    entries = [without(entry, rest) for entry in below]
    same = all(new is old for new, old in zip(entries, below, strict=True))
    return value if same else {**value, name: entries}


def visible(found: Outcome) -> Any:
    """An outcome but for the fingerprints, which any change of a config changes."""
    pod, reason = copy.deepcopy(found)
    for seal in SEALS:
        (pod["metadata"].get("annotations") or {}).pop(seal, None)
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        for variable in container.get("env") or []:
            if variable["name"] == "LLM_SHIELD_INJECTED":
                variable["value"] = variable["value"].partition("@")[0]
    return pod, reason


@pytest.mark.parametrize("path", FIELDS)
def test_each_field_of_the_definition_changes_a_golden_case(path: str) -> None:
    for case in CASES:
        configs = case.configs
        changed = [without(config, path.split(".")) for config in configs]
        if changed != configs and visible(outcome(case, changed)) != visible(outcome(case)):
            return
    pytest.fail(f"no case would notice if {path} had no effect")
