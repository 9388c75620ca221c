"""What a pod carries afterwards: the labels and annotations that tell what became of it."""

from collections.abc import Iterable, Mapping
from typing import Final

from shield_operator import names, pods, raw
from shield_operator.decision import SkipReason
from shield_operator.patch.draft import Draft
from shield_operator.plan import Plan


def stamp_injected(draft: Draft, plan: Plan, kept: Iterable[str]) -> None:
    """Say which plan was applied, and what was left as the user had it."""
    pod = draft.pod
    stamps = {
        names.INJECTED_CONFIG_ANNOTATION: plan.source,
        names.INJECTION_HASH_ANNOTATION: plan.fingerprint,
    }
    if plan.generation is not None:
        stamps[names.CONFIG_GENERATION_ANNOTATION] = str(plan.generation)
    unchanged = ",".join(dict.fromkeys(kept))
    if pods.is_stamped(pod, plan.source, plan.fingerprint):
        # The second time, what others have changed meanwhile would count as the user's too.
        unchanged = pods.annotation(pod, names.KEPT_BY_USER_ANNOTATION) or ""
    if unchanged:
        stamps[names.KEPT_BY_USER_ANNOTATION] = unchanged
    if pods.annotation(pod, names.DEFAULT_CONTAINER_ANNOTATION) is None:
        application = pods.application_container(pod, plan.wiring.container)
        if application is not None:
            stamps[names.DEFAULT_CONTAINER_ANNOTATION] = str(application.get("name"))
    _set_label(draft, names.INJECTED_LABEL, names.INJECTED_VALUE)
    _remove_label(draft, names.INJECTION_SKIPPED_LABEL)
    _annotate(draft, stamps, instead_of=(*names.INJECTED_ANNOTATIONS, names.SKIP_REASON_ANNOTATION))


def stamp_skipped(draft: Draft, reason: SkipReason, sentence: str) -> None:
    """Say why nothing was applied."""
    _set_label(draft, names.INJECTION_SKIPPED_LABEL, reason.value)
    _remove_label(draft, names.INJECTED_LABEL)
    stamps = {names.SKIP_REASON_ANNOTATION: sentence}
    _annotate(draft, stamps, instead_of=names.INJECTED_ANNOTATIONS)


_LABELS: Final = ("metadata", "labels")
_ANNOTATIONS: Final = ("metadata", "annotations")


def _set_label(draft: Draft, key: str, value: str) -> None:
    is_there = key in raw.mapping(draft.pod, *_LABELS)
    if not (is_there and pods.outcome_labels_are_frozen(draft.pod)):
        draft.put((*_LABELS, key), value)


def _remove_label(draft: Draft, key: str) -> None:
    if not pods.outcome_labels_are_frozen(draft.pod):
        draft.remove((*_LABELS, key))


def _annotate(draft: Draft, stamps: Mapping[str, str], *, instead_of: tuple[str, ...]) -> None:
    for key in instead_of:
        if key not in stamps:
            draft.remove((*_ANNOTATIONS, key))
    draft.update(_ANNOTATIONS, stamps)
