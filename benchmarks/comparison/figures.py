"""Medians with their spread, and fitted exponents."""

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple, Self


class Figure(NamedTuple):
    """The median of several rounds, and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Of one value for each round.

        Raises:
            StatisticsError: where there is none.
        """
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    def text(self, form: str = ".2f") -> str:
        """For a table: the median, and in brackets between which the middle half of rounds was."""
        low, high = format(self.low, form), format(self.high, form)
        median = format(self.median, form)
        return median if low == high else f"{median} ({low}–{high})"


def figure(stored: Any) -> Figure:
    """A figure as JSON kept it: a list of three."""
    return Figure(*stored)


def exponent(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The slope of the times over the sizes, both as logarithms: 1 is linear."""
    slope, _ = statistics.linear_regression([*map(math.log, sizes)], [*map(math.log, times)])
    return slope
