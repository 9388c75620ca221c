"""The pods of every size."""

from typing import Any, Final

LABEL: Final = {"app": "web", "llm-shield.io/inject": "true"}
"""The proxy's own webhook asks for the label on each pod; the others do not mind."""

SERIES: Final = (375, 750, 1500, 3000, 6000)
"""Variables, for how the time grows with the pod."""


def plain() -> Any:
    """One container, as a Deployment's ReplicaSet makes it."""
    return _pod([_container("web")])


def many_containers() -> Any:
    """Twenty containers."""
    return _pod([_container(f"web-{number}") for number in range(20)])


def many_variables(count: int = 1500) -> Any:
    """One container with this many variables."""
    container = _container("web")
    container["env"] = [{"name": f"V{n}", "value": f"{n:040}"} for n in range(count)]
    return _pod([container])


def large_managed_fields() -> Any:
    """1 MiB of managed fields, as many writers leave them."""
    pod = plain()
    fields: Any = {
        f'k:{{"name":"V{number:06}"}}': {".": {}, "f:value": {}} for number in range(21_400)
    }
    container = {'k:{"name":"web"}': {"f:env": {".": {}, **fields}}}
    pod["metadata"]["managedFields"] = [
        {
            "manager": "kubectl",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:containers": container}},
        }
    ]
    return pod


SIZES: Final = {
    "plain": plain,
    "20 containers": many_containers,
    "1,500 variables": many_variables,
    "1 MiB of managedFields": large_managed_fields,
}


def _pod(containers: list[Any]) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "web-7d9c5b8f6d-", "labels": dict(LABEL)},
        "spec": {"containers": containers},
    }


def _container(name: str) -> Any:
    return {
        "name": name,
        "image": "example.com/web:1",
        "env": [{"name": "MODE", "value": "production"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
