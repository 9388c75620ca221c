"""How much is measured, and the load generators that do it."""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.comparison import processes
from benchmarks.comparison.peers import Webhook
from benchmarks.comparison.programs import Programs
from benchmarks.comparison.stage import Stage

_PATIENCE: Final = 900.0


@dataclass(frozen=True)
class Pace:
    """How much is done of each."""

    rounds: int
    seconds: float
    """Of one turn of direct reviews."""
    starts: int
    creations: int
    """Pods of one turn with one client."""
    endurance: int
    """Admissions."""
    simulation: float
    """Seconds."""
    configs: Sequence[int]
    namespaces: int
    """That the most configs are spread over."""


WHOLE: Final = Pace(
    rounds=7,
    seconds=0.7,
    starts=5,
    creations=40,
    endurance=100_000,
    simulation=30.0,
    configs=(1, 100, 5000),
    namespaces=2000,
)
QUICK: Final = Pace(
    rounds=3,
    seconds=0.3,
    starts=1,
    creations=10,
    endurance=5_000,
    simulation=5.0,
    configs=(1, 100),
    namespaces=40,
)


class Load:
    """The load generators.

    Attributes:
        stage: where they work.
    """

    def __init__(self, stage: Stage, programs: Programs) -> None:
        self.stage = stage
        self._programs = programs

    def reviews(
        self,
        webhook: Webhook,
        pod: Any,
        *,
        clients: int = 1,
        seconds: float = 60.0,
        requests: int = 1_000_000,
        namespaces: Sequence[str] = (),
    ) -> Any:
        """Send reviews of this pod's creation; `cpu_ms` is the webhook's for each of them."""
        before = processes.cpu_seconds(webhook.pid)
        found = self._run(
            "loadgen",
            f"-url={webhook.url}",
            f"-ca={webhook.authority}",
            f"-body={self.stage.file('pod.json', pod)}",
            f"-namespace={','.join(namespaces) or webhook.namespace}",
            f"-clients={clients}",
            f"-seconds={seconds}",
            f"-requests={requests}",
        )
        spent = processes.cpu_seconds(webhook.pid) - before
        found["cpu_ms"] = spent * 1000 / max(found["requests"], 1)
        return found

    def creations(self, pod: Any, namespaces: Sequence[str], *options: str) -> Any:
        """Create pods; a namespace's name with a "+" is one whose pods have to get the sidecar."""
        control_plane = self.stage.control_plane
        return self._run(
            "creations",
            f"-server={control_plane.url}",
            f"-ca={control_plane.ca_file}",
            f"-token-file={self.stage.token}",
            f"-pod={self.stage.file('pod.json', pod)}",
            f"-namespaces={','.join(namespaces)}",
            *options,
        )

    def _run(self, program: str, *arguments: str) -> Any:
        done = subprocess.run(
            [str(self._programs.go / program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
