"""Pod-level resources: whether a pod's own ``spec.resources`` leave room for what is added.

The API server refuses a pod whose containers ask for more than the pod itself does, so that a pod
with too little must be skipped, not patched. The sums are Kubernetes' own.
https://kubernetes.io/docs/tasks/configure-pod-container/assign-pod-level-resources/
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from shield_operator import names, pods, raw
from shield_operator.model import Json, quantity
from shield_operator.plan import Plan

_Amounts = dict[str, Fraction]


def shortage(pod: Json, plan: Plan) -> str | None:
    """What the pod lacks, as a sentence that says what to do; None where it has enough."""
    added = [container for container in (plan.sidecar, plan.stage) if container is not None]
    requests = _amounts(raw.mapping(pod, "spec", "resources", "requests"))
    limits = _amounts(raw.mapping(pod, "spec", "resources", "limits"))
    if not added or not (requests or limits):
        return None
    init = _without_ours(raw.items(pod, "spec", "initContainers"))
    containers = _without_ours(pods.containers(pod))
    before = _total(init, containers)
    if plan.sidecar is None or plan.native:
        after = _total([*added, *init], containers)
    else:
        staged = [plan.stage] if plan.stage is not None else []
        after = _total([*staged, *init], [*containers, plan.sidecar])
    for kind, needed in after.items():
        # Absent requests become what the containers ask for, or else the limit.
        granted = requests.get(kind, before.get(kind) if kind in limits else None)
        granted = limits.get(kind) if granted is None else granted
        if granted is not None and needed > granted:
            asked = (_asked(container, kind) for container in added)
            return (
                f"the pod's own spec.resources request too little {kind} for its containers and "
                f"{' and '.join(asked)}: raise them{_or_ask_for_less(plan)}"
            )
    if plan.sidecar is None or plan.native:
        return None
    for kind, limit in plan.sidecar["resources"]["limits"].items():
        if kind in limits and quantity(limit) > limits[kind]:
            return (
                f"the pod's own spec.resources limit {kind} to less than the sidecar's limit of "
                f"{limit}: raise them{_or_ask_for_less(plan)}"
            )
    return None


def _asked(container: Json, kind: str) -> str:
    who = "the sidecar" if container["name"] == names.SIDECAR else "the payload's init container"
    return f"{who}, which asks for {container['resources']['requests'].get(kind, 0)}"


def _or_ask_for_less(plan: Plan) -> str:
    """The stage's resources are fixed, and only the sidecar's can be chosen."""
    return ", or lower spec.resources of the config" if plan.sidecar is not None else ""


def _without_ours(containers: Iterable[Json]) -> list[Json]:
    """The containers but our own: a pod that has them already must not count them twice."""
    ours = (names.SIDECAR, names.PAYLOAD_STAGE)
    return [container for container in containers if container.get("name") not in ours]


def _total(init: Iterable[Json], containers: Iterable[Json]) -> _Amounts:
    """What a pod of these containers requests as a whole.

    The containers and the native sidecars run together; or, at the start, an init container beside
    the native sidecars before it: whichever is more.
    """
    running: _Amounts = {}
    for container in containers:
        _add(running, _requests(container))
    sidecars: _Amounts = {}
    starting: _Amounts = {}
    for container in init:
        now = dict(sidecars)
        _add(now, _requests(container))
        if container.get("restartPolicy") == "Always":
            sidecars = now
            _add(running, _requests(container))
        for kind, amount in now.items():
            starting[kind] = max(amount, starting.get(kind, Fraction()))
    return {
        kind: max(running.get(kind, Fraction()), starting.get(kind, Fraction()))
        for kind in running | starting
    }


def _requests(container: Json) -> _Amounts:
    """A container's requests; one that has only a limit requests as much."""
    return _amounts(raw.mapping(container, "resources", "limits")) | _amounts(
        raw.mapping(container, "resources", "requests")
    )


def _amounts(given: Mapping[str, Json]) -> _Amounts:
    """The quantities that can be read; the others are the API server's to refuse."""
    found = {}
    for kind, value in given.items():
        try:
            found[str(kind)] = quantity(value)
        except ValueError:
            continue
    return found


def _add(total: _Amounts, more: _Amounts) -> None:
    for kind, amount in more.items():
        total[kind] = total.get(kind, Fraction()) + amount
