"""Where the pod may run: a config's node selector, tolerations and affinity, where it has none."""

import copy
from collections.abc import Mapping

from shield_operator import names, raw
from shield_operator.model import Json, Scheduling


def schedule(pod: Json, scheduling: Scheduling, kept: list[str]) -> None:
    """Add the rules, and to `kept` the names of those that the pod has otherwise."""
    spec = raw.object_at(pod, "spec")
    _set_absent(spec, "nodeSelector", scheduling.node_selector, kept)
    present = [_normal(toleration) for toleration in raw.items(spec, "tolerations")]
    for toleration in scheduling.tolerations:
        if _normal(toleration) not in present:
            raw.list_at(spec, "tolerations").append(copy.deepcopy(toleration))
    _set_absent(spec, "affinity", scheduling.affinity or {}, kept)


def is_same_toleration(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Whether the API server takes both for the same, whatever was left out."""
    return bool(_normal(one) == _normal(other))


def _set_absent(spec: Json, field: str, rules: Json, kept: list[str]) -> None:
    for key, rule in rules.items():
        found = raw.mapping(spec, field).get(key)
        if found is None:
            raw.object_at(spec, field)[key] = copy.deepcopy(rule)
        elif found != rule:
            kept.append(names.kept_rule(field, key))


def _normal(toleration: Mapping[str, Json]) -> Json:
    """A toleration as the API server understands it, whatever was left out."""
    given = {key: value for key, value in toleration.items() if value not in (None, "")}
    return {"operator": "Equal", **given}
