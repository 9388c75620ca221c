"""The documents: complete against the code, and without dead links."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from faults.catalogue import FAULTS
from faults.document import DOCUMENT
from shield_operator import names
from shield_operator.decision import SkipReason
from shield_operator.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_readme_lists_every_reason_in_order() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| ", README, re.MULTILINE)
    assert rows == [reason.value for reason in SkipReason]


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
    for key in (names.INJECT_LABEL, names.CONFIG_ANNOTATION, names.KEYS_SECRET_ANNOTATION):
        assert key in README


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []
