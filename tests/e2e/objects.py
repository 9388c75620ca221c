"""What the user of a cluster makes: workloads, a config, a Secret."""

import copy
from typing import Any

from e2e.images import CLIENT, PROVIDER

RESTRICTED: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What Pod Security `restricted` asks a container for."""
VIRTUAL_KEY = "vk-shop-0001"
PROVIDER_KEY = "sk-provider-0001"
PROMPT = "Write to jane.doe@example.com about card 4111 1111 1111 1111."
SECRETS = ("jane.doe@example.com", "4111 1111 1111 1111", "4111111111111111")


def keys(name: str = "shield-keys") -> Any:
    """The sidecar's Secret: the key that applications show, and the key that the provider wants."""
    content = {"VALID_VIRTUAL_KEYS": VIRTUAL_KEY, "UPSTREAM_API_KEY": PROVIDER_KEY}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": content}


def config(image: str, upstream: str, **spec: Any) -> Any:
    """The namespace owner's config."""
    fields = {
        "image": image,
        "secretName": "shield-keys",
        "env": [{"name": "UPSTREAM_BASE_URL", "value": upstream}],
        "application": {"baseUrlEnv": [{"name": "OPENAI_BASE_URL", "path": "/v1"}]},
        **spec,
    }
    return {
        "apiVersion": "llm-shield.io/v1alpha1",
        "kind": "ShieldSidecarConfig",
        "metadata": {"name": "shield"},
        "spec": {key: value for key, value in fields.items() if value is not None},
    }


def container(*arguments: str, **fields: Any) -> Any:
    """The application's container; without arguments it waits."""
    return {
        "name": "app",
        "image": CLIENT,
        "args": list(arguments),
        "env": [{"name": "OPENAI_API_KEY", "value": VIRTUAL_KEY}],
        "securityContext": copy.deepcopy(RESTRICTED),
        **fields,
    }


def template(name: str, *arguments: str, **spec: Any) -> Any:
    """A pod template."""
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "containers": [container(*arguments)],
            "terminationGracePeriodSeconds": 2,
            **spec,
        },
    }


def workload(kind: str, name: str, pod: Any, **spec: Any) -> Any:
    """A Deployment, StatefulSet or DaemonSet."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": pod, **spec},
    }


def job(name: str, pod: Any) -> Any:
    """A Job that does not try again."""
    pod["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": pod},
    }


def provider() -> list[Any]:
    """The stand-in provider and its Service, in a namespace of its own."""
    metadata = {"name": "provider", "namespace": "provider"}
    pod = {
        "metadata": {"labels": {"app": "provider"}},
        "spec": {
            "containers": [
                {
                    "name": "provider",
                    "image": PROVIDER,
                    "readinessProbe": {
                        "httpGet": {"path": "/", "port": 8080},
                        "periodSeconds": 1,
                    },
                }
            ],
            "terminationGracePeriodSeconds": 1,
        },
    }
    deployment = workload("Deployment", "provider", pod)
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "provider"}},
        deployment | {"metadata": metadata},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app": "provider"}, "ports": [{"port": 8080}]},
        },
    ]
