"""Several faults at a time, each in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from controlplane.processes import tied_to_this_process
from faults.catalogue import FAULTS
from faults.stage import Report

AT_ONCE: Final = 3
_PATIENCE: Final = 240.0
"""Seconds that one fault may take, its control plane included."""
_ROOT: Final = Path(__file__).resolve().parents[2]


class FaultError(Exception):
    """A fault could not be tried to its end; the message says how it ended."""


@dataclass
class _Run:
    process: subprocess.Popen[bytes]
    output: Path
    log: Path
    deadline: float


class Runs:
    """Starts the faults, `AT_ONCE` at a time and the longest first, while somebody waits for one.

    A process each: a fault's prober is not slowed by another's, and what a fault has started ends
    with its process, whatever happens.
    """

    def __init__(self, names: Iterable[str]) -> None:
        # The last is the next: the long ones, and at the end those that want to be alone.
        self._waiting = sorted(
            names, key=lambda name: (not FAULTS[name].alone, FAULTS[name].seconds)
        )
        self._running: dict[str, _Run] = {}
        self._ended: dict[str, Report | FaultError] = {}
        self._logs: dict[str, str] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="faults-")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._running.values():
            run.process.terminate()
        for run in self._running.values():
            with suppress(subprocess.TimeoutExpired):
                run.process.wait(20)
            run.process.kill()
        self._folder.cleanup()

    def report(self, name: str) -> Report:
        """The report of this fault, once there is one.

        Raises:
            FaultError: where the fault could not be tried to its end.
        """
        while name not in self._ended:
            self._go_on()
            time.sleep(0.1)
        ended = self._ended[name]
        if isinstance(ended, FaultError):
            raise ended
        return ended

    def log(self, name: str) -> str:
        """What its process and its replicas had to say, where something was wrong."""
        return self._logs[name]

    def _go_on(self) -> None:
        while self._waiting and self._has_room_for(self._waiting[-1]):
            name = self._waiting.pop()
            self._running[name] = _start(name, Path(self._folder.name))
        for name, run in list(self._running.items()):
            if run.process.poll() is None:
                if time.monotonic() < run.deadline:
                    continue
                run.process.terminate()
                run.process.wait(20)
            del self._running[name]
            self._logs[name] = run.log.read_text(errors="replace")
            if run.process.returncode == 0:
                self._ended[name] = Report.of_json(json.loads(run.output.read_text()))
            else:
                self._ended[name] = FaultError(
                    f"`python -m faults {name}` ended with status {run.process.returncode}:\n"
                    f"{self._logs[name]}"
                )

    def _has_room_for(self, name: str) -> bool:
        if FAULTS[name].alone or any(FAULTS[running].alone for running in self._running):
            return not self._running
        return len(self._running) < AT_ONCE


def _start(name: str, folder: Path) -> _Run:
    output, log = folder / f"{name}.json", folder / f"{name}.log"
    path = os.pathsep.join(str(_ROOT / source) for source in ("operator", "hack", "tests"))
    with output.open("wb") as stdout, log.open("wb") as stderr:
        process = subprocess.Popen(
            [*tied_to_this_process(), sys.executable, "-m", "faults", name],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": path},
        )
    return _Run(process, output, log, time.monotonic() + _PATIENCE)
