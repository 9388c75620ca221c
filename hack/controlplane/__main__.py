"""`python -m controlplane`: a control plane to play with, until Ctrl-C.

Run it with `hack/` on PYTHONPATH. `python -m controlplane build` only builds the programs, as for
warming a cache in CI; with names, such as `helm4`, these and no others.
"""

import argparse
import signal
import sys
import time

from controlplane.binaries import PROGRAMS, ensure, ensure_programs
from controlplane.errors import ControlPlaneError
from controlplane.launcher import ControlPlane


def main() -> int:
    """Build, start, say how to reach it, and wait; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m controlplane", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["run", "build"], default="run")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="to build, instead of all")
    arguments = parser.parse_args()
    if unknown := set(arguments.programs) - PROGRAMS:
        parser.error(f"there is no {', '.join(sorted(unknown))} to build: {sorted(PROGRAMS)}")
    for number in (signal.SIGTERM, signal.SIGINT):  # SIGINT is ignored in a script's background
        signal.signal(number, signal.default_int_handler)
    try:
        if arguments.programs:
            for path in ensure_programs(arguments.programs).values():
                print(path)
            return 0
        binaries = ensure()
        if arguments.command == "build":
            print(binaries.kube_apiserver.parent)
            return 0
        with ControlPlane.start(binaries=binaries) as control_plane:
            print(f"export KUBECONFIG={control_plane.kubeconfig}", flush=True)
            print(f"# kubectl: {binaries.kubectl}; Ctrl-C stops and removes everything", flush=True)
            while True:
                control_plane.check()
                time.sleep(1)
    except ControlPlaneError as error:
        print(f"controlplane: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
