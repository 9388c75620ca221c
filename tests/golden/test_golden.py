"""Each golden case, through the decision and the patch, and then again."""

import copy
import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from definition import FIELDS, schema_of
from golden.cases import CASES, FILES, SETTINGS, Case, is_denied, reason_text
from shield_operator.decision import Decision, decide
from shield_operator.patch import apply, operations

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
ABSENT: Any = object()


def changed_at(value: Any, keys: list[str], change: Callable[[Any], Any]) -> Any:
    """`value` with another content in the field at that path, wherever it has the field."""
    key, rest = keys[0], keys[1:]
    name = key.removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return value
    if not rest:
        other = change(value[name])
        kept = {field: below for field, below in value.items() if field != name}
        return kept if other is ABSENT else {**kept, name: other}
    if key == name:
        return {**value, name: changed_at(value[name], rest, change)}
    return {**value, name: [changed_at(entry, rest, change) for entry in value[name]]}


def changes(path: str) -> Iterator[Callable[[Any], Any]]:
    """Ways to give the field another content: to leave it out, and for a leaf other values."""
    yield lambda _: ABSENT
    match schema_of(path):
        case {"enum": choices}:
            for choice in choices:
                yield functools.partial(lambda choice, _: choice, choice)
        case {"type": "string"}:
            yield lambda text: text.replace("0" * 64, "2" * 64).replace("1" * 64, "2" * 64)
            yield lambda text: f"{text}2"
            yield lambda text: f"/other{text}"
            yield lambda _: "spec.nodeName"
            yield lambda _: "requests.memory"
        case {"type": "integer"}:
            yield lambda number: number + 1


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


def fingerprint(found: Outcome) -> str:
    pod, _ = found
    return str((pod["metadata"].get("annotations") or {}).get("llm-shield.io/injection-hash"))


@pytest.mark.parametrize("path", FIELDS)
def test_each_field_of_the_definition_changes_a_golden_case(path: str) -> None:
    """And the fingerprint with it, but for the selector.

    That the config becomes invalid is no change, unless nothing else could happen.
    """
    is_leaf = not {"properties", "items"} & schema_of(path).keys()
    has_other_values = not path.endswith(("matchFields[].key", "seccompProfile.type"))
    for case, change in itertools.product(CASES, changes(path)):
        configs = case.configs
        changed = [changed_at(config, path.split("."), change) for config in configs]
        if changed == configs:
            continue
        before, after = outcome(case), outcome(case, changed)
        if is_leaf and has_other_values and "invalid-sidecar-config" in after[1]:
            continue
        if visible(before) != visible(after):
            both_injected = before[1].startswith("injected") and after[1].startswith("injected")
            if both_injected and not path.startswith("spec.podSelector"):
                assert fingerprint(before) != fingerprint(after)
            return
    pytest.fail(f"no case would notice if {path} had no effect")
