"""The fields of our CustomResourceDefinition, as tests walk over them."""

from collections.abc import Iterator
from typing import Any

import yaml

from crd import GENERATED

Schema = dict[str, Any]

CRD = yaml.safe_load(GENERATED.read_text(encoding="utf-8"))
SPEC: Schema = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def objects(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Every object of fixed fields at and below `schema`, with its path (``spec.env[]``)."""
    if "properties" in schema:
        yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from objects(below, f"{path}.{name}")
    if "items" in schema:
        yield from objects(schema["items"], f"{path}[]")


OBJECTS = dict(objects(SPEC, "spec"))
FIELDS = [f"{path}.{name}" for path, schema in OBJECTS.items() for name in schema["properties"]]


def schema_of(path: str) -> Schema:
    """The schema of the field at a path like ``spec.env[].name``."""
    parent, _, name = path.rpartition(".")
    found: Schema = OBJECTS[parent]["properties"][name]
    return found
