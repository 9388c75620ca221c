"""Pods, configs and settings for tests: the smallest that work, with what a test wants on top."""

import copy
from collections.abc import Iterable
from typing import Any

from shield_operator.decision import Decision, decide
from shield_operator.model import SecretState, ShieldConfig, parse
from shield_operator.plan import ClusterVersion, Plan, compile_plan
from shield_operator.selection import ConfigIndex
from shield_operator.settings import Settings

IMAGE = f"example.com/llm-shield-proxy:1.7.0@sha256:{'0' * 64}"
PAYLOAD_IMAGE = f"example.com/connector:2.1.0@sha256:{'1' * 64}"
NAMESPACE = "shop"
CURRENT = ClusterVersion(1, 36)


STRICT: dict[str, Any] = {
    "name": "web",
    "image": "example.com/web:1",
    "resources": {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    },
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}
"""A container that Pod Security "restricted" admits, and a quota."""


def settings(**environment: str) -> Settings:
    return Settings.from_env(environment)


def config(name: str = "shield", namespace: str = NAMESPACE, **spec: Any) -> dict[str, Any]:
    """A valid config; a field given as None is left out."""
    fields = {"image": IMAGE, "secretName": "keys", **spec}
    return {
        "apiVersion": "llm-shield.io/v1alpha1",
        "kind": "ShieldSidecarConfig",
        "metadata": {"name": name, "namespace": namespace, "generation": 1},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def pod(
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: str | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A pod of one container, as a ReplicaSet would make it: without name and namespace."""
    metadata: dict[str, Any] = {"generateName": "web-", "labels": labels or {}}
    if annotations:
        metadata["annotations"] = annotations
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u", "controller": True}
        ]
    containers = [{"name": "web", "image": "example.com/web:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **copy.deepcopy(spec)},
    }


def index(*configs: dict[str, Any], with_settings: Settings | None = None) -> ConfigIndex:
    return ConfigIndex.of(with_settings or settings(), CURRENT, configs)


def plan(
    version: ClusterVersion = CURRENT, with_settings: Settings | None = None, **spec: Any
) -> Plan:
    """The plan of a valid config."""
    parsed = parse(config(**spec))
    assert isinstance(parsed, ShieldConfig), parsed
    compiled = compile_plan(parsed, with_settings or settings(), version)
    assert isinstance(compiled, Plan), compiled
    return compiled


def decided(
    a_pod: dict[str, Any],
    configs: Iterable[dict[str, Any]] | None = None,
    *,
    namespace_labels: dict[str, str] | None = None,
    secrets: dict[str, SecretState] | None = None,
    with_settings: Settings | None = None,
) -> Decision:
    """What is decided about a pod in `NAMESPACE`, where one valid config is unless others are."""
    chosen = with_settings or settings()
    configs = [config()] if configs is None else configs
    found = index(*configs, with_settings=chosen)
    return decide(a_pod, NAMESPACE, namespace_labels, secrets or {}, found, chosen)
