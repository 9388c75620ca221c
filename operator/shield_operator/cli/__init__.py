"""The command lines: ``shield-operator`` in the container, ``kubectl shield`` at a terminal.

Commands are thin: options in, text out. What decides is in the modules that the webhook uses too.
Each command is a module; imports that take long (Kopf, the Kubernetes client) stand inside the
commands that need them, so that the others answer at once.

    failure   how a command ends that could not do what it was asked to
    inputs    manifests, and what is known of the cluster around them
    output    manifests as text, or what is different
    serve     ``shield-operator run``
    plugin    ``kubectl shield``, and its list of commands
"""

from shield_operator.cli.plugin import complete, kubectl_shield
from shield_operator.cli.serve import operator

__all__ = ["complete", "kubectl_shield", "operator"]
