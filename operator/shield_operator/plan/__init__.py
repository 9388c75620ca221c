"""From a config to an injection plan: what to add to a pod, before any pod is known.

`compile_plan` joins a config, the operator's settings and the cluster's version. It runs once for
each config, not once for each pod. The modules, each importing only those above it:

    version      what this cluster can do
    containers   the containers that are added, and the volumes that they mount
    compilation  all of it together: `compile_plan`, and its fingerprint
"""

from shield_operator.plan.compilation import (
    Plan,
    Wiring,
    compile_plan,
    settings_config,
)
from shield_operator.plan.version import (
    NEWEST_SUPPORTED,
    OLDEST_SUPPORTED,
    SIDECARS_EVERYWHERE,
    SIDECARS_EXIST,
    ClusterVersion,
)

__all__ = [
    "NEWEST_SUPPORTED",
    "OLDEST_SUPPORTED",
    "SIDECARS_EVERYWHERE",
    "SIDECARS_EXIST",
    "ClusterVersion",
    "Plan",
    "Wiring",
    "compile_plan",
    "settings_config",
]
