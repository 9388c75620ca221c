"""A pod that runs, or a workload's template, as something to be explained."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shield_operator import kinds, names, pods, raw
from shield_operator.cli.reading import Surroundings, read_secrets, read_surroundings
from shield_operator.cli.remedying import read_remedy
from shield_operator.cluster import Forbidden, NotFound, Viewer
from shield_operator.documents import workloads
from shield_operator.explanation import (
    Explanation,
    Live,
    Stamps,
    Standing,
    Subject,
    explain,
    present_fingerprint,
    why_bare,
)
from shield_operator.kinds import Kind
from shield_operator.model import Json
from shield_operator.ownership import OWNED_KINDS, Workload, workload_of
from shield_operator.plan import ClusterVersion
from shield_operator.rehearsal import without_owners
from shield_operator.uninjection import plan_of, uninject


@dataclass(frozen=True, slots=True)
class Instead:
    """What is taken instead of what the cluster says: as if it were applied."""

    configs: Sequence[Json] = ()
    namespace_labels: Mapping[str, str] | None = None
    version: ClusterVersion | None = None

    def of(self, around: Surroundings) -> Surroundings:
        """The surroundings, so changed."""
        index = around.configs
        if self.version is not None:
            index = index.with_version(self.version)
        for config in self.configs:
            index = index.with_resource(config)
        namespace = around.namespace
        if self.namespace_labels is not None:
            metadata = raw.mapping(namespace, "metadata")
            namespace = {"metadata": {**metadata, "labels": self.namespace_labels}}
        return replace(around, configs=index, namespace=namespace)


async def live_subject(
    viewer: Viewer,
    kind: Kind,
    name: str,
    namespace: str,
    operator_namespace: str | None,
    instead: Instead,
) -> Subject:
    """What there is to tell of it.

    Raises:
        ClusterError: where it is not there, or too little can be read.
        SettingsError: where the environment holds what cannot be used.
    """
    found = await viewer.find(kind, name, namespace)
    if found is None:
        # A workload's bare name is the usual slip.
        hint = f"; for a workload, say which kind: deployment/{name}" if kind is kinds.POD else ""
        raise NotFound(f"there is no {kind.singular} {name} in namespace {namespace}{hint}")
    around = instead.of(await read_surroundings(viewer, namespace, operator_namespace))
    (workload,) = workloads(found)
    pod = workload.pod
    secrets = await read_secrets(viewer, pod, namespace, around)
    with without_owners(workload):
        explanation = explain(
            _as_made(pod) if kind is kinds.POD else pod,
            namespace,
            around.namespace_labels,
            secrets,
            around.configs,
            around.installation.settings,
            made_by=workload.maker,
        )
    if kind is not kinds.POD:
        title = f"template of {kind.singular} {namespace}/{name}"
        return Subject(title, explanation, notes=around.notes)
    live, notes = await _live(viewer, pod, around)
    return Subject(f"pod {namespace}/{name}", explanation, live, (*around.notes, *notes))


async def _live(viewer: Viewer, pod: Json, around: Surroundings) -> tuple[Live, list[str]]:
    notes: list[str] = []
    stamps = Stamps.of(pod)
    workload = await _workload(viewer, pod)
    name = str(raw.mapping(pod, "metadata").get("name"))
    way_out = await read_remedy(viewer, workload, name, around)
    own = [resource for ref, resource in around.resources.items() if str(ref) == stamps.config]
    present = present_fingerprint(own[0]) if own else None
    if stamps.config == names.SETTINGS_CONFIG and around.configs.last_resort is not None:
        present = around.configs.last_resort.fingerprint
    standing = stamps.standing(present)
    if standing is not Standing.BARE:
        anew = _anew(pod, around)
        told = way_out.sentence
        return Live(stamps, standing, remedy=told, helps=way_out.helps, anew=anew), notes
    webhooks, known = None, True
    try:
        webhooks = await viewer.find(kinds.WEBHOOK_CONFIGURATION, names.OPERATOR)
    except Forbidden:
        known = False
        notes.append("the webhook configuration cannot be read, and what it tells is left out")
    settings = around.installation.settings
    causes = why_bare(pod, around.namespace, webhooks, settings, webhooks_known=known)
    return Live(stamps, standing, causes, way_out.sentence, helps=way_out.helps), notes


def _as_made(pod: Json) -> Json:
    """The pod as its template made it, as far as the operator's own marks on a skipped one go."""
    if Stamps.of(pod).skipped is None:
        return pod
    made = copy.deepcopy(pod)
    uninject(made, None)
    return made


def _anew(pod: Json, around: Surroundings) -> Explanation | None:
    """What would become of a pod today that has the sidecar, had it not."""
    if pods.mark(pod) is None:
        return None
    bare = copy.deepcopy(pod)
    uninject(bare, plan_of(bare, around.configs))
    namespace = str(raw.mapping(pod, "metadata").get("namespace"))
    settings = around.installation.settings
    return explain(bare, namespace, around.namespace_labels, {}, around.configs, settings)


async def _workload(viewer: Viewer, pod: Json) -> Workload:
    """The workload that a pod belongs to."""
    namespace = str(raw.mapping(pod, "metadata").get("namespace"))
    owner = pods.controller(pod) or {}
    owners = {}
    for kind in OWNED_KINDS:
        if owner.get("kind") == kind.kind:
            name = str(owner.get("name"))
            try:
                owners[namespace, kind.kind, name] = await viewer.find(kind, name, namespace)
            except Forbidden:
                continue
    return workload_of(pod, owners)
