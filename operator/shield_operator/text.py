"""Text for people: short, and on one line."""

from typing import Final

LONGEST_WARNING: Final = 256
"""Characters; the API server cuts longer ones, and drops those with a line break.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#response
"""


def one_line(text: str, longest: int = LONGEST_WARNING) -> str:
    """`text` on one line, cut where it is too long: by default for an admission warning."""
    line = " ".join(text[: 4 * longest].split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def printable(text: str) -> str:
    """`text` for a terminal: what a stranger has put into a name must not steer it."""
    return "".join(c if c.isprintable() else "?" for c in text)
