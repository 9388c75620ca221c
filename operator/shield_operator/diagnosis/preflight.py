"""``check --pre``: whether an installation will go well."""

from shield_operator import names, raw
from shield_operator.diagnosis.checks import checked_sidecars, checked_version
from shield_operator.diagnosis.facts import Fact, FactsBefore, Unseen
from shield_operator.diagnosis.finding import Finding, bad, good, unknown
from shield_operator.diagnosis.permissions import GRANT, installers_permissions
from shield_operator.model import Json
from shield_operator.settings import Settings


def check_before(facts: FactsBefore, settings: Settings) -> list[Finding]:
    """Whether the operator can be installed, by this person, in this cluster."""
    return [
        checked_version(facts.version),
        _webhooks_served(facts.serves_webhooks),
        _installer(facts, settings),
        _granting(facts, settings),
        _definition(facts.definition),
        _deployment(facts.deployment, settings),
        checked_sidecars(facts.version, settings),
    ]


def _webhooks_served(served: Fact[bool]) -> Finding:
    title = "admission webhooks"
    match served:
        case Unseen():
            return unknown(title, served)
        case True:
            return good(title, "the API server has admissionregistration.k8s.io/v1")
        case _:
            advice = "without it, no operator of this kind can work"
            return bad(title, "the API server has no admissionregistration.k8s.io/v1", advice)


def _installer(facts: FactsBefore, settings: Settings) -> Finding:
    title = "installing"
    if isinstance(facts.installer, Unseen):
        return unknown(title, facts.installer)
    wanted = installers_permissions(settings)
    missing = [str(one) for one in wanted if not facts.installer.get(one)]
    if missing:
        saw = f"you may not {', '.join(missing)}"
        return bad(title, saw, "ask somebody with the role cluster-admin to install it")
    return good(title, f"you have all {len(wanted)} permissions that it takes")


def _granting(facts: FactsBefore, settings: Settings) -> Finding:
    """The API server lets nobody give away what they do not have.

    https://kubernetes.io/docs/reference/access-authn-authz/rbac/#privilege-escalation-prevention-and-bootstrapping
    """
    title = "granting"
    if isinstance(facts.installer, Unseen):
        return unknown(title, facts.installer)
    others = {*installers_permissions(settings), GRANT}
    lacking = [
        str(one) for one, granted in facts.installer.items() if one not in others and not granted
    ]
    if lacking and not facts.installer.get(GRANT):
        saw = f"you may not give the operator what you do not have: {', '.join(lacking)}"
        return bad(title, saw, "ask somebody with the role cluster-admin to install it")
    return good(title, "you may give the operator its permissions")


def _definition(definition: Json) -> Finding:
    title = "definition"
    match definition:
        case Unseen():
            return unknown(title, definition)
        case None:
            return good(title, "none is there yet")
    group = raw.mapping(definition, "spec").get("group")
    return good(title, f"{names.PLURAL}.{group} is there already, and will be brought up to date")


def _deployment(deployment: Json, settings: Settings) -> Finding:
    title = "operator"
    match deployment:
        case Unseen():
            return unknown(title, deployment)
        case None:
            return good(title, "none is there yet")
    where = f"{settings.namespace}/{names.OPERATOR}"
    return good(title, f"Deployment {where} is there already, and will be brought up to date")
