"""Raw JSON, read without trusting it.

The API server sends well-formed objects; files and strangers on the webhook's port may not. A null
and a value of the wrong kind are read as absent here, so that no caller has to. An object is a
`dict`, as every parser makes it: to ask for a `Mapping` took a third of the time of a decision.
"""

from collections.abc import Mapping

from shield_operator.model import Json


def mapping(value: Json, *path: str) -> Mapping[str, Json]:
    """The object at `path` below `value`, or an empty one."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def items(value: Json, *path: str) -> list[Mapping[str, Json]]:
    """The objects of the list at `path` below `value`."""
    found = mapping(value, *path[:-1]).get(path[-1])
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def texts(value: Json, *path: str) -> list[str]:
    """The strings of the list at `path` below `value`."""
    found = mapping(value, *path[:-1]).get(path[-1])
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def strings(value: Json, *path: str) -> Mapping[str, str]:
    """The strings of the object at `path` below `value`, by name."""
    return {key: text for key, text in mapping(value, *path).items() if isinstance(text, str)}
