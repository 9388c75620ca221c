"""The pods that a document is about: itself, those of its template, those of a list's items.

https://kubernetes.io/docs/concepts/workloads/
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from shield_operator import names, pods, raw
from shield_operator.model import Json

_TEMPLATE: Final = ("spec", "template")
_APPS: Final = ("apps", "extensions")


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where a kind has its pod, and what kind of controller makes pods of it."""

    groups: tuple[str, ...]
    path: tuple[str, ...] = _TEMPLATE
    maker: str | None = None


_SHAPES: Final[Mapping[str, _Shape]] = {
    "Pod": _Shape(("",), ()),
    "PodTemplate": _Shape(("",), ("template",)),
    "ReplicationController": _Shape(("",), maker="ReplicationController"),
    "Deployment": _Shape(_APPS, maker="ReplicaSet"),
    "ReplicaSet": _Shape(_APPS, maker="ReplicaSet"),
    "StatefulSet": _Shape(_APPS, maker="StatefulSet"),
    "DaemonSet": _Shape(_APPS, maker="DaemonSet"),
    "Job": _Shape(("batch",), maker="Job"),
    "CronJob": _Shape(("batch",), ("spec", "jobTemplate", *_TEMPLATE), maker="Job"),
}


@dataclass(frozen=True, slots=True)
class Workload:
    """A built-in kind of object that is a pod, or makes pods of a template."""

    kind: str
    namespace: str | None
    """As the object says."""
    name: str
    maker: str | None
    """The kind of the controller that makes its pods; None for a pod itself."""
    pod: Json
    """The pod, or the template: the part of the document itself, for the caller to change."""


@dataclass(frozen=True, slots=True)
class Object:
    """An object of a document, which may be one of a list's items."""

    group: str
    """The API group; empty for the core one."""
    kind: str
    content: Json

    @property
    def metadata(self) -> Mapping[str, Json]:
        """Its metadata."""
        return raw.mapping(self.content, "metadata")


def objects(value: Json) -> Iterator[Object]:
    """The object, or those of a list of any kind, however deep."""
    yield from _objects(value, "", "")


def _objects(value: Json, version: str, kind: str) -> Iterator[Object]:
    """Of an item of a ``PodList``, the list says that it is a Pod."""
    given = raw.strings(value)
    version, kind = given.get("apiVersion", version), given.get("kind", kind)
    items = raw.mapping(value).get("items")
    if not kind.endswith("List") or not isinstance(items, list):
        yield Object(version.rpartition("/")[0], kind, value)
        return
    for item in items:
        yield from _objects(item, version, kind.removesuffix("List"))


def workloads(value: Json) -> Iterator[Workload]:
    """The workloads of a document."""
    for each in objects(value):
        shape = _SHAPES.get(each.kind)
        if shape is None or each.group not in shape.groups:
            continue
        pod = each.content
        for key in shape.path:
            pod = pod.get(key) if isinstance(pod, dict) else None
        if isinstance(pod, dict):
            yield Workload(
                kind=each.kind,
                namespace=raw.strings(each.metadata).get("namespace") or None,
                name=pods.described(each.content),
                maker=shape.maker,
                pod=pod,
            )


def configs(value: Json) -> Iterator[Json]:
    """The ``ShieldSidecarConfig`` resources of a document."""
    for each in objects(value):
        if each.kind == names.KIND and each.group == names.API_GROUP:
            yield each.content


def namespaces(value: Json) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The namespaces of a document, each with its labels."""
    for each in objects(value):
        if each.kind == "Namespace" and not each.group:
            yield str(each.metadata.get("name")), raw.strings(each.metadata, "labels")
