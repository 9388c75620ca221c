"""JSON to and from bytes: by the fast library, and as the standard library does where they differ.

The fast one takes no lone surrogates, no ``NaN``, and nothing nested above a thousand levels; the
standard one does, or has its own word against it. No API server sends such, but what is sent to the
webhook must be answered in order, and a name that came in has to go out again in a warning.
"""

import json

import orjson

from shield_operator.model import Json


def decode(content: bytes) -> Json:
    """The value of a JSON text.

    An integer that does not fit into 64 bits may come as a float.

    Raises:
        ValueError: where it is none.
        RecursionError: where it is nested too deeply.
    """
    try:
        return orjson.loads(content)
    except ValueError:
        return json.loads(content)


def encode(value: Json) -> bytes:
    """The JSON text of a value.

    Raises:
        TypeError, ValueError: where it has none.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()
