"""``make bench``: measure, print, and write docs/benchmarks.md, its chart, and docs/capacity.md."""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.comparison import bars, capacity, chart, measure, pods, report
from benchmarks.comparison.measure import NONE, QUICK, WHOLE, Load, Pace
from benchmarks.comparison.peers import OURS, Ours
from benchmarks.comparison.programs import ROOT, ensure
from benchmarks.comparison.stage import Stage
from controlplane import ControlPlane
from support import WebhookClient

_RESULTS: Final = ROOT / "build" / "benchmarks.json"
_LONGEST: Final = 1500
"""Seconds after which it gives up."""


def main() -> None:
    """Measure or read what was measured, and write the pages."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds; writes no page")
    parser.add_argument("--from", dest="results", type=Path, help="pages from these results")
    arguments = parser.parse_args()
    if arguments.results:
        results = json.loads(arguments.results.read_text(encoding="utf-8"))
    else:
        for number in (signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.default_int_handler)
        signal.alarm(_LONGEST)
        found = measured(QUICK if arguments.quick else WHOLE)
        results = json.loads(json.dumps(found))  # as it is read back
        _RESULTS.parent.mkdir(exist_ok=True)
        _RESULTS.write_text(json.dumps(results, indent=1), encoding="utf-8")
    page = report.page(results, bars.judge(results))
    print(page)
    if arguments.quick:
        return
    docs = ROOT / "docs"
    (docs / "benchmarks.md").write_text(page, encoding="utf-8")
    (docs / "benchmarks.svg").write_text(chart.draw(results), encoding="utf-8")
    (docs / "capacity.md").write_text(capacity.page(results), encoding="utf-8")


def measured(pace: Pace) -> Any:
    """Everything, in one run on one API server."""
    programs = ensure()
    begin = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - begin:4.0f} s  {what}", file=sys.stderr, flush=True)

    found: dict[str, Any] = {"machine": machine(pace)}
    flags = ["--max-mutating-requests-inflight=1000", "--max-requests-inflight=2000"]
    with ControlPlane.start(apiserver_args=flags) as control_plane:
        stage = Stage(control_plane, datetime.now(UTC))
        load = Load(stage, programs)
        stage.namespace(NONE)
        stage.namespace(f"bench-{OURS}", ours=True)
        review = WebhookClient.body(f"bench-{OURS}", pods.plain())
        makers = measure.makers(stage, programs, review)
        with makers[OURS]():
            stage.wait_accepted(f"bench-{OURS}")
        say("start to ready")
        found["start"] = measure.starts(makers, pace.starts)
        with ExitStack() as running:
            webhooks = [running.enter_context(make()) for make in makers.values()]
            for webhook in webhooks:
                if webhook.name != OURS:
                    stage.namespace(webhook.namespace)
                    stage.configure(webhook.name, webhook.namespace, webhook.url)
            say("through the API server")
            found["api"] = measure.through_the_api_server(load, webhooks, pace)
            say("direct")
            found["direct"] = measure.direct(load, webhooks, pace)
            found["memory"] = measure.memory(webhooks)
            say("by size")
            found["series"] = measure.series(load, webhooks, pace)
            (ours,) = [webhook for webhook in webhooks if isinstance(webhook, Ours)]
            say("calls to the API server")
            found["calls"] = measure.calls_to_the_api_server(load, ours, 10 * pace.seconds)
        say("profile")
        found["profile"] = measure.profile(
            load, lambda file: Ours(stage, review, profile=file), stage.folder, 3000
        )
        found["configs"] = {}
        more = 0
        teams: list[str] = [f"bench-{OURS}"]
        for count in pace.configs:
            if count > 1:
                teams = stage.teams(pace.namespaces if count == pace.configs[-1] else 20)
                beside = count - 1 - len(teams)  # the first one, and one for each team
                stage.configs(teams, range(more, beside))
                more = beside
            say(f"{count} configs")
            found["configs"][count] = measure.with_configs(
                load, lambda: Ours(stage, review), teams, pace
            )
        with Ours(stage, review) as ours:
            say("endurance")
            found["endurance"] = measure.endurance(load, ours, teams, pace.endurance)
            say("simulation")
            found["simulation"] = measure.simulation(load, ours, teams, pace.simulation)
            found["simulation"]["configs"] = pace.configs[-1]
            found["simulation"]["namespaces"] = len(teams)
    found["machine"]["minutes"] = (time.monotonic() - begin) / 60
    found["machine"]["load_after"] = os.getloadavg()[0]
    say("done")
    return found


def machine(pace: Pace) -> Any:
    """What it ran on."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    models = [line.partition(":")[2].strip() for line in info.splitlines() if "model name" in line]
    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"],  # noqa: S607  # wherever the user has it
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "revision": revision.stdout.strip(),
        "cores": os.cpu_count(),
        "cpu": models[0] if models else platform.machine(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "rounds": pace.rounds,
        "creations": pace.creations,
        "seconds": pace.seconds,
    }


if __name__ == "__main__":
    main()
