"""Equal parts of configs, kept once.

Most configs of a cluster are made from one another: what they have in common is most of what they
hold. Such parts must never be changed, which holds for all parts of a config and of a plan.
"""

import json
from functools import lru_cache

from shield_operator.model.formats import Json


def shared(part: Json) -> Json:
    """This part as it was met before, where it was; numbers and the order of keys count."""
    return _known(json.dumps(part))


@lru_cache(maxsize=1024)
def _known(text: str) -> Json:
    return json.loads(text)
