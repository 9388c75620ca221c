"""One function for each kind of measurement; all return what JSON can keep.

Whatever is compared is taken in turn, several rounds of it: a slow minute of the machine meets all.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from benchmarks.comparison import pods, processes
from benchmarks.comparison.figures import Figure, exponent
from benchmarks.comparison.load import Load, Pace
from benchmarks.comparison.peers import NOOP, TITLES, Ours, Peer, Webhook
from benchmarks.comparison.programs import Programs
from benchmarks.comparison.stage import Stage

NONE: Final = "none"
"""The namespace whose pods no webhook is asked about."""
_MANY: Final = 16


def starts(make: Mapping[str, Callable[[], Webhook]], times: int) -> dict[str, Figure]:
    """Seconds from each one's start to its first answer, nothing else being up."""
    found: dict[str, list[float]] = {name: [] for name in make}
    for _ in range(times):
        for name, start in make.items():
            with start() as webhook:
                found[name].append(webhook.start_to_ready)
    return {name: Figure.of(seconds) for name, seconds in found.items()}


def direct(load: Load, webhooks: Sequence[Webhook], pace: Pace) -> Any:
    """Reviews without an API server: each size with one client, and the plain pod with many."""
    turns = [(size, 1) for size in pods.SIZES] + [("plain", _MANY)]
    for webhook in webhooks:  # warm up: the first answers are slow everywhere
        load.reviews(webhook, pods.plain(), clients=_MANY, seconds=pace.seconds)
    taken: dict[str, dict[str, list[Any]]] = {
        webhook.name: {f"{size}/{clients}": [] for size, clients in turns} for webhook in webhooks
    }
    for _ in range(pace.rounds):
        for size, clients in turns:
            pod = pods.SIZES[size]()
            for webhook in webhooks:
                found = load.reviews(webhook, pod, clients=clients, seconds=pace.seconds)
                taken[webhook.name][f"{size}/{clients}"].append(found)
    return {
        name: {turn: _summed(rounds) for turn, rounds in of.items()} for name, of in taken.items()
    }


def _summed(rounds: Sequence[Any]) -> Any:
    """The figures of a turn over its rounds; None of them where nothing was answered."""
    failures: dict[str, int] = {}
    for one in rounds:
        for failure, count in one["failures"].items():
            failures[failure] = failures.get(failure, 0) + count
    answered = [one for one in rounds if one["requests"]]
    summed: dict[str, Any] = {
        "requests": sum(one["requests"] for one in rounds),
        "patched": sum(one["patched"] for one in rounds),
        "failures": failures,
        "bytes": rounds[0]["review_bytes"],
    }
    for key in ("per_second", "p50_ms", "p99_ms", "cpu_ms"):
        summed[key] = Figure.of([one[key] for one in answered]) if answered else None
    return summed


def memory(webhooks: Sequence[Webhook]) -> Any:
    """Resident bytes: now, and at the most."""
    return {
        webhook.name: {
            "resident": processes.resident(webhook.pid),
            "peak": processes.peak(webhook.pid),
        }
        for webhook in webhooks
    }


