"""Why a pod is bare although it asks for the sidecar: what its past, as far as it shows, tells.

The API server does not record when a label was set. It records when each field manager last changed
anything of its own, which is the same only where the manager owns nothing else; how sure a cause is
follows from that.
https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shield_operator import names, pods, raw
from shield_operator.model import Json
from shield_operator.settings import FailurePolicy, Settings
from shield_operator.webhook import configuration, foreign_match_conditions


class Certainty(StrEnum):
    """How sure a cause is."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that may have kept the pod from the webhook."""

    certainty: Certainty
    sentence: str


def why_bare(
    pod: Json, namespace: Json, webhooks: Json, settings: Settings, *, webhooks_known: bool
) -> tuple[Cause, ...]:
    """What may have kept a bare pod, that asks now, from being asked about; the surest first.

    Args:
        pod: the pod as it is.
        namespace: its Namespace, with ``managedFields``.
        webhooks: our MutatingWebhookConfiguration, or None where there is none.
        settings: the operator's.
        webhooks_known: whether `webhooks` could be read.
    """
    causes = [*_causes(pod, namespace, webhooks if webhooks_known else {}, settings)]
    if webhooks_known and webhooks is None:
        sentence = "there is no webhook configuration now: no pod is asked about"
        causes.append(Cause(Certainty.CERTAIN, sentence))
    order = list(Certainty)
    return tuple(sorted(causes, key=lambda cause: order.index(cause.certainty)))


def _causes(pod: Json, namespace: Json, webhooks: Json, settings: Settings) -> Iterator[Cause]:
    owner = pods.controller(pod)
    is_of_node = owner is not None and owner.get("kind") == "Node"
    if names.MIRROR_POD_ANNOTATION in pods.annotations(pod) and is_of_node:
        sentence = "it is a static (mirror) pod of its node, which runs without being asked about"
        yield Cause(Certainty.CERTAIN, sentence)
        return
    created = _time(raw.mapping(pod, "metadata").get("creationTimestamp"))
    if created is None:
        return
    yield from _installed_later(created, webhooks)
    yield from _labelled_later(pod, namespace, created)
    for hook in raw.items(webhooks, "webhooks"):
        if hook.get("failurePolicy") == FailurePolicy.IGNORE:
            yield Cause(
                Certainty.POSSIBLE,
                f"no replica answered when it was created: failurePolicy of {hook.get('name')} is "
                "Ignore, which lets pods start bare then",
            )
            break
    for hook_name, condition in foreign_match_conditions(
        webhooks, configuration(settings, b"", "")
    ):
        yield Cause(
            Certainty.POSSIBLE,
            f"match condition {condition}, which somebody has added to webhook {hook_name}, keeps "
            "it from being asked about",
        )


def _installed_later(created: datetime, webhooks: Json) -> Iterator[Cause]:
    installed = _time(raw.mapping(webhooks, "metadata").get("creationTimestamp"))
    if installed is not None and created < installed:
        yield Cause(
            Certainty.CERTAIN,
            f"it was created at {_shown(created)}, before the webhook configuration that is there "
            f"now, which is of {_shown(installed)}",
        )


def _labelled_later(pod: Json, namespace: Json, created: datetime) -> Iterator[Cause]:
    """Whether the label that lets the pod in was set after the pod was created."""
    of_namespace = raw.strings(namespace, "metadata", "labels").get(names.INJECT_LABEL)
    if of_namespace in names.IN_VALUES:
        whose, holder = f"namespace {raw.mapping(namespace, 'metadata').get('name')}", namespace
    else:
        whose, holder = "the pod", pod
    owners = [*_owners(holder)]
    if not owners:
        yield Cause(
            Certainty.POSSIBLE,
            f"{whose} got its label {names.INJECT_LABEL} after the pod was created: when it was "
            "set is not recorded",
        )
        return
    set_at, alone = min(owners)
    if set_at <= created:
        return  # it had its present value by then
    what = (
        f"the pod was created at {_shown(created)}, and {whose} got its label "
        f"{names.INJECT_LABEL} at {_shown(set_at)}"
    )
    if alone:
        yield Cause(Certainty.LIKELY, what)
    else:
        yield Cause(
            Certainty.LIKELY if holder is namespace else Certainty.POSSIBLE,
            f"{what} or before: whoever set it changed something then",
        )


def _owners(holder: Json) -> Iterator[tuple[datetime, bool]]:
    """When each manager of the label last changed something, and whether it owns nothing else."""
    key = f"f:{names.INJECT_LABEL}"
    for entry in raw.items(holder, "metadata", "managedFields"):
        fields = raw.mapping(entry, "fieldsV1")
        if key not in raw.mapping(fields, "f:metadata", "f:labels"):
            continue
        if (moment := _time(entry.get("time"))) is not None:
            yield moment, _leaves(fields) == 1


def _leaves(fields: Json) -> int:
    """How many fields a set of them holds; a dot stands for the object around them."""
    below = [value for name, value in raw.mapping(fields).items() if name != "."]
    return sum(map(_leaves, below)) if below else 1


def _time(text: Json) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")
