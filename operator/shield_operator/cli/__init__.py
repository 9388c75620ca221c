"""The command lines: ``shield-operator`` in the container, ``kubectl shield`` at a terminal.

Commands are thin: options in, text out. What decides is in the modules that the webhook uses too.
Each command is a module; imports that take long (Kopf, the Kubernetes client) stand inside the
commands that need them, so that the others answer at once.

    failure     how a command ends that could not do what it was asked to
    connecting  kubectl's flags for the cluster, and its errors
    inputs      manifests, and what is known of the cluster around them
    changing    what `inject` and `uninject` have in common
    output      manifests as text, or what is different
    style       marks, colours, tables
    serve       ``shield-operator run``
    plugin      ``kubectl shield``, and its list of commands

What commands read of a cluster, loaded by those that do:

    reading     what a decision depends on
    live        a pod that runs, or a workload's template (explain)
    surveying   configs and pods (status)
    gathering   the facts about an installation, with `handshake` (check)
"""

from shield_operator.cli.plugin import complete, kubectl_shield
from shield_operator.cli.serve import operator

__all__ = ["complete", "kubectl_shield", "operator"]
