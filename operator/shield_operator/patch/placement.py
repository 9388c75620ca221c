"""Where the pod may run: a config's node selector, tolerations and affinity, where it has none."""

import copy
from collections.abc import Iterator, Mapping

from shield_operator import raw
from shield_operator.model import Json, Scheduling


def place(pod: Json, scheduling: Scheduling) -> Iterator[str]:
    """Add the rules, and say which of them the pod has otherwise and keeps so."""
    spec = raw.object_at(pod, "spec")
    yield from _set_absent(spec, "nodeSelector", scheduling.node_selector)
    present = [_normal(toleration) for toleration in raw.items(spec, "tolerations")]
    for toleration in scheduling.tolerations:
        if _normal(toleration) not in present:
            raw.list_at(spec, "tolerations").append(copy.deepcopy(toleration))
    yield from _set_absent(spec, "affinity", scheduling.affinity or {})


def is_same_toleration(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Whether the API server takes both for the same, whatever was left out."""
    return bool(_normal(one) == _normal(other))


def _set_absent(parent: Json, key: str, rules: Json) -> Iterator[str]:
    for name, rule in rules.items():
        found = raw.mapping(parent, key).get(name)
        if found is None:
            raw.object_at(parent, key)[name] = copy.deepcopy(rule)
        elif found != rule:
            yield f"{key}:{name}"


def _normal(toleration: Mapping[str, Json]) -> Json:
    """A toleration as the API server understands it, whatever was left out."""
    given = {key: value for key, value in toleration.items() if value not in (None, "")}
    return {"operator": "Equal", **given}
