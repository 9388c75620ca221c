"""A core type's schema, as the API server describes it, made fit for a CustomResourceDefinition."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from crd.schema import Schema, merge_patch

_REFERENCE: Final = "#/components/schemas/"

_LEFT_OUT: Final = frozenset(
    {
        "default",  # the operator computes defaults; most of these only say that Go's zero value is
        "description",  # `kubectl explain pod.spec` has them; here they would be 60 KB
        "x-kubernetes-group-version-kind",  # of top-level objects, which these are not
        "x-kubernetes-patch-merge-key",  # strategic merge patch, which custom resources do not have
        "x-kubernetes-patch-strategy",
        "x-kubernetes-unions",
    }
)
"""Keywords that a structural schema may not have, or that we do not want in it."""


class UnknownTypeError(Exception):
    """A mark or a patch names a type that the OpenAPI documents do not have."""


@dataclass(frozen=True, slots=True)
class CoreTypes:
    """Kubernetes' own types by name (``io.k8s.api.core.v1.Toleration``), ready for our CRD.

    Attributes:
        schemas: the ``components.schemas`` of OpenAPI v3 documents.
        patches: what we add to a type and leave out of it, as JSON merge patches.
    """

    schemas: Mapping[str, Schema]
    patches: Mapping[str, Schema]

    def __post_init__(self) -> None:
        """Refuse patches that would never be used.

        Raises:
            UnknownTypeError: naming each of them.
        """
        if unknown := sorted(self.patches.keys() - self.schemas.keys()):
            raise UnknownTypeError(f"patched, but not in the OpenAPI: {', '.join(unknown)}")

    def schema(self, name: str) -> Schema:
        """Return the structural schema of one type: self-contained, patched, without defaults.

        Raises:
            UnknownTypeError: where no document has it.
        """
        if name not in self.schemas:
            raise UnknownTypeError(f"not in the OpenAPI: {name}")
        patched = merge_patch(self._structural(self.schemas[name]), self.patches.get(name, {}))
        return _without_vanished_fields(patched)

    def _structural(self, schema: Mapping[str, Any]) -> Schema:
        """Inline references and drop what has no place in a CRD, all the way down."""
        match schema:
            case {"$ref": str(reference)}:
                return self.schema(reference.removeprefix(_REFERENCE))
            case {"allOf": [{"$ref": str(reference)}]}:  # how OpenAPI 3.0 describes a reference
                return self.schema(reference.removeprefix(_REFERENCE))
        kept: Schema = {key: value for key, value in schema.items() if key not in _LEFT_OUT}
        if "properties" in kept:
            kept["properties"] = {
                name: self._structural(below) for name, below in kept["properties"].items()
            }
        for keyword in ("items", "additionalProperties"):
            if keyword in kept:
                kept[keyword] = self._structural(kept[keyword])
        return _with_possible_list_type(kept)


def _with_possible_list_type(schema: Schema) -> Schema:
    """Make a list map atomic where its keys are optional: a CRD wants them required, or defaulted.

    https://kubernetes.io/docs/reference/using-api/server-side-apply/#custom-resources-and-server-side-apply
    """
    keys = schema.get("x-kubernetes-list-map-keys", ())
    if set(keys) <= set(schema.get("items", {}).get("required", ())):
        return schema
    return merge_patch(
        schema, {"x-kubernetes-list-map-keys": None, "x-kubernetes-list-type": "atomic"}
    )


def _without_vanished_fields(schema: Schema) -> Schema:
    """Keep ``required`` to the fields that are still there after a patch removed some."""
    required = [name for name in schema.get("required", ()) if name in schema.get("properties", {})]
    return merge_patch(schema, {"required": required or None})
