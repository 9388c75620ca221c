"""From a decision and a pod to the changed pod.

`apply` changes the raw JSON in place, by name and only where something is absent: fields that this
version does not know survive, and a second application changes nothing, which matters because the
API server may call a webhook twice for one pod (``reinvocationPolicy``).
"""

import copy
from typing import Final

import jsonpatch

from shield_operator import names, pods, raw
from shield_operator.decision import Decision, Ignore, Inject, Skip
from shield_operator.model import Json
from shield_operator.plan import Plan

_NON_ROOT: Final = 65532
"""A user without rights, by convention of minimal images; used where the pod itself runs as 0."""


def operations(pod: Json, decision: Decision) -> list[Json]:
    """The JSON Patch (RFC 6902) that carries the decision out; empty where nothing changes."""
    changed = copy.deepcopy(pod)
    apply(changed, decision)
    patch: list[Json] = jsonpatch.make_patch(pod, changed).patch
    return patch


def apply(pod: Json, decision: Decision) -> None:
    """Carry the decision out on the pod's JSON, in place. Applying it twice is applying it once."""
    match decision:
        case Ignore():
            pass
        case Inject(plan):
            _add_sidecar(pod, plan)
            _add_by_name(pod["spec"], "volumes", plan.volumes)
            _stamp_injected(pod, plan)
        case Skip(reason, sentence):
            _set_label(pod, names.INJECTION_SKIPPED_LABEL, reason.value)
            _remove_label(pod, names.INJECTED_LABEL)
            _annotate(pod, {names.SKIP_REASON_ANNOTATION: sentence})
            _remove_annotations(pod, names.INJECTED_ANNOTATIONS)


# --- The sidecar ----------------------------------------------------------------------------------


def _add_sidecar(pod: Json, plan: Plan) -> None:
    if any(container.get("name") == names.SIDECAR for container in pods.all_containers(pod)):
        return
    spec = raw.object_at(pod, "spec")
    sidecar = _adapted_sidecar(pod, plan)
    if plan.native:
        raw.list_at(spec, "initContainers").insert(0, sidecar)
    else:
        raw.list_at(spec, "containers").append(sidecar)


def _adapted_sidecar(pod: Json, plan: Plan) -> Json:
    """The plan's container with what only the pod can say: its Secret, its user; and our mark."""
    sidecar = copy.deepcopy(plan.sidecar)
    sidecar["env"].insert(0, {"name": names.MARK_VARIABLE, "value": plan.mark})
    secret = pods.annotations(pod).get(names.KEYS_SECRET_ANNOTATION) or plan.secret_name
    if secret is not None:
        sidecar["envFrom"] = [{"secretRef": {"name": secret}}]
    if raw.mapping(pod, "spec", "securityContext").get("runAsUser") == 0 and not plan.runs_as_user:
        sidecar["securityContext"]["runAsUser"] = _NON_ROOT
    return sidecar


# --- The outcome ----------------------------------------------------------------------------------


def _stamp_injected(pod: Json, plan: Plan) -> None:
    stamps = {
        names.INJECTED_CONFIG_ANNOTATION: plan.source,
        names.INJECTION_HASH_ANNOTATION: plan.fingerprint,
    }
    if plan.generation is not None:
        stamps[names.CONFIG_GENERATION_ANNOTATION] = str(plan.generation)
    if pods.annotations(pod).get(names.DEFAULT_CONTAINER_ANNOTATION) is None:
        application = next(
            (c for c in pods.containers(pod) if c.get("name") != names.SIDECAR), None
        )
        if application is not None:
            stamps[names.DEFAULT_CONTAINER_ANNOTATION] = str(application.get("name"))
    _set_label(pod, names.INJECTED_LABEL, names.INJECTED_VALUE)
    _remove_label(pod, names.INJECTION_SKIPPED_LABEL)
    _remove_annotations(pod, (*names.INJECTED_ANNOTATIONS, names.SKIP_REASON_ANNOTATION))
    _annotate(pod, stamps)


def _set_label(pod: Json, key: str, value: str) -> None:
    labels = raw.object_at(raw.object_at(pod, "metadata"), "labels")
    if key in labels and pods.outcome_labels_are_frozen(pod):
        return
    labels[key] = value


def _remove_label(pod: Json, key: str) -> None:
    if not pods.outcome_labels_are_frozen(pod):
        raw.object_at(raw.object_at(pod, "metadata"), "labels").pop(key, None)


def _annotate(pod: Json, stamps: dict[str, str]) -> None:
    raw.object_at(raw.object_at(pod, "metadata"), "annotations").update(stamps)


def _remove_annotations(pod: Json, keys: tuple[str, ...]) -> None:
    annotations = raw.object_at(raw.object_at(pod, "metadata"), "annotations")
    for key in keys:
        annotations.pop(key, None)


# --- Lists ---------------------------------------------------------------------------------------


def _add_by_name(parent: Json, key: str, additions: tuple[Json, ...]) -> None:
    """Append to the list at `key` whatever it does not have by name."""
    present = [item.get("name") for item in raw.items(parent, key)]  # of any type: no set
    for addition in additions:
        if addition["name"] not in present:
            raw.list_at(parent, key).append(copy.deepcopy(addition))
