"""One fault in a process of its own: ``python -m faults NAME`` prints its report as JSON."""

import json
import signal
import sys
from types import FrameType

from faults.catalogue import FAULTS
from faults.stage import Stage


def _stop(number: int, _: FrameType | None) -> None:
    """End in order, so that everything that was started is stopped."""
    raise SystemExit(128 + number)


def main(name: str) -> None:
    """Try the fault of this name."""
    signal.signal(signal.SIGTERM, _stop)
    with Stage.open() as stage:
        try:
            report = FAULTS[name].run(stage)
        except BaseException:
            print(stage.logs(), file=sys.stderr)
            raise
        if report.problems:
            print(stage.logs(), file=sys.stderr)
    print(json.dumps(report.as_json()))


if __name__ == "__main__":
    main(sys.argv[1])
