"""Nothing that goes wrong makes a pod start bare that asked, or keeps others from starting."""

from http import HTTPStatus

import pytest

from faults.catalogue import FAULTS
from faults.prober import KINDS, Outcome, outcome_of
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
    assert FAULTS[name].api_away or report.unanswered == 0, problems
    assert report.recovery < RECOVERY, problems
    assert report.tried > 50, "the prober did not get far"


def test_a_patch_that_makes_an_invalid_pod_counts_against_the_operator() -> None:
    answer = {"message": 'Pod "p" is invalid: spec.volumes[1].name: Duplicate value: "shield"'}
    for kind in KINDS:
        outcome, detail = outcome_of(kind, HTTPStatus.UNPROCESSABLE_ENTITY, answer)
        assert outcome is Outcome.REFUSED
        assert "Duplicate value" in detail


def test_the_api_server_being_away_does_not_count_against_it() -> None:
    answer = {"message": "etcdserver: request timed out"}
    outcome, _ = outcome_of(KINDS[0], HTTPStatus.INTERNAL_SERVER_ERROR, answer)
    assert outcome is Outcome.UNANSWERED
