"""What a plan adds to the pod: the sidecar, the payload's stage, volumes and pull Secrets."""

from collections.abc import Iterable, Mapping
from typing import Final

from shield_operator import names, pods, raw
from shield_operator.model import Json
from shield_operator.patch.draft import Draft, Path
from shield_operator.plan import Plan

_NON_ROOT: Final = 65532
"""A user without rights, by convention of minimal images; used where the pod itself runs as 0."""

_INIT_CONTAINERS: Final = ("spec", "initContainers")


def add(draft: Draft, plan: Plan) -> None:
    """Add whatever the pod does not have yet, by name."""
    if plan.sidecar is not None:
        _add_sidecar(draft, plan)
    if plan.stage is not None:
        _add_stage(draft, plan)
    _add_by_name(draft, ("spec", "volumes"), plan.volumes)
    secrets = pods.image_pull_secrets(draft.pod) or plan.image_pull_secrets
    _add_by_name(draft, ("spec", "imagePullSecrets"), [{"name": name} for name in secrets])


def _add_sidecar(draft: Draft, plan: Plan) -> None:
    pod = draft.pod
    if any(container.get("name") == names.SIDECAR for container in pods.all_containers(pod)):
        return
    sidecar = _adapted(plan.sidecar, pod, plan)
    secret = pods.keys_secret(pod, plan.secret_name)
    if secret is not None:
        sidecar["envFrom"] = [{"secretRef": {"name": secret}}]
    if plan.native:
        draft.insert(_INIT_CONTAINERS, 0, sidecar)
    else:
        draft.append(("spec", "containers"), [sidecar])


def _add_stage(draft: Draft, plan: Plan) -> None:
    """After the sidecar, before the application's own: they may need the files."""
    init = raw.items(draft.pod, *_INIT_CONTAINERS)
    if any(container.get("name") == names.PAYLOAD_STAGE for container in init):
        return
    after_sidecar = 1 if plan.native else 0
    draft.insert(_INIT_CONTAINERS, after_sidecar, _adapted(plan.stage, draft.pod, plan))


def _adapted(template: Mapping[str, Json], pod: Json, plan: Plan) -> dict[str, Json]:
    """A container of the plan with our mark, and not run as root only because the pod is."""
    mark = {"name": names.MARK_VARIABLE, "value": plan.mark}
    container = {**template, "env": [mark, *template.get("env", ())]}
    if raw.mapping(pod, "spec", "securityContext").get("runAsUser") == 0:
        container["securityContext"] = {"runAsUser": _NON_ROOT, **template["securityContext"]}
    return container


def _add_by_name(draft: Draft, path: Path, additions: Iterable[Json]) -> None:
    """Append to the list at `path` whatever it does not have by name."""
    present = [
        item.get("name") for item in raw.items(draft.pod, *map(str, path))
    ]  # names of strangers may be lists
    draft.append(path, [one for one in additions if one["name"] not in present])
