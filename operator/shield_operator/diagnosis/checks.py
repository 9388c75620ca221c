"""``check``: from facts to findings, each of them one function.

In the order in which things depend on each other: the first one that is wrong is where to begin.
"""

from datetime import datetime, timedelta
from typing import Final

from shield_operator import names, raw, webhook
from shield_operator.certificates import LEAF_LIFETIME, CertificateError, read_validity
from shield_operator.diagnosis.facts import Facts, Unseen
from shield_operator.diagnosis.finding import Finding, bad, good, unknown
from shield_operator.diagnosis.reaching import checked_connection, checked_probe
from shield_operator.diagnosis.trust import authorities_of, bundles, checked_bundle
from shield_operator.model import Json, Mode
from shield_operator.plan import NEWEST_SUPPORTED, OLDEST_SUPPORTED, ClusterVersion
from shield_operator.plan.version import has_native_sidecars
from shield_operator.settings import Settings

INSTALL: Final = "kubectl apply -f install.yaml, with your image (docs/install.md), or helm upgrade"
_SHORT: Final = timedelta(days=7)
"""So little is left of a certificate that somebody must act."""
_RENEWED_BY: Final = LEAF_LIFETIME / 3 - timedelta(days=1)
"""With less than this left, the operator has failed to renew its own."""
_UNLED: Final = "no replica writes: start one, or read in the log of one that runs what keeps it"


def check(facts: Facts, settings: Settings, now: datetime) -> list[Finding]:
    """Whether the installation is healthy."""
    return [
        checked_version(facts.version),
        _definition(facts.definition),
        _deployment(facts),
        _webhooks(facts, settings),
        _trust(facts, settings),
        _expiry(facts, settings, now),
        _replicas(facts),
        _lease(facts),
        _permissions(facts),
        checked_sidecars(facts.version, settings),
        checked_probe(facts.probe),
    ]


def checked_version(version: Json) -> Finding:
    """Whether the API server answers, and is one that we know."""
    title = "API server"
    if isinstance(version, Unseen):
        return bad(
            title, version.why, "see to it that kubectl reaches the cluster: kubectl version"
        )
    text = str(raw.mapping(version).get("gitVersion"))
    try:
        found = ClusterVersion.parse(text)
    except ValueError as error:
        return bad(title, str(error), "is the kubeconfig's server an API server?")
    if found < OLDEST_SUPPORTED:
        return bad(title, f"it is {text}", f"upgrade Kubernetes to {OLDEST_SUPPORTED} or later")
    newer = (
        f", newer than {NEWEST_SUPPORTED}, the last one tried" if found > NEWEST_SUPPORTED else ""
    )
    return good(title, f"it answers, and is {text}{newer}")


def _definition(definition: Json) -> Finding:
    title = "definition"
    name = f"{names.PLURAL}.{names.API_GROUP}"
    match definition:
        case Unseen():
            return unknown(title, definition)
        case None:
            return bad(title, f"there is no CustomResourceDefinition {name}", INSTALL)
    conditions = raw.items(definition, "status", "conditions")
    established = any(
        one.get("type") == "Established" and one.get("status") == "True" for one in conditions
    )
    served = [
        str(one.get("name"))
        for one in raw.items(definition, "spec", "versions")
        if one.get("served") is True
    ]
    if raw.mapping(definition, "metadata").get("deletionTimestamp"):
        return bad(title, f"{name} is being deleted, and all configs with it", INSTALL)
    if not established:
        why = "; ".join(str(one["message"]) for one in conditions if one.get("message"))
        advice = f"kubectl describe crd {name}"
        return bad(title, f"{name} is not established: {why or 'no reason is given'}", advice)
    if names.API_VERSION not in served:
        return bad(title, f"{name} does not serve {names.API_VERSION}", INSTALL)
    return good(title, f"{name} is established, and serves {', '.join(served)}")


def is_called_by_url(webhooks: Json) -> str | None:
    """The URL at which the API server calls an operator outside of the cluster."""
    for hook in raw.items(None if isinstance(webhooks, Unseen) else webhooks, "webhooks"):
        url = raw.mapping(hook, "clientConfig").get("url")
        if isinstance(url, str):
            return url
    return None