def series(load: Load, webhooks: Sequence[Webhook], pace: Pace) -> Any:
    """How the time grows with the pod: medians by the review's bytes, and the fitted exponent."""
    sizes: list[int] = []
    taken: dict[str, list[float]] = {webhook.name: [] for webhook in webhooks}
    for count in pods.SERIES:
        pod = pods.many_variables(count)
        rounds: dict[str, list[Any]] = {webhook.name: [] for webhook in webhooks}
        for _ in range(max(pace.rounds // 2, 1)):
            for webhook in webhooks:
                rounds[webhook.name].append(load.reviews(webhook, pod, seconds=pace.seconds))
        sizes.append(rounds[webhooks[0].name][0]["review_bytes"])
        for name, of in rounds.items():
            taken[name].append(statistics.median(one["p50_ms"] for one in of))
    fitted = {
        name: {"p50_ms": times, "exponent": exponent(sizes, times) if all(times) else None}
        for name, times in taken.items()
    }
    return {"bytes": sizes, "of": fitted}


def through_the_api_server(load: Load, namespaces: Mapping[str, str], pace: Pace) -> Any:
    """What a webhook adds to a creation: its turn less the turn without any, round by round.

    Args:
        load: the generator.
        namespaces: whose pods each webhook is asked about, by its name.
        pace: how often and how long.
    """
    found = {}
    turns = [(size, 1) for size in pods.SIZES] + [("plain", _MANY)]
    for size, clients in turns:
        rounds, count = _turns_of(size, pace)
        places = [place if name == NOOP else f"{place}+" for name, place in namespaces.items()]
        answer = load.creations(
            pods.SIZES[size](),
            [NONE, *places],
            f"-rounds={rounds}",
            f"-clients={clients}",
            f"-requests={count if clients == 1 else 4 * count}",
        )
        bare = answer["turns"][NONE]
        row: dict[str, Any] = {
            NONE: {
                "p50_ms": Figure.of([turn["p50_ms"] for turn in bare]),
                "p99_ms": answer["pooled"][NONE]["p99_ms"],
                "failures": answer["pooled"][NONE]["failures"],
            }
        }
        for name, namespace in namespaces.items():
            turns_of = answer["turns"][namespace]
            pooled = answer["pooled"][namespace]
            added = [
                mine["p50_ms"] - without["p50_ms"]
                for mine, without in zip(turns_of, bare, strict=True)
                if mine["requests"]
            ]
            row[name] = {
                "added_p50_ms": Figure.of(added) if added else None,
                "added_p99_ms": pooled["p99_ms"] - answer["pooled"][NONE]["p99_ms"],
                "per_second": pooled["per_second"],
                "failures": pooled["failures"],
            }
        found[f"{size}/{clients}"] = row
    return found


def _turns_of(size: str, pace: Pace) -> tuple[int, int]:
    """Turns, and pods of each: a pod of 1 MiB takes the API server itself a second."""
    match size:
        case "plain":
            return 2 * pace.rounds, pace.creations
        case "1,500 variables":
            return max(pace.rounds // 2, 1), max(pace.creations // 8, 3)
        case "1 MiB of managedFields":
            return max(pace.rounds // 3, 1), 2
    return pace.rounds, max(pace.creations // 4, 5)


def calls_to_the_api_server(load: Load, ours: Ours, seconds: float) -> Any:
    """Requests that the operator sends to the API server: while idle, and while it answers."""

    def calls() -> float:
        return ours.replica.metric("llm_shield_api_requests_total")

    first = calls()
    time.sleep(seconds)
    second = calls()
    found = load.reviews(ours, pods.plain(), clients=4, seconds=seconds)
    third = calls()
    return {
        "seconds": seconds,
        "idle": second - first,
        "answering": third - second,
        "admissions": found["requests"],
    }


def settle(stage: Stage, pid: int, timeout: float = 240.0) -> None:
    """Wait until all statuses are written, and the process was almost idle for two seconds."""
    deadline = time.monotonic() + timeout
    while stage.without_status() and time.monotonic() < deadline:
        time.sleep(3)
    while time.monotonic() < deadline:
        before = processes.cpu_seconds(pid)
        time.sleep(2)
        if processes.cpu_seconds(pid) - before < 0.2:
            return


IMPORTS: Final = {
    "the interpreter": "sys",
    "asyncio, uvloop, orjson": "asyncio, uvloop, orjson",
    "aiohttp": "aiohttp.web",
    "Kopf, and the Kubernetes client that it imports": "kopf",
    "the rest of the client, certbuilder, the operator": "shield_operator.main",
}
"""What a replica imports before it does anything, in an order that builds on itself."""


def imports() -> dict[str, int]:
    """Resident bytes that each of `IMPORTS` brings, after those before it."""
    found, before = {}, 0
    for count, name in enumerate(IMPORTS, 1):
        modules = ", ".join([*IMPORTS.values()][:count])
        program = f"import {modules}; print(open('/proc/self/status').read())"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("VmRSS:")]
        resident = int(line.split()[1]) * 1024
        found[name], before = resident - before, resident
    return found


def with_configs(load: Load, start: Callable[[], Ours], names: Sequence[str], pace: Pace) -> Any:
    """A replica that starts with the configs that there are: its memory, and how fast it is."""
    with start() as ours:
        settle(load.stage, ours.pid)
        resident = processes.resident(ours.pid)
        rounds = [
            load.reviews(ours, pods.plain(), seconds=pace.seconds, namespaces=names)
            for _ in range(pace.rounds)
        ]
        return {
            "start": ours.start_to_ready,
            "resident": resident,
            "after_reviews": processes.resident(ours.pid),
            "peak": processes.peak(ours.pid),
            **_summed(rounds),
        }


def endurance(load: Load, ours: Ours, names: Sequence[str], total: int) -> Any:
    """Resident memory while many admissions are answered, a tenth of them at a time."""
    settle(load.stage, ours.pid)
    samples = []
    for _ in range(10):
        found = load.reviews(
            ours, pods.plain(), clients=4, seconds=60, requests=total // 10, namespaces=names
        )
        assert not found["failures"], found
        assert found["patched"] == found["requests"], found
        samples.append({"requests": found["requests"], "resident": processes.resident(ours.pid)})
    return samples


def simulation(load: Load, ours: Ours, names: Sequence[str], seconds: float) -> Any:
    """Create pods in all namespaces as fast as it goes."""
    before, cpu = processes.resident(ours.pid), processes.cpu_seconds(ours.pid)
    answer = load.creations(
        pods.plain(),
        [f"{name}+" for name in names],
        "-spread",
        "-keep",
        f"-clients={_MANY}",
        f"-seconds={seconds}",
        "-requests=150000",
    )
    found: dict[str, Any] = answer["pooled"]["all"]
    return {
        **found,
        "resident_before": before,
        "resident_after": processes.resident(ours.pid),
        "peak": processes.peak(ours.pid),
        "cpu_ms": (processes.cpu_seconds(ours.pid) - cpu) * 1000 / max(found["requests"], 1),
    }


def makers(stage: Stage, programs: Programs, review: bytes) -> dict[str, Callable[[], Webhook]]:
    """How to start each of them."""

    def maker(name: str) -> Callable[[], Webhook]:
        if name == Ours.name:
            return lambda: Ours(stage, review)
        return lambda: Peer(name, stage, programs, review)

    return {name: maker(name) for name in TITLES}
