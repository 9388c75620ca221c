"""The model reads what the CRD takes, and refuses what the CRD refuses.

The fixtures and limits are those that are tried on a real API server (tests/apiserver/test_crd.py),
so that both sides answer for the same manifests.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from apiserver.test_crd import ACCEPTED, LIMITS, REFUSED, Fixture
from definition import FIELDS, OBJECTS, SPEC, Schema
from shield_operator.model import InvalidConfig, Json, ShieldConfig, parse
from shield_operator.model.reader import Reader


def problems(resource: Json) -> list[str]:
    """What is wrong with it."""
    match parse(resource):
        case InvalidConfig(problems=found):
            return [*found]
        case ShieldConfig():
            return []


@pytest.mark.parametrize("fixture", ACCEPTED, ids=lambda fixture: fixture.name)
def test_what_the_api_server_takes_can_be_read(fixture: Fixture) -> None:
    assert problems(yaml.safe_load(fixture.manifest)) == []


@pytest.mark.parametrize("fixture", REFUSED, ids=lambda fixture: fixture.name)
def test_what_the_api_server_refuses_is_invalid(fixture: Fixture) -> None:
    assert problems(yaml.safe_load(fixture.manifest)) != []


REFUSED_BY_THE_MODEL_ALONE = {
    "resources.requests": "needs a limit of the same amount",
    "nodeSelectorTerms[].matchFields[].values[]": "it must be metadata.name",
}
"""Pods would be refused, but a schema could not say it, or only at a length that helps nobody."""


@pytest.mark.parametrize(
    ("name", "limit", "spec"), LIMITS, ids=[name for name, _limit, _spec in LIMITS]
)
def test_every_limit_is_the_same(
    name: str, limit: int, spec: Callable[[int], dict[str, Any]]
) -> None:
    at_the_limit, above = (problems({"spec": spec(size)}) for size in (limit, limit + 1))
    if name in REFUSED_BY_THE_MODEL_ALONE:
        assert all(REFUSED_BY_THE_MODEL_ALONE[name] in problem for problem in at_the_limit)
        assert len(above) > 0
    else:
        assert at_the_limit == []
        assert len(above) == 1
        assert re.search(rf"\b{limit}\b", above[0])


# --- Fields ---------------------------------------------------------------------------------------


def only(path: str, value: Json) -> Json:
    """The JSON in which nothing is set but `path`."""
    for key in reversed(path.split(".")):
        name = key.removesuffix("[]")
        value = {name: [value] if key != name else value}
    return value


def everything(schema: Schema) -> Json:
    """The JSON in which every field of `schema` is set, to something of its kind at least."""
    match schema:
        case {"properties": fields}:
            return {name: everything(below) for name, below in fields.items()}
        case {"items": entry}:
            return [everything(entry)]
        case {"type": "object"}:
            return {}
        case {"type": "boolean"}:
            return True
        case {"type": "string"}:
            return "x"
        case _:
            return 1


@pytest.mark.parametrize("path", FIELDS)
def test_no_field_of_the_crd_is_unknown(path: str) -> None:
    assert [text for text in problems(only(path, 1)) if "is unknown" in text] == []


@pytest.mark.parametrize("path", OBJECTS)
def test_in_no_object_is_another_field_known(path: str) -> None:
    where = f"{path}.surplus".replace("[]", "[0]")
    unknown = [text for text in problems(only(f"{path}.surplus", 1)) if "is unknown" in text]
    assert unknown == [f"{where} is unknown: check its spelling, or remove it"]


def test_the_model_knows_no_field_that_the_crd_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    nothing_else = Reader.nothing_else

    def recording(reader: Reader) -> None:
        asked.update(path.replace("[0]", "[]") for path in reader.known())
        nothing_else(reader)

    monkeypatch.setattr(Reader, "nothing_else", recording)
    parse({"spec": everything(SPEC)})
    assert {path for path in asked if path.startswith("spec.")} == set(FIELDS)
