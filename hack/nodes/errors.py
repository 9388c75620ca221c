"""What can go wrong with a local node, beside what can with its control plane."""

from controlplane.errors import ControlPlaneError


class NodeError(ControlPlaneError):
    """The node could not be prepared, started or used; the message says what to do."""
