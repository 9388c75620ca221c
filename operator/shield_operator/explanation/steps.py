"""`explain`: how a decision came about, rule by rule, as a person would tell it.

The decision is `decide`'s own; each step's verdict comes from the function that `decide` asks too
(`opt_in`, `candidates`, `obstacles`). Only what a step says it saw is written here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shield_operator import names, pods
from shield_operator.decision import (
    Decision,
    Ignore,
    Inject,
    Skip,
    SkipReason,
    decide,
    mark_of,
    needed_secrets,
)
from shield_operator.decision.obstacles import obstacles
from shield_operator.explanation.saw import SAW, saw_candidates, saw_labels
from shield_operator.model import Json, SecretState
from shield_operator.plan import Plan
from shield_operator.selection import ConfigIndex, candidates, opt_in, select
from shield_operator.settings import Settings, UninjectedPodPolicy
from shield_operator.text import one_line, printable

_LONGEST_STEP: Final = 1000
"""Characters of what a step saw; names can be long, and there can be many."""


class Verdict(StrEnum):
    """What a rule says."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Step:
    """One rule: what it is about, what it says, and what it saw."""

    rule: str
    verdict: Verdict
    saw: str
    reason: SkipReason | None = None
    """The skip's reason, where it failed for one."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps that were taken, and the decision that they led to."""

    steps: tuple[Step, ...]
    decision: Decision
    has_sidecar: bool
    """Whether the pod brings along what it would get."""
    denied: bool
    """Whether the pod would be refused, since the settings say so."""

    @property
    def word(self) -> str:
        """The outcome in the webhook's own word: ``injected``, ``ignored``, or a skip's reason."""
        match self.decision:
            case Inject():
                return "injected"
            case Skip(reason):
                return reason.value
            case Ignore():
                return "ignored"

    @property
    def is_shielded(self) -> bool:
        """Whether the pod ends up with what it asked for."""
        return isinstance(self.decision, Inject) or self.has_sidecar


def explain(
    pod: Json,
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    secrets: Mapping[str, SecretState],
    configs: ConfigIndex,
    settings: Settings,
    *,
    made_by: str | None = None,
) -> Explanation:
    """Explain what `decide` says about a pod; the arguments are the same."""
    decision = decide(pod, namespace, namespace_labels, secrets, configs, settings, made_by=made_by)
    selected = select(pods.annotations(pod), pods.labels(pod), namespace, configs)
    deny = settings.uninjected_pod_policy is UninjectedPodPolicy.DENY
    return Explanation(
        tuple(_steps(pod, namespace, namespace_labels, secrets, configs, settings)),
        decision,
        has_sidecar=mark_of(pod, selected) is not None,
        denied=deny and isinstance(decision, Skip),
    )


def _steps(
    pod: Json,
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    secrets: Mapping[str, SecretState],
    configs: ConfigIndex,
    settings: Settings,
) -> Iterator[Step]:
    labels, annotations = pods.labels(pod), pods.annotations(pod)
    why = opt_in(labels, namespace, namespace_labels, settings)
    yield _step("label", saw_labels(why, namespace, namespace_labels, labels), passed=why.is_in)
    if not why.is_in:
        return
    selected = select(annotations, labels, namespace, configs)
    mark = mark_of(pod, selected)
    if mark is not None:
        saw = f"it has ours already ({mark}), and stays as it is"
        yield _step("own sidecar", saw)
    else:
        yield _step("own sidecar", "the pod brings none along that is ours")
    found = candidates(annotations, labels, namespace, configs)
    in_the_way: dict[SkipReason, Skip] = {}
    for skip in obstacles(pod, namespace, selected):
        in_the_way.setdefault(skip.reason, skip)
    saw = saw_candidates(found, selected, namespace, labels, configs)
    if mark is not None:  # nothing of the rest decides, but it tells what would be today
        why_not = [in_the_way[one].sentence for one in _CONFIG_REASONS if one in in_the_way]
        yield Step("config", Verdict.NOT_CHECKED, f"today: {(*why_not, saw)[0]}")
        return
    yield _checked("annotations", (SkipReason.INVALID_ANNOTATION,), in_the_way, _saw_keys(pod))
    yield _checked("config", _CONFIG_REASONS, in_the_way, saw)
    if not isinstance(selected, Plan):
        yield Step("the rest", Verdict.NOT_CHECKED, "depends on the config")
        return
    for reason, (rule, tell) in SAW.items():
        yield _checked(rule, (reason,), in_the_way, tell(pod, selected))
    yield from _secret_steps(pod, namespace, selected, secrets)


