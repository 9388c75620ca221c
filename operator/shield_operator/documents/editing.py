"""Changing a document's text so that it says something else, and touching nothing else of it.

Comments, order and style stay, since only what differs is written anew. Aliases of what changes are
written out. Where the text is too unusual for that, its smallest part that is not gets written as
a whole; the result is read again, so that it is right in any case.

https://yaml.org/spec/1.2.2/#chapter-8-block-style-productions
"""

from dataclasses import dataclass, field
from typing import Final

from shield_operator.documents import scalars
from shield_operator.documents.reading import Node, NotYamlError, read
from shield_operator.documents.writing import block, flow
from shield_operator.model import Json

_STEP: Final = 2
"""Spaces that a new level is indented by."""


class _TooUnusualError(Exception):
    """A way of writing that is not edited but written anew."""


def edited(text: str, root: Node, wanted: Json) -> str:
    """The text, which `root` was read from, changed so that it says `wanted`."""
    try:
        changed = _Editor(text, root).edit(wanted)
        found = read(changed)
    except (_TooUnusualError, NotYamlError):
        pass
    else:
        if found is not None and _same(found.value, wanted):
            return changed
    before, after = text[: root.start], text[root.end :]
    if root.flow:
        return before + flow(wanted) + after
    if before.endswith(("--- ", "---\t")):
        before = f"{before.rstrip()}\n"
    indent = " " * (len(before) - before.rfind("\n") - 1)
    newline = _newline(text)
    return before + f"{newline}{indent}".join(block(wanted)) + after


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _same(one: Json, other: Json) -> bool:
    """Equal, where true is not one."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and (one == other or one != one)  # noqa: PLR0124  # NaN


@dataclass(slots=True)
class _Editor:
    """Collects what to put in place of which part of the text."""

    text: str
    root: Node
    edits: list[tuple[int, int, str]] = field(default_factory=list)
    replaced: list[Node] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)
    """The nodes whose value changes, by identity."""
    has_aliases: bool = False

    def edit(self, wanted: Json) -> str:
        """The changed text.

        Raises:
            _TooUnusualError: where it cannot be done piece by piece.
        """
        self.has_aliases = any(node.alias_of for node in self.root.below())
        self._note_changes(self.root, wanted)
        self._change(self.root, wanted, None)
        self._clear_up()
        newline = _newline(self.text)
        parts, done = [], 0
        for start, end, new in sorted(self.edits, key=lambda edit: edit[:2]):
            if start < done:
                raise _TooUnusualError
            parts += [self.text[done:start], new.replace("\n", newline)]
            done = end
        return "".join([*parts, self.text[done:]])

    def _note_changes(self, node: Node, wanted: Json) -> None:
        """Find what changes, before anything is written: aliases of it have to be written out."""
        if node.alias_of or _same(node.value, wanted):
            return
        self.changed.add(id(node))
        if isinstance(wanted, dict):
            for key, value in node.pairs:
                if key.value in wanted:
                    self._note_changes(value, wanted[key.value])
        elif isinstance(wanted, list) and isinstance(node.value, list):
            for old, new in _aligned(node.value, wanted):
                if old is not None and new is not None:
                    self._note_changes(node.items[old], wanted[new])

    # --- What a node becomes ----------------------------------------------------------------------

    def _change(self, node: Node, wanted: Json, parent: Node | None) -> None:
        is_same = _same(node.value, wanted)
        sources = [node.alias_of] if node.alias_of else node.merged
        if sources:
            if not is_same or any(id(source) in self.changed for source in sources):
                self._replace(node, wanted, parent)
        elif is_same and not self.has_aliases:
            return
        elif isinstance(wanted, dict) and node.pairs and wanted:
            self._change_mapping(node, wanted, parent)
        elif isinstance(wanted, list) and node.items and wanted:
            self._change_sequence(node, wanted, parent)
        elif not is_same:
            self._replace(node, wanted, parent)

    def _change_mapping(self, node: Node, wanted: dict[str, Json], parent: Node | None) -> None:
        removed = [pair for pair in node.pairs if pair[0].value not in wanted]
        if removed and node.flow:
            self._replace(node, wanted, parent)
            return
        for key, value in node.pairs:
            if key.value in wanted:
                self._change(value, wanted[key.value], node)
            else:
                self._remove_lines(node, key.start, value.end)
        known = node.value.keys()
        added = {key: value for key, value in wanted.items() if key not in known}
        if not added:
            return
        if node.flow:
            self._append_in_flow(node, flow(added)[1:-1])
        else:
            self._append_lines(node, block(added))

    def _change_sequence(self, node: Node, wanted: list[Json], parent: Node | None) -> None:
        aligned = _aligned(node.value, wanted)
        kept = [old for old, new in aligned if old is not None and new is not None]
        if len(kept) < len(node.items) and (node.flow or not kept):
            self._replace(node, wanted, parent)
            return
        added: list[Json] = []
        for old, new in aligned:
            if old is None and new is not None:
                added.append(wanted[new])
                continue
            item = node.items[old or 0]
            if added:
                self._insert_before(node, item, added)
                added = []
            if new is None:
                self._remove_lines(node, self._dash(node, item), item.end)
            else:
                self._change(item, wanted[new], node)
        if added and node.flow:
            self._append_in_flow(node, flow(added)[1:-1])
        elif added:
            self._append_lines(node, block(added))

    # --- Writing ----------------------------------------------------------------------------------

    def _replace(self, node: Node, wanted: Json, parent: Node | None) -> None:
        """Write a value anew, as a whole."""
        self.replaced.append(node)
        start = node.start
        if parent is None or parent.flow or not isinstance(wanted, dict | list) or not wanted:
            new = (
                flow(wanted)
                if node.flow or isinstance(wanted, dict | list)
                else (scalars.scalar(wanted))
            )
            if start == node.end and start > 0 and not self.text[start - 1].isspace():
                new = f" {new}"
            if parent is None and not node.flow:
                raise _TooUnusualError
            before = self.text[:start].rstrip()
            if new in ("{}", "[]") and before.endswith(":"):
                start, new = len(before), f" {new}"
        elif parent.items:
            self._column(parent)
            column = start - self._line_start(start)
            lines = block(wanted)
            if self.text[start - 1] == "-":  # nothing stood there
                lines[0], column = f" {lines[0]}", column + 1
            new = f"\n{' ' * column}".join(lines)
        else:
            column = self._column(parent) + (0 if isinstance(wanted, list) else _STEP)
            start -= len(self.text[:start]) - len(self.text[:start].rstrip(" "))
            new = "".join(f"\n{' ' * column}{line}" for line in block(wanted))
        self.edits.append((start, node.end, new))

    def _append_lines(self, node: Node, lines: list[str]) -> None:
        """After a block collection's last line."""
        indent = " " * self._column(node)
        end = self._line_end(node.end)
        if end == len(self.text) and not self.text.endswith("\n"):
            new = "".join(f"\n{indent}{line}" for line in lines)
        else:
            new = "".join(f"{indent}{line}\n" for line in lines)
        self.edits.append((end, end, new))

    def _insert_before(self, node: Node, item: Node, added: list[Json]) -> None:
        """Before an item of a sequence, and the comment above it."""
        if node.flow:
            self.edits.append((item.start, item.start, f"{flow(added)[1:-1]}, "))
            return
        start = self._line_start(self._dash(node, item))
        while (above := self._line_start(start - 1)) < start and start > 0:
            if not self.text[above:start].lstrip(" ").startswith("#"):
                break
            start = above
        indent = " " * self._column(node)
        new = "".join(f"{indent}{line}\n" for line in block(added))
        self.edits.append((start, start, new))

    def _append_in_flow(self, node: Node, new: str) -> None:
        """Before a flow collection's closing bracket."""
        last = node.items[-1] if node.items else node.pairs[-1][1]
        rest = self.text[last.end : node.end - 1]
        if rest.strip():  # a comma behind the last, or a comment
            raise _TooUnusualError
        self.edits.append((last.end, last.end, f", {new}"))

    def _remove_lines(self, node: Node, start: int, end: int) -> None:
        """Take out the lines of a key or an item that has them for itself."""
        first = self._line_start(start)
        if self.text[first:start].strip(" ") or start - first != self._column(node):
            raise _TooUnusualError
        self.edits.append((first, self._line_end(end), ""))

    def _clear_up(self) -> None:
        """Write in a clear way what readers do not agree on, wherever it stays."""
        gone = [(node.start, node.end) for node in self.replaced]
        gone += [(start, end) for start, end, new in self.edits if not new]
        for node in self.root.below():
            if node.unclear and not any(start <= node.start < end for start, end in gone):
                self.edits.append((node.start, node.end, scalars.quoted(node.value)))

    # --- Places -----------------------------------------------------------------------------------

    def _column(self, node: Node) -> int:
        if node.column < 0:
            raise _TooUnusualError
        return node.column

    def _line_start(self, place: int) -> int:
        return self.text.rfind("\n", 0, max(place, 0)) + 1

    def _line_end(self, place: int) -> int:
        """Where the next line begins; the place itself where it begins one."""
        if place > 0 and self.text[place - 1] == "\n":
            return place
        found = self.text.find("\n", place)
        return len(self.text) if found < 0 else found + 1

    def _dash(self, node: Node, item: Node) -> int:
        """Where the dash of a block sequence's item stands."""
        column = self._column(node)
        start = self._line_start(item.start)
        while self.text[start : start + column + 1] != f"{' ' * column}-":
            if start <= node.start:
                raise _TooUnusualError
            start = self._line_start(start - 1)
        return start + column


def _aligned(old: list[Json], new: list[Json]) -> list[tuple[int | None, int | None]]:
    """Which items of two lists are the same thing: those of one name, else those that are equal."""
    if len(old) == len(new) and list(map(_name, old)) == list(map(_name, new)):
        return [(index, index) for index in range(len(old))]
    pairs: list[tuple[int | None, int | None]] = []
    place = 0
    for index, item in enumerate(new):
        found = next((i for i in range(place, len(old)) if _alike(old[i], item)), None)
        if found is None:
            pairs.append((None, index))
            continue
        pairs += [(gone, None) for gone in range(place, found)]
        pairs.append((found, index))
        place = found + 1
    return [*pairs, *((gone, None) for gone in range(place, len(old)))]


def _alike(one: Json, other: Json) -> bool:
    name = _name(one)
    return name == _name(other) if name is not None else _same(one, other)


def _name(item: Json) -> Json:
    """The name of a list's item; None where it has none."""
    return item.get("name") if isinstance(item, dict) else None
