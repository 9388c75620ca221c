"""What can become of a pod: a closed union, and the reasons for its last member."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from shield_operator.plan import Plan


class SkipReason(StrEnum):
    """Why a pod that asked for the sidecar does not get it, in the order of the checks.

    The word is the label's value, the metric's label and the command line's code.
    """

    INVALID_ANNOTATION = "invalid-annotation"
    NO_SIDECAR_CONFIG = "no-sidecar-config"
    AMBIGUOUS_SIDECAR_CONFIG = "ambiguous-sidecar-config"
    INVALID_SIDECAR_CONFIG = "invalid-sidecar-config"
    CONTAINER_NAME_CONFLICT = "container-name-conflict"
    VOLUME_NAME_CONFLICT = "volume-name-conflict"
    PORT_CONFLICT = "port-conflict"
    TARGET_CONTAINER_NOT_FOUND = "target-container-not-found"
    COMMAND_OVERRIDE = "command-override"
    POD_RESOURCES = "pod-resources"
    HOST_NETWORK = "host-network"
    UNSUPPORTED_OS = "unsupported-os"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Leave the pod as it is: it did not ask, or has what it asked for."""

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inject:
    """Apply the plan."""

    plan: Plan
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """The pod asked and cannot have it; `sentence` says why and what to do."""

    reason: SkipReason
    sentence: str
    warnings: tuple[str, ...] = ()


Decision: TypeAlias = Ignore | Inject | Skip
