"""Whether the webhook can be reached: from here, and, what counts, from the API server."""

from collections.abc import Mapping
from typing import Final

from shield_operator import names, pods
from shield_operator.diagnosis.facts import Connection, Fact, Probe, Served, Unseen
from shield_operator.diagnosis.finding import Finding, bad, good, unknown
from shield_operator.text import one_line


def checked_connection(title: str, connection: Fact[Connection | None], where: str) -> Finding:
    """What a TLS connection from here tells, where there is no Secret to compare with."""
    if isinstance(connection, Unseen):
        return unknown(title, connection)
    if connection is None:
        return unknown(
            title,
            f"there is no {where} (the certificate may be in files), and the webhook is not "
            "reached from here: the last check tells",
        )
    match connection.served:
        case Served.TRUSTED:
            return good(title, "what the webhook serves is trusted")
        case Served.NOT_TRUSTED:
            return bad(
                title,
                f"what the webhook serves is not trusted: {connection.why}",
                "the operator publishes what it serves, unless something keeps it from that: its "
                "log says what; with TLS_CERT_FILE, see to it that TLS_CA_FILE goes with it",
            )
        case Served.OUT_OF_REACH:
            return unknown(title, f"the webhook is not reached from here: {connection.why}")


_NOT_THROUGH: Final = (
    "the API server does not get through: let it reach port 9443 of the operator's pods, or "
    "WEBHOOK_URL (a firewall rule, in private clusters); or the operator hangs: restart it"
)
_ADVICE: Final[Mapping[str, str]] = {
    "x509": "the CA bundle does not fit what is served: see the check of the CA bundle",
    "tls:": "the CA bundle does not fit what is served: see the check of the CA bundle",
    "connection refused": "nothing listens there: see the check of the replicas",
    "no endpoints available": "no replica is ready: see the check of the replicas",
    "not found": "the Service is missing: apply the manifest of your installation again "
    "(docs/install.md), or helm upgrade",
    "provide credentials": "the API server presents no token that the operator takes: see "
    "docs/authentication.md",
    "no such host": "the API server does not know the host of WEBHOOK_URL",
    "deadline exceeded": _NOT_THROUGH,
    "timeout": _NOT_THROUGH,
}
"""By what the API server's sentence holds: it has no other way to tell."""


def checked_probe(probe: Fact[Probe]) -> Finding:
    """What became of a pod that was tried: whether the API server reaches the webhook."""
    title = "a pod"
    if isinstance(probe, Unseen):
        return unknown(title, probe)
    tried = f"tried in namespace {probe.namespace}"
    if probe.pod is None:
        return _refused(title, tried, one_line(probe.refusal, 500))
    labels = pods.labels(probe.pod)
    if pods.mark(probe.pod) is not None or names.INJECTED_LABEL in labels:
        return good(title, f"{tried}: it would get the sidecar")
    if reason := labels.get(names.INJECTION_SKIPPED_LABEL):
        return good(title, f"{tried}: the operator was asked, and would skip it ({reason})")
    return bad(
        title,
        f"{tried}: it would start bare, since nobody was asked, or nobody answered",
        "see the checks of the webhooks and of the replicas",
    )


def _refused(title: str, tried: str, refusal: str) -> Finding:
    if names.POD_WEBHOOK not in refusal and names.NAMESPACE_WEBHOOK not in refusal:
        return unknown(title, f"{tried}: others stand in the way: {refusal}")
    if "not injected (" in refusal:
        return good(title, f"{tried}: the operator was asked, and would refuse it ({refusal})")
    advice = next(
        (advice for words, advice in _ADVICE.items() if words in refusal),
        "the operator's log says more",
    )
    return bad(title, f"{tried}: {refusal}", advice)
