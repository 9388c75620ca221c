"""What can go wrong with a local control plane.

    ControlPlaneError
    ├── BuildError     a program could be neither found nor built
    ├── ProgramError   a program did not become ready, or ended by itself
    └── KubectlError   a kubectl command failed or took too long

Each message is one sentence; where a program said more, the end of its output follows.
"""

_TAIL_LINES = 25


class ControlPlaneError(Exception):
    """Any failure of this package that its caller may want to report."""


class BuildError(ControlPlaneError):
    """A program could be neither found nor built, or a package not installed."""


class ProgramError(ControlPlaneError):
    """A program of the control plane did not become ready, or ended by itself."""


class KubectlError(ControlPlaneError):
    """A kubectl command failed or took too long."""


def tail(output: str) -> str:
    """Return the last lines of a program's output, indented to stand below a sentence."""
    lines = output.splitlines()[-_TAIL_LINES:] or ["(no output)"]
    return "\n".join(f"    {line}" for line in lines)
