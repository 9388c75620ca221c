"""So many at once, and so many a second in the long run."""

from shield_operator.allowance import Allowance


def test_a_burst_then_one_for_each_second() -> None:
    allowance = Allowance(burst=3, a_second=0.5, since=100.0)
    assert [allowance.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert [allowance.take(102.0) for _ in range(2)] == [True, False]


def test_a_long_pause_gives_no_more_than_a_burst() -> None:
    allowance = Allowance(burst=3, a_second=0.5, since=0.0)
    assert [allowance.take(1e6) for _ in range(4)] == [True, True, True, False]
