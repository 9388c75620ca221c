"""``make bench``: measure, print, and write docs/benchmarks.md, its chart, and docs/capacity.md."""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.comparison import bars, capacity, chart, measure, pods, report
from benchmarks.comparison.load import QUICK, WHOLE, Load, Pace
from benchmarks.comparison.measure import NONE
from benchmarks.comparison.peers import OURS, PLAIN, Ours, Webhook
from benchmarks.comparison.profiling import profile
from benchmarks.comparison.programs import ROOT, Programs, ensure
from benchmarks.comparison.stage import Stage

from controlplane import ControlPlane
from support import INJECT, WebhookClient

_RESULTS: Final = ROOT / "build" / "benchmarks.json"
_FEW: Final = 20
"""Namespaces for the configs of all steps but the last."""
_LONGEST: Final = 1800
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


class Run:
    """Everything, in one run on one API server.

    Attributes:
        found: the results, as JSON keeps them.
    """

    def __init__(self, stage: Stage, load: Load, programs: Programs, pace: Pace) -> None:
        self._stage = stage
        self._load = load
        self._pace = pace
        self._begin = time.monotonic()
        self._review = WebhookClient.body(f"bench-{OURS}", pods.plain())
        self._makers = measure.makers(stage, programs, self._review)
        self.found: dict[str, Any] = {"machine": machine(pace)}

    def all(self) -> Any:
        """Measure; returns the results."""
        self._stage.namespace(NONE)
        self._stage.namespace(f"bench-{OURS}", labels=INJECT, config=True)
        with self._ours():
            self._stage.wait_accepted(f"bench-{OURS}")
        self._say("start to ready")
        self.found["start"] = measure.starts(self._makers, self._pace.starts)
        with ExitStack() as running:
            self._beside([running.enter_context(make()) for make in self._makers.values()])
        self._say("profile")
        self.found["profile"] = profile(self._load, self._ours, self._stage.folder, 3000)
        teams = self._by_configs()
        with self._ours() as ours:
            self._with_most(ours, teams)
        self.found["machine"]["minutes"] = (time.monotonic() - self._begin) / 60
        self._say("done")
        return self.found

    def _beside(self, webhooks: Sequence[Webhook]) -> None:
        """What is compared with the other webhooks."""
        for webhook in webhooks:
            if not isinstance(webhook, Ours):
                self._stage.namespace(webhook.namespace)
                self._stage.configure(webhook.name, webhook.namespace, webhook.url)
        (ours,) = [webhook for webhook in webhooks if isinstance(webhook, Ours)]
        namespaces = {webhook.name: webhook.namespace for webhook in webhooks}
        namespaces[PLAIN] = f"bench-{PLAIN}"
        self._stage.namespace(namespaces[PLAIN], config=True)
        self._stage.wait_accepted(namespaces[PLAIN])
        self._stage.configure(PLAIN, namespaces[PLAIN], ours.url, ours.authority)
        load, pace = self._load, self._pace
        self._say("through the API server")
        self.found["api"] = measure.through_the_api_server(load, namespaces, pace)
        self._say("direct")
        self.found["direct"] = measure.direct(load, webhooks, pace)
        self.found["memory"] = measure.memory(webhooks)
        self.found["imports"] = measure.imports()
        self._say("by size")
        self.found["series"] = measure.series(load, webhooks, pace)
        self._say("calls to the API server")
        self.found["calls"] = measure.calls_to_the_api_server(load, ours, 10 * pace.seconds)

    def _by_configs(self) -> Sequence[str]:
        """More and more configs; returns the namespaces that have one."""
        self.found["configs"] = {}
        teams: Sequence[str] = [f"bench-{OURS}"]
        more = 0
        for count in self._pace.configs:
            if count > 1:
                last = count == self._pace.configs[-1]
                teams = self._stage.teams(self._pace.namespaces if last else _FEW)
                beside = count - 1 - len(teams)  # the first one, and one for each team
                self._stage.configs(teams, range(more, beside))
                more = beside
            self._say(f"{count} configs")
            self.found["configs"][count] = measure.with_configs(
                self._load, self._ours, teams, self._pace
            )
        return teams

    def _with_most(self, ours: Ours, teams: Sequence[str]) -> None:
        """A long time with all configs, and as many pods as the API server takes."""
        self._say("endurance")
        self.found["endurance"] = measure.endurance(self._load, ours, teams, self._pace.endurance)
        self._say("simulation")
        found = measure.simulation(self._load, ours, teams, self._pace.simulation)
        found |= {"configs": self._pace.configs[-1], "namespaces": len(teams)}
        self.found["simulation"] = found

    def _ours(self, profile: Path | None = None) -> Ours:
        return Ours(self._stage, self._review, profile=profile)

    def _say(self, what: str) -> None:
        seconds = time.monotonic() - self._begin
        print(f"{seconds:4.0f} s  {what}", file=sys.stderr, flush=True)


def measured(pace: Pace) -> Any:
    """The results of one run."""
    programs = ensure()
    # As large clusters set them: the API server is not to turn away what is measured.
    flags = ["--max-mutating-requests-inflight=1000", "--max-requests-inflight=2000"]
    with ControlPlane.start(apiserver_args=flags) as control_plane:
        stage = Stage(control_plane, datetime.now(UTC))
        return Run(stage, Load(stage, programs), programs, pace).all()


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
