"""One result of a check."""

from dataclasses import dataclass
from enum import StrEnum

from shield_operator.diagnosis.facts import Unseen
from shield_operator.model import Json


class Mark(StrEnum):
    """How it went."""

    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"
    """It could not be checked, which is not the same as good."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What was checked, how it went, what was seen, and what to do about it."""

    title: str
    mark: Mark
    saw: str
    advice: str = ""


def good(title: str, saw: str) -> Finding:
    """All is well."""
    return Finding(title, Mark.GOOD, saw)


def bad(title: str, saw: str, advice: str) -> Finding:
    """Something is wrong."""
    return Finding(title, Mark.BAD, saw, advice)


def unknown(title: str, why: str | Unseen) -> Finding:
    """Nobody can tell."""
    return Finding(title, Mark.UNKNOWN, why.why if isinstance(why, Unseen) else why)


def as_json(findings: list[Finding]) -> list[Json]:
    """The findings, for programs."""
    return [
        {"number": number, "check": one.title, "result": one.mark.value, "saw": one.saw}
        | ({"advice": one.advice} if one.advice else {})
        for number, one in enumerate(findings, start=1)
    ]
