"""`compile_plan`: a config, the settings and the cluster's version become a `Plan`.

The plan's canonical JSON is hashed to the *fingerprint*, which pods carry as
``llm-shield.io/injection-hash``: the same config must give the same bytes within a version of the
operator, whatever the order of its keys.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from shield_operator import names
from shield_operator.model import (
    Application,
    Argument,
    ConfigRef,
    Json,
    Mode,
    Payload,
    Problems,
    Scheduling,
    ShieldConfig,
)
from shield_operator.plan import containers
from shield_operator.plan.version import ClusterVersion, has_image_volumes, has_native_sidecars
from shield_operator.settings import Settings


@dataclass(frozen=True, slots=True)
class Wiring:
    """What is set on the application's container, and on the pod for its sake."""

    container: str | None = None
    """The container's name, where the config knows it."""
    args: tuple[Argument, ...] = ()
    env: tuple[Json, ...] = ()
    """Variables with a value each; the sidecar's address is among them."""
    host_ipc: bool = False
    mount: Json = None
    """The payload's mount."""
    path_env: str | None = None
    """The search-path variable that the payload's folder is put in front of."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A template of everything that is added to a pod. Its JSON is shared: never change it."""

    source: str
    """``namespace/name`` of the config, for the mark and the annotation."""
    generation: int | None
    fingerprint: str
    """16 hex digits: see `_fingerprint`."""
    secret_name: str | None
    sidecar: Json
    """The container, but for the mark and the Secret; None where there is only wiring."""
    native: bool
    """Whether the sidecar is an init container that keeps running, or a plain container."""
    port: int
    stage: Json
    """The init container that stages the payload, or None."""
    volumes: tuple[Json, ...]
    mounted_secrets: tuple[str, ...]
    image_pull_secrets: tuple[str, ...]
    wiring: Wiring
    scheduling: Scheduling

    @property
    def mark(self) -> str:
        """The value of the sidecar's `names.MARK_VARIABLE`."""
        return f"{self.source}@{self.fingerprint}"

    def secrets(self, keys: str | None) -> tuple[str, ...]:
        """The Secrets that a pod waits for whose sidecar takes its keys from `keys`."""
        return tuple(dict.fromkeys([*([keys] if keys else []), *self.mounted_secrets]))


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
    image = config.image or settings.sidecar_image
    native = has_native_sidecars(config.mode, settings.feature_gates, version)
    problems = tuple(_problems(config, image, version, native=native))
    if problems:
        return problems

    has_sidecar = config.mode is not Mode.NONE
    payload, mounts = config.payload, config.secret_mounts if has_sidecar else ()
    as_image = has_image_volumes(settings.feature_gates, version)
    stage = containers.stage(config, payload) if payload and not as_image else None
    volumes = [containers.TMP_VOLUME] if has_sidecar else []
    volumes += [containers.NO_TOKEN_VOLUME] if has_sidecar or stage else []
    volumes += map(containers.secret_volume, mounts)
    volumes += [containers.payload_volume(payload, as_image=as_image)] if payload else []
    secret_name = config.secret_name or settings.sidecar_secret_name
    plan = Plan(
        source=str(config.ref),
        generation=config.generation,
        fingerprint="",
        secret_name=secret_name if has_sidecar else None,
        sidecar=containers.sidecar(config, str(image), native=native) if has_sidecar else None,
        native=native and has_sidecar,
        port=config.port,
        stage=stage,
        volumes=tuple(volumes),
        mounted_secrets=tuple(mount.secret_name for mount in mounts),
        image_pull_secrets=config.image_pull_secrets,
        wiring=_wiring(config.application or Application(), payload, config.port)
        if config.application or payload
        else _UNWIRED,
        scheduling=config.scheduling or _ANYWHERE,
    )
    return replace(plan, fingerprint=_fingerprint(plan))


_ANYWHERE: Final = Scheduling(node_selector={})
_UNWIRED: Final = Wiring()


def _problems(
    config: ShieldConfig, image: str | None, version: ClusterVersion, *, native: bool
) -> Iterator[str]:
    if image is None and config.mode is not Mode.NONE:
        yield "spec.image is missing, and the operator has no default: give it"
    if config.mode is Mode.NATIVE and not native:
        yield (
            f"spec.mode is Native, but by its version ({version}) or K8S_FEATURE_GATES this "
            "cluster has no native sidecars: use Auto or Container"
        )
    placement = config.scheduling or _ANYWHERE
    is_for_linux = config.mode is not Mode.NONE or config.payload is not None
    if is_for_linux and placement.node_selector.get(names.OS_LABEL) == names.WINDOWS:
        yield (
            "spec.scheduling.nodeSelector sends the pods to Windows nodes, and what is added to "
            "them is for Linux: remove it"
        )
    elsewhere = containers.other_port(config)
    if elsewhere is not None and config.mode is not Mode.NONE:
        there = f"to port {elsewhere!r}" if elsewhere else "to no port"
        yield f"spec.args sends the sidecar {there}, and spec.port is {config.port}: set only that"


def _wiring(application: Application, payload: Payload | None, port: int) -> Wiring:
    urls = (
        {"name": url.name, "value": f"http://127.0.0.1:{port}{url.path}"}
        for url in application.base_url_env
    )
    return Wiring(
        container=application.container,
        args=application.args,
        env=(*urls, *application.env),  # in this order, so that these may refer to those
        host_ipc=application.host_ipc,
        mount=containers.payload_mount(payload) if payload else None,
        path_env=payload.path_env if payload else None,
    )


_IDENTITY: Final = ("source", "generation", "fingerprint")
"""What of a plan tells where it comes from; all else is what it does, and is hashed."""


def _fingerprint(plan: Plan) -> str:
    """The first 16 hex digits of the SHA-256 of the canonical JSON of what the plan does.

    What is empty plays no part in it, so that a new field does not make every pod outdated.
    """
    content = {key: part for key, part in asdict(plan).items() if key not in _IDENTITY}
    for key in ("wiring", "scheduling"):
        content[key] = _without_empty(content[key])
    canonical = json.dumps(
        _without_empty(content), sort_keys=True, separators=(",", ":"), ensure_ascii=True
    )
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _without_empty(parts: Mapping[str, Json]) -> dict[str, Json]:
    return {name: part for name, part in parts.items() if part}
