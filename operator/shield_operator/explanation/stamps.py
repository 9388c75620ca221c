"""What a pod tells of its own admission: the labels, annotations and mark that it got there."""

from dataclasses import dataclass
from enum import StrEnum

from shield_operator import names, pods, raw
from shield_operator.model import Json


class Standing(StrEnum):
    """How a pod that was admitted stands to what its config says now."""

    CURRENT = "current"
    OUTDATED = "outdated"
    UNKNOWN = "unknown"
    """Injected, but the present plan, or the pod's, is not known."""
    SKIPPED = "skipped"
    BARE = "bare"
    """Nothing was done about it."""


@dataclass(frozen=True, slots=True)
class Stamps:
    """What is on the pod. Anybody can write labels and annotations; the mark is in the sidecar."""

    config: str | None
    """``namespace/name``, by annotation, or by the mark where the annotation is lost."""
    generation: str | None
    fingerprint: str | None
    kept: tuple[str, ...]
    """What was left as the pod had it."""
    skipped: str | None
    """A skip's reason, by label."""
    sentence: str | None
    """The same as a sentence, by annotation."""
    mark: str | None
    """What the sidecar itself says; None where there is none, or only its metadata is known."""

    @classmethod
    def of(cls, pod: Json) -> "Stamps":
        """Read them from a pod, or from its metadata alone."""
        annotations = pods.annotations(pod)
        mark = pods.mark(pod)
        by_mark, _, hash_by_mark = (mark or "").partition("@")
        kept = annotations.get(names.KEPT_BY_USER_ANNOTATION, "")
        sentence = annotations.get(names.SKIP_REASON_ANNOTATION)
        return cls(
            config=annotations.get(names.INJECTED_CONFIG_ANNOTATION) or by_mark or None,
            generation=annotations.get(names.CONFIG_GENERATION_ANNOTATION),
            fingerprint=annotations.get(names.INJECTION_HASH_ANNOTATION) or hash_by_mark or None,
            kept=tuple(filter(None, kept.split(","))),
            skipped=pods.labels(pod).get(names.INJECTION_SKIPPED_LABEL) if sentence else None,
            sentence=sentence,
            mark=mark,
        )

    def standing(self, present: str | None) -> Standing:
        """How the pod stands, where `present` is the fingerprint that its config has now."""
        if self.sentence is not None and self.mark is None:
            return Standing.SKIPPED
        if self.config is None:
            return Standing.BARE
        if present is None or self.fingerprint is None:
            return Standing.UNKNOWN
        return Standing.CURRENT if present == self.fingerprint else Standing.OUTDATED


def present_fingerprint(config: Json) -> str | None:
    """The fingerprint that the operator has written into a config's status, for its present spec.

    The operator's own word: a plugin of another version might come to another one.
    """
    generation = raw.mapping(config, "metadata").get("generation")
    status = raw.mapping(config, "status")
    if status.get("observedGeneration") != generation:
        return None
    found = status.get("injectionHash")
    return found if isinstance(found, str) else None
