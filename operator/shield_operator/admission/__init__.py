"""Answering the API server's reviews of new pods.

Kopf stands between the server and the handler, so the two share what Kopf does not pass on:

    handler  what becomes of a pod
    server   the listener, and what counts as an answer
"""

from shield_operator.admission.handler import inject
from shield_operator.admission.server import AdmissionServer

__all__ = ["AdmissionServer", "inject"]
