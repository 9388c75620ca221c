"""Reading what would become of a workload's next pods, before anybody is told to make them."""

import asyncio
import copy
from collections.abc import Iterable

from shield_operator import kinds, pods
from shield_operator.cli.reading import Surroundings, read_secrets, read_surroundings
from shield_operator.cluster import ClusterError, Forbidden, Viewer
from shield_operator.documents import workloads
from shield_operator.explanation import explain
from shield_operator.model import Json
from shield_operator.overview import WorkloadState
from shield_operator.ownership import Workload
from shield_operator.rehearsal import without_owners
from shield_operator.remedies import Remedy, in_template, remedy
from shield_operator.uninjection import plan_of, uninject

_AT_ONCE = 8


async def read_remedy(
    viewer: Viewer, workload: Workload, example: str, around: Surroundings
) -> Remedy:
    """The way out for a workload's pods.

    Its template tells; where that cannot be read, one of its pods does.

    Raises:
        ClusterError: where the API server does not answer.
    """
    found = await _made_from(viewer, workload, example)
    if found is None:
        return Remedy(workload.remedy)
    (made_from,) = workloads(found)
    pod = made_from.pod
    if pods.mark(pod) is not None:
        if made_from.maker is not None:
            return in_template(workload)
        pod = copy.deepcopy(pod)
        uninject(pod, plan_of(pod, around.configs))
    secrets = await read_secrets(viewer, pod, workload.namespace, around)
    with without_owners(made_from):
        anew = explain(
            pod,
            workload.namespace,
            around.namespace_labels,
            secrets,
            around.configs,
            around.installation.settings,
            made_by=made_from.maker,
        )
    return remedy(workload, pod, anew, secrets)


async def _made_from(viewer: Viewer, workload: Workload, example: str) -> Json:
    """The workload, or a pod of it; None where neither can be read."""
    kind = kinds.named(workload.kind.lower())
    for each, name in ((kind, workload.name), (kinds.POD, example)):
        if each is None:
            continue
        try:
            found = await viewer.find(each, name, workload.namespace)
        except Forbidden:
            continue
        if found is not None:
            return found
    return None


async def add_remedies(
    viewer: Viewer, states: Iterable[WorkloadState], operator_namespace: str | None
) -> None:
    """Say of each workload that is not up to date what to do about it."""
    stale = [state for state in states if state.is_stale]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def add(state: WorkloadState, around: Surroundings) -> None:
        async with limit:
            try:
                state.way_out = await read_remedy(viewer, state.workload, state.example, around)
            except ClusterError:  # it is gone, or not to be read: the plain command stays
                return

    for namespace in sorted({state.workload.namespace for state in stale}):
        try:
            around = await read_surroundings(viewer, namespace, operator_namespace)
        except ClusterError:
            continue
        here = (state for state in stale if state.workload.namespace == namespace)
        await asyncio.gather(*(add(state, around) for state in here))
