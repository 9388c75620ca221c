"""What is different between two texts, as ``diff -u`` shows it, in a second for a large file.

Lines that both texts have once are matched first, and the usual comparison, whose time grows with
the square of the length, is left with what is between them ("patience").
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

_CONTEXT: Final = 3
"""Lines around a change."""

_Change = tuple[int, int, int, int]
"""From line to line of the one text, and of the other."""


def unified(name: str, before: str, after: str) -> Iterator[str]:
    """The lines of the difference; none where there is none."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    hunks = _hunks([*_changes(old, new)])
    if hunks:
        yield f"--- {name}"
        yield f"+++ {name}"
    for hunk in hunks:
        first, last = max(hunk[0][0] - _CONTEXT, 0), min(hunk[-1][1] + _CONTEXT, len(old))
        shift = hunk[0][2] - hunk[0][0]
        lines = [*_hunk(old, new, hunk, first, last)]
        added = sum(not line.startswith(("-", "\\")) for line in lines)
        yield f"@@ -{_range(first, last - first)} +{_range(first + shift, added)} @@"
        yield from lines


def _hunk(
    old: list[str], new: list[str], changes: list[_Change], first: int, last: int
) -> Iterator[str]:
    place = first
    for start, end, new_start, new_end in changes:
        yield from _marked(" ", old[place:start])
        yield from _marked("-", old[start:end])
        yield from _marked("+", new[new_start:new_end])
        place = end
    yield from _marked(" ", old[place:last])


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.rstrip("\r\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _range(start: int, length: int) -> str:
    """As ``diff`` counts: from one, and an empty range is told by the line before it."""
    first = start + 1 if length else start
    return str(first) if length == 1 else f"{first},{length}"


def _hunks(changes: list[_Change]) -> list[list[_Change]]:
    """Changes that share lines of their context stand together."""
    hunks: list[list[_Change]] = []
    for change in changes:
        if hunks and change[0] - hunks[-1][-1][1] <= 2 * _CONTEXT:
            hunks[-1].append(change)
        else:
            hunks.append([change])
    return hunks


def _changes(old: list[str], new: list[str]) -> Iterator[_Change]:
    place, new_place = 0, 0
    for index, new_index in [*_anchors(old, new), (len(old), len(new))]:
        between = SequenceMatcher(None, old[place:index], new[new_place:new_index], autojunk=False)
        for kind, start, end, new_start, new_end in between.get_opcodes():
            if kind != "equal":
                yield place + start, place + end, new_place + new_start, new_place + new_end
        place, new_place = index, new_index


def _anchors(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The places of lines that both have once, as far as they are in the same order."""
    counts, new_counts = Counter(old), Counter(new)
    places = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [
        (i, places[line]) for i, line in enumerate(old) if counts[line] == 1 and line in places
    ]
    ends: list[int] = []  # of the best sequence of each length: where it ends in `new`
    best: list[int] = []  # and which pair that is
    before: list[int] = []
    for number, (_, index) in enumerate(pairs):
        length = bisect_left(ends, index)
        before.append(best[length - 1] if length else -1)
        ends[length : length + 1] = [index]
        best[length : length + 1] = [number]
    found, number = [], best[-1] if best else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]
