"""Become another program that the kernel kills when this process's parent dies.

    python exec_tied.py PARENT_PID PROGRAM [ARGUMENT ...]

A control plane must not outlive a test run that was killed. Linux has PR_SET_PDEATHSIG for that,
but it must be set in the child, between fork and exec, where Python code is unsafe once there are
threads (hence subprocess's warnings about `preexec_fn`). This script is that in-between step, run
in a process of its own: `execv` keeps both its pid and the setting.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    parent, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):  # it died before the call above
        sys.exit(f"the parent, process {parent}, is gone")
    os.execv(command[0], command)  # noqa: S606  # that there is no shell is the point
