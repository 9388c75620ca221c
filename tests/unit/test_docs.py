"""The documents: complete against the code, and without dead links."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

import examples
from faults.catalogue import FAULTS
from faults.document import DOCUMENT
from shield_operator import names
from shield_operator.decision import SkipReason
from shield_operator.events import in_camel_case
from shield_operator.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_readme_lists_every_reason_in_order() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| ", README, re.MULTILINE)
    assert rows == [reason.value for reason in SkipReason]


def test_the_page_on_events_lists_every_reason_in_order() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^\| the controller of a pod.+?spelling: (.+?) \|", page, re.MULTILINE)
    assert listed.split(", ") == [f"`{in_camel_case(reason)}`" for reason in SkipReason]


def test_the_readme_lists_every_setting_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `([A-Z0-9_]+)` \| (?:`(.*?)`)? ?\|", README, re.MULTILINE))
    defaults = {}
    for setting in fields(Settings):
        value = getattr(Settings(), setting.name)
        defaults[setting.metadata["variable"]] = "" if value in (None, {}) else str(value)
    assert rows == defaults


def test_the_reliability_page_has_a_row_for_each_fault_and_the_soaks_figures() -> None:
    """As `make test-faults` and `make soak` write them."""
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| \d+ \|", text, re.MULTILINE)
    assert rows == [fault.title for fault in FAULTS.values()]
    assert "MiB for each 100,000 admissions" in text


def test_the_readme_names_every_key_that_it_should() -> None:
    ours = {key for name, key in vars(names).items() if name.endswith(("_LABEL", "_ANNOTATION"))}
    assert {key for key in ours if key.startswith(names.DOMAIN) and key not in README} == set()


def test_the_readmes_config_is_valid_and_makes_a_plan() -> None:
    (example,) = re.findall(r"```yaml\n(spec:.+?)```", README, re.DOTALL)
    filled = example.replace("<64 hex digits>", "0" * 64)
    spec = yaml.safe_load(filled)["spec"]
    (entry,) = examples.index(examples.config(**spec))
    assert entry.problems == ()


CASES = (ROOT / "tests" / "cases.md").read_text(encoding="utf-8")


def test_the_cases_are_numbered_without_a_gap_and_each_has_a_test() -> None:
    cases = re.findall(r"^(\d+)\. \*\*.+?(?=^\d+\. |^## |\Z)", CASES, re.MULTILINE | re.DOTALL)
    assert [int(number) for number in cases] == list(range(1, len(cases) + 1))
    for case in re.split(r"^\d+\. ", CASES, flags=re.MULTILINE)[1:]:
        assert re.search(
            r"^ +- (golden: |fault: |benchmark: |[a-z_/]+\.py::)", case, re.MULTILINE
        ), case


@pytest.mark.parametrize("reference", re.findall(r"^ +- (.+)$", CASES, re.MULTILINE))
def test_a_case_refers_to_what_is_there(reference: str) -> None:
    kind, _, name = reference.partition(": ")
    match kind:
        case "golden":
            assert (ROOT / "tests" / "golden" / "cases" / name).is_dir()
        case "fault":
            assert name in FAULTS
        case "benchmark":
            assert (ROOT / "benchmarks" / name).is_file()
        case _:
            file, _, test = reference.partition("::")
            text = (ROOT / "tests" / file).read_text(encoding="utf-8")
            assert re.search(rf"^(async )?def {test}\(", text, re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []
