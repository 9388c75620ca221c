"""Which Kubernetes it is, and what that release can do."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shield_operator.model import Mode
from shield_operator.settings import FeatureGate


@dataclass(frozen=True, slots=True, order=True)
class ClusterVersion:
    """A Kubernetes release, as far as features depend on it."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> "ClusterVersion":
        """Read ``v1.36.3``, ``1.34`` or ``1.29+``.

        Raises:
            ValueError: where it is none.
        """
        match = re.match(r"v?(\d{1,3})\.(\d{1,3})(?!\d)", text)
        if match is None:
            raise ValueError(f"{text!r} is not a Kubernetes version, such as '1.34'")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST_SUPPORTED: Final = ClusterVersion(1, 30)
"""The first release whose match conditions are stable; assumed until the cluster has told."""

NEWEST_SUPPORTED: Final = ClusterVersion(1, 37)
"""The newest release that we know; assumed where there are only files to look at."""

SIDECARS_EXIST: Final = ClusterVersion(1, 29)
"""From here on the API server knows native sidecars, unless the feature gate is off.

https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
"""

SIDECARS_EVERYWHERE: Final = ClusterVersion(1, 32)
"""From here on every kubelet knows them too: it may be three minor versions behind the API server.

https://kubernetes.io/releases/version-skew-policy/#kubelet
"""

IMAGE_VOLUMES_EXIST: Final = ClusterVersion(1, 31)
"""From here on the API server knows image volumes; before, it would drop the field.

https://kubernetes.io/docs/concepts/storage/volumes/#image
"""


def has_native_sidecars(
    mode: Mode, gates: Mapping[FeatureGate, bool], version: ClusterVersion
) -> bool:
    """Whether the sidecar is to be a native one, in a cluster of this version and these gates."""
    gate = gates.get(FeatureGate.SIDECAR_CONTAINERS)
    if mode is Mode.CONTAINER or gate is False or version < SIDECARS_EXIST:
        return False
    return mode is Mode.NATIVE or gate is True or version >= SIDECARS_EVERYWHERE


def has_image_volumes(gates: Mapping[FeatureGate, bool], version: ClusterVersion) -> bool:
    """Whether an image can be mounted as it is. Only said by the gate: the runtime must know it."""
    return gates.get(FeatureGate.IMAGE_VOLUME) is True and version >= IMAGE_VOLUMES_EXIST