def _deployment(facts: Facts) -> Finding:
    title = "operator"
    match facts.deployment:
        case Unseen() as unseen:
            return unknown(title, unseen)
        case None:
            if url := is_called_by_url(facts.webhooks):
                return unknown(title, f"it runs outside of the cluster, at {url}")
            return bad(title, f"there is no Deployment {names.OPERATOR}", INSTALL)
    metadata = raw.mapping(facts.deployment, "metadata")
    namespace = metadata.get("namespace")
    status = raw.mapping(facts.deployment, "status")
    wanted = raw.mapping(facts.deployment, "spec").get("replicas", 1)
    available = status.get("availableReplicas", 0)
    saw = f"{available} of {wanted} replicas are available"
    advice = (
        f"kubectl -n {namespace} get pods -l app.kubernetes.io/name={names.OPERATOR}; "
        f"kubectl -n {namespace} logs deployment/{names.OPERATOR}"
    )
    if not available or available < wanted:
        return bad(title, saw, advice)
    if status.get("observedGeneration") != metadata.get("generation"):
        return bad(title, f"{saw}, but its latest change has not been rolled out", advice)
    note = ""
    if facts.unknown_settings:
        note = f"; not known of its settings: {', '.join(facts.unknown_settings)}"
    return good(title, f"{saw}{note}")


def _webhooks(facts: Facts, settings: Settings) -> Finding:
    title = "webhooks"
    match facts.webhooks:
        case Unseen() as unseen:
            return unknown(title, unseen)
        case None:
            saw = f"there is no MutatingWebhookConfiguration {names.OPERATOR}: nobody is asked"
            return bad(title, saw, "see to the operator, which makes it as soon as it runs")
    live = facts.webhooks
    wanted = webhook.configuration(_as_live(live, facts, settings), b"", "")
    by_name = {hook.get("name"): hook for hook in raw.items(live, "webhooks")}
    missing = [hook["name"] for hook in wanted["webhooks"] if hook["name"] not in by_name]
    if missing:
        saw = f"{' and '.join(missing)} is missing" if len(missing) == 1 else "both are missing"
        return bad(title, saw, "the operator puts it back within seconds, unless it is not running")
    changed = [
        f"{key} of {hook['name']}"
        for hook in wanted["webhooks"]
        for key, value in hook.items()
        if key != "clientConfig"
        and webhook.differs({key: by_name[hook["name"]].get(key)}, {key: value})
    ]
    if changed:
        saw = f"changed by somebody: {', '.join(changed)}"
        return bad(
            title,
            saw,
            "the operator puts it back, unless it is not running or somebody else insists: kubectl "
            f"get mutatingwebhookconfiguration {names.OPERATOR} -o yaml --show-managed-fields",
        )
    foreign = list(webhook.foreign_match_conditions(live, wanted))
    note = "".join(
        f"; somebody has added match condition {condition} to {hook}" for hook, condition in foreign
    )
    policy = {str(hook.get("failurePolicy")) for hook in by_name.values()}
    return good(
        title, f"both are there, as they should be, with failurePolicy {policy.pop()}{note}"
    )


def _as_live(live: Json, facts: Facts, settings: Settings) -> Settings:
    """The settings; without a Deployment to read them from, those that the live object shows."""
    if facts.deployment is not None and not isinstance(facts.deployment, Unseen):
        return settings
    hook = next(iter(raw.items(live, "webhooks")), {})
    return webhook.settings_shown(settings, hook)


def _trust(facts: Facts, settings: Settings) -> Finding:
    title = "CA bundle"
    if isinstance(facts.webhooks, Unseen):
        return unknown(title, facts.webhooks)
    if facts.webhooks is None:
        return unknown(title, "there is no webhook configuration to hold one")
    trusted = bundles(facts.webhooks)
    where = f"Secret {settings.namespace}/{settings.tls_secret_name}"
    match facts.tls_secret:
        case Unseen() as unseen if facts.connection is None:
            return unknown(title, unseen)
        case Unseen() | None:
            return checked_connection(title, facts.connection, where)
        case data:
            return checked_bundle(title, trusted, authorities_of(data), where)


