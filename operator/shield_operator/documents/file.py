"""A file of manifests: its documents, one after the other, whose texts together are the file's."""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from shield_operator import names
from shield_operator.documents.editing import edited
from shield_operator.documents.errors import DocumentError
from shield_operator.documents.reading import Node, NotYamlError, read
from shield_operator.model import Json

_BYTE_ORDER_MARK: Final = "\ufeff"
_BOUNDARY: Final = re.compile(r"^---(?=\s|$)|(?<=^\.\.\.\n)|(?<=^\.\.\.\r\n)", re.MULTILINE)
"""Where a document begins: wherever a line of this kind stands, even in quotes, YAML says."""
_NOTHING: Final = re.compile(r"(?:\s*(?:[#%][^\n]*|---(?=\s|$)|\.\.\.(?=\s|$)))*\s*")
"""Blank lines, comments, directives and boundaries."""
_UNPRINTABLE: Final = re.compile(
    r"[^\n\t -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""Characters that some reader of YAML does not take as they are."""


@dataclass(frozen=True, slots=True)
class Document:
    """One of a file's documents."""

    file: str
    number: int
    """As people count: from 1, without empty ones."""
    line: int
    """The file's line that its text begins in, from 1."""
    text: str
    """All of it, with the boundary before it and the comments around."""
    value: Json
    """What it says; None where it says nothing."""
    root: Node | None
    """Where it says so; None in JSON."""

    def check(self) -> None:
        """Refuse what the API server would, in a document that matters.

        Raises:
            DocumentError: where a key is there twice, or one of ours has a value that is no text.
        """
        if self.root is None:
            self._check_ours(self.value)
            return
        for node in self.root.below():
            if (twice := node.duplicate) is not None:
                self._refuse(twice.line, f"key {twice.value!r} is there twice: remove one")
            for key, value in node.pairs:
                self._check_our_key(key.value, value.value, value.line)

    def refuse(self, problem: str) -> NoReturn:
        """Refuse the document as a whole, by a DocumentError."""
        self._refuse(0, problem)

    def _check_ours(self, value: Json) -> None:
        stack = [value]
        while stack:
            each = stack.pop()
            if isinstance(each, dict):
                for key, below in each.items():
                    self._check_our_key(key, below, 0)
                stack += each.values()
            elif isinstance(each, list):
                stack += each

    def _check_our_key(self, key: Json, value: Json, line: int) -> None:
        is_ours = isinstance(key, str) and key.startswith(f"{names.DOMAIN}/")
        if is_ours and isinstance(value, bool | int | float):
            self._refuse(line, f"{key} has a value that is no text: put it in quotes")

    def _refuse(self, line: int, problem: str) -> NoReturn:
        raise DocumentError(self.file, self.number, self.line + line, problem)

    def with_value(self, wanted: Json) -> str:
        """The text that says `wanted`, and is otherwise as this one."""
        if self.root is not None:
            return edited(self.text, self.root, wanted)
        start, end = self.text.index("{"), self.text.rindex("}") + 1
        indented = re.match(r"\{\r?\n([ \t]+)", self.text[start:])
        separators = None if indented or '": ' in self.text else (",", ":")
        indent = indented[1] if indented else None
        new = json.dumps(wanted, indent=indent, separators=separators, ensure_ascii=False)
        new = _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", new)
        if "\r\n" in self.text:
            new = new.replace("\n", "\r\n")
        return self.text[:start] + new + self.text[end:]


def documents(name: str, content: bytes) -> list[Document]:
    """The documents of a file; `name` is for messages.

    Raises:
        DocumentError: where it is no file of manifests.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DocumentError(name, 1, line, "is not text in UTF-8") from error
    found: list[Document] = []
    number, line = 1, 1
    for chunk in _chunks(text):
        document = _document(name, number, line, chunk)
        found.append(document)
        number += document.value is not None
        line += chunk.count("\n")
    return found


def _chunks(text: str) -> Iterator[str]:
    if text.startswith(_BYTE_ORDER_MARK):
        yield _BYTE_ORDER_MARK
        text = text[1:]
    starts = [match.start() for match in _BOUNDARY.finditer(text)]
    places = [0, *(start for start in starts if start), len(text)]
    for start, end in itertools.pairwise(places):
        yield from _objects(text[start:end])


def _objects(chunk: str) -> Iterator[str]:
    """The JSON objects of a chunk, where it holds several, as `jq` writes them; else the chunk."""
    start = _NOTHING.match(chunk)
    place, done = start.end() if start else 0, 0
    while chunk.startswith("{", place):
        try:
            _, end = json.JSONDecoder().raw_decode(chunk, place)
        except (ValueError, RecursionError):
            break
        following = re.compile(r"\s*").match(chunk, end)
        place = following.end() if following else end
        if chunk.startswith("{", place):
            yield chunk[done:place]
            done = place
    yield chunk[done:]


def _document(name: str, number: int, line: int, text: str) -> Document:
    if text == _BYTE_ORDER_MARK or _NOTHING.fullmatch(text):
        return Document(name, number, line, text, None, None)
    try:
        return Document(name, number, line, text, _json(text), None)
    except _NotJsonError:
        pass
    try:
        root = read(text)
    except NotYamlError as error:
        last = text.rstrip().count("\n")  # what is missing at the end is missed there
        raise DocumentError(name, number, line + min(error.line, last), str(error)) from error
    if root is None:
        return Document(name, number, line, text, None, None)
    if not isinstance(root.value, dict):
        raise DocumentError(
            name, number, line + root.line, "is no Kubernetes object: it has no fields"
        )
    return Document(name, number, line, text, root.value, root)


class _NotJsonError(Exception):
    """It may be YAML yet."""


def _json(text: str) -> Json:
    """A document in JSON, or in the part of YAML that is JSON."""
    bare = text.strip().removeprefix("---").strip()
    if not bare.startswith("{"):
        raise _NotJsonError
    try:
        return json.loads(bare, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _NotJsonError from error


def _without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")
