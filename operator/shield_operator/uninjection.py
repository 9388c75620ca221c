"""Taking out of a pod what injection put into it: `patch.apply`, backwards.

What carries our names goes: the sidecar and the payload's stage that bear our mark, their volumes
with all mounts of them, the outcome's labels and annotations. What the plan set under others'
names, the wiring, goes where it is as the plan has it; that the user had it so before can no longer
be seen. A container of our name without our mark is not ours, and neither is anything in a pod that
was skipped but the reason on it.
"""

from typing import Final

from shield_operator import names, pods, raw
from shield_operator.model import Argument, ConfigRef, Json
from shield_operator.patch import is_same_toleration
from shield_operator.plan import Plan, Wiring
from shield_operator.selection import ConfigIndex

_OUTCOME_LABELS: Final = (names.INJECTED_LABEL, names.INJECTION_SKIPPED_LABEL)
_VOLUMES: Final = (names.TMP_VOLUME, names.NO_TOKEN_VOLUME, names.PAYLOAD_VOLUME)


def source(pod: Json) -> str | None:
    """The config that the pod was injected by, ``namespace/name``; None where it was not."""
    if mark := pods.mark(pod) or pods.stage_mark(pod):
        return mark.partition("@")[0]
    if names.INJECTED_LABEL not in pods.labels(pod):
        return None
    return pods.annotations(pod).get(names.INJECTED_CONFIG_ANNOTATION)


def plan_of(pod: Json, configs: ConfigIndex) -> Plan | None:
    """The plan that the pod was injected by, where its config is among these."""
    found = source(pod)
    if found is None:
        return None
    if found == names.SETTINGS_CONFIG:
        return configs.last_resort
    namespace, _, name = found.partition("/")
    entry = configs.get(ConfigRef(namespace, name))
    return entry.plan if entry else None


def uninject(pod: Json, plan: Plan | None) -> bool:
    """Take it out of the pod's JSON, in place, and return whether there was anything of ours.

    Without a plan, the wiring stays.
    """
    injected = source(pod) is not None
    stamps = {*names.INJECTED_ANNOTATIONS, names.SKIP_REASON_ANNOTATION}
    ours = {*_OUTCOME_LABELS} & pods.labels(pod).keys() | stamps & pods.annotations(pod).keys()
    if not injected and not ours:
        return False
    if injected:
        if plan is not None:
            _unwire(pod, plan)
        _remove_additions(pod, plan)
        _remove_default_container(pod, plan)
    metadata = raw.mapping(pod, "metadata")
    _discard(metadata, "labels", *_OUTCOME_LABELS)
    _discard(metadata, "annotations", *stamps)
    if not metadata:
        pod.pop("metadata", None)
    return True


# --- What carries our names -----------------------------------------------------------------------


def _remove_additions(pod: Json, plan: Plan | None) -> None:
    spec = raw.mapping(pod, "spec")
    ours = [container for container in pods.all_containers(pod) if pods.is_marked(container)]
    for key in ("initContainers", "containers"):
        _keep(spec, key, [c for c in raw.items(spec, key) if not pods.is_marked(c)])
    mounted = {mount.get("name") for one in ours for mount in raw.items(one, "volumeMounts")}
    mounted |= {volume["name"] for volume in plan.volumes} if plan else {names.PAYLOAD_VOLUME}
    volumes = raw.items(spec, "volumes")
    gone = {v["name"] for v in volumes if _is_our_volume(v.get("name")) and v["name"] in mounted}
    _keep(spec, "volumes", [volume for volume in volumes if volume.get("name") not in gone])
    for container in pods.all_containers(pod):
        mounts = raw.items(container, "volumeMounts")
        _keep(container, "volumeMounts", [m for m in mounts if m.get("name") not in gone])


def _is_our_volume(name: Json) -> bool:
    is_text = isinstance(name, str)
    return is_text and (name in _VOLUMES or name.startswith(names.SECRET_VOLUME_PREFIX))


