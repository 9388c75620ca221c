"""One running program with its log file: started, checked, paused, stopped."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from controlplane.errors import ProgramError, tail

POLL_SECONDS = 0.05
"""Between two looks at what is waited for."""
_EXEC_TIED = Path(__file__).with_name("exec_tied.py")


class Program:
    """A program that runs in a folder, writes its log there, and can be started again.

    Args:
        command: the program's absolute path and its arguments.
        directory: where it runs; its output is appended to `<program's name>.log` there.
    """

    def __init__(self, command: Sequence[str], *, directory: Path) -> None:
        self.name = Path(command[0]).name
        self.log = directory / f"{self.name}.log"
        self._command = list(command)
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process's number, while this program is meant to run."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the program, out of reach of the terminal's Ctrl-C: its owner stops it."""
        if self._process is not None:
            raise ProgramError(f"{self.name} was already started: stop it first.")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*tied_to_this_process(), *self._command],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Everything is on loopback; a proxy of the shell's is not for us.
                env={k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")},
                process_group=0,
            )

    def check(self) -> None:
        """Raise ProgramError if the program was started and has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            status = self._process.returncode
            raise self.failure(f"ended by itself with status {status}")

    def wait_until(
        self,
        condition: Callable[[], bool],
        goal: str,
        *,
        check: Callable[[], None],
        timeout: float,
    ) -> None:
        """Wait for something that this program has to bring about.

        Args:
            condition: whether it is so.
            goal: what is waited for, after "did not".
            check: raises where waiting has become pointless, as when another program has ended.
            timeout: seconds.

        Raises:
            ProgramError: the time is up; the message has the end of the program's log.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            check()
            if time.monotonic() > deadline:
                raise self.failure(f"did not {goal} within {timeout:.0f} s")
            time.sleep(POLL_SECONDS)

    def failure(self, what: str) -> ProgramError:
        """Return the error that says what the program did, with the end of its log."""
        log = self.log.read_text(errors="replace") if self.log.exists() else ""
        return ProgramError(f"{self.name} {what}; its log ends:\n{tail(log)}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the program, if it runs."""
        if self._process is not None:
            self._process.send_signal(number)

    def wait(self, seconds: float) -> None:
        """Wait until the program has ended, and kill it if it has not after these seconds."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=max(0.0, seconds))
            self._process.kill()
            self._process.wait()
            self._process = None


def stop(programs: Iterable[Program], *, grace: float) -> None:
    """Ask the programs, all at once, to end, and kill those that have not after `grace` seconds."""
    programs = tuple(programs)
    for program in programs:
        program.send(signal.SIGTERM)
        program.send(signal.SIGCONT)  # a paused program would not see the first signal
    deadline = time.monotonic() + grace
    for program in programs:
        program.wait(deadline - time.monotonic())


def tied_to_this_process() -> tuple[str, ...]:
    """Return a command prefix that has the program die with this process, where that works.

    Linux ties it to the *thread* that forks. A worker thread may end long before its process, so
    only what the main thread starts is tied; elsewhere, a killed parent leaves its programs behind.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return ()
    # -I and -S: neither the user's environment nor site packages, which also takes 20 ms only.
    return (sys.executable, "-I", "-S", str(_EXEC_TIED), str(os.getpid()))
