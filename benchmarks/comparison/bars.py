"""What was promised, and whether the figures keep it."""

from dataclasses import dataclass
from typing import Any, Final

from benchmarks.comparison.figures import figure
from benchmarks.comparison.peers import GO, NOOP, OURS, PROXY, PYTHON_PEERS, TITLES

MB: Final = 1_000_000
_CALLS: Final = 0.01
"""Calls for each admission that may be the loops': a request that made any would make one."""


@dataclass(frozen=True)
class Bar:
    """A promise: `found` is at the most `limit`, or at the least where `at_least`."""

    title: str
    found: float | None
    limit: float
    unit: str = ""
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether it is kept; not, where there is no figure."""
        if self.found is None:
            return False
        return self.found >= self.limit if self.at_least else self.found <= self.limit

    @property
    def missed_by(self) -> float:
        """The part of the limit by which it is missed; 0 where it is met."""
        if self.met or self.found is None:
            return 0.0
        return abs(self.found - self.limit) / self.limit

    @property
    def wanted(self) -> str:
        """The limit, in words."""
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}{self.unit}"

    @property
    def verdict(self) -> str:
        """In words."""
        if self.found is None:
            return "no figure: the machine was too busy, or nothing was answered"
        return "met" if self.met else f"**missed by {self.missed_by:.0%}**"


def added(results: Any, name: str, turn: str = "plain/1") -> float | None:
    """Milliseconds that a webhook adds to a creation: the median of the rounds' medians."""
    stored = results["api"][turn][name]["added_p50_ms"]
    return figure(stored).median if stored else None


def judge(results: Any) -> list[Bar]:
    """Every promise, with what was found."""
    ours, floor = added(results, OURS), added(results, NOOP)
    found = [
        Bar(
            "added p50 of a creation, over the controller-runtime webhook's",
            _ratio(ours, added(results, GO)),
            1.2,
            " ×",
        )
    ]
    for peer in PYTHON_PEERS:
        above = _less(added(results, peer), floor)
        title = f"{TITLES[peer]}: added p50 over this operator's, the no-op's share taken off both"
        found.append(Bar(title, _ratio(above, _less(ours, floor)), 1.5, " ×", at_least=True))
    found += [
        Bar(
            "direct throughput of a process, over llm-shield-proxy's own webhook's",
            _ratio(_throughput(results, OURS), _throughput(results, PROXY)),
            2.5,
            " ×",
            at_least=True,
        ),
        Bar(
            "exponent of the time over the pod's size",
            results["series"]["of"][OURS]["exponent"],
            1.1,
        ),
    ]
    return found + _memory(results)


def _memory(results: Any) -> list[Bar]:
    counts = sorted(results["configs"], key=int)
    few, many = results["configs"][counts[0]], results["configs"][counts[-1]]
    of_a_config = (many["resident"] - few["resident"]) / (int(counts[-1]) - int(counts[0]))
    warm = [sample["resident"] for sample in results["endurance"][1:]]
    calls = results["calls"]
    return [
        Bar(
            f"p50 with {int(counts[-1]):,} configs over p50 with {counts[0]} (selection is flat)",
            _ratio(figure(many["p50_ms"]).median, figure(few["p50_ms"]).median),
            1.1,
            " ×",
        ),
        Bar(
            f"steady resident memory with {int(counts[-1]):,} configs",
            many["resident"] / MB,
            100,
            " MB",
        ),
        Bar("resident memory of a config", of_a_config / 1024, 4, " KiB"),
        Bar(
            "change of the resident memory in a long run, after its first tenth",
            max(abs(one - warm[0]) for one in warm) / MB,
            2,
            " MB",
        ),
        Bar(
            "calls to the API server for each admission, beyond those of the loops",
            max(calls["answering"] - calls["idle"], 0) / max(calls["admissions"], 1),
            _CALLS,
        ),
    ]


def _throughput(results: Any, name: str) -> float | None:
    stored = results["direct"][name]["plain/16"]["per_second"]
    return figure(stored).median if stored else None


def _ratio(above: float | None, below: float | None) -> float | None:
    """None where one is missing, or vanishes in the machine's noise."""
    return above / below if above and below and min(above, below) > 0 else None


def _less(one: float | None, other: float | None) -> float | None:
    return one - other if one is not None and other is not None else None
