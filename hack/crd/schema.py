"""JSON schemas as plain data: merging patches, walking, finding what has no bound."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

Schema: TypeAlias = dict[str, Any]
"""A JSON schema, or a part of an OpenAPI document, as ``json.loads`` returns it."""

RULES: Final = "x-kubernetes-validations"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> Schema:
    """Apply a JSON merge patch (RFC 7386): mappings merge, null removes, the rest replaces."""
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge_patch(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def laid_over(schema: Mapping[str, Any], own: Mapping[str, Any]) -> Schema:
    """Return `schema` with the keywords that one place adds to it; both sets of rules hold."""
    rules = [*schema.get(RULES, ()), *own.get(RULES, ())]
    return {**own, **schema, **own} | ({RULES: rules} if rules else {})


def walk(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield `schema` and every schema below it, each with its path (``spec.env[].name``)."""
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from walk(below, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


def unbounded(schema: Mapping[str, Any]) -> list[str]:
    """Paths of the strings, lists and maps in `schema` that can be of any size.

    The API server estimates what a CEL rule costs from these bounds before it takes the definition.
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#resource-use-by-validation-functions
    """
    return [path for path, below in walk(schema, "") if not _is_bounded(below)]


def _is_bounded(schema: Mapping[str, Any]) -> bool:
    if "enum" in schema or "format" in schema:
        return True
    if schema.get("type") == "string" or _INT_OR_STRING in schema:
        return "maxLength" in schema
    if schema.get("type") == "array":
        return "maxItems" in schema
    return "additionalProperties" not in schema or "maxProperties" in schema
