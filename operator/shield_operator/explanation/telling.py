"""An explanation as lines of text, and a running pod's own story beside it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from shield_operator import names
from shield_operator.decision import Ignore, Inject, Skip
from shield_operator.explanation.hindsight import Cause
from shield_operator.explanation.stamps import Stamps, Standing
from shield_operator.explanation.steps import Explanation, Verdict, as_json
from shield_operator.model import Json
from shield_operator.text import printable


@dataclass(frozen=True, slots=True)
class Live:
    """What there is to say of a pod that runs already."""

    stamps: Stamps
    standing: Standing
    causes: tuple[Cause, ...] = ()
    """Why it is bare, where it is and asks now."""
    remedy: str = ""
    """How it is made anew."""
    helps: bool = True
    """Whether that is of use; else `remedy` says why not."""
    anew: Explanation | None = None
    """What would become of it today without the sidecar that it has."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is explained."""

    title: str
    """Such as ``pod shop/web-0``."""
    explanation: Explanation
    live: Live | None = None
    notes: tuple[str, ...] = ()
    """What could not be seen, and what was assumed instead."""

    @property
    def is_shielded(self) -> bool:
        """Whether a pod that runs has what it asked for, or one that is made now would have."""
        if self.live is None:
            return self.explanation.is_shielded
        if self.live.stamps.mark is not None or self.explanation.has_sidecar:
            return True
        # Only wired: nothing in the pod but the stamps tells, so its config must say the same.
        found = self.explanation.decision
        wired = isinstance(found, Inject) and found.plan.sidecar is None
        return wired and self.live.standing in (Standing.CURRENT, Standing.OUTDATED)


MARKS: Final[Mapping[Verdict, str]] = {
    Verdict.PASSED: "✓",
    Verdict.FAILED: "✗",
    Verdict.NOT_CHECKED: "\N{EN DASH}",
}


def lines(subject: Subject) -> Iterator[tuple[str, str]]:
    """The text, each line with the kind of its mark: passed, failed, "not checked", or none."""
    yield "", printable(subject.title)
    width = max((len(step.rule) for step in subject.explanation.steps), default=0)
    for step in subject.explanation.steps:
        yield step.verdict.value, f"{step.rule:<{width}}  {printable(step.saw)}"
    for note in subject.notes:
        yield "", f"  note: {printable(note)}"
    yield "", ""
    if subject.live is not None:
        yield from (("", printable(line)) for line in _story(subject, subject.live))
    else:
        yield "", f"Outcome: {printable(outcome(subject.explanation))}"
    for warning in subject.explanation.decision.warnings:
        if not isinstance(subject.explanation.decision, Skip):
            yield "", f"warning: {printable(warning)}"


def outcome(explanation: Explanation) -> str:
    """The decision as a sentence, with the webhook's own word in it."""
    match explanation.decision:
        case Inject(plan):
            of = _config(plan.source, plan.generation)
            if plan.sidecar is None:
                return f"injected: what {of} adds, without a sidecar (mode None)"
            article = "a native sidecar" if plan.native else "a plain container"
            return f"injected: {article}, by {of}"
        case Skip(reason, sentence):
            word = "refused, not injected" if explanation.denied else "not injected"
            return f"{word} ({reason}): {sentence}"
        case Ignore() if explanation.has_sidecar:
            return "ignored: it has its sidecar already"
        case Ignore():
            return "ignored: the operator is not asked about it"


def _config(source: str, generation: int | None) -> str:
    if source == names.SETTINGS_CONFIG:
        return "the operator's settings"
    return f"{names.KIND} {source}" + (f" in generation {generation}" if generation else "")


def _story(subject: Subject, live: Live) -> Iterator[str]:
    """What became of a running pod, and what would become of it now."""
    stamps = live.stamps
    again = f": {live.remedy}" if live.remedy and live.helps else ""
    match live.standing:
        case Standing.SKIPPED:
            yield f"When it was created: not injected ({stamps.skipped}): {stamps.sentence}"
        case Standing.BARE:
            yield "When it was created: nothing was done about it"
            for cause in live.causes:
                yield f"  {_HOW_SURE[cause.certainty.value]}: {cause.sentence}"
            if not live.causes and subject.explanation.steps[0].verdict is Verdict.PASSED:
                yield "  why, nothing that is left of that time tells"
        case standing:
            what = "injected" if stamps.mark else "wired"
            generation = f" in generation {stamps.generation}" if stamps.generation else ""
            yield f"When it was created: {what} by {names.KIND} {stamps.config}{generation}"
            told = f"; make it anew{again}" if live.helps else f": {live.remedy}"
            yield f"  {_STANDING[standing]}{told if standing is Standing.OUTDATED else ''}"
            if stamps.kept:
                yield f"  left as the pod had it: {', '.join(stamps.kept)}"
    yield from _made_anew(subject, live, again)


def _made_anew(subject: Subject, live: Live, again: str) -> Iterator[str]:
    """What is different today; nothing where nothing is."""
    anew = live.anew or subject.explanation
    match anew.decision:
        case Inject(plan) if subject.is_shielded and plan.source == live.stamps.config:
            return
        case Skip(reason) if reason.value == live.stamps.skipped:
            yield "Made anew, it would be skipped for the same reason"
        case Inject():
            yield f"Made anew, it would be {outcome(anew)}{again}"
        case _:
            yield f"Made anew, it would be {outcome(anew)}"


_HOW_SURE: Final = {"certain": "because", "likely": "most likely because", "possible": "perhaps"}
_STANDING: Final[Mapping[Standing, str]] = {
    Standing.CURRENT: "current: its config would give it the same today",
    Standing.OUTDATED: "outdated: its config has another plan by now",
    Standing.UNKNOWN: "whether that is current is not known: its config is gone, or not looked at",
}


def subject_json(subject: Subject) -> dict[str, Json]:
    """All of it, for programs."""
    found: dict[str, Json] = {"subject": subject.title, "shielded": subject.is_shielded}
    found |= as_json(subject.explanation)
    found["notes"] = list(subject.notes)
    if (live := subject.live) is not None:
        stamps = live.stamps
        anew = live.anew or subject.explanation
        found["live"] = {
            "standing": live.standing.value,
            "hasSidecar": stamps.mark is not None,
            "config": stamps.config,
            "generation": stamps.generation,
            "injectionHash": stamps.fingerprint,
            "keptByUser": list(stamps.kept),
            "reason": stamps.skipped,
            "message": stamps.sentence,
            "causes": [
                {"certainty": cause.certainty.value, "message": cause.sentence}
                for cause in live.causes
            ],
            "remedy": live.remedy or None,
            "madeAnew": anew.word,
        }
    return found
