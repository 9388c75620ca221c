"""What the operator's account must be allowed, as ``check`` asks for it.

The rules themselves, with their reasons, are in ``manifests/base/rbac.yaml``; a test keeps the two
the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from shield_operator import kinds, names
from shield_operator.kinds import Kind
from shield_operator.model import Json
from shield_operator.settings import Settings


@dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one kind of object, everywhere or in one namespace."""

    verb: str
    group: str
    resource: str
    name: str | None = None
    namespace: str | None = None

    def attributes(self) -> Json:
        """``resourceAttributes`` of an access review."""
        resource, _, subresource = self.resource.partition("/")
        given = {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "name": self.name,
            "namespace": self.namespace,
        }
        return {key: value for key, value in given.items() if value}

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        name = f" {self.name}" if self.name else ""
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{group}{name}{where}"


_CLUSTER_ROLES: Final = "clusterroles"
_RBAC: Final = "rbac.authorization.k8s.io"


def operators_permissions(settings: Settings) -> tuple[Permission, ...]:
    """All that an operator of these settings needs."""
    own, secret = settings.namespace, settings.tls_secret_name
    return (
        *_on(kinds.CONFIG, "list", "watch"),
        Permission("patch", kinds.CONFIG.group, f"{names.PLURAL}/status"),
        *_on(kinds.DEFINITION, "list", "watch"),
        *_on(kinds.POD, "list"),
        *_on(kinds.SECRET, "get"),
        *_on(kinds.EVENT, "create"),
        *_on(kinds.WEBHOOK_CONFIGURATION, "create"),
        *_on(kinds.WEBHOOK_CONFIGURATION, "get", "patch", "delete", name=names.OPERATOR),
        Permission("get", _RBAC, _CLUSTER_ROLES, names.OPERATOR),
        *_on(kinds.SECRET, "create", namespace=own),
        *_on(kinds.SECRET, "get", "patch", name=secret, namespace=own),
        *_on(kinds.LEASE, "create", namespace=own),
        *_on(kinds.LEASE, "get", "update", name=names.OPERATOR, namespace=own),
    )


def installers_permissions(settings: Settings) -> tuple[Permission, ...]:
    """What applying ``manifests/install.yaml`` for the first time needs."""
    own = settings.namespace
    return (
        *_on(kinds.NAMESPACE, "create"),
        *_on(kinds.DEFINITION, "create"),
        Permission("create", _RBAC, _CLUSTER_ROLES),
        Permission("create", _RBAC, "clusterrolebindings"),
        Permission("create", _RBAC, "roles", namespace=own),
        Permission("create", _RBAC, "rolebindings", namespace=own),
        Permission("create", "", "serviceaccounts", namespace=own),
        Permission("create", "", "services", namespace=own),
        Permission("create", "", "resourcequotas", namespace=own),
        Permission("create", "policy", "poddisruptionbudgets", namespace=own),
        *_on(kinds.DEPLOYMENT, "create", namespace=own),
    )


GRANT: Final = Permission("escalate", _RBAC, _CLUSTER_ROLES)
"""Whoever may do this may give permissions away that they do not have."""


def _on(
    kind: Kind, *verbs: str, name: str | None = None, namespace: str | None = None
) -> Iterator[Permission]:
    for verb in verbs:
        yield Permission(verb, kind.group, kind.plural, name, namespace)
