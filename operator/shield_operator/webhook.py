"""Our ``MutatingWebhookConfiguration`` as data: what it must hold, and whether a live one does.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

import base64
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from shield_operator import names, raw
from shield_operator.certificates import split_certificates
from shield_operator.model import Json
from shield_operator.selection import excluded_namespaces
from shield_operator.settings import FailurePolicy, Settings

_NOT_A_MIRROR_POD: Final = {
    "name": "not-a-mirror-pod",
    # The annotation alone would be a way around the shield for anybody who can write pods.
    "expression": (
        f"!(has(object.metadata.annotations) && "
        f"'{names.MIRROR_POD_ANNOTATION}' in object.metadata.annotations && "
        f"has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups)"
    ),
}


def configuration(settings: Settings, ca_bundle: bytes, owner_uid: str) -> Json:
    """The object to apply.

    Args:
        settings: the operator's.
        ca_bundle: the authorities, PEM, that may have signed what the replicas serve.
        owner_uid: the uid of our ClusterRole; deleting the role takes this object along, so that
            no webhook without an operator is left behind to refuse pods.
    """
    in_values, out_values = list(names.IN_VALUES), list(names.OUT_VALUES)
    everywhere_else = _expression(
        names.NAMESPACE_NAME_LABEL, "NotIn", list(excluded_namespaces(settings))
    )
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {
            "name": names.OPERATOR,
            "labels": {"app.kubernetes.io/name": names.OPERATOR, **_ENFORCER_OFF},
            "annotations": dict(_ENFORCER_OFF),
            "ownerReferences": [
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "name": names.OPERATOR,
                    "uid": owner_uid,
                }
            ],
        },
        "webhooks": [
            _webhook(
                names.NAMESPACE_WEBHOOK,
                settings,
                ca_bundle,
                namespaces=[_expression(names.INJECT_LABEL, "In", in_values), everywhere_else],
                objects=[_expression(names.INJECT_LABEL, "NotIn", out_values)],
            ),
            _webhook(
                names.POD_WEBHOOK,
                settings,
                ca_bundle,
                namespaces=[
                    _expression(names.INJECT_LABEL, "NotIn", [*in_values, *out_values]),
                    everywhere_else,
                ],
                objects=[_expression(names.INJECT_LABEL, "In", in_values)],
            ),
        ],
    }


_NAMES: Final = (names.NAMESPACE_WEBHOOK, names.POD_WEBHOOK)

_ENFORCER_OFF: Final = {"admissions.enforcer/disabled": "true"}
"""Keeps a managed cluster's admissions enforcer from adding selectors that we would take out."""


def _encoded(ca_bundle: bytes) -> str:
    return base64.b64encode(ca_bundle).decode("ascii")


def _decoded(ca_bundle: Json) -> bytes:
    return base64.b64decode(ca_bundle) if isinstance(ca_bundle, str) else b""


def client_config(settings: Settings, ca_bundle: bytes) -> Json:
    """How the API server reaches the webhook: by its Service, or by URL from outside."""
    encoded = _encoded(ca_bundle)
    if settings.webhook_url is not None:
        return {"url": f"{settings.webhook_url}{names.INJECT_PATH}", "caBundle": encoded}
    service = {
        "namespace": settings.namespace,
        "name": settings.webhook_service,
        "path": names.INJECT_PATH,
        "port": 443,
    }
    return {"service": service, "caBundle": encoded}


def settings_shown(settings: Settings, hook: Json) -> Settings:
    """`settings`, but for what a live webhook of ours shows of its operator's."""
    url = raw.mapping(hook, "clientConfig").get("url")
    shown: dict[str, Json] = {}
    if isinstance(url, str):
        shown["webhook_url"] = url.removesuffix(names.INJECT_PATH)
    if hook.get("failurePolicy") in list(FailurePolicy):
        shown["failure_policy"] = FailurePolicy(hook["failurePolicy"])
    if isinstance(hook.get("timeoutSeconds"), int):
        shown["webhook_timeout"] = hook["timeoutSeconds"]
    return replace(settings, **shown)


