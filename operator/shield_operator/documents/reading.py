"""From text to values that know where they stand in it.

The YAML parser gives events with their places; what they mean is settled here, as kubectl would
(``scalars``). Duplicate keys and what else kubectl refuses later is noted, since it only matters in
documents that we change.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, cast

import yaml

from shield_operator.documents import scalars
from shield_operator.model import Json

_DEEPEST: Final = 200
"""Levels; manifests have twenty, a large CustomResourceDefinition has eighty."""
_MOST_EXPANDED: Final = 100_000
"""Values that a document's aliases may stand for, beyond those that are written out."""

_TEXT_MAPS: Final = frozenset(
    ("labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData")
)
_TEXT_LISTS: Final = frozenset(("args", "command"))
_TEXTS: Final = frozenset(("name", "namespace", "image", "value"))
"""Where Kubernetes takes text alone. There, what readers do not agree on is text: some programs
write text so that others read a number, such as ``value: 1e3``."""

_Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotYamlError(Exception):
    """The text is no YAML that we take; `line` counts from 0."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        super().__init__(problem)


@dataclass(slots=True, eq=False)
class Node:
    """A value, and its place: offsets into the text, ``end`` behind its own last character."""

    value: Json
    start: int
    end: int
    line: int
    flow: bool = False
    """Whether it is written in brackets, or stands inside of such."""
    pairs: list[tuple["Node", "Node"]] = field(default_factory=list)
    items: list["Node"] = field(default_factory=list)
    alias_of: "Node | None" = None
    merged: list["Node"] = field(default_factory=list)
    """What ``<<`` brings into a mapping."""
    column: int = 0
    """Where a block collection's keys or dashes stand; -1 where that is not easily seen."""
    size: int = 1
    unclear: bool = False
    """Whether readers do not agree on what the text here means."""
    duplicate: "Node | None" = None
    """The second of two equal keys."""

    def below(self) -> Iterator["Node"]:
        """This node, and all below it that are written here."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += node.items
            for pair in node.pairs:
                stack += pair


def read(text: str) -> Node | None:
    """The one document in the text; None where it is empty.

    Raises:
        NotYamlError: where the text is none.
    """
    try:
        return _read(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line if error.problem_mark else 0
        raise NotYamlError(line, f"is not YAML: {error.problem}") from error
    except yaml.reader.ReaderError as error:
        raise NotYamlError(0, f"is not YAML: {error.reason}") from error


@dataclass(slots=True, eq=False)
class _Open:
    """A collection whose end has not come yet."""

    node: Node
    place: str
    """The key that it stands under."""
    is_mapping: bool
    key: Node | None = None


def _read(text: str) -> Node | None:  # noqa: C901, PLR0912  # one case for each kind of event
    anchors: dict[str, Node] = {}
    stack: list[_Open] = []
    root: Node | None = None
    documents = expanded = 0
    for event in yaml.parse(text, Loader=_Loader):
        node: Node | None = None
        match event:
            case yaml.DocumentStartEvent():
                documents += 1
                if documents > 1:
                    raise NotYamlError(_start(event).line, "is not YAML: '---' is missing")
            case yaml.ScalarEvent():
                node = _scalar(event, text, stack)
            case yaml.AliasEvent():
                node = _alias(event, anchors)
                expanded += node.size
                if expanded > _MOST_EXPANDED:
                    raise NotYamlError(node.line, "has aliases that stand for too much")
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                stack.append(_opened(event, stack))
                if len(stack) > _DEEPEST:
                    raise NotYamlError(_start(event).line, f"is more than {_DEEPEST} deep")
                if event.anchor:
                    anchors[event.anchor] = stack[-1].node
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                node = _closed(stack.pop(), event, text)
        if node is None:
            continue
        if isinstance(event, yaml.ScalarEvent) and event.anchor:
            anchors[event.anchor] = node
        if stack:
            _put(stack[-1], node)
        else:
            root = node
    is_empty = root is None or (root.value is None and root.start == root.end)
    return None if is_empty else root


def _start(event: yaml.Event) -> yaml.Mark:
    return cast("yaml.Mark", event.start_mark)


def _end(event: yaml.Event) -> yaml.Mark:
    return cast("yaml.Mark", event.end_mark)


def _scalar(event: yaml.ScalarEvent, text: str, stack: list[_Open]) -> Node:
    start, end = _start(event).index, _end(event).index
    node = Node(event.value, start, end, _start(event).line, flow=_in_flow(stack))
    if event.style in ("|", ">") and "+" not in text[start:end].partition("\n")[0]:
        node.end = start + len(text[start:end].rstrip())
    is_key = bool(stack) and stack[-1].is_mapping and stack[-1].key is None
    is_plain = event.style in (None, "") and event.tag is None
    if event.tag is not None:
        node.value = _tagged(event)
    elif is_plain and is_key:
        node.unclear = not scalars.is_text(event.value) and event.value != "<<"
    elif is_plain:
        node.unclear = not scalars.is_certain(event.value)
        if not (node.unclear and _wants_text(stack)):
            node.value = scalars.meaning(event.value)
    return node


def _tagged(event: yaml.ScalarEvent) -> Json:
    """A scalar whose kind is said; an unknown tag says nothing to kubectl."""
    kind = str(event.tag).rpartition(":")[2]
    return scalars.meaning(event.value) if kind in ("int", "float", "bool", "null") else event.value


def _wants_text(stack: list[_Open]) -> bool:
    if not stack:
        return False
    around = stack[-1]
    if around.is_mapping:
        key = around.key.value if around.key else ""
        return around.place in _TEXT_MAPS or key in _TEXTS
    return around.place in _TEXT_LISTS


def _alias(event: yaml.AliasEvent, anchors: dict[str, Node]) -> Node:
    start, end = _start(event), _end(event)
    target = anchors.get(str(event.anchor))
    if target is None:
        raise NotYamlError(start.line, f"is not YAML: there is no anchor {event.anchor!r} before")
    if target.size == 0:
        raise NotYamlError(start.line, f"has an alias {event.anchor!r} inside of itself")
    node = Node(target.value, start.index, end.index, start.line, alias_of=target)
    node.size = target.size
    return node


def _in_flow(stack: list[_Open]) -> bool:
    return bool(stack) and stack[-1].node.flow


def _opened(event: yaml.CollectionStartEvent, stack: list[_Open]) -> _Open:
    is_mapping = isinstance(event, yaml.MappingStartEvent)
    start = _start(event)
    node = Node({} if is_mapping else [], start.index, start.index, start.line)
    node.flow = bool(event.flow_style) or _in_flow(stack)
    node.column = start.column
    node.size = 0
    place = stack[-1].key.value if stack and stack[-1].key else ""
    if event.anchor or event.tag:
        node.column = -1
    return _Open(node, str(place), is_mapping)


def _closed(finished: _Open, event: yaml.CollectionEndEvent, text: str) -> Node:
    node = finished.node
    children = [*node.items, *(one for pair in node.pairs for one in pair)]
    node.size = 1 + sum(child.size for child in children)
    node.end = _end(event).index if node.flow else children[-1].end
    if node.pairs and not node.flow:
        before = text[text.rfind("\n", 0, children[0].start) + 1 : children[0].start]
        is_plain = not before.rstrip().endswith("?")
        node.column = len(before) if is_plain else -1
    if finished.is_mapping:
        node.value = _object(node)
    else:
        node.value = [item.value for item in node.items]
    return node


def _object(node: Node) -> dict[str, Json]:
    """A mapping's value: its own keys, then those that ``<<`` brings."""
    found: dict[str, Json] = {}
    for key, value in node.pairs:
        if key.value == "<<" and key.end - key.start == len("<<"):
            source = value.alias_of or value
            node.merged += source.items if isinstance(source.value, list) else [source]
            continue
        name = key.value if isinstance(key.value, str) else scalars.quoted(key.value)
        if name in found:
            node.duplicate = node.duplicate or key
        found[name] = value.value
    for base in node.merged:
        if isinstance(base.value, dict):
            found = {**base.value, **found}
    return found


def _put(around: _Open, node: Node) -> None:
    if not around.is_mapping:
        around.node.items.append(node)
    elif around.key is None:
        if isinstance(node.value, dict | list):
            raise NotYamlError(node.line, "has a key that is no text")
        around.key = node
    else:
        around.node.pairs.append((around.key, node))
        around.key = None
