"""Kinds of cert-manager's and the Prometheus operator's, as far as our manifests use them.

Their definitions are their projects' own, and long; these have the fields that we set and no
others, so that the API server refuses a misspelt one.
"""

from typing import Any, Final

from controlplane import ControlPlane

_TEXT: Final = {"type": "string"}
_WHOLE: Final = {"type": "integer"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_TEXT_BY_TEXT: Final = {"type": "object", "additionalProperties": _TEXT}


def _fields(required: tuple[str, ...] = (), **properties: Any) -> Any:
    found = {"type": "object", "properties": properties}
    return found | ({"required": list(required)} if required else {})


def _list(items: Any) -> Any:
    return {"type": "array", "items": items}


_ISSUER_REF: Final = _fields(("name",), name=_TEXT, kind=_TEXT, group=_TEXT)
_SELECTOR: Final = _fields(matchLabels=_TEXT_BY_TEXT)

_KINDS: Final = {
    ("cert-manager.io", "v1", "Issuer", "issuers"): _fields(
        selfSigned=_fields(), ca=_fields(("secretName",), secretName=_TEXT)
    ),
    ("cert-manager.io", "v1", "Certificate", "certificates"): _fields(
        ("issuerRef", "secretName"),
        commonName=_TEXT,
        dnsNames=_TEXTS,
        duration=_TEXT,
        isCA={"type": "boolean"},
        issuerRef=_ISSUER_REF,
        privateKey=_fields(
            algorithm={"type": "string", "enum": ["RSA", "ECDSA", "Ed25519"]},
            encoding={"type": "string", "enum": ["PKCS1", "PKCS8"]},
            rotationPolicy={"type": "string", "enum": ["Never", "Always"]},
            size=_WHOLE,
        ),
        renewBefore=_TEXT,
        secretName=_TEXT,
        usages=_list({"type": "string", "enum": ["digital signature", "server auth"]}),
    ),
    ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"): _fields(
        ("endpoints", "selector"),
        endpoints=_list(_fields(port=_TEXT, path=_TEXT, interval=_TEXT)),
        jobLabel=_TEXT,
        selector=_SELECTOR,
    ),
    ("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules"): _fields(
        groups=_list(
            _fields(
                ("name",),
                name=_TEXT,
                rules=_list(
                    _fields(
                        ("expr",),
                        alert=_TEXT,
                        annotations=_TEXT_BY_TEXT,
                        expr=_TEXT,
                        **{"for": _TEXT},
                        labels=_TEXT_BY_TEXT,
                    )
                ),
            )
        )
    ),
}


def define(control_plane: ControlPlane) -> None:
    """Make the API server know the kinds."""
    for (group, version, kind, plural), spec in _KINDS.items():
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": f"{plural}.{group}",
            },
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [
                    {
                        "name": version,
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": _fields(spec=spec)},
                    }
                ],
            },
        }
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        status, content = control_plane.request("POST", path, definition)
        assert status == 201, content
        control_plane.kubectl("wait", "--for=condition=Established", f"crd/{plural}.{group}")