def _expiry(facts: Facts, settings: Settings, now: datetime) -> Finding:
    title = "certificate"
    where = f"Secret {settings.namespace}/{settings.tls_secret_name}"
    match facts.tls_secret:
        case Unseen() as unseen if facts.connection is None:
            return unknown(title, unseen)
        case Unseen() | None:
            connection = facts.connection
            if connection is None or isinstance(connection, Unseen) or connection.until is None:
                # Not looked at is not the same as not there.
                absent = f"there is no {where}, and no served one was seen"
                return unknown(title, facts.tls_secret or absent)
            return _left(title, connection.until, now, _SHORT, "renew what you serve with")
        case data:
            try:
                validity = read_validity(data.get("tls.crt", b""))
            except CertificateError as error:
                advice = "see to the operator, which makes a new one as soon as it runs"
                return bad(title, f"{where}: {error}", advice)
            if now < validity.not_before:
                saw = f"it is good from {validity.not_before:%Y-%m-%d %H:%M} UTC only"
                return bad(title, saw, "compare the clocks of this machine and the operator's")
            advice = f"the operator should have renewed it: its log says why not ({where})"
            return _left(title, validity.not_after, now, _RENEWED_BY, advice)


def _left(title: str, until: datetime, now: datetime, least: timedelta, advice: str) -> Finding:
    shown = f"{until:%Y-%m-%d %H:%M} UTC"
    if until <= now:
        return bad(title, f"it has ended at {shown}", advice)
    saw = f"it is good until {shown}, {(until - now).days} days from now"
    return good(title, saw) if until - now >= least else bad(title, saw, advice)


def _replicas(facts: Facts) -> Finding:
    title = "replicas"
    match facts.answers:
        case Unseen() as unseen:
            return unknown(title, unseen)
        case ():
            if facts.connection is None:
                return bad(title, "the operator has no pods", INSTALL)
            if isinstance(facts.connection, Unseen):
                return unknown(title, facts.connection)
            return checked_connection(title, facts.connection, "the webhook's URL")
        case answers:
            failing = [
                f"{one.pod}: {' '.join(one.text.split())[:200] or one.status}"
                for one in answers
                if one.status != 200
            ]
            if failing:
                saw = f"{len(failing)} of {len(answers)} do not answer ready: {'; '.join(failing)}"
                advice = "the logs of those that run say more; of others, kubectl describe pod"
                return bad(title, saw, advice)
            return good(title, f"{len(answers)} of {len(answers)} answer ready")


def _lease(facts: Facts) -> Finding:
    title = "leader"
    match facts.lease:
        case Unseen() as unseen:
            return unknown(title, unseen)
        case None:
            saw = f"there is no Lease {names.OPERATOR}: no replica writes"
            return bad(title, saw, "see to the operator, which makes it as soon as it runs")
    holder = raw.mapping(facts.lease, "spec").get("holderIdentity")
    if not holder:
        return bad(title, "nobody holds the Lease", _UNLED)
    if not facts.lease_renewed:
        saw = f"{holder} holds the Lease, and does not renew it"
        return bad(title, saw, _UNLED)
    return good(title, f"{holder} holds the Lease, and renews it")


def _permissions(facts: Facts) -> Finding:
    title = "permissions"
    match facts.permissions:
        case Unseen() as unseen:
            return unknown(title, unseen)
        case asked:
            missing = [str(permission) for permission, granted in asked.items() if not granted]
            if missing:
                more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
                saw = f"the operator's account may not {', '.join(missing[:3])}{more}"
                return bad(title, saw, INSTALL)
            return good(title, f"the operator's account has all {len(asked)} that it needs")


def checked_sidecars(version: Json, settings: Settings) -> Finding:
    """Which kind of sidecar pods get by default."""
    title = "native sidecars"
    if isinstance(version, Unseen):
        return unknown(title, version)
    try:
        found = ClusterVersion.parse(str(raw.mapping(version).get("gitVersion")))
    except ValueError as error:
        return unknown(title, str(error))
    if has_native_sidecars(Mode.AUTO, settings.feature_gates, found):
        return good(title, f"pods get one ({found})")
    return good(
        title,
        f"pods get a plain container ({found}), with which a Job does not complete; where all "
        "kubelets are 1.29 or later, K8S_FEATURE_GATES=SidecarContainers=true changes that",
    )
