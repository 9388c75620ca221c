"""The generator of the CustomResourceDefinition, and what its output owes its readers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crd import (
    GENERATED,
    HAND_WRITTEN,
    CoreTypes,
    UnknownTypeError,
    kubernetes_version,
    laid_over,
    merge_patch,
    unbounded,
)

REFUSED = Path(__file__).parents[1] / "apiserver" / "crd" / "refused"


def core_types(schemas: dict[str, Any], patches: dict[str, Any] | None = None) -> CoreTypes:
    return CoreTypes(schemas, patches or {})


def test_references_are_inlined_and_defaults_and_descriptions_dropped() -> None:
    types = core_types(
        {
            "Outer": {
                "description": "Outer.",
                "type": "object",
                "x-kubernetes-group-version-kind": [{"kind": "Outer"}],
                "properties": {
                    "one": {
                        "description": "One.",
                        "default": {},
                        "allOf": [{"$ref": "#/components/schemas/Inner"}],
                    },
                    "many": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/Inner"},
                        "x-kubernetes-patch-strategy": "merge",
                        "x-kubernetes-patch-merge-key": "name",
                    },
                    "description": {"type": "string", "default": ""},
                },
            },
            "Inner": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
        }
    )
    inner = {"type": "object", "additionalProperties": {"type": "string"}}
    assert types.schema("Outer") == {
        "type": "object",
        "properties": {
            "one": inner,
            "many": {"type": "array", "items": inner},
            "description": {"type": "string"},  # a field of that name is not a keyword
        },
    }


@pytest.mark.parametrize(("required", "list_type"), [(["name"], "map"), ([], "atomic")])
def test_a_list_map_needs_its_keys(required: list[str], list_type: str) -> None:
    items = {"type": "object", "required": required, "properties": {"name": {"type": "string"}}}
    types = core_types(
        {
            "Named": {
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            }
        }
    )
    assert types.schema("Named")["x-kubernetes-list-type"] == list_type
    assert ("x-kubernetes-list-map-keys" in types.schema("Named")) == bool(required)


def test_a_patch_applies_wherever_the_type_occurs_and_may_remove_a_required_field() -> None:
    schemas = {
        "Outer": {"type": "object", "properties": {"it": {"$ref": "#/components/schemas/Inner"}}},
        "Inner": {
            "type": "object",
            "required": ["gone", "kept"],
            "properties": {"gone": {"type": "string"}, "kept": {"type": "string"}},
        },
    }
    patch = {"Inner": {"properties": {"gone": None, "kept": {"maxLength": 3}}}}
    assert core_types(schemas, patch).schema("Outer")["properties"]["it"] == {
        "type": "object",
        "required": ["kept"],
        "properties": {"kept": {"type": "string", "maxLength": 3}},
    }


def test_unknown_types_are_named() -> None:
    with pytest.raises(UnknownTypeError, match="Missing"):
        core_types({}).schema("Missing")
    with pytest.raises(UnknownTypeError, match="Misspelt"):
        core_types({}, {"Misspelt": {}})


def test_merge_patch_leaves_its_arguments_alone() -> None:
    target = {"a": {"b": 1, "c": 2}, "d": [1]}
    assert merge_patch(target, {"a": {"b": None}, "d": [2], "e": {"f": None}}) == {
        "a": {"c": 2},
        "d": [2],
        "e": {},
    }
    assert target == {"a": {"b": 1, "c": 2}, "d": [1]}


def test_rules_of_the_type_and_of_its_place_both_hold() -> None:
    rules = "x-kubernetes-validations"
    assert laid_over({rules: [1], "type": "object"}, {rules: [2], "description": "D."}) == {
        "description": "D.",
        "type": "object",
        rules: [1, 2],
    }


def test_everything_without_a_bound_is_found() -> None:
    schema = {
        "type": "object",
        "properties": {
            "bounded": {"type": "string", "maxLength": 1},
            "chosen": {"type": "string", "enum": ["a"]},
            "when": {"type": "string", "format": "date-time"},
            "text": {"type": "string"},
            "amount": {"x-kubernetes-int-or-string": True},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
    assert unbounded(schema) == ["text", "amount", "list", "list[]", "map", "map{}"]


# What the two files owe their readers


def resource(path: Path) -> dict[str, Any]:
    definition = yaml.safe_load(path.read_text(encoding="utf-8"))
    schema: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def below(node: Any) -> Iterator[dict[str, Any]]:
    """Every mapping in `node`."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from below(child)


def test_every_field_of_ours_is_described() -> None:
    fields = [
        (name, field)
        for node in below(resource(HAND_WRITTEN))
        if isinstance(node.get("properties"), dict)
        for name, field in node["properties"].items()
        if name != "metadata"
    ]
    assert [name for name, field in fields if not field.get("description", "").endswith(".")] == []


def test_every_optional_field_of_the_spec_says_its_default() -> None:
    spec = resource(HAND_WRITTEN)["properties"]["spec"]
    silent = [
        name
        for node in below(spec)
        if isinstance(node.get("properties"), dict)
        for name, field in node["properties"].items()
        if name not in node.get("required", ())
        and "properties" not in field
        and "default" not in field["description"].lower()
    ]
    assert silent == ["localhostProfile"]  # needed, or refused: its rules say when


def test_there_is_no_default_that_the_operator_could_not_tell_from_a_users_word() -> None:
    assert [node for node in below(resource(GENERATED)) if "default" in node] == []


def test_no_mark_is_left_and_everything_is_bounded() -> None:
    assert [node for node in below(resource(GENERATED)) if "x-core-type" in node] == []
    assert unbounded(resource(GENERATED)) == []
    assert kubernetes_version(GENERATED.read_text(encoding="utf-8")).startswith("1.")


def test_every_rule_is_tried_by_a_manifest_that_breaks_it() -> None:
    expected = [
        line.removeprefix("# refused: ")
        for path in REFUSED.glob("*.yaml")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("# refused: ")
    ]
    messages = {
        rule["message"]
        for node in below(resource(GENERATED))
        for rule in node.get("x-kubernetes-validations", ())
    }
    assert [text for text in sorted(messages) if not any(part in text for part in expected)] == []
