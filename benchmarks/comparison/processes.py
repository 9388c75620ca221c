"""What the kernel says of a program: memory and processor time, its children's with it. Linux only.

https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """The process, and all that descend from it."""
    found = [pid]
    for one in found:
        with suppress(OSError):
            for children in Path(f"/proc/{one}/task").glob("*/children"):
                found += map(int, children.read_text(encoding="ascii").split())
    return found


def cpu_seconds(pid: int) -> float:
    """Processor time spent so far, by the program and by its children that still run."""
    total = 0
    for one in family(pid):
        text = Path(f"/proc/{one}/stat").read_text(encoding="ascii", errors="replace")
        fields = text.rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def resident(pid: int) -> int:
    """Bytes that are resident now."""
    return sum(_status(one, "VmRSS") for one in family(pid))


def peak(pid: int) -> int:
    """Bytes that were resident at the most."""
    return sum(_status(one, "VmHWM") for one in family(pid))


def _status(pid: int, field: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    (line,) = [line for line in status.splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024
