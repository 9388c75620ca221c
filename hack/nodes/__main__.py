"""`python -m nodes inside FOLDER COMMAND …`: the first process in the machine's namespaces.

`nodes.machine.run` starts it; nobody else has a use for it.
"""

import sys
from pathlib import Path

from nodes import machine

if __name__ == "__main__":
    _, _, folder, *command = sys.argv
    sys.exit(machine.inside(Path(folder), command))
