"""The golden cases, read from their folders."""

import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import examples
from shield_operator.decision import Decision, Ignore, Inject, Skip
from shield_operator.selection import ConfigIndex
from shield_operator.settings import Settings, UninjectedPodPolicy

FOLDER = Path(__file__).parent / "cases"
FILES = frozenset({"namespace.yaml", "config.yaml", "pod.yaml", "expected.yaml", "reason.txt"})
SETTINGS = "settings.yaml"


@dataclass(frozen=True)
class Case:
    """One folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def read(self, file: str) -> list[Any]:
        """The documents of a file, for the caller to change."""
        return copy.deepcopy(_documents(self.folder / file))

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
    def environment(self) -> dict[str, str]:
        """The operator's settings, where they are not the default ones."""
        if not (self.folder / SETTINGS).exists():
            return {}
        (found,) = self.read(SETTINGS)
        return dict(found)

    @property
    def settings(self) -> Settings:
        return Settings.from_env(self.environment)

    @property
    def expected(self) -> dict[str, Any]:
        (found,) = self.read("expected.yaml")
        return dict(found)

    @property
    def reason(self) -> str:
        return (self.folder / "reason.txt").read_text(encoding="utf-8")

    def index(self, configs: list[dict[str, Any]] | None = None) -> ConfigIndex:
        """The index of the case's configs as they are when they have just been created."""
        chosen = self.configs if configs is None else configs
        fresh = [{**c, "metadata": {"generation": 1, **c["metadata"]}} for c in chosen]
        return ConfigIndex.of(self.settings, examples.CURRENT, fresh)


@cache
def _documents(path: Path) -> list[Any]:
    text = path.read_text(encoding="utf-8")
    return [document for document in yaml.safe_load_all(text) if document is not None]


CASES = [Case(folder) for folder in sorted(FOLDER.iterdir())]


def is_denied(case: Case, found: Decision) -> bool:
    """Whether the case's pod is refused."""
    return (
        isinstance(found, Skip) and case.settings.uninjected_pod_policy is UninjectedPodPolicy.DENY
    )


def reason_text(case: Case, found: Decision) -> str:
    """What `reason.txt` holds for a decision."""
    match found:
        case Ignore():
            outcome = "ignored"
        case Inject():
            outcome = "injected"
        case Skip(reason):
            outcome = f"denied: {reason}" if is_denied(case, found) else reason.value
    return "".join(f"{line}\n" for line in (outcome, *found.warnings))
