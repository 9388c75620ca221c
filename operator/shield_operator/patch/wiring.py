"""What is set on the application's container so that it uses the shield.

What the user has set stays, and its name is added to `kept`. A value that is equal to ours counts
as ours, since it is after the first of two applications.
"""

import copy
from typing import Final

from shield_operator import arguments, names, pods, raw
from shield_operator.model import Argument, Json
from shield_operator.plan import Wiring


def wire(pod: Json, wiring: Wiring, kept: list[str]) -> None:
    """Wire the pod's application container, where there is anything to do."""
    container = pods.application_container(pod, wiring.container)
    if container is not None:
        _add_arguments(container, wiring.args, kept)
        if wiring.mount is not None:
            _mount(container, wiring.mount, wiring.path_env, kept)
        _set_variables(container, wiring.env, kept)
    if wiring.host_ipc:
        _share_ipc(pod, kept)


def _add_arguments(container: Json, flags: tuple[Argument, ...], kept: list[str]) -> None:
    """Append each flag that the container's arguments do not have."""
    for flag in flags:
        values = arguments.values_of(flag, raw.texts(container, "args"))
        if not values:
            raw.list_at(container, "args").extend(arguments.spelled(flag))
        elif any(value != flag.value for value in values):
            kept.append(names.kept_argument(flag.name))


def _set_variables(container: Json, variables: tuple[Json, ...], kept: list[str]) -> None:
    """Append each variable that the container does not set; they may refer to its own."""
    for variable in variables:
        found = _variable(container, variable["name"])
        if found is None:
            raw.list_at(container, "env").append(copy.deepcopy(variable))
        elif found.get("valueFrom") or _value(found) != _value(variable):
            kept.append(names.kept_variable(variable["name"]))


# --- The payload ----------------------------------------------------------------------------------


def _mount(container: Json, mount: Json, path_env: str | None, kept: list[str]) -> None:
    """Mount the payload and put it on the search path, unless the user mounts something there."""
    where = mount["mountPath"]
    mounts = raw.items(container, "volumeMounts")
    there = [one.get("name") for one in mounts if _folder(one.get("mountPath")) == where]
    devices = raw.items(container, "volumeDevices")
    if not there and not any(_folder(one.get("devicePath")) == where for one in devices):
        raw.list_at(container, "volumeMounts").append(copy.deepcopy(mount))
    elif mount["name"] not in there:
        kept.append(names.kept_mount(where))
        return
    if path_env is not None:
        _put_in_front(container, path_env, where, kept)


def _folder(path: Json) -> str:
    return path.rstrip("/") if isinstance(path, str) else ""


_SEPARATOR: Final = ":"


def _put_in_front(container: Json, name: str, path: str, kept: list[str]) -> None:
    """Make `path` the first of a search-path variable's."""
    found = _variable(container, name)
    if found is None:
        raw.list_at(container, "env").append({"name": name, "value": path})
    elif found.get("valueFrom"):
        kept.append(names.kept_variable(name))
    elif not (before := _value(found)):
        found["value"] = path
    elif before.split(_SEPARATOR)[0] != path:
        found["value"] = f"{path}{_SEPARATOR}{before}"


# --- The node's IPC namespace ---------------------------------------------------------------------

_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def _share_ipc(pod: Json, kept: list[str]) -> None:
    """Share the node's IPC namespace, unless the API server would refuse the pod for it.

    A pod's own ``hostIPC: false`` is no answer: the API server drops it before it asks a webhook.
    https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/
    """
    spec = raw.object_at(pod, "spec")
    sysctls = raw.items(spec, "securityContext", "sysctls")
    named = [str(sysctl.get("name")).replace("/", ".") for sysctl in sysctls]
    needs_its_own = any(name.startswith(_IPC_SYSCTLS) for name in named)
    if needs_its_own or spec.get("hostUsers") is False or pods.is_for_windows(pod):
        kept.append(names.KEPT_HOST_IPC)
    else:
        spec["hostIPC"] = True


# --- Variables ------------------------------------------------------------------------------------


def _variable(container: Json, name: str) -> Json | None:
    """The variable of that name; of several the last, which is the one that Kubernetes takes."""
    found = (v for v in reversed(raw.items(container, "env")) if v.get("name") == name)
    return next(found, None)


def _value(variable: Json) -> str:
    value = variable.get("value")
    return value if isinstance(value, str) else ""
