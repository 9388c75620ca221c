"""What a pod carries afterwards: the labels and annotations that tell what became of it."""

from collections.abc import Iterable, Mapping

from shield_operator import names, pods, raw
from shield_operator.decision import SkipReason
from shield_operator.model import Json
from shield_operator.plan import Plan


def stamp_injected(pod: Json, plan: Plan, kept: Iterable[str]) -> None:
    """Say which plan was applied, and what was left as the user had it."""
    stamps = {
        names.INJECTED_CONFIG_ANNOTATION: plan.source,
        names.INJECTION_HASH_ANNOTATION: plan.fingerprint,
    }
    if plan.generation is not None:
        stamps[names.CONFIG_GENERATION_ANNOTATION] = str(plan.generation)
    unchanged = ",".join(dict.fromkeys(kept))
    if pods.is_stamped(pod, plan.source, plan.fingerprint):
        # The second time, what others have changed meanwhile would count as the user's too.
        unchanged = pods.annotations(pod).get(names.KEPT_BY_USER_ANNOTATION, "")
    if unchanged:
        stamps[names.KEPT_BY_USER_ANNOTATION] = unchanged
    if names.DEFAULT_CONTAINER_ANNOTATION not in pods.annotations(pod):
        application = pods.application_container(pod, plan.wiring.container)
        if application is not None:
            stamps[names.DEFAULT_CONTAINER_ANNOTATION] = str(application.get("name"))
    _set_label(pod, names.INJECTED_LABEL, names.INJECTED_VALUE)
    _remove_label(pod, names.INJECTION_SKIPPED_LABEL)
    _annotate(pod, stamps, instead_of=(*names.INJECTED_ANNOTATIONS, names.SKIP_REASON_ANNOTATION))


def stamp_skipped(pod: Json, reason: SkipReason, sentence: str) -> None:
    """Say why nothing was applied."""
    _set_label(pod, names.INJECTION_SKIPPED_LABEL, reason.value)
    _remove_label(pod, names.INJECTED_LABEL)
    stamps = {names.SKIP_REASON_ANNOTATION: sentence}
    _annotate(pod, stamps, instead_of=names.INJECTED_ANNOTATIONS)


def _set_label(pod: Json, key: str, value: str) -> None:
    labels = raw.object_at(raw.object_at(pod, "metadata"), "labels")
    if key in labels and pods.outcome_labels_are_frozen(pod):
        return
    labels[key] = value


def _remove_label(pod: Json, key: str) -> None:
    if not pods.outcome_labels_are_frozen(pod):
        raw.object_at(raw.object_at(pod, "metadata"), "labels").pop(key, None)


def _annotate(pod: Json, stamps: Mapping[str, str], *, instead_of: tuple[str, ...]) -> None:
    annotations = raw.object_at(raw.object_at(pod, "metadata"), "annotations")
    for key in instead_of:
        annotations.pop(key, None)
    annotations.update(stamps)
