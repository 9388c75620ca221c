"""Reading JSON that may be anything, and remembering everything that was wrong with it."""

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from shield_operator.model.formats import LARGEST_INTEGER, Json

_Choice = TypeVar("_Choice", bound=StrEnum)
_Kind = TypeVar("_Kind")

_LONGEST_SHOWN: Final = 60
_LONGEST_KEY: Final = 317
"""No key that Kubernetes would take is longer."""


@dataclass(frozen=True, slots=True)
class Check:
    """What a string must look like, and how to say so: "it must be `wanted`"."""

    wanted: str
    accepts: Callable[[str], bool]
    longest: int | None = None
    """In characters, like the CRD's ``maxLength``; None where `accepts` sees to it."""

    def complaint(self, text: str) -> str | None:
        """What is wrong with `text`, to go on after its path; None where nothing is."""
        if self.longest is not None and len(text) > self.longest:
            return f"has {len(text)} characters: it may have {self.longest} at most"
        if not self.accepts(text):
            return f"is {shown(text)}: it must be {self.wanted}"
        return None


def text_of(longest: int) -> Check:
    """Any string up to that many characters."""
    return Check("a string", lambda _: True, longest)


def one_of(*choices: str) -> Check:
    """One of these strings."""
    return Check(" or ".join(choices), lambda text: text in choices)


