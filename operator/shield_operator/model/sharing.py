"""Equal parts of configs, kept once.

Most configs of a cluster are made from one another: what they have in common is most of what they
hold. Such parts must never be changed, which holds for all parts of a config and of a plan.
"""

import json
from functools import lru_cache
from typing import Final

from shield_operator.model.formats import Json


def shared(part: Json) -> Json:
    """This part as it was met before, where it was; numbers and the order of keys count."""
    return _known(json.dumps(part))


@lru_cache(maxsize=1024)
def _known(text: str) -> Json:
    return json.loads(text)


def frugal(part: Json, depth: int = 0) -> Json:
    """A copy of this part, of strings that were met before, where they were.

    Parsers make each string anew, keys included: most of a config's are the same in every config.
    """
    match part:
        case dict() if depth < _DEEPEST:
            below = depth + 1
            return {frugal(key, below): frugal(value, below) for key, value in part.items()}
        case list() if depth < _DEEPEST:
            return [frugal(value, depth + 1) for value in part]
        case str() if len(part) <= _LONGEST:
            return _known_string(part)
        case _:
            return part


_DEEPEST: Final = 32
_LONGEST: Final = 512


@lru_cache(maxsize=4096)
def _known_string(text: str) -> str:
    return text
