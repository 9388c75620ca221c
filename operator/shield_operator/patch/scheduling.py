"""Where the pod may run: a config's node selector, tolerations and affinity, where it has none."""

from collections.abc import Mapping

from shield_operator import names, raw
from shield_operator.model import Json, Scheduling
from shield_operator.patch.draft import Draft


def schedule(draft: Draft, scheduling: Scheduling, kept: list[str]) -> None:
    """Add the rules, and to `kept` the names of those that the pod has otherwise."""
    _set_absent(draft, "nodeSelector", scheduling.node_selector, kept)
    if scheduling.tolerations:
        present = [_normal(one) for one in raw.items(draft.pod, "spec", "tolerations")]
        absent = [one for one in scheduling.tolerations if _normal(one) not in present]
        draft.append(("spec", "tolerations"), absent)
    _set_absent(draft, "affinity", scheduling.affinity or {}, kept)


def is_same_toleration(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Whether the API server takes both for the same, whatever was left out."""
    return bool(_normal(one) == _normal(other))


def _set_absent(draft: Draft, field: str, rules: Mapping[str, Json], kept: list[str]) -> None:
    for key, rule in rules.items():
        found = raw.mapping(draft.pod, "spec", field).get(key)
        if found is None:
            draft.put(("spec", field, key), rule)
        elif found != rule:
            kept.append(names.kept_rule(field, key))


def _normal(toleration: Mapping[str, Json]) -> Json:
    """A toleration as the API server understands it, whatever was left out."""
    given = {key: value for key, value in toleration.items() if value not in (None, "")}
    return {"operator": "Equal", **given}