def _webhook(
    name: str, settings: Settings, ca_bundle: bytes, *, namespaces: Json, objects: Json
) -> Json:
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client_config(settings, ca_bundle),
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ],
        "namespaceSelector": {"matchExpressions": namespaces},
        "objectSelector": {"matchExpressions": objects},
        "matchConditions": [_NOT_A_MIRROR_POD],
        "failurePolicy": settings.failure_policy.value,
        "timeoutSeconds": settings.webhook_timeout,
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "matchPolicy": "Equivalent",
    }


def _expression(key: str, operator: str, values: list[str]) -> Json:
    return {"key": key, "operator": operator, "values": values}


_ATOMIC: Final = frozenset({"namespaceSelector", "objectSelector", "clientConfig", "rules"})
"""Ours as a whole: something added there would change who is asked, where, or of what."""


def differs(live: Json, wanted: Json) -> bool:
    """Whether applying `wanted` would change `live`; what others added beside it does not count."""
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return True
        return any(
            live.get(key) != value if key in _ATOMIC else differs(live.get(key), value)
            for key, value in wanted.items()
        )
    if isinstance(wanted, list) and all(isinstance(item, dict) for item in wanted):
        by_name = {_identity(item): item for item in live or [] if isinstance(item, dict)}
        return any(differs(by_name.get(_identity(item)), item) for item in wanted)
    return bool(live != wanted)


def _identity(item: Json) -> Json:
    """What tells the items of a list apart, as the API server's list-type keys do."""
    return item.get("uid") or item.get("name")


def ca_bundles(live: Json) -> tuple[bytes, ...]:
    """The CA bundle, PEM, of each of our webhooks that is there."""
    return tuple(
        _decoded(raw.mapping(hook, "clientConfig").get("caBundle")) for hook in _ours(live)
    )


def _ours(live: Json) -> list[Json]:
    return [hook for hook in raw.items(live, "webhooks") if hook.get("name") in _NAMES]


def carries(live: Json, authorities: bytes) -> bool:
    """Whether both of our webhooks are there and trust all of these authorities."""
    wanted = set(split_certificates(authorities))
    return is_whole(live) and all(
        wanted <= set(split_certificates(bundle)) for bundle in ca_bundles(live)
    )


def is_whole(live: Json) -> bool:
    """Whether both of our webhooks are there."""
    return len(_ours(live)) == len(_NAMES)


def with_authorities(live: Json, authorities: bytes) -> Json | None:
    """What to change for each of our webhooks to trust these authorities as well.

    A strategic merge patch of `live`, which others keep as it should be otherwise; None where one
    of our webhooks is not there.
    https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/
    """
    if not is_whole(live):
        return None
    hooks = [
        {
            "name": hook["name"],
            "clientConfig": {"caBundle": _encoded(_joined(bundle, authorities))},
        }
        for hook, bundle in zip(_ours(live), ca_bundles(live), strict=True)
    ]
    version = raw.mapping(live, "metadata").get("resourceVersion")
    return {"metadata": {"resourceVersion": version}, "webhooks": hooks}


def _joined(*bundles: bytes) -> bytes:
    return b"".join(split_certificates(b"".join(bundles)))


def foreign_match_conditions(live: Json, wanted: Json) -> Iterator[tuple[str, str]]:
    """Webhook and name of each match condition that others have added to ours.

    They stay (they are others' to take away), but each can keep pods from us without a trace.
    """
    ours = {hook["name"]: hook["matchConditions"] for hook in wanted["webhooks"]}
    for hook in raw.items(live, "webhooks"):
        name = str(hook.get("name"))
        known = {condition["name"] for condition in ours.get(name, [])}
        for condition in raw.items(hook, "matchConditions") if name in ours else []:
            if condition.get("name") not in known:
                yield name, str(condition.get("name"))
