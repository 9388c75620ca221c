"""The documents: complete against the code, and without dead links."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

import examples
import reference
from definition import FIELDS
from faults.catalogue import FAULTS
from faults.document import DOCUMENT
from shield_operator import names
from shield_operator.cli import kubectl_shield
from shield_operator.decision import SkipReason
from shield_operator.events import in_camel_case
from shield_operator.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
_NOT_OURS = frozenset({".venv", "build", "dist"})
DOCUMENTS = sorted(
    path.relative_to(ROOT)
    for path in ROOT.rglob("*.md")
    if not _NOT_OURS & set(path.relative_to(ROOT).parts)
)
"""Every one of the repository, wherever it is."""

CONFIGURE = reference.DOCUMENT.read_text(encoding="utf-8")
WRITTEN_BY_HAND = CONFIGURE.partition(reference.BEGIN)[0]


def test_the_configuration_lists_every_reason_in_order() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| ", WRITTEN_BY_HAND, re.MULTILINE)
    assert rows == [reason.value for reason in SkipReason]


def test_the_page_on_events_lists_every_reason_in_order() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^\| the controller of a pod.+?spelling: (.+?) \|", page, re.MULTILINE)
    assert listed.split(", ") == [f"`{in_camel_case(reason)}`" for reason in SkipReason]


def test_the_configuration_lists_every_setting_with_its_default() -> None:
    rows = dict(
        re.findall(r"^\| `([A-Z0-9_]+)` \| (?:`(.*?)`)? ?\|", WRITTEN_BY_HAND, re.MULTILINE)
    )
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


def test_the_configuration_names_every_key_that_it_should() -> None:
    ours = {key for name, key in vars(names).items() if name.endswith(("_LABEL", "_ANNOTATION"))}
    of_domain = {key for key in ours if key.startswith(names.DOMAIN)}
    assert {key for key in of_domain if key not in WRITTEN_BY_HAND} == set()


def test_the_configuration_has_every_field_as_the_definition_has_it() -> None:
    assert reference.document(CONFIGURE) == CONFIGURE, "run `make docs`"


@pytest.mark.parametrize("path", FIELDS)
def test_a_field_is_in_its_objects_table_or_tree(path: str) -> None:
    fields = CONFIGURE.partition(reference.BEGIN)[2]
    parent, _, name = path.rpartition(".")
    while (heading := f"\n### {parent}\n") not in fields:
        parent = parent.rpartition(".")[0]
    section = fields.partition(heading)[2].partition("\n### ")[0]
    assert re.search(rf"^(\| `{name}` \|| *{name}: )", section, re.MULTILINE)


def examples_in(document: Path) -> Iterator[Any]:
    """The specs of the configs that a document shows, its placeholders filled in."""
    text = document.read_text(encoding="utf-8")
    blocks = [
        *re.findall(r"```yaml\n(.+?)```", text, re.DOTALL),
        *re.findall(r"<<'EOF'\n(.+?)\nEOF\n", text, re.DOTALL),
    ]
    for block in blocks:
        for found in yaml.safe_load_all(block.replace("<64 hex digits>", "0" * 64)):
            if isinstance(found, dict) and (
                found.keys() == {"spec"} or found.get("kind") == names.KIND
            ):
                yield found["spec"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_the_configs_that_documents_show_are_valid_and_make_plans(document: Path) -> None:
    for spec in examples_in(ROOT / document):
        (entry,) = examples.index(examples.config(**spec))
        assert entry.problems == ()


@pytest.mark.parametrize(
    ("document", "configs"), [("README.md", 1), ("docs/configure.md", 2), ("docs/migrating.md", 1)]
)
def test_a_document_shows_configs(document: str, configs: int) -> None:
    assert len(list(examples_in(ROOT / document))) == configs


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


@pytest.mark.parametrize("document", DOCUMENTS, ids=str)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose(document))
    assert [link for link in links if not leads_somewhere(document, link)] == []


def leads_somewhere(document: Path, link: str) -> bool:
    """Whether the file is there, in the repository, and has the heading."""
    path, _, anchor = link.partition("#")
    target = ROOT / document if not path else (ROOT / document.parent / path).resolve()
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or anchor in anchors(target.relative_to(ROOT))


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives to a document's headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", prose(document), re.MULTILINE):
        text = re.sub(r"\[(.+?)\]\(.+?\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        same = sum(1 for other in found if re.fullmatch(rf"{re.escape(anchor)}(-\d+)?", other))
        found.add(f"{anchor}-{same}" if anchor in found else anchor)
    return found


def prose(document: Path) -> str:
    """A document without its blocks of code."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.MULTILINE | re.DOTALL)


TROUBLESHOOT = (ROOT / "docs" / "troubleshoot.md").read_text(encoding="utf-8")


def test_there_is_a_way_out_of_every_reason_to_skip() -> None:
    section = TROUBLESHOOT.partition("\n## A pod was skipped\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|", section, re.MULTILINE)
    told = [reason for row in rows for reason in re.findall(r"`(.+?)`", row)]
    assert told == [reason.value for reason in SkipReason]


def test_it_is_told_what_a_cross_in_each_check_means() -> None:
    section = TROUBLESHOOT.partition("\n## A cross in check\n")[2]
    healthy = (ROOT / "tests" / "cli" / "golden" / "check-healthy.txt").read_text(encoding="utf-8")
    titles = re.findall(r"^ *\d+ ✓ (.+?)  ", healthy, re.MULTILINE)
    assert len(titles) > 10
    rows = re.findall(r"^\| (.+?) \| .+? \|$", section, re.MULTILINE)
    assert [row for row in rows if row != "check"] == titles


def test_every_symptom_is_in_the_list_at_the_top_with_a_command() -> None:
    top, _, sections = TROUBLESHOOT.partition("\n## ")
    rows = re.findall(r"^\| \[.+?\]\(#(.+?)\) \| (.+?) \|$", top, re.MULTILINE)
    headings = re.findall(r"^## (.+)$", f"## {sections}", re.MULTILINE)
    assert len(rows) == len(headings)
    without = [command for _, command in rows if "kubectl shield" not in command]
    assert without == ["read what it says", "its Secret", "its advice"]


COMMANDS = [
    (document, words)
    for document in DOCUMENTS
    for words in re.findall(
        r"kubectl shield ([a-z]+(?: [^`|\n#;,()…]+)?)",
        (ROOT / document).read_text(encoding="utf-8"),
    )
]
"""Every use of a command of the plugin, in commands and in prose."""


@pytest.mark.parametrize(("document", "words"), COMMANDS, ids=str)
def test_the_plugin_has_the_commands_and_options_that_documents_use(
    document: Path, words: str
) -> None:
    del document
    name, *arguments = words.split()
    known = {
        option for parameter in kubectl_shield.commands[name].params for option in parameter.opts
    }
    used = {
        word.partition("=")[0] for word in arguments if re.fullmatch(r"--?[a-zA-Z][a-z-]*", word)
    }
    assert used <= known
