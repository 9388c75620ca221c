"""A pod under change, with the operations that lead there.

Whatever is changed is written down as it is done, each operation against the pod as the ones before
left it: there is nothing to compare afterwards. The pod that it began with stays as it is. Only
what lies on the way to a change is copied, never the pod, so that a large pod costs no more.

https://www.rfc-editor.org/rfc/rfc6902
"""

import copy
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from shield_operator.model import Json

Path: TypeAlias = tuple[str | int, ...]
"""Keys and positions, from the pod down."""


class Draft:
    """A pod as it looks by now; read it by `pod`, and change it by the methods alone.

    Args:
        pod: what it begins with.
        shares: whether what is put in may be a part of the result itself, and not a copy of it.
    """

    def __init__(self, pod: Json, *, shares: bool = True) -> None:
        self.pod = pod
        self.operations: list[Json] = []
        self._shares = shares
        self._ours: dict[int, Json] = {}
        """By `id`, the objects and lists that are ours to change."""

    def put(self, path: Path, value: Json) -> None:
        """Set the member of an object; objects on the way that are absent are made."""
        holder = self.pod
        for depth, (key, below) in enumerate(itertools.pairwise(path)):
            found = holder[key] if isinstance(key, int) else holder.get(key)
            if not isinstance(found, list if isinstance(below, int) else dict):
                for missing in reversed(path[depth + 1 :]):
                    value = {missing: value}
                self._set(path[: depth + 1], value)
                return
            holder = found
        found = holder.get(path[-1])
        if type(found) is not type(value) or found != value:
            self._set(path, value)

    def update(self, path: Path, members: Mapping[str, Json]) -> None:
        """Set several members of the object at `path`."""
        if not isinstance(self._at(path), dict):
            self.put(path, dict(members))
            return
        for key, value in members.items():
            self.put((*path, key), value)

    def remove(self, path: Path) -> None:
        """Take a member of an object away, where it is there."""
        holder = self._at(path[:-1])
        if isinstance(holder, dict) and path[-1] in holder:
            del self._own(path[:-1])[path[-1]]
            self.operations.append({"op": "remove", "path": _pointer(path)})

    def append(self, path: Path, values: Sequence[Json]) -> None:
        """Add to the end of the list at `path`, which is made where it is absent."""
        if not isinstance(self._at(path), list):
            if values:
                self.put(path, [*values])
            return
        for value in values:
            added = self._taken(value)
            self._own(path).append(added)
            self.operations.append({"op": "add", "path": _pointer((*path, "-")), "value": added})

    def insert(self, path: Path, index: int, value: Json) -> None:
        """Add to the list at `path`, which is made where it is absent, at this position."""
        found = self._at(path)
        if not isinstance(found, list):
            self.put(path, [value])
            return
        index = min(index, len(found))
        added = self._taken(value)
        self._own(path).insert(index, added)
        self.operations.append({"op": "add", "path": _pointer((*path, index)), "value": added})

    def _set(self, path: Path, value: Json) -> None:
        holder, key, added = self._own(path[:-1]), path[-1], self._taken(value)
        operation = "replace" if key in holder else "add"
        holder[key] = added
        self.operations.append({"op": operation, "path": _pointer(path), "value": added})

    def _taken(self, value: Json) -> Json:
        return value if self._shares else copy.deepcopy(value)

    def _at(self, path: Path) -> Json:
        found = self.pod
        for key in path:
            if isinstance(found, dict):
                found = found.get(key)
            elif isinstance(found, list) and isinstance(key, int):
                found = found[key]
            else:
                return None
        return found

    def _own(self, path: Path) -> Any:  # noqa: ANN401  # an object or a list
        """The object or list at `path`, after it and all above it were made ours."""
        self.pod = holder = self._copied_once(self.pod)
        for key in path:
            holder[key] = self._copied_once(holder[key])
            holder = holder[key]
        return holder

    def _copied_once(self, value: Json) -> Json:
        if id(value) in self._ours:
            return value
        copied = value.copy()
        self._ours[id(copied)] = copied
        return copied


def _pointer(path: Path) -> str:
    """https://www.rfc-editor.org/rfc/rfc6901."""
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)
