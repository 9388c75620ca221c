"""The figures in ``docs/reliability.md``: between markers, and as the commands found them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from faults.catalogue import FAULTS
from faults.stage import Report

DOCUMENT: Final = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
FAULTS_SECTION: Final = "faults"
SOAK_SECTION: Final = "soak"

_HEADER: Final = (
    "fault",
    "pods tried",
    "wrongly refused",
    "wrongly bare",
    "refused or bare as it must be",
    "not answered by the API server",
    "time to recover",
    "",
)


def table(reports: Mapping[str, Report]) -> str:
    """The reports as a Markdown table, in the catalogue's order."""
    rows = [
        (
            fault.title,
            str(report.tried),
            str(report.refused),
            str(report.bare + report.meddled),
            str(report.expected),
            str(report.unanswered),
            f"{report.recovery:.1f} s",
            report.remark,
        )
        for name, fault in FAULTS.items()
        if (report := reports.get(name))
    ]
    lines = [_HEADER, ("---", *["---:"] * 6, "---"), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write(section: str, text: str) -> None:
    """Put the text between the section's markers.

    Raises:
        ValueError: where the document does not have them, once each.
    """
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    found = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    changed, count = pattern.subn(lambda _: f"{begin}\n{text}\n{end}", found)
    if count != 1:
        raise ValueError(f"{DOCUMENT} has {count} times {begin} … {end}: it should once")
    DOCUMENT.write_text(changed, encoding="utf-8")
