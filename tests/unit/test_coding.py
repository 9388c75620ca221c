"""JSON by two libraries, which have to look like one."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from shield_operator.coding import decode, encode

TEXTS = st.text() | st.sampled_from(["\ud800", "\udfff\ud800", "\x00", "\u2028", "a" * 100])
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(width=64) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
@hypothesis_settings(max_examples=500, deadline=None)
def test_what_is_read_is_what_the_standard_library_reads(value: Any) -> None:
    text = json.dumps(value)
    assert json.dumps(decode(text.encode())) == text


def has_no_number_for_json(value: Any) -> bool:
    """Whether an infinity or the like is in it, which JSON has no number for."""
    if isinstance(value, float):
        return not math.isfinite(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(map(has_no_number_for_json, parts))


@given(VALUES)
@hypothesis_settings(max_examples=500, deadline=None)
def test_what_is_written_reads_as_it_was(value: Any) -> None:
    if not has_no_number_for_json(value):
        assert json.dumps(json.loads(encode(value))) == json.dumps(value)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400])
def test_a_huge_integer_is_read_and_no_failure(number: int) -> None:
    """No patch has it: what is the user's is never sent back."""
    assert float(decode(str(number).encode()[:300])) == float(str(number)[:300])


@pytest.mark.parametrize(
    "text", [b"NaN", b"[Infinity]", b'"\\ud800"', b'{"a": 1, "a": 2}', b"\xef\xbb\xbf{}", b" 1 "]
)
def test_odd_texts_are_read_as_the_standard_library_reads_them(text: bytes) -> None:
    def read(by: Any) -> str:
        try:
            return json.dumps(by(text))
        except ValueError:
            return "refused"

    assert read(decode) == read(json.loads)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"01", b"[1,]"])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # each library has its own words
        decode(text)


def test_what_is_nested_too_deeply_is_told() -> None:
    with pytest.raises(RecursionError):
        decode(b"[" * 100_000 + b"]" * 100_000)
