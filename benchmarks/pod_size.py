"""Deciding about a pod and making its patch: how the time grows with the pod.

    python benchmarks/pod_size.py

The peer is the standard library's own work on the same pod, ``json.loads(json.dumps(pod))``. The
exponent is fitted over all sizes: 1 is linear.
"""

import json
import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import examples
from shield_operator.decision import decide
from shield_operator.patch import operations
from shield_operator.selection import ConfigIndex

VARIABLES: Final = (50, 200, 800, 3200)
ROUNDS: Final = 15


def main() -> None:
    """Print the table, and the exponents."""
    wiring = {"env": [{"name": "SEED", "value": "0"}], "args": [{"name": "--seed", "value": "0"}]}
    index = examples.index(examples.config(application=wiring))
    sizes, ours, peers = [], [], []
    print(f"{'variables':>10} {'KiB':>7} {'ms':>8} {'ms of the peer':>15} {'ratio':>7}")
    for count in VARIABLES:
        pod = make_pod(count)
        sizes.append(len(json.dumps(pod)))
        ours.append(median_time(partial(patched, pod, index)))
        peers.append(median_time(partial(read_and_written, pod)))
        ratio = ours[-1] / peers[-1]
        row = (count, sizes[-1] / 1024, ours[-1] * 1e3, peers[-1] * 1e3, ratio)
        print("{:10} {:7.0f} {:8.2f} {:15.2f} {:7.1f}".format(*row))
    print(f"exponent: {exponent(sizes, ours):.2f}, of the peer: {exponent(sizes, peers):.2f}")


def patched(pod: Any, index: ConfigIndex) -> list[Any]:
    """What the webhook does with a pod."""
    decision = decide(pod, examples.NAMESPACE, None, {}, index, index.settings)
    return operations(pod, decision)


def read_and_written(pod: Any) -> Any:
    """What no webhook can do without."""
    return json.loads(json.dumps(pod))


def make_pod(variables: int) -> Any:
    """A pod whose application has that many variables, and managed fields in proportion."""
    pod = examples.pod()
    container = pod["spec"]["containers"][0]
    container["env"] = [{"name": f"V{n}", "value": "x" * 40} for n in range(variables)]
    fields: Any = {f"k:{n}": {"f:value": {}} for n in range(variables)}
    pod["metadata"]["managedFields"] = [{"manager": "kubectl", "fieldsV1": fields}]
    return pod


def median_time(call: Callable[[], object]) -> float:
    """Seconds that a call takes: the median of several."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        rounds.append(time.perf_counter() - start)
    return statistics.median(rounds)


def exponent(sizes: list[int], times: list[float]) -> float:
    """The slope of the times over the sizes, both as logarithms."""
    slope, _ = statistics.linear_regression([*map(math.log, sizes)], [*map(math.log, times)])
    return slope


if __name__ == "__main__":
    main()
