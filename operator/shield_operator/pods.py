"""What can be asked of a pod, which may be a template, partial, or plain wrong."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from shield_operator import names, raw
from shield_operator.model import Json


def labels(pod: Json) -> Mapping[str, str]:
    """``metadata.labels``."""
    return raw.strings(pod, "metadata", "labels")


def annotations(pod: Json) -> Mapping[str, str]:
    """``metadata.annotations``; an empty one counts as absent."""
    return {key: text for key, text in raw.strings(pod, "metadata", "annotations").items() if text}


def annotation(pod: Json, key: str) -> str | None:
    """One of them; an empty one counts as absent."""
    text = raw.mapping(pod, "metadata", "annotations").get(key)
    return text if text and isinstance(text, str) else None


def containers(pod: Json) -> list[Mapping[str, Json]]:
    """``spec.containers``."""
    return raw.items(pod, "spec", "containers")


def all_containers(pod: Json) -> Iterator[Mapping[str, Json]]:
    """``spec.initContainers`` and ``spec.containers``."""
    yield from raw.items(pod, "spec", "initContainers")
    yield from containers(pod)


def is_for_windows(pod: Json) -> bool:
    """Whether the pod says that it is for Windows: by its ``os``, or by its node selector."""
    spec = raw.mapping(pod, "spec")
    selected = raw.mapping(spec, "nodeSelector").get(names.OS_LABEL)
    return names.WINDOWS in (raw.mapping(spec, "os").get("name"), selected)


def application_container(pod: Json, configured: str | None) -> Json | None:
    """The container that the sidecar is there for; None where the one that is asked for is absent.

    The one that the pod's annotation names, else the config, else the one that ``kubectl logs``
    would take, else the first.
    """
    candidates = [c for c in containers(pod) if c.get("name") != names.SIDECAR]
    asked = annotation(pod, names.CONTAINER_ANNOTATION) or configured
    if asked is not None:
        return next((c for c in candidates if c.get("name") == asked), None)
    default = annotation(pod, names.DEFAULT_CONTAINER_ANNOTATION)
    first = candidates[0] if candidates else None
    return next((c for c in candidates if c.get("name") == default), first)


def keys_secret(pod: Json, configured: str | None) -> str | None:
    """The Secret of the sidecar's keys: the pod's own choice, or the config's."""
    return annotation(pod, names.KEYS_SECRET_ANNOTATION) or configured


def image_pull_secrets(pod: Json) -> tuple[str, ...]:
    """The names that the pod's annotation lists, trimmed, without empty ones and repetitions."""
    listed = (annotation(pod, names.IMAGE_PULL_SECRETS_ANNOTATION) or "").split(",")
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


def is_stamped(pod: Json, source: str, fingerprint: str) -> bool:
    """Whether the pod's annotations say that it was injected from this config with this plan."""
    found = (
        annotation(pod, names.INJECTED_CONFIG_ANNOTATION),
        annotation(pod, names.INJECTION_HASH_ANNOTATION),
    )
    return found == (source, fingerprint)


_MARK: Final = re.compile(r"[^/@]+/[^/@]+@[0-9a-f]{16}")


def mark(pod: Json) -> str | None:
    """What our own sidecar, if the pod has it, says of its origin: ``namespace/name@hash``.

    An init container counts only if it keeps running: one that ends before the application starts
    shields nothing, whatever it is called.
    """
    init = raw.items(pod, "spec", "initContainers")
    running = [c for c in init if c.get("restartPolicy") == "Always"] + containers(pod)
    return _mark_in(names.SIDECAR, running)


def stage_mark(pod: Json) -> str | None:
    """The same of our payload's stage: all that tells a pod which was wired without a sidecar."""
    return _mark_in(names.PAYLOAD_STAGE, raw.items(pod, "spec", "initContainers"))


def _mark_in(name: str, candidates: Iterable[Mapping[str, Json]]) -> str | None:
    ours = (container for container in candidates if container.get("name") == name)
    return next(filter(None, map(_mark_of, ours)), None)


def is_marked(container: Mapping[str, Json]) -> bool:
    """Whether a container is ours by what it says of itself, wherever it stands."""
    is_named = container.get("name") in (names.SIDECAR, names.PAYLOAD_STAGE)
    return is_named and _mark_of(container) is not None


def _mark_of(container: Mapping[str, Json]) -> str | None:
    for variable in raw.items(container, "env"):
        value = variable.get("value")
        if variable.get("name") == names.MARK_VARIABLE and isinstance(value, str):
            return value if _MARK.fullmatch(value) else None
    return None