class Reader:
    """One JSON object at a path: hands out its fields, and notes what is wrong with them.

    A null counts as absent, as it does for the API server (an unknown field is noted even then).
    A field of the wrong kind is noted, and then counts as absent too, so that reading goes on and
    finds the other problems. Every field must be asked for, present or not: `nothing_else` takes
    the others for misspelt.
    """

    def __init__(self, raw: Mapping[str, Json], path: str, problems: list[str]) -> None:
        self.raw = {key: value for key, value in raw.items() if value is not None}
        self._keys = raw.keys()
        self._path = path
        self._problems = problems
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def _at(self, key: str) -> str:
        return f"{self._path}.{_as_key(key)}" if self._path else _as_key(key)

    def problem(self, key: str, sentence: str) -> None:
        """Note what is wrong with the field `key`: `sentence` goes on after its path."""
        self._problems.append(f"{self._at(key)} {sentence}")

    def leave(self, *keys: str) -> None:
        """Know these fields, whatever they hold: they are somebody else's to read."""
        self._known.update(keys)

    def known(self) -> set[str]:
        """The paths of the fields that were asked for."""
        return {self._at(key) for key in self._known}

    def nothing_else(self) -> None:
        """Note every field as unknown that was never asked for."""
        for key in sorted(self._keys - self._known, key=_as_key):
            self.problem(key, "is unknown: check its spelling, or remove it")

    def _get(self, key: str, kind: type[_Kind], wanted: str, *, required: bool) -> _Kind | None:
        self._known.add(key)
        value = self.raw.get(key)
        if value is None:
            if required:
                self.problem(key, f"is missing: give {wanted}")
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.problem(key, f"is {shown(value)}: it must be {wanted}")
            return None
        return value

    def string(self, key: str, check: Check, *, required: bool = False) -> str | None:
        """The string at `key`, or None."""
        value = self._get(key, str, check.wanted, required=required)
        if value is not None and (complaint := check.complaint(value)):
            self.problem(key, complaint)
            return None
        return value

    def int_or_string(self, key: str, check: Check) -> str | None:
        """The string at `key`, or the whole number there as a string, or None."""
        self._known.add(key)
        value = self.raw.get(key)
        if type(value) is int and abs(value) <= LARGEST_INTEGER:
            value = str(value)
        return value if value is not None and self._accepts(key, value, check) else None

    def integer(self, key: str, low: int, high: int, *, required: bool = False) -> int | None:
        """The whole number at `key`, from `low` to `high`, or None."""
        wanted = f"a whole number from {low} to {high}"
        value = self._get(key, int, wanted, required=required)
        if value is not None and not low <= value <= high:
            self.problem(key, f"is {shown(value)}: it must be {wanted}")
            return None
        return value

    def boolean(self, key: str) -> bool:
        """The truth at `key`; False where it is absent."""
        return self._get(key, bool, "true or false", required=False) or False

    def choice(self, key: str, choices: type[_Choice], *, required: bool = False) -> _Choice | None:
        """The member of `choices` at `key`, or None."""
        value = self.string(key, one_of(*choices), required=required)
        return None if value is None else choices(value)

    def object(self, key: str) -> "Reader":
        """The object at `key`, or an empty one."""
        return self.object_if_given(key) or Reader({}, self._at(key), self._problems)

    def object_if_given(self, key: str, *, required: bool = False) -> "Reader | None":
        """The object at `key`, or None."""
        value = self._get(key, dict, "an object", required=required)
        return None if value is None else Reader(value, self._at(key), self._problems)

    def objects(
        self, key: str, most: int, *, unique: str | None = None, required: bool = False
    ) -> list["Reader"]:
        """The objects of the list at `key`; no two may have the same string at `unique`."""
        readers = []
        seen = set()
        for index, value in enumerate(self._list(key, "objects", most, required=required)):
            where = f"{key}[{index}]"
            if not isinstance(value, dict):
                self.problem(where, f"is {shown(value)}: it must be an object")
                continue
            reader = Reader(value, self._at(where), self._problems)
            identity = value.get(unique) if unique else None
            if unique and isinstance(identity, str):
                if identity in seen:
                    reader.problem(
                        unique, f"is {shown(identity)} a second time: each must have its own"
                    )
                seen.add(identity)
            readers.append(reader)
        return readers

    def strings(self, key: str, most: int, check: Check) -> tuple[str, ...]:
        """The strings of the list at `key`."""
        accepted = []
        for index, value in enumerate(self._list(key, "strings", most, required=False)):
            if self._accepts(f"{key}[{index}]", value, check):
                accepted.append(value)
        return tuple(accepted)

    def string_map(self, key: str, most: int, keys: Check, values: Check) -> Mapping[str, str]:
        """The strings of the object at `key`, by name."""
        entries = self.map(key, most)
        accepted = {}
        for name, value in entries.raw.items():
            if not isinstance(name, str) or keys.complaint(name):
                entries.problem(name, f"cannot be a key: it must be {keys.wanted}")
            if entries._accepts(name, value, values):  # noqa: SLF001  # a Reader too
                accepted[name] = value
        return accepted

    def map(self, key: str, most: int) -> "Reader":
        """The object at `key`, whose own keys are the user's to choose, or an empty one."""
        entries = self.object(key)
        if not self._is_short(key, entries.raw, most):
            entries.raw.clear()
        return entries

    def _accepts(self, where: str, value: Json, check: Check) -> bool:
        if not isinstance(value, str):
            self.problem(where, f"is {shown(value)}: it must be {check.wanted}")
            return False
        if complaint := check.complaint(value):
            self.problem(where, complaint)
        return complaint is None

    def _list(self, key: str, of: str, most: int, *, required: bool) -> list[Json]:
        values = self._get(key, list, f"a list of {of}", required=required) or []
        return values if self._is_short(key, values, most) else []

    def _is_short(self, key: str, entries: Sized, most: int) -> bool:
        if len(entries) > most:
            self.problem(key, f"has {len(entries)} entries: it may have {most} at most")
        return len(entries) <= most


def shown(value: Json) -> str:
    """A value for a message: short, on one line, and never the inside of an object or a list."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "an object"
        case list():
            return "a list"
        case int() if abs(value) > 2 * LARGEST_INTEGER:
            return "a number beyond all bounds"  # Python would refuse to print some of them
        case _:
            text = repr(value)
            return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def _as_key(key: Json) -> str:
    """A key of an object for a path: JSON's are strings, YAML's may be anything."""
    if isinstance(key, str) and key and key.isprintable() and len(key) <= _LONGEST_KEY:
        return key
    return shown(key)
