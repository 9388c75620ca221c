"""What a plan adds to the pod: the sidecar, the payload's stage, volumes and pull Secrets."""

import copy
from collections.abc import Iterable
from typing import Final

from shield_operator import names, pods, raw
from shield_operator.model import Json
from shield_operator.plan import Plan

_NON_ROOT: Final = 65532
"""A user without rights, by convention of minimal images; used where the pod itself runs as 0."""


def add(pod: Json, plan: Plan) -> None:
    """Add whatever the pod does not have yet, by name."""
    spec = raw.object_at(pod, "spec")
    if plan.sidecar is not None:
        _add_sidecar(pod, spec, plan)
    if plan.stage is not None:
        _add_stage(pod, spec, plan)
    _add_by_name(spec, "volumes", plan.volumes)
    secrets = pods.image_pull_secrets(pod) or plan.image_pull_secrets
    _add_by_name(spec, "imagePullSecrets", ({"name": name} for name in secrets))


def _add_sidecar(pod: Json, spec: Json, plan: Plan) -> None:
    if any(container.get("name") == names.SIDECAR for container in pods.all_containers(pod)):
        return
    sidecar = _adapted(plan.sidecar, pod, plan)
    secret = pods.keys_secret(pod, plan.secret_name)
    if secret is not None:
        sidecar["envFrom"] = [{"secretRef": {"name": secret}}]
    if plan.native:
        raw.list_at(spec, "initContainers").insert(0, sidecar)
    else:
        raw.list_at(spec, "containers").append(sidecar)


def _add_stage(pod: Json, spec: Json, plan: Plan) -> None:
    """After the sidecar, before the application's own: they may need the files."""
    init = raw.items(spec, "initContainers")
    if any(container.get("name") == names.PAYLOAD_STAGE for container in init):
        return
    after_sidecar = 1 if plan.native else 0
    raw.list_at(spec, "initContainers").insert(after_sidecar, _adapted(plan.stage, pod, plan))


def _adapted(container: Json, pod: Json, plan: Plan) -> Json:
    """A container of the plan with our mark, and not run as root only because the pod is."""
    container = copy.deepcopy(container)
    mark = {"name": names.MARK_VARIABLE, "value": plan.mark}
    container["env"] = [mark, *container.get("env", [])]
    if raw.mapping(pod, "spec", "securityContext").get("runAsUser") == 0:
        container["securityContext"].setdefault("runAsUser", _NON_ROOT)
    return container


def _add_by_name(parent: Json, key: str, additions: Iterable[Json]) -> None:
    """Append to the list at `key` whatever it does not have by name."""
    present = [
        item.get("name") for item in raw.items(parent, key)
    ]  # names of strangers may be lists
    for addition in additions:
        if addition["name"] not in present:
            raw.list_at(parent, key).append(copy.deepcopy(addition))
