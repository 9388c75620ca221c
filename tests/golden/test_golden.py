"""Each golden case, through the decision and the patch, and then again."""

import copy
from typing import Any

import pytest
import yaml

import examples
from golden.cases import CASES, FILES, Case, reason_text
from shield_operator.decision import Decision, decide
from shield_operator.patch import apply, operations
from shield_operator.selection import ConfigIndex


def decision(case: Case, pod: Any) -> Decision:
    configs = [{**c, "metadata": {"generation": 1, **c["metadata"]}} for c in case.configs]
    metadata = case.namespace["metadata"]
    return decide(
        pod,
        metadata["name"],
        metadata.get("labels", {}),
        {},
        ConfigIndex.of(examples.settings(), examples.CURRENT, configs),
        examples.settings(),
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case: Case, request: pytest.FixtureRequest) -> None:
    found = decision(case, case.pod)
    changed = copy.deepcopy(case.pod)
    apply(changed, found)
    if request.config.getoption("--update-golden"):
        text = yaml.safe_dump(changed, sort_keys=False, allow_unicode=True)
        (case.folder / "expected.yaml").write_text(text, encoding="utf-8")
        (case.folder / "reason.txt").write_text(reason_text(found), encoding="utf-8")
    assert changed == case.expected
    assert reason_text(found) == case.reason
    assert operations(changed, decision(case, changed)) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_complete_and_has_a_namespace_of_its_own(case: Case) -> None:
    assert {path.name for path in case.folder.iterdir()} == FILES
    assert case.namespace["metadata"]["name"] == f"golden-{case.name}"
