"""The Lease as the library's lock writes it; the rest is tried on a real API server."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from shield_operator.cluster.lease import _text


@pytest.mark.parametrize("hours", [-7, 0, 5])
def test_times_are_utc_wherever_the_process_runs(hours: int) -> None:
    here = timezone(timedelta(hours=hours))
    now = datetime(2026, 11, 29, 12, 0, 0, 250, tzinfo=UTC)
    assert _text(now.astimezone(here)) == "2026-11-29 12:00:00.000250"


def test_a_time_always_has_a_fraction() -> None:
    """The API server does not read a time of a Lease without one."""
    assert _text(datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)).endswith("12:00:00.000001")
