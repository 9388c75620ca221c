"""The faults run beside each other; what they found is printed, and written where that is asked."""

import os
import time
from collections.abc import Iterator

import pytest

from faults import document
from faults.catalogue import FAULTS
from faults.runs import Runs
from faults.stage import Report

_REPORTS = pytest.StashKey[dict[str, Report]]()
_BEGIN = pytest.StashKey[tuple[float, float]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_REPORTS] = {}
    config.stash[_BEGIN] = (time.monotonic(), os.getloadavg()[0])


@pytest.fixture(scope="session")
def reports(request: pytest.FixtureRequest) -> dict[str, Report]:
    """What is known so far, by the fault's name."""
    return request.config.stash[_REPORTS]


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """Only the faults that were chosen are run."""
    chosen = {
        name
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and hasattr(item, "callspec")
        and isinstance(name := item.callspec.params.get("name"), str)
        and name in FAULTS
    }
    with Runs(chosen) as running:
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.config.stash.get(_REPORTS, {})
    if not reports:
        return
    terminalreporter.section("faults")
    begin, load = terminalreporter.config.stash[_BEGIN]
    seconds = time.monotonic() - begin
    found = (
        f"{document.table(reports)}\n\n{len(reports)} faults in {seconds:.0f} s. The machine has "
        f"{os.cpu_count()} cores; its load average was {load:.1f} when it began."
    )
    terminalreporter.write_line(found)
    if terminalreporter.config.getoption("--write-reliability"):
        document.write(document.FAULTS_SECTION, found)
