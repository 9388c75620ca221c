"""`make e2e`: prepares programs and images, then runs these tests on a machine of their own.

What follows on the command line goes to pytest.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from controlplane import ensure
from controlplane.binaries import to_stderr
from controlplane.errors import ControlPlaneError
from e2e.images import ALL
from nodes import images, machine, programs, requirements


def main() -> int:
    """Prepare and run; return the exit status."""
    begin = time.monotonic()
    requirements.require(to_stderr)
    with ThreadPoolExecutor() as beside:  # these wait for registries, those for processors
        prepared = beside.submit(images.prepare, ALL, to_stderr)
        ensure()
        programs()
        archives = prepared.result()
    to_stderr(f"programs and images are there after {time.monotonic() - begin:.0f} s")
    os.environ["NODE_IMAGES"] = json.dumps({name: str(path) for name, path in archives.items()})
    return machine.run([sys.executable, "-m", "pytest", "tests/e2e", *sys.argv[1:]])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ControlPlaneError as error:
        sys.exit(f"e2e: {error}")
