"""`compile_plan`: a config, the settings and the cluster's version become a `Plan`.

The plan's canonical JSON is hashed to the *fingerprint*, which pods carry as
``llm-shield.io/injection-hash``: the same config must give the same bytes within a version of the
operator, whatever the order of its keys.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
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
    secret_name: str | None
    sidecar: Json
    """The container, but for the mark and the Secret; None where there is only wiring."""
    native: bool
    """Whether the sidecar is an init container that keeps running, or a plain container."""
    stage: Json
    """The init container that stages the payload, or None."""
    volumes: tuple[Json, ...]
    mounted_secrets: tuple[str, ...]
    image_pull_secrets: tuple[str, ...]
    wiring: Wiring
    scheduling: Scheduling
    port: int
    runs_as_user: bool
    """Whether the config says which user the added containers run as."""
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
    image = config.image or settings.sidecar_image
    native = has_native_sidecars(config.mode, settings.feature_gates, version)
    problems = tuple(_problems(config, image, version, native=native))
    if problems:
        return problems

    sidecar, secret_name, mounts = None, None, config.secret_mounts
    if config.mode is Mode.NONE or image is None:
        native, mounts = False, ()
    else:
        sidecar = containers.sidecar(config, image, native=native)
        secret_name = config.secret_name or settings.sidecar_secret_name
    stage = None
    as_image = has_image_volumes(settings.feature_gates, version)
    if config.payload is not None and not as_image:
        stage = containers.stage(config, config.payload)
    volumes = [containers.TMP_VOLUME] if sidecar else []
    volumes += [containers.NO_TOKEN_VOLUME] if sidecar or stage else []
    volumes += map(containers.secret_volume, mounts)
    if config.payload is not None:
        volumes.append(containers.payload_volume(config.payload, as_image=as_image))

    wiring = _wiring(config.application or Application(), config.payload, config.port)
    scheduling = config.scheduling or _ANYWHERE
    content = {"secretName": secret_name, "sidecar": sidecar, "volumes": volumes} | _given(
        stage=stage,
        imagePullSecrets=config.image_pull_secrets,
        application=_given(
            container=wiring.container,
            args=[[argument.name, argument.value] for argument in wiring.args],
            env=wiring.env,
            hostIPC=wiring.host_ipc,
            mount=wiring.mount,
            pathEnv=wiring.path_env,
        ),
        scheduling=_given(
            nodeSelector=scheduling.node_selector,
            tolerations=scheduling.tolerations,
            affinity=scheduling.affinity,
        ),
    )
    return Plan(
        source=str(config.ref),
        generation=config.generation,
        secret_name=secret_name,
        sidecar=sidecar,
        native=native,
        stage=stage,
        volumes=tuple(volumes),
        mounted_secrets=tuple(mount.secret_name for mount in mounts),
        image_pull_secrets=config.image_pull_secrets,
        wiring=wiring,
        scheduling=scheduling,
        port=config.port,
        runs_as_user=config.security_context.run_as_user is not None,
        fingerprint=fingerprint(content),
    )


_ANYWHERE: Final = Scheduling(node_selector={})


def _problems(
    config: ShieldConfig, image: str | None, version: ClusterVersion, *, native: bool
) -> Iterator[str]:
    if image is None and config.mode is not Mode.NONE:
        yield "spec.image is missing, and the operator has no default: give it"
    if config.mode is Mode.NATIVE and not native:
        yield (
            f"spec.mode is Native, but this cluster ({version}) has no native sidecars: "
            "use Auto or Container"
        )
    if (elsewhere := containers.other_port(config)) is not None:
        yield (
            f"spec.args sends the sidecar to port {elsewhere!r}, and spec.port is {config.port}: "
            "set spec.port alone"
        )


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


def _given(**parts: Json) -> dict[str, Json]:
    """The parts that say anything: what is not there must not play a part in the fingerprint."""
    return {name: part for name, part in parts.items() if part}


def fingerprint(content: Json) -> str:
    """The first 16 hex digits of the SHA-256 of the content's canonical JSON."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]
