"""The containers that a plan adds to a pod, and the volumes that they mount."""

from collections.abc import Iterator, Mapping
from typing import Final

from shield_operator import names
from shield_operator.model import (
    ImagePullPolicy,
    Json,
    Payload,
    SecretMount,
    ShieldConfig,
    quantity,
    shared,
)

_OWN_ENVIRONMENT: Final = (
    {"name": "SHIELD_FAILURE_MODE", "value": "FAIL_CLOSED"},
    {"name": "ENABLE_TIER3_ONNX_NER", "value": "false"},
    # Its socket needs a folder that a read-only root does not give.
    {"name": "ENABLE_EXT_PROC", "value": "false"},
)
_DEFAULT_REQUESTS: Final = {"cpu": "100m", "memory": "128Mi"}
_DEFAULT_LIMITS: Final = {"cpu": "500m", "memory": "256Mi"}
_PORT_FLAG: Final = "--port"

# --- The sidecar ----------------------------------------------------------------------------------


def sidecar(config: ShieldConfig, image: str, *, native: bool) -> Json:
    """The proxy's container, but for what only the pod can say."""
    container: dict[str, Json] = {
        "name": names.SIDECAR,
        "image": image,
        "imagePullPolicy": config.image_pull_policy.value,
    }
    if args := _args(config):
        container["args"] = args
    if native:
        container["restartPolicy"] = "Always"
    return container | {
        "ports": shared(
            [{"name": names.PORT_NAME, "containerPort": config.port, "protocol": "TCP"}]
        ),
        "env": _environment(config.env),
        "resources": _resources(config.resources or {}),
        **_PROBES,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": shared([*_MOUNTS, *map(_secret_volume_mount, config.secret_mounts)]),
        "securityContext": _security_context(config),
    }


def _args(config: ShieldConfig) -> list[str]:
    """The config's arguments, after the port where the image would take another one."""
    if config.port == names.PORT or next(_ports_of(config.args), None) is not None:
        return [*config.args]
    return [_PORT_FLAG, str(config.port), *config.args]


def other_port(config: ShieldConfig) -> str | None:
    """The port that ``args`` sends the image to, where that is not ``port``."""
    return next((port for port in _ports_of(config.args) if port != str(config.port)), None)


def _ports_of(args: tuple[str, ...]) -> Iterator[str]:
    for index, arg in enumerate(args):
        if arg == _PORT_FLAG:
            yield "".join(args[index + 1 : index + 2])
        elif arg.startswith(f"{_PORT_FLAG}="):
            yield arg.removeprefix(f"{_PORT_FLAG}=")


def _environment(own: tuple[Json, ...]) -> list[Json]:
    """The operator's variables, then the config's, which replace them by name."""
    replaced = {variable["name"] for variable in own}
    return [v for v in _OWN_ENVIRONMENT if v["name"] not in replaced] + [*own]


def _resources(given: Mapping[str, Mapping[str, Json]]) -> Json:
    """The config's amounts, completed for each resource by itself.

    A default limit stands only where the config gives that resource neither request nor limit, so
    that a request above it is not refused; a default request gives way to a smaller limit.
    """
    requests = {kind: str(value) for kind, value in given.get("requests", {}).items()}
    limits = {kind: str(value) for kind, value in given.get("limits", {}).items()}
    touched = requests.keys() | limits.keys()
    for kind, default in _DEFAULT_REQUESTS.items():
        limit = limits.get(kind, default)
        requests.setdefault(kind, default if quantity(default) <= quantity(limit) else limit)
    limits |= {kind: value for kind, value in _DEFAULT_LIMITS.items() if kind not in touched}
    return shared({"requests": requests, "limits": limits})


def _probe(path: str, *, period: int, failures: int) -> Json:
    return {
        "httpGet": {"path": path, "port": names.PORT_NAME},
        "periodSeconds": period,
        "failureThreshold": failures,
    }


_PROBES: Final = {
    "startupProbe": _probe("/livez", period=1, failures=60),
    "readinessProbe": _probe("/readyz", period=5, failures=3),
    "livenessProbe": _probe("/livez", period=10, failures=3),
}


# --- The payload's stage --------------------------------------------------------------------------


def stage(config: ShieldConfig, payload: Payload) -> Json:
    """The init container that copies the payload's files to where the application will see them."""
    container: dict[str, Json] = {
        "name": names.PAYLOAD_STAGE,
        "image": payload.image,
        "imagePullPolicy": ImagePullPolicy.IF_NOT_PRESENT.value,
    }
    if payload.command:
        container["command"] = [*payload.command]
    return container | {
        "resources": _resources({}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": shared(
            [{"name": names.PAYLOAD_VOLUME, "mountPath": payload.mount_path}, _NO_TOKEN_MOUNT]
        ),
        "securityContext": _security_context(config),
    }


def payload_mount(payload: Payload) -> Json:
    """The application's view of the payload."""
    return {"name": names.PAYLOAD_VOLUME, "mountPath": payload.mount_path, "readOnly": True}


# --- For both -------------------------------------------------------------------------------------


def _security_context(config: ShieldConfig) -> Json:
    """What Pod Security's ``restricted`` asks, said on the container itself.

    A permissive context of the pod is thereby not inherited.
    https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
    """
    chosen = config.security_context
    context: dict[str, Json] = {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": chosen.seccomp_profile or {"type": "RuntimeDefault"},
    }
    if chosen.run_as_user is not None:
        context["runAsUser"] = chosen.run_as_user
    if chosen.run_as_group is not None:
        context["runAsGroup"] = chosen.run_as_group
    return shared(context)


# --- Volumes --------------------------------------------------------------------------------------
# What the API server would fill in is written out, so that a volume that came back is known again.

_NO_TOKEN_MOUNT: Final = {
    "name": names.NO_TOKEN_VOLUME,
    "mountPath": names.TOKEN_MOUNT_PATH,
    "readOnly": True,
}

_MOUNTS: Final = ({"name": names.TMP_VOLUME, "mountPath": names.TMP_PATH}, _NO_TOKEN_MOUNT)
"""The sidecar's, beside its Secrets'."""

TMP_VOLUME: Final = {"name": names.TMP_VOLUME, "emptyDir": {"sizeLimit": "64Mi"}}
"""A place to write under a read-only root."""

NO_TOKEN_VOLUME: Final = {"name": names.NO_TOKEN_VOLUME, "emptyDir": {"sizeLimit": "1Mi"}}
"""Nothing, where the service account's token would be mounted."""


def secret_volume(mount: SecretMount) -> Json:
    """The files of a Secret; the pod waits while the Secret is missing."""
    source: dict[str, Json] = {"secretName": mount.secret_name, "defaultMode": 0o644}
    if mount.items:
        source["items"] = [*mount.items]
    return {"name": _secret_volume_name(mount), "secret": source}


def _secret_volume_mount(mount: SecretMount) -> Json:
    return {"name": _secret_volume_name(mount), "mountPath": mount.mount_path, "readOnly": True}


def _secret_volume_name(mount: SecretMount) -> str:
    return f"{names.SECRET_VOLUME_PREFIX}{mount.name}"


def payload_volume(payload: Payload, *, as_image: bool) -> Json:
    """Where the payload's files are: in the image itself, or in a folder that the stage fills.

    https://kubernetes.io/docs/tasks/configure-pod-container/image-volumes/
    """
    if as_image:
        source = {"reference": payload.image, "pullPolicy": ImagePullPolicy.IF_NOT_PRESENT.value}
        return {"name": names.PAYLOAD_VOLUME, "image": source}
    return {"name": names.PAYLOAD_VOLUME, "emptyDir": {}}
