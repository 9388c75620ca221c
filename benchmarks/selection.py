"""Choosing a config: the time it takes, and the memory that configs cost, by how many there are.

    python benchmarks/selection.py

The peer of each row is the first one: what matters is that the time does not grow.
"""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Final

import examples
from shield_operator.plan import Plan
from shield_operator.selection import ConfigIndex, select

SIZES: Final = ((1, 1), (100, 40), (5000, 2000))
"""Configs, and the namespaces that they are spread over."""
ROUNDS: Final = 21
CALLS: Final = 2000


def main() -> None:
    """Print the table."""
    print(
        f"{'configs':>8} {'namespaces':>11} {'µs each':>8} {'ratio':>6} {'bytes of a config':>18}"
    )
    first = 0.0
    for configs, namespaces in SIZES:
        index, size = measured(partial(make_index, configs, namespaces))
        labels = {"app": "app-0", "tier": "front"}
        choose = partial(select, {}, labels, "team-0", index)
        assert isinstance(choose(), Plan)
        spent = median_time(choose)
        first = first or spent
        row = (configs, namespaces, spent * 1e6, spent / first, size / configs)
        print("{:8} {:11} {:8.2f} {:6.2f} {:18.0f}".format(*row))


def make_index(configs: int, namespaces: int) -> ConfigIndex:
    """An index of configs of which each has a selector of its own."""
    return ConfigIndex.of(
        examples.settings(),
        examples.CURRENT,
        (
            examples.config(
                f"config-{number // namespaces}",
                f"team-{number % namespaces}",
                podSelector={"matchLabels": {"app": f"app-{number // namespaces}"}},
                env=[{"name": "TEAM", "value": f"team-{number}"}],
            )
            for number in range(configs)
        ),
    )


def measured(make: Callable[[], ConfigIndex]) -> tuple[ConfigIndex, int]:
    """What is made, and the bytes that it holds."""
    gc.collect()
    tracemalloc.start()
    made = make()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made, size


def median_time(call: Callable[[], object]) -> float:
    """Seconds that a call takes: the median of several rounds."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rounds.append((time.perf_counter() - start) / CALLS)
    return statistics.median(rounds)


if __name__ == "__main__":
    main()
