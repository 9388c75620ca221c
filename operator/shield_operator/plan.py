"""From a config to an injection plan: what to add to a pod, before any pod is known.

`compile_plan` joins a config, the operator's settings and the cluster's version. It runs once for
each config, not once for each pod. The plan's canonical JSON is hashed to the *fingerprint*, which
pods carry as ``llm-shield.io/injection-hash``: the same config must give the same bytes within a
version of the operator, whatever the order of its keys.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shield_operator import names
from shield_operator.model import (
    ConfigRef,
    Json,
    Mode,
    Problems,
    ShieldConfig,
    quantity,
)
from shield_operator.settings import FeatureGate, Settings


@dataclass(frozen=True, slots=True, order=True)
class ClusterVersion:
    """A Kubernetes release, as far as features depend on it."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> "ClusterVersion":
        """Read ``v1.36.3``, ``1.34`` or ``1.29+``.

        Raises:
            ValueError: where it is none.
        """
        match = re.match(r"v?(\d{1,3})\.(\d{1,3})(?!\d)", text)
        if match is None:
            raise ValueError(f"{text!r} is not a Kubernetes version, such as '1.34'")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST_SUPPORTED: Final = ClusterVersion(1, 30)
"""The first release whose match conditions are stable; assumed until the cluster has told."""

SIDECARS_EXIST: Final = ClusterVersion(1, 29)
"""From here on the API server knows native sidecars, unless the feature gate is off.

https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
"""

SIDECARS_EVERYWHERE: Final = ClusterVersion(1, 32)
"""From here on every kubelet knows them too: it may be three minor versions behind the API server.

https://kubernetes.io/releases/version-skew-policy/#kubelet
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """A template of everything that is added to a pod. Its JSON is shared: never change it."""

    source: str
    """``namespace/name`` of the config, for the mark and the annotation."""
    generation: int | None
    secret_name: str | None
    native: bool
    """Whether the sidecar is an init container that keeps running, or a plain container."""
    sidecar: Json
    """The container, but for the mark and the Secret."""
    volumes: tuple[Json, ...]
    port: int
    runs_as_user: bool
    """Whether the config says which user the sidecar runs as."""
    fingerprint: str
    """16 hex digits."""

    @property
    def mark(self) -> str:
        """The value of the sidecar's `names.MARK_VARIABLE`."""
        return f"{self.source}@{self.fingerprint}"


def settings_config(settings: Settings) -> ShieldConfig | None:
    """The config that the settings alone make, where they name an image (design: last resort)."""
    if settings.sidecar_image is None:
        return None
    namespace, name = names.SETTINGS_CONFIG.split("/")
    return ShieldConfig(ref=ConfigRef(namespace, name))


def compile_plan(
    config: ShieldConfig, settings: Settings, version: ClusterVersion
) -> Plan | Problems:
    """The plan of a config, or everything that keeps it from working in this cluster."""
    problems: list[str] = []
    image = config.image or settings.sidecar_image
    if image is None:
        problems.append("spec.image is missing, and the operator has no default: give it")
    native = _is_native(config.mode, settings.feature_gates, version)
    if config.mode is Mode.NATIVE and not native:
        problems.append(
            f"spec.mode is Native, but this cluster ({version}) has no native sidecars: "
            "use Auto or Container"
        )
    if problems:
        return tuple(problems)

    sidecar = _sidecar(config, image, native=native)
    volumes = _volumes()
    secret_name = config.secret_name or settings.sidecar_secret_name
    return Plan(
        source=str(config.ref),
        generation=config.generation,
        secret_name=secret_name,
        native=native,
        sidecar=sidecar,
        volumes=volumes,
        port=config.port,
        runs_as_user=config.security_context.run_as_user is not None,
        fingerprint=fingerprint(
            {"secretName": secret_name, "sidecar": sidecar, "volumes": volumes}
        ),
    )


def fingerprint(content: Json) -> str:
    """The first 16 hex digits of the SHA-256 of the content's canonical JSON."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _is_native(mode: Mode, gates: Mapping[FeatureGate, bool], version: ClusterVersion) -> bool:
    gate = gates.get(FeatureGate.SIDECAR_CONTAINERS)
    if mode is Mode.CONTAINER or gate is False or version < SIDECARS_EXIST:
        return False
    return mode is Mode.NATIVE or gate is True or version >= SIDECARS_EVERYWHERE


# --- The sidecar container ------------------------------------------------------------------------

_OWN_ENVIRONMENT: Final = (
    {"name": "SHIELD_FAILURE_MODE", "value": "FAIL_CLOSED"},
    {"name": "ENABLE_TIER3_ONNX_NER", "value": "false"},
    # Its socket needs a folder that a read-only root does not give.
    {"name": "ENABLE_EXT_PROC", "value": "false"},
)
_DEFAULT_REQUESTS: Final = {"cpu": "100m", "memory": "128Mi"}
_DEFAULT_LIMITS: Final = {"cpu": "500m", "memory": "256Mi"}
_IMAGE_PORT: Final = 8000
"""Where the image listens unless it is told otherwise."""


def _sidecar(config: ShieldConfig, image: str | None, *, native: bool) -> Json:
    container: dict[str, Json] = {
        "name": names.SIDECAR,
        "image": image,
        "imagePullPolicy": config.image_pull_policy.value,
    }
    if config.port != _IMAGE_PORT:
        container["args"] = ["--port", str(config.port)]
    if native:
        container["restartPolicy"] = "Always"
    return container | {
        "ports": [{"name": names.PORT_NAME, "containerPort": config.port, "protocol": "TCP"}],
        "env": _environment(config.env),
        "resources": _resources(config.resources or {}),
        "startupProbe": _probe("/livez", period=1, failures=60),
        "readinessProbe": _probe("/readyz", period=5, failures=3),
        "livenessProbe": _probe("/livez", period=10, failures=3),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": names.TMP_VOLUME, "mountPath": "/tmp"},  # noqa: S108  # in the container
            {
                "name": names.NO_TOKEN_VOLUME,
                "mountPath": names.TOKEN_MOUNT_PATH,
                "readOnly": True,
            },
        ],
        "securityContext": _security_context(config),
    }


def _environment(own: tuple[Json, ...]) -> list[Json]:
    """The operator's variables, then the config's, which replace them by name."""
    replaced = {variable["name"] for variable in own}
    return [dict(v) for v in _OWN_ENVIRONMENT if v["name"] not in replaced] + [*own]


def _resources(given: Mapping[str, Mapping[str, Json]]) -> dict[str, dict[str, Json]]:
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
    return {"requests": requests, "limits": limits}


def _probe(path: str, *, period: int, failures: int) -> Json:
    return {
        "httpGet": {"path": path, "port": names.PORT_NAME},
        "periodSeconds": period,
        "failureThreshold": failures,
    }


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
    return context


def _volumes() -> tuple[Json, ...]:
    """A place to write under a read-only root, and nothing where a token would be mounted."""
    return (
        {"name": names.TMP_VOLUME, "emptyDir": {"sizeLimit": "64Mi"}},
        {"name": names.NO_TOKEN_VOLUME, "emptyDir": {"sizeLimit": "1Mi"}},
    )