_CONFIG_REASONS: Final = (
    SkipReason.NO_SIDECAR_CONFIG,
    SkipReason.AMBIGUOUS_SIDECAR_CONFIG,
    SkipReason.INVALID_SIDECAR_CONFIG,
)


def _checked(
    rule: str, reasons: Iterable[SkipReason], in_the_way: Mapping[SkipReason, Skip], saw: str
) -> Step:
    """A rule that has failed where one of its reasons stands in the way."""
    skip = next((in_the_way[reason] for reason in reasons if reason in in_the_way), None)
    if skip is None:
        return _step(rule, saw)
    return Step(rule, Verdict.FAILED, skip.sentence, skip.reason)


def _step(rule: str, saw: str, *, passed: bool = True) -> Step:
    verdict = Verdict.PASSED if passed else Verdict.FAILED
    return Step(rule, verdict, printable(one_line(saw, _LONGEST_STEP)))


def _saw_keys(pod: Json) -> str:
    given = pods.annotations(pod)
    keys = (
        names.CONFIG_ANNOTATION,
        names.KEYS_SECRET_ANNOTATION,
        names.CONTAINER_ANNOTATION,
        names.IMAGE_PULL_SECRETS_ANNOTATION,
    )
    found = [f"{key}={given[key]}" for key in keys if key in given]
    return ", ".join(found) if found else "the pod sets none of ours"


def _secret_steps(
    pod: Json, namespace: str, plan: Plan, secrets: Mapping[str, SecretState]
) -> Iterator[Step]:
    """Whether the sidecar can start: no reason to skip, but to wait."""
    if plan.sidecar is not None and not needed_secrets(pod, plan):
        yield Step("Secret", Verdict.NOT_CHECKED, "none is named: see the warning")
    for secret in needed_secrets(pod, plan):
        match secrets.get(secret, SecretState.UNKNOWN):
            case SecretState.PRESENT:
                yield _step("Secret", f"{namespace}/{secret} is there")
            case SecretState.ABSENT:
                saw = f"{namespace}/{secret} is not there: the pod will wait until it is"
                yield _step("Secret", saw, passed=False)
            case SecretState.UNKNOWN:
                saw = f"{namespace}/{secret} has to be there: nobody has looked"
                yield Step("Secret", Verdict.NOT_CHECKED, saw)


def as_json(explanation: Explanation) -> dict[str, Json]:
    """The explanation, for programs."""
    decision = explanation.decision
    found: dict[str, Json] = {
        "outcome": {"injected": "injected", "ignored": "ignored"}.get(explanation.word, "skipped"),
        "denied": explanation.denied,
    }
    match decision:
        case Skip(reason, sentence):
            found |= {"reason": reason.value, "message": sentence}
        case Inject(plan):
            found |= {
                "config": plan.source,
                "generation": plan.generation,
                "injectionHash": plan.fingerprint,
                "sidecar": sidecar_kind(plan),
            }
        case Ignore():
            found["hasSidecar"] = explanation.has_sidecar
    steps = [
        {"rule": step.rule, "verdict": step.verdict.value, "saw": step.saw}
        | ({"reason": step.reason.value} if step.reason else {})
        for step in explanation.steps
    ]
    return {**found, "warnings": list(decision.warnings), "steps": steps}


def sidecar_kind(plan: Plan) -> str:
    """What the plan adds, in Kubernetes' words."""
    if plan.sidecar is None:
        return "none"
    return "native sidecar" if plan.native else "container"
