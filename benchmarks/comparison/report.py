"""The figures as Markdown: all of docs/benchmarks.md, its sentences included."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from benchmarks.comparison import pods
from benchmarks.comparison.bars import MB, Bar
from benchmarks.comparison.figures import figure
from benchmarks.comparison.measure import NONE
from benchmarks.comparison.peers import OURS, THROUGH, TITLES

_NOTHING = "–"


def page(results: Any, judged: Sequence[Bar]) -> str:
    """The whole page."""
    return "\n".join(
        (
            "# Benchmarks",
            "",
            _preface(results),
            "",
            "![What each webhook adds to the creation of a pod](benchmarks.svg)",
            "",
            *_section("What was promised", _promises(results, judged)),
            *_section("Through the API server", _through(results)),
            *_section("Directly, over TLS", _direct(results)),
            *_section("By the pod's size", _series(results)),
            *_section("Memory, and the start", _memory(results)),
            *_section("By the number of configs", _configs(results)),
            *_section("Where the memory goes", _parts_of_memory(results)),
            *_section("Where the time goes", _profile(results)),
            *_section("How it is measured", _method(results)),
        )
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown: the first column is text, the others are figures."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _section(title: str, text: str) -> tuple[str, ...]:
    return (f"## {title}", "", text, "")


def _preface(results: Any) -> str:
    m = results["machine"]
    return (
        "This operator beside other webhooks, on one real API server, in one run; `make bench` "
        "writes this page, "
        f"its figures and its sentences. Measured on {m['date']} at revision `{m['revision']}`: "
        f"{m['cores']} cores ({m['cpu']}), Python {m['python']}, everything on that one machine, "
        f"the load generator included; load average {m['load_before']:.1f} when it began. Where a "
        "figure has brackets, half of the rounds were between these two."
    )


def _promises(results: Any, judged: Sequence[Bar]) -> str:
    missed = [bar for bar in judged if not bar.met]
    count = f"{len(judged) - len(missed)} of {len(judged)} are met."
    if missed:
        parts = sorted(results["profile"]["parts"].items(), key=lambda item: -item[1])[:3]
        whole = sum(results["profile"]["parts"].values())
        where = ", ".join(f"{name} ({spent / whole:.0%})" for name, spent in parts)
        count += (
            f" Most of an admission's time in this operator goes into {where}; "
            "[below](#where-the-time-goes) is the rest, and [where the memory goes]"
            "(#where-the-memory-goes)."
        )
    rows = (
        (
            bar.title,
            bar.wanted,
            _NOTHING if bar.found is None else f"{bar.found:.3g}{bar.unit}",
            bar.verdict,
        )
        for bar in judged
    )
    return f"{count}\n\n{table(('promise', 'limit', 'found', ''), rows)}"


def _through(results: Any) -> str:
    bare = results["api"]["plain/1"][NONE]
    lines = [
        (
            "What a webhook adds to the creation of a pod: the median creation with it less the "
            "median creation without any, round by round. Without any, one client's plain pod "
            f"takes {figure(bare['p50_ms']).text()} ms (p99 {bare['p99_ms']:.1f} ms)."
        ),
        "",
    ]
    turns = [f"{size}/1" for size in pods.SIZES] + ["plain/16"]
    head = ["added p50, ms", *(_turn(turn) for turn in turns)]
    rows = [
        [THROUGH[name], *(_added(results["api"][turn][name]) for turn in turns)] for name in THROUGH
    ]
    lines += [table(head, rows), ""]
    head = ["added p99, ms", "plain", "plain, 16 clients", "pods/s, 16 clients"]
    rows = [
        [
            THROUGH[name],
            f"{results['api']['plain/1'][name]['added_p99_ms']:.1f}",
            f"{results['api']['plain/16'][name]['added_p99_ms']:.1f}",
            f"{results['api']['plain/16'][name]['per_second']:,.0f}",
        ]
        for name in THROUGH
    ]
    lines += [table(head, rows), "", _OF_THE_CONFIGURATION, *_failures(results["api"], turns)]
    return "\n".join(lines)


_OF_THE_CONFIGURATION: Final = (
    "The peers' webhook configurations hold one webhook and a namespace selector. This operator's "
    "has a match condition too, which keeps mirror pods away from it; for that the API server "
    "makes each pod readable for CEL, whoever answers. The last row is without it."
)


def _added(row: Any) -> str:
    return figure(row["added_p50_ms"]).text() if row["added_p50_ms"] else _NOTHING


def _turn(turn: str) -> str:
    size, _, clients = turn.rpartition("/")
    return size if clients == "1" else f"{size}, {clients} clients"


def _failures(api: Any, turns: Sequence[str]) -> Iterable[str]:
    """A sentence for each webhook with which pods were refused."""
    for turn in turns:
        for name, title in THROUGH.items():
            failures = api[turn][name]["failures"]
            if failures:
                count = sum(failures.values())
                why = max(failures, key=lambda key: failures[key])
                yield ""
                yield f"{_turn(turn)}: {count} creations failed with {title}: `{_short(why)}`."


def _short(text: str) -> str:
    return " ".join(text.replace("`", "'").replace("|", "/").split())[:200]


def _direct(results: Any) -> str:
    turns = [f"{size}/1" for size in pods.SIZES] + ["plain/16"]
    lines = [
        (
            "Reviews sent by the load generator over kept connections, as an API server does. "
            "Where there is a dash, none was answered with 200."
        ),
        "",
    ]
    head = ["p50, ms", *(_turn(turn) for turn in turns)]
    rows = [
        [TITLES[name], *(_of(results["direct"][name][turn], "p50_ms", ".2f") for turn in turns)]
        for name in TITLES
    ]
    lines += [table(head, rows), ""]
    head = ["plain pod", "p99, ms", "p99, ms, 16 clients", "requests/s", "requests/s, 16 clients"]
    head.append("CPU, ms each")
    rows = []
    for name, title in TITLES.items():
        one, many = (results["direct"][name][f"plain/{clients}"] for clients in (1, 16))
        rows.append(
            [
                title,
                _of(one, "p99_ms", ".2f"),
                _of(many, "p99_ms", ".1f"),
                _of(one, "per_second", ",.0f"),
                _of(many, "per_second", ",.0f"),
                _of(many, "cpu_ms", ".2f"),
            ]
        )
    lines.append(table(head, rows))
    for name, title in TITLES.items():
        for turn, row in results["direct"][name].items():
            if row["failures"]:
                why = ", ".join(f"{_short(f)} ({c} times)" for f, c in row["failures"].items())
                lines += ["", f"{_turn(turn)}: {title} answered {row['requests']:,}; {why}."]
    return "\n".join(lines)


def _of(row: Any, key: str, form: str) -> str:
    return figure(row[key]).text(form) if row[key] else _NOTHING


def _series(results: Any) -> str:
    found = results["series"]
    head = [
        "p50, ms",
        *(f"{size / 1024:,.0f} KiB" for size in found["bytes"]),
        "exponent",
    ]
    rows = []
    for name, title in TITLES.items():
        of = found["of"][name]
        times = [f"{time:.2f}" if time else _NOTHING for time in of["p50_ms"]]
        fitted = _NOTHING if of["exponent"] is None else f"{of['exponent']:.2f}"
        rows.append([title, *times, fitted])
    return (
        "Pods of "
        + ", ".join(f"{count:,}" for count in pods.SERIES)
        + " variables. The exponent is fitted over these sizes: 1 is linear.\n\n"
        + table(head, rows)
    )


def _memory(results: Any) -> str:
    head = ["", "resident, MB", "peak, MB", "start to first answer, s"]
    rows = [
        [
            TITLES[name],
            f"{results['memory'][name]['resident'] / MB:.0f}",
            f"{results['memory'][name]['peak'] / MB:.0f}",
            figure(results["start"][name]).text(),
        ]
        for name in TITLES
    ]
    warm = results["endurance"]
    total = sum(sample["requests"] for sample in warm)
    change = (warm[-1]["resident"] - warm[0]["resident"]) / MB
    calls = results["calls"]
    return "\n".join(
        (
            "After all of the above, the pods of 1 MiB included; a program's processes together.",
            "",
            table(head, rows),
            "",
            (
                f"Over {total:,} admissions with all configs, this operator's resident memory went "
                f"from {warm[0]['resident'] / MB:.1f} MB (after the first tenth) to "
                f"{warm[-1]['resident'] / MB:.1f} MB: {change:+.1f} MB. It sent "
                f"{calls['answering']:.0f} requests to the API server in {calls['seconds']:.0f} s "
                f"in which it answered {calls['admissions']:,} admissions, and {calls['idle']:.0f} "
                "in as long a time without any."
            ),
        )
    )


def _configs(results: Any) -> str:
    head = ["configs", "resident, MB", "after reviews, MB", "peak, MB", "p50, ms", "requests/s"]
    head.append("start to first answer, s")
    rows = [
        [
            f"{int(count):,}",
            f"{of['resident'] / MB:.1f}",
            f"{of['after_reviews'] / MB:.1f}",
            f"{of['peak'] / MB:.1f}",
            figure(of["p50_ms"]).text(),
            figure(of["per_second"]).text(",.0f"),
            f"{of['start']:.2f}",
        ]
        for count, of in sorted(results["configs"].items(), key=lambda item: int(item[0]))
    ]
    return (
        "A replica that starts with this many configs there, alone on the machine with the API "
        "server; one client, plain pods, which go to all namespaces.\n\n" + table(head, rows)
    )


def _parts_of_memory(results: Any) -> str:
    counts = sorted(results["configs"], key=int)
    few, many = (results["configs"][count]["resident"] for count in (counts[0], counts[-1]))
    imported = results["imports"]
    rows = [[f"imports: {name}", f"{size / MB:.1f}"] for name, size in imported.items()]
    rows += [
        ["the rest of a replica with one config", f"{(few - sum(imported.values())) / MB:.1f}"],
        [f"{int(counts[-1]) - int(counts[0]):,} more configs", f"{(many - few) / MB:.1f}"],
    ]
    return table(["of this operator", "resident, MB"], rows)


def _profile(results: Any) -> str:
    found = results["profile"]
    whole = sum(found["parts"].values())
    parts = sorted(found["parts"].items(), key=lambda item: -item[1])
    rows = [[name, f"{spent:.0f}", f"{spent / whole:.0%}"] for name, spent in parts]
    top = [[f"`{name}`", f"{spent:.0f}"] for name, spent in found["functions"]]
    return "\n".join(
        (
            (
                f"{TITLES[OURS].capitalize()} under cProfile, {found['admissions']:,} plain pods "
                "by one client, less a run with one: what each function takes itself. A profiler "
                "makes many small calls look dearer than they are; the shares are what counts."
            ),
            "",
            table(("part", "µs", "share"), rows),
            "",
            table(("function", "µs"), top),
        )
    )


def _method(results: Any) -> str:
    m = results["machine"]
    return f"""\
- One run of {m["minutes"]:.0f} minutes, one API server (its etcd does not sync to the disk),
  webhooks taken in turn: for each {2 * m["rounds"]} turns of {m["creations"]} creations with one
  client, and {m["rounds"]} turns of {m["seconds"]} s for direct reviews. p99 is over all turns.
- Each webhook is configured for a namespace of its own, so the API server asks exactly one of them
  about a pod, and none about those that all are compared with.
- A pod that is created has to come out with its sidecar (the no-op's without), or it has failed.
- The load generators are Go programs: a closed loop, in which a client sends when its last request
  was answered, over connections that are kept; reviews in HTTP/1.1, as an API server sends them.
- The controller-runtime, Flask and Kopf webhooks add the same container, volumes, labels and
  annotations as this operator, read once from a file: they know no configs. llm-shield-proxy's own
  adds its own container. All are in [benchmarks/peers](../benchmarks/peers). gunicorn runs as it
  comes: one worker, which keeps no connections, so that each review begins with a handshake.
- API server, load generator and webhook compete for the cores: ratios mean more than milliseconds.
- `make bench-parts` has the parts alone: choosing a config, making a patch, editing manifests."""
