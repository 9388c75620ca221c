"""What is set on the application's container so that it uses the shield.

What the user has set stays: each function here returns the names of what was left so. A value that
is equal to ours counts as ours, since it is after the first of two applications.
"""

import copy
from collections.abc import Iterator
from typing import Final

from shield_operator import pods, raw
from shield_operator.model import Argument, Json
from shield_operator.plan import Wiring


def wire(pod: Json, wiring: Wiring) -> list[str]:
    """Wire the pod's application container, where there is anything to do."""
    kept: list[str] = []
    container = pods.application_container(pod, wiring.container)
    if container is not None:
        kept += _add_arguments(container, wiring.args)
        if wiring.mount is not None:
            kept += _add_mount(container, wiring.mount)
        if wiring.mount is not None and wiring.path_env is not None:
            kept += _put_in_front(container, wiring.path_env, wiring.mount["mountPath"])
        kept += _set_variables(container, wiring.env)
    if wiring.host_ipc:
        spec = raw.object_at(pod, "spec")
        if spec.get("hostIPC") is None:
            spec["hostIPC"] = True
        elif spec["hostIPC"] is not True:
            kept.append("hostIPC")
    return kept


def _add_arguments(container: Json, arguments: tuple[Argument, ...]) -> Iterator[str]:
    """Append each flag that the container's arguments do not have."""
    for argument in arguments:
        values = [*_values_of(argument, raw.texts(container, "args"))]
        if not values:
            own = [argument.name] if argument.value is None else [argument.name, argument.value]
            raw.list_at(container, "args").extend(own)
        elif any(value != argument.value for value in values):
            yield f"arg:{argument.name}"


def _values_of(argument: Argument, args: list[str]) -> Iterator[str | None]:
    """The values that this flag is given, as ``--flag value`` or ``--flag=value``."""
    for index, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name != argument.name:
            continue
        if equals:
            yield value
        elif argument.value is None:
            yield None  # what follows is another argument
        else:
            yield "".join(args[index + 1 : index + 2])


def _set_variables(container: Json, variables: tuple[Json, ...]) -> Iterator[str]:
    """Append each variable that the container does not set; they may refer to its own."""
    for variable in variables:
        found = _variable(container, variable["name"])
        if found is None:
            raw.list_at(container, "env").append(copy.deepcopy(variable))
        elif found.get("valueFrom") or _value(found) != _value(variable):
            yield f"env:{variable['name']}"


def _add_mount(container: Json, mount: Json) -> Iterator[str]:
    """Mount the payload, where the user mounts nothing in that place."""
    where = mount["mountPath"]
    mounts = raw.items(container, "volumeMounts")
    there = [one.get("name") for one in mounts if _folder(one.get("mountPath")) == where]
    devices = raw.items(container, "volumeDevices")
    if not there and not any(_folder(one.get("devicePath")) == where for one in devices):
        raw.list_at(container, "volumeMounts").append(copy.deepcopy(mount))
    elif mount["name"] not in there:
        yield f"mount:{where}"


def _folder(path: Json) -> str:
    return path.rstrip("/") if isinstance(path, str) else ""


_SEPARATOR: Final = ":"


def _put_in_front(container: Json, name: str, path: str) -> Iterator[str]:
    """Make `path` the first of a search-path variable's."""
    found = _variable(container, name)
    if found is None:
        raw.list_at(container, "env").append({"name": name, "value": path})
    elif found.get("valueFrom"):
        yield f"env:{name}"
    elif not (before := _value(found)):
        found["value"] = path
    elif before.split(_SEPARATOR)[0] != path:
        found["value"] = f"{path}{_SEPARATOR}{before}"


def _variable(container: Json, name: str) -> Json | None:
    """The variable of that name; of several the last, which is the one that Kubernetes takes."""
    found = (v for v in reversed(raw.items(container, "env")) if v.get("name") == name)
    return next(found, None)


def _value(variable: Json) -> str:
    value = variable.get("value")
    return value if isinstance(value, str) else ""