def _remove_default_container(pod: Json, plan: Plan | None) -> None:
    """Take the annotation out where it is what it would be set to."""
    annotations = raw.mapping(pod, "metadata", "annotations")
    found = annotations.get(names.DEFAULT_CONTAINER_ANNOTATION)
    others = {k: v for k, v in annotations.items() if k != names.DEFAULT_CONTAINER_ANNOTATION}
    bare = {"metadata": {"annotations": others}, "spec": raw.mapping(pod, "spec")}
    would_be = pods.application_container(bare, plan.wiring.container if plan else None)
    if found is not None and would_be is not None and found == would_be.get("name"):
        _discard(raw.mapping(pod, "metadata"), "annotations", names.DEFAULT_CONTAINER_ANNOTATION)


# --- The wiring -----------------------------------------------------------------------------------


def _unwire(pod: Json, plan: Plan) -> None:
    spec = raw.mapping(pod, "spec")
    kept = pods.annotations(pod).get(names.KEPT_BY_USER_ANNOTATION, "").split(",")
    container = pods.application_container(pod, plan.wiring.container)
    if container is not None:
        _remove_variables(container, plan.wiring)
        arguments = [a for a in plan.wiring.args if f"arg:{a.name}" not in kept]
        _remove_arguments(container, arguments)
    if plan.wiring.host_ipc and spec.get("hostIPC") is True:
        _discard(pod, "spec", "hostIPC")
    secrets = pods.image_pull_secrets(pod) or plan.image_pull_secrets
    present = raw.items(spec, "imagePullSecrets")
    _keep(spec, "imagePullSecrets", [s for s in present if s.get("name") not in secrets])
    scheduling = plan.scheduling
    present = raw.items(spec, "tolerations")
    left = [t for t in present if not any(is_same_toleration(t, o) for o in scheduling.tolerations)]
    _keep(spec, "tolerations", left)
    for key, rules in (
        ("nodeSelector", scheduling.node_selector),
        ("affinity", scheduling.affinity or {}),
    ):
        found = raw.mapping(spec, key)
        _discard(spec, key, *(name for name, rule in rules.items() if found.get(name) == rule))


def _remove_arguments(container: Json, arguments: list[Argument]) -> None:
    """Take out each flag with the value that it is given, in one argument or in two."""
    args = raw.texts(container, "args")
    for argument in arguments:
        own = [argument.name] if argument.value is None else [argument.name, argument.value]
        joined = "=".join(own)
        place = len(args) - 1
        while place >= 0:
            if args[place : place + len(own)] == own:
                del args[place : place + len(own)]
            elif args[place] == joined:
                del args[place]
            place -= 1
    if len(args) != len(raw.texts(container, "args")):
        _keep(container, "args", args)


def _remove_variables(container: Json, wiring: Wiring) -> None:
    wired = {variable["name"]: variable["value"] for variable in wiring.env}
    folder = wiring.mount["mountPath"] if wiring.mount else None
    left = []
    for variable in raw.items(container, "env"):
        name, value = variable.get("name"), variable.get("value", "")
        if variable.get("valueFrom") or not isinstance(value, str):
            left.append(variable)
        elif folder is not None and name == wiring.path_env:
            if value.startswith(f"{folder}:"):
                left.append({**variable, "value": value.removeprefix(f"{folder}:")})
            elif value != folder:
                left.append(variable)
        elif name not in wired or wired[name] != value:
            left.append(variable)
    _keep(container, "env", left)


# --- Taking out -----------------------------------------------------------------------------------


def _keep(parent: Json, key: str, left: list[Json]) -> None:
    """Keep these of a list; a list that nothing is left of goes too."""
    found = parent.get(key)
    if not isinstance(found, list) or found == left:
        return
    if left:
        parent[key] = left
    else:
        del parent[key]


def _discard(parent: Json, key: str, *names_below: str) -> None:
    """Take keys out of an object; an object that nothing is left of goes too."""
    found = parent.get(key)
    if not isinstance(found, dict) or not found.keys() & set(names_below):
        return
    for name in names_below:
        found.pop(name, None)
    if not found:
        del parent[key]
