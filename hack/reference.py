"""Renders the fields of docs/configure.md from the CustomResourceDefinition: `make docs`.

``kubectl explain`` shows the same sentences, one field at a time; here they can be read through and
searched. Everything comes from ``crds/``, and the hand-written file behind it tells which of its
types are Kubernetes' own: those are shown as a tree, since what they mean is said elsewhere.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from crd import GENERATED, HAND_WRITTEN

Schema: TypeAlias = dict[str, Any]

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENT: Final = ROOT / "docs" / "configure.md"
BEGIN: Final = "<!-- fields: begin (`make docs` writes this part from crds/) -->\n"
END: Final = "<!-- fields: end -->\n"

_CORE_TYPE: Final = "x-core-type"
_PARTS: Final = ("spec", "status")


def render() -> str:
    """What stands between the marks: a table for each object, and the trees of core types."""
    generated, hand_written = _schema(GENERATED), _schema(HAND_WRITTEN)
    sections = [
        section
        for part in _PARTS
        for section in _sections(
            part, generated["properties"][part], hand_written["properties"][part]
        )
    ]
    return "\n".join(sections)


def document(text: str) -> str:
    """The document `text` with its fields as they are now.

    Raises:
        ValueError: where it has no marks.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{DOCUMENT.name} has no lines {BEGIN.strip()!r} and {END.strip()!r}")
    return f"{before}{BEGIN}\n{render()}\n{END}{after}"


def _schema(path: Path) -> Schema:
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    found: Schema = whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def _sections(path: str, schema: Schema, written: Schema) -> Iterator[str]:
    """The section of one object, then those of the objects in it."""
    lines = [f"### {path}", "", "| field | type | what it does |", "|---|---|---|"]
    required = schema.get("required", [])
    below: list[str] = []
    for name, field in schema["properties"].items():
        mine = written["properties"][name]
        where = f"{path}.{name}"
        inner, inner_written = field, mine
        if field.get("type") == "array":
            inner, inner_written, where = field["items"], mine["items"], f"{where}[]"
        kind = _kind(field)
        if _CORE_TYPE in inner_written:
            kind = f"[{kind}](#{_slug(where)})"
            below.append(_tree(where, inner, inner_written[_CORE_TYPE]))
        elif "properties" in inner:
            kind = f"[{kind}](#{_slug(where)})"
            below += _sections(where, inner, inner_written)
        needed = " (needed)" if name in required else ""
        lines.append(f"| `{name}` | {kind}{needed} | {_sentence(field.get('description', ''))} |")
    yield "\n".join([*lines, ""])
    yield from below


def _tree(path: str, schema: Schema, core_type: str) -> str:
    """A core type's fields, indented."""
    name = core_type.rpartition(".")[2]
    intro = f"Kubernetes' own `{name}`, with these of its fields:"
    return "\n".join([f"### {path}", "", intro, "", "```", *_branches(schema, ""), "```", ""])


def _branches(schema: Schema, indent: str) -> Iterator[str]:
    for name, field in schema["properties"].items():
        kind = _kind(field)
        yield f"{indent}{name}: {kind}{' (needed)' * (name in schema.get('required', []))}"
        inner = field.get("items", field)
        if "properties" in inner:
            yield from _branches(inner, f"{indent}  ")


def _kind(schema: Schema) -> str:
    """A field's type, in a word or two."""
    if "enum" in schema:
        return ", ".join(filter(None, schema["enum"]))
    if "x-kubernetes-int-or-string" in schema:
        return "quantity"
    match schema.get("type"):
        case "array":
            return f"list of {_plural(_kind(schema['items']))}"
        case "object" if "additionalProperties" in schema:
            return f"map to {_plural(_kind(schema['additionalProperties']))}"
        case kind:
            return str(kind)


def _plural(word: str) -> str:
    return f"{word.removesuffix('y')}ies" if word.endswith("y") else f"{word}s"


def _sentence(text: str) -> str:
    """A description as a cell of a table."""
    return " ".join(text.split()).replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")


def _slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {DOCUMENT.relative_to(ROOT)}")
