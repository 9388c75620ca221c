"""What `inject` and `uninject` have in common: every document is changed, and all of it written."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from shield_operator.cli.failure import fail
from shield_operator.cli.inputs import ManifestFile
from shield_operator.cli.output import write_difference, write_manifests
from shield_operator.documents import Document, DocumentError

_Outcome = TypeVar("_Outcome")


def change_all(
    files: Iterable[ManifestFile], change: Callable[[Document], tuple[str, list[_Outcome]]]
) -> tuple[list[str], list[_Outcome]]:
    """Each file's new text and what became of all workloads; or the end of the command."""
    texts: list[str] = []
    outcomes: list[_Outcome] = []
    try:
        for file in files:
            results = [change(document) for document in file.documents]
            texts.append("".join(text for text, _ in results))
            outcomes += [outcome for _, found in results for outcome in found]
    except DocumentError as error:
        fail([str(error)])
    return texts, outcomes


def write_changed(files: Sequence[ManifestFile], texts: Sequence[str], *, diff: bool) -> None:
    """Write the new texts, or what is different about them."""
    if not diff:
        write_manifests(texts)
        return
    for file, text in zip(files, texts, strict=True):
        write_difference(file.name, file.text, text)
