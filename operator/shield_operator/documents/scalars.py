"""What an unquoted word means, which YAML readers do not agree on.

kubectl reads ``yes`` as true, ``012`` as ten and ``12:30:45`` as text; readers of YAML 1.2 take the
first for text and the second for twelve; others of 1.1 make a number of the third. We read as
kubectl does, and whatever we write has one meaning for all of them.

https://yaml.org/spec/1.2.2/#103-core-schema, https://yaml.org/type/,
https://pkg.go.dev/sigs.k8s.io/yaml
"""

import math
import re
from typing import Final

from shield_operator.model import Json

_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_UNCERTAIN_WORDS: Final[dict[str, bool]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_HEXADECIMAL: Final = re.compile(r"[-+]?0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?[0-9]+\.[0-9]*([eE][-+][0-9]+)?")
_NO_NUMBER: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DOTTED: Final = re.compile(r"[0-9]+(\.[0-9]+){2,}")
_CERTAIN: Final = (_INTEGER, _HEXADECIMAL, _FLOAT, _DOTTED)
_LIKE_A_NUMBER: Final = re.compile(
    r"""
    (?=[-+.0-9])                                        # and:
    (?: [-+]? [0-9_.]* [0-9_] [0-9_.]* ([eE][-+]?[0-9]+)?
      | [-+]? 0 [xXoObB] [0-9a-fA-F_]*
      | [-+]? [0-9][0-9_]* (:[0-9]{1,2})+ (\.[0-9_]*)?  # base 60
      | [0-9]{4} - [0-9]{1,2} - [0-9]{1,2} ([Tt\s].*)?  # a date
    )
    """,
    re.VERBOSE,
)
"""Everything that some reader takes for a number or a date, and a little more."""

_GO_INTEGER: Final = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]+)|[bB]([01]+)|[oO]?([0-7]+))")
_GO_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_PLAIN: Final = re.compile(
    r"(--)?[A-Za-z/][A-Za-z0-9_./@:-]*[A-Za-z0-9_/]|[A-Za-z]|[0-9]+(m|[KMG]i)"
)


def is_certain(text: str) -> bool:
    """Whether all readers give this unquoted text the same meaning."""
    if text in _UNCERTAIN_WORDS or text in ("=", "<<"):
        return False
    if any(form.fullmatch(text) for form in _CERTAIN):
        return True
    # Some readers drop every underscore first, wherever it stands: "0E0_" is zero for kubectl.
    return not any(map(_LIKE_A_NUMBER.fullmatch, (text, text.replace("_", ""))))


def meaning(text: str) -> Json:
    """What this unquoted text is for kubectl."""
    for words in (_WORDS, _UNCERTAIN_WORDS):
        if text in words:
            return words[text]
    number = _number(text.replace("_", "") if text[0] in "+-0123456789" else text)
    return text if number is None else number


def _number(text: str) -> int | float | None:
    if _INTEGER.fullmatch(text):
        return int(text)
    if found := _GO_INTEGER.fullmatch(text):
        sign, hexadecimal, binary, octal = found.groups()
        base = 16 if hexadecimal else 2 if binary else 8
        return int(sign + (hexadecimal or binary or octal), base)
    if _GO_FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "")) if _NO_NUMBER.fullmatch(text) else None


def scalar(value: Json) -> str:
    """A value as YAML that all readers read alike, in the middle of a block."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and is_text(value):
        return value
    return quoted(value)


def in_flow(value: Json) -> str:
    """The same between brackets, where a colon would be something else."""
    return quoted(value) if isinstance(value, str) and ":" in value else scalar(value)


def is_text(text: str) -> bool:
    """Whether this unquoted text is text for all readers."""
    return is_certain(text) and isinstance(meaning(text), str)


def quoted(value: Json) -> str:
    """A value that is neither object nor list, as JSON that is YAML too."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{"".join(map(_escaped, value))}"'
        case float():
            return repr(value) if math.isfinite(value) else f".{value}".replace(".-", "-.")
        case _:
            return str(value)


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character == " " or character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
