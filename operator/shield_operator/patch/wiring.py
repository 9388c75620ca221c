"""What is set on the application's container so that it uses the shield.

What the user has set stays, and its name is added to `kept`. A value that is equal to ours counts
as ours, since it is after the first of two applications.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shield_operator import arguments, names, pods, raw
from shield_operator.model import Argument, Json
from shield_operator.patch.draft import Draft, Path
from shield_operator.plan import Wiring


def wire(draft: Draft, wiring: Wiring, kept: list[str]) -> None:
    """Wire the pod's application container, where there is anything to do."""
    container = _Container.of_application(draft, wiring)
    if container is not None:
        _add_arguments(container, wiring.args, kept)
        if wiring.mount is not None:
            _mount(container, wiring.mount, wiring.path_env, kept)
        _set_variables(container, wiring.env, kept)
    if wiring.host_ipc:
        _share_ipc(draft, kept)


@dataclass(frozen=True, slots=True)
class _Container:
    """The application's container in a draft."""

    draft: Draft
    index: int

    @classmethod
    def of_application(cls, draft: Draft, wiring: Wiring) -> "_Container | None":
        """Where it is; None where there is none."""
        found = pods.application_container(draft.pod, wiring.container)
        containers = raw.mapping(draft.pod, "spec").get("containers")
        if found is None or not isinstance(containers, list):
            return None
        return cls(draft, next(i for i, one in enumerate(containers) if one is found))

    @property
    def raw(self) -> Mapping[str, Json]:
        """How it looks by now."""
        found: Mapping[str, Json] = self.draft.pod["spec"]["containers"][self.index]
        return found

    def path(self, *below: str | int) -> Path:
        """The path of something in it."""
        return "spec", "containers", self.index, *below

    def append(self, field: str, *values: Json) -> None:
        """Add to the end of one of its lists."""
        self.draft.append(self.path(field), values)


def _add_arguments(container: _Container, flags: tuple[Argument, ...], kept: list[str]) -> None:
    """Append each flag that the container's arguments do not have."""
    for flag in flags:
        values = arguments.values_of(flag, raw.texts(container.raw, "args"))
        if not values:
            container.append("args", *arguments.spelled(flag))
        elif any(value != flag.value for value in values):
            kept.append(names.kept_argument(flag.name))


def _set_variables(container: _Container, variables: tuple[Json, ...], kept: list[str]) -> None:
    """Append each variable that the container does not set; they may refer to its own."""
    for variable in variables:
        found = _variable(container.raw, variable["name"])
        if found is None:
            container.append("env", variable)
        elif found.get("valueFrom") or _value(found) != _value(variable):
            kept.append(names.kept_variable(variable["name"]))


# --- The payload ----------------------------------------------------------------------------------


def _mount(container: _Container, mount: Json, path_env: str | None, kept: list[str]) -> None:
    """Mount the payload and put it on the search path, unless the user mounts something there."""
    where = mount["mountPath"]
    mounts = raw.items(container.raw, "volumeMounts")
    there = [one.get("name") for one in mounts if _folder(one.get("mountPath")) == where]
    devices = raw.items(container.raw, "volumeDevices")
    if not there and not any(_folder(one.get("devicePath")) == where for one in devices):
        container.append("volumeMounts", mount)
    elif mount["name"] not in there:
        kept.append(names.kept_mount(where))
        return
    if path_env is not None:
        _put_in_front(container, path_env, where, kept)


def _folder(path: Json) -> str:
    return path.rstrip("/") if isinstance(path, str) else ""


_SEPARATOR: Final = ":"


def _put_in_front(container: _Container, name: str, path: str, kept: list[str]) -> None:
    """Make `path` the first of a search-path variable's."""
    found = _variable(container.raw, name)
    if found is None:
        container.append("env", {"name": name, "value": path})
        return
    if found.get("valueFrom"):
        kept.append(names.kept_variable(name))
        return
    before = _value(found)
    if before.split(_SEPARATOR)[0] != path:
        index = next(i for i, one in enumerate(container.raw["env"]) if one is found)
        value = f"{path}{_SEPARATOR}{before}" if before else path
        container.draft.put(container.path("env", index, "value"), value)


# --- The node's IPC namespace ---------------------------------------------------------------------

_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def _share_ipc(draft: Draft, kept: list[str]) -> None:
    """Share the node's IPC namespace, unless the API server would refuse the pod for it.

    A pod's own ``hostIPC: false`` is no answer: the API server drops it before it asks a webhook.
    https://kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/
    """
    spec = raw.mapping(draft.pod, "spec")
    sysctls = raw.items(spec, "securityContext", "sysctls")
    named = [str(sysctl.get("name")).replace("/", ".") for sysctl in sysctls]
    needs_its_own = any(name.startswith(_IPC_SYSCTLS) for name in named)
    if needs_its_own or spec.get("hostUsers") is False or pods.is_for_windows(draft.pod):
        kept.append(names.KEPT_HOST_IPC)
    else:
        draft.put(("spec", "hostIPC"), True)


# --- Variables ------------------------------------------------------------------------------------


def _variable(container: Mapping[str, Json], name: str) -> Mapping[str, Json] | None:
    """The variable of that name; of several the last, which is the one that Kubernetes takes."""
    found = (v for v in reversed(raw.items(container, "env")) if v.get("name") == name)
    return next(found, None)


def _value(variable: Mapping[str, Json]) -> str:
    value = variable.get("value")
    return value if isinstance(value, str) else ""
