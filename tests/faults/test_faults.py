"""Nothing that goes wrong makes a pod start bare that asked, or keeps others from starting."""

import pytest

from faults.catalogue import FAULTS
from faults.runs import Runs
from faults.stage import Report

RECOVERY = 10.0
"""Seconds after the end of the fault."""


@pytest.mark.parametrize("name", FAULTS)
def test_no_pod_is_bare_or_refused_that_should_not_be(
    name: str, runs: Runs, reports: dict[str, Report]
) -> None:
    report = reports[name] = runs.report(name)
    problems = "\n".join((*report.problems, runs.log(name)))
    assert (report.refused, report.bare, report.meddled) == (0, 0, 0), problems
    assert not report.problems, problems
    assert report.recovery < RECOVERY, problems
    assert report.tried > 50, "the prober did not get far"
