"""The golden cases, read from their folders."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from shield_operator.decision import Decision, Ignore, Inject, Skip

FOLDER = Path(__file__).parent / "cases"
FILES = frozenset({"namespace.yaml", "config.yaml", "pod.yaml", "expected.yaml", "reason.txt"})


@dataclass(frozen=True)
class Case:
    """One folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def read(self, file: str) -> list[Any]:
        text = (self.folder / file).read_text(encoding="utf-8")
        return [document for document in yaml.safe_load_all(text) if document is not None]

    @property
    def namespace(self) -> dict[str, Any]:
        (found,) = self.read("namespace.yaml")
        return dict(found)

    @property
    def pod(self) -> dict[str, Any]:
        (found,) = self.read("pod.yaml")
        return dict(found)

    @property
    def configs(self) -> list[dict[str, Any]]:
        return self.read("config.yaml")

    @property
    def expected(self) -> dict[str, Any]:
        (found,) = self.read("expected.yaml")
        return dict(found)

    @property
    def reason(self) -> str:
        return (self.folder / "reason.txt").read_text(encoding="utf-8")


CASES = [Case(folder) for folder in sorted(FOLDER.iterdir())]


def reason_text(found: Decision) -> str:
    """What `reason.txt` holds for a decision."""
    match found:
        case Ignore():
            outcome = "ignored"
        case Inject():
            outcome = "injected"
        case Skip(reason):
            outcome = reason.value
    return "".join(f"{line}\n" for line in (outcome, *found.warnings))
