"""Changing a document's text so that it says something else, and touching nothing else of it.

Comments, order and style stay, since only what differs is written anew. Aliases of what changes are
written out. Where the text is too unusual for that, its smallest part that is not gets written as
a whole; the result is read again, so that it is right in any case.

https://yaml.org/spec/1.2.2/#chapter-8-block-style-productions
"""

from dataclasses import dataclass, field
from typing import Final

from shield_operator.documents import scalars
from shield_operator.documents.matching import aligned, same
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
        if found is not None and same(found.value, wanted):
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
        if node.alias_of or same(node.value, wanted):
            return
        self.changed.add(id(node))
        if isinstance(wanted, dict):
            for key, value in node.pairs:
                if key.value in wanted:
                    self._note_changes(value, wanted[key.value])
        elif isinstance(wanted, list) and isinstance(node.value, list):
            for old, new in aligned(node.value, wanted):
                if old is not None and new is not None:
                    self._note_changes(node.items[old], wanted[new])

    # --- What a node becomes ----------------------------------------------------------------------

    def _change(self, node: Node, wanted: Json, parent: Node | None) -> None:
        is_same = same(node.value, wanted)
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
        removed = [key.value not in wanted for key, _ in node.pairs]
        if all(removed):
            self._replace(node, wanted, parent)
            return
        for (key, value), is_removed in zip(node.pairs, removed, strict=True):
            if not is_removed:
                self._change(value, wanted[key.value], node)
            elif not node.flow:
                self._remove_lines(node, key.start, value.end)
        if node.flow:
            places = [(key.start, value.end) for key, value in node.pairs]
            self._remove_in_flow(places, removed)
        known = node.value.keys()
        added = {key: value for key, value in wanted.items() if key not in known}
        if not added:
            return
        if node.flow:
            self._append_in_flow(node, flow(added)[1:-1])
        else:
            self._append_lines(node, block(added))

    def _change_sequence(self, node: Node, wanted: list[Json], parent: Node | None) -> None:
        pairs = aligned(node.value, wanted)
        kept = {old for old, new in pairs if old is not None and new is not None}
        if not kept:
            self._replace(node, wanted, parent)
            return
        added: list[Json] = []
        for old, new in pairs:
            if old is None and new is not None:
                added.append(wanted[new])
                continue
            item = node.items[old or 0]
            if added:
                self._insert_before(node, item, added)
                added = []
            if new is not None:
                self._change(item, wanted[new], node)
            elif not node.flow:
                self._remove_lines(node, self._dash(node, item), item.end)
        if node.flow:
            places = [(item.start, item.end) for item in node.items]
            self._remove_in_flow(places, [index not in kept for index in range(len(places))])
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

    def _remove_in_flow(self, places: list[tuple[int, int]], removed: list[bool]) -> None:
        """Take out these of a flow collection, each with the comma beside it."""
        for index, (start, end) in enumerate(places):
            if removed[index] and not all(removed[:index]):
                self.edits.append((places[index - 1][1], end, ""))
            elif removed[index]:
                self.edits.append((start, places[index + 1][0], ""))

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
