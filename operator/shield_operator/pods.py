"""What can be asked of a pod, which may be a template, partial, or plain wrong."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from shield_operator import names, raw
from shield_operator.model import Json


def labels(pod: Json) -> Mapping[str, str]:
    """``metadata.labels``."""
    return raw.strings(pod, "metadata", "labels")


def annotations(pod: Json) -> Mapping[str, str]:
    """``metadata.annotations``; an empty one counts as absent."""
    return {key: text for key, text in raw.strings(pod, "metadata", "annotations").items() if text}


def containers(pod: Json) -> list[Mapping[str, Json]]:
    """``spec.containers``."""
    return raw.items(pod, "spec", "containers")


def all_containers(pod: Json) -> Iterator[Mapping[str, Json]]:
    """``spec.initContainers`` and ``spec.containers``."""
    yield from raw.items(pod, "spec", "initContainers")
    yield from containers(pod)


def application_container(pod: Json, configured: str | None) -> Json | None:
    """The container that the sidecar is there for; None where the one that is asked for is absent.

    The one that the pod's annotation names, else the config, else the one that ``kubectl logs``
    would take, else the first.
    """
    candidates = [c for c in containers(pod) if c.get("name") != names.SIDECAR]
    given = annotations(pod)
    asked = given.get(names.CONTAINER_ANNOTATION) or configured
    if asked is not None:
        return next((c for c in candidates if c.get("name") == asked), None)
    default = given.get(names.DEFAULT_CONTAINER_ANNOTATION)
    first = candidates[0] if candidates else None
    return next((c for c in candidates if c.get("name") == default), first)


def image_pull_secrets(pod: Json) -> tuple[str, ...]:
    """The names that the pod's annotation lists, trimmed, without empty ones and repetitions."""
    listed = annotations(pod).get(names.IMAGE_PULL_SECRETS_ANNOTATION, "").split(",")
    return tuple(dict.fromkeys(filter(None, map(str.strip, listed))))


def controller(pod: Json) -> Mapping[str, Json] | None:
    """The owner reference of the controller that made this pod.

    https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
    """
    owners = raw.items(pod, "metadata", "ownerReferences")
    return next((owner for owner in owners if owner.get("controller") is True), None)


def outcome_labels_are_frozen(pod: Json) -> bool:
    """Whether the pod's outcome labels may only be added to.

    A ReplicaSet whose selector holds one of them would see its pod vanish when the label goes, and
    make another, without end.
    """
    return controller(pod) is not None


def described(pod: Json) -> str:
    """What to call the pod in a message: its name, or the stem of a name it has yet to get.

    One line of at most 253 characters, whatever a stranger has sent.
    """
    metadata = raw.mapping(pod, "metadata")
    name = str(metadata.get("name") or f"{metadata.get('generateName') or ''}…")
    return "".join(c if c.isprintable() else "?" for c in name[:253])


_MARK: Final = re.compile(r"[^/@]+/[^/@]+@[0-9a-f]{16}")


def mark(pod: Json) -> str | None:
    """What our own sidecar, if the pod has it, says of its origin: ``namespace/name@hash``.

    An init container counts only if it keeps running: one that ends before the application starts
    shields nothing, whatever it is called.
    """
    for container in raw.items(pod, "spec", "initContainers"):
        if container.get("restartPolicy") == "Always" and (found := _mark_of(container)):
            return found
    return next(filter(None, map(_mark_of, containers(pod))), None)


def is_marked(container: Mapping[str, Json]) -> bool:
    """Whether a container is our sidecar by what it says of itself, wherever it stands."""
    return _mark_of(container) is not None


def _mark_of(container: Mapping[str, Json]) -> str | None:
    if container.get("name") != names.SIDECAR:
        return None
    for variable in raw.items(container, "env"):
        value = variable.get("value")
        if variable.get("name") == names.MARK_VARIABLE and isinstance(value, str):
            return value if _MARK.fullmatch(value) else None
    return None
