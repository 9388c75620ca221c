"""Kubernetes' own formats: names, labels, images, quantities."""

import re
from fractions import Fraction
from typing import Any, Final, TypeAlias

Json: TypeAlias = Any
"""A JSON value: what ``json.loads`` returns."""

_DNS_PART: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL: Final = re.compile(_DNS_PART)
_DNS_SUBDOMAIN: Final = re.compile(rf"{_DNS_PART}(\.{_DNS_PART})*")
_LABEL_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_VARIABLE: Final = re.compile(r"\.?[-_a-zA-Z][-._a-zA-Z0-9]*")
_DATA_KEY: Final = re.compile(r"\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*")
_DIGEST: Final = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}", re.ASCII)
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?([0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?P<suffix>[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?"
)
_SUFFIXES: Final = {
    **{suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate("num", -3)},
    **{suffix: Fraction(10) ** (3 * power) for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}
LARGEST_INTEGER: Final = 2**63 - 1
"""Kubernetes' whole numbers have 64 bits; YAML's may be too long for Python to print."""


def is_dns_label(text: str) -> bool:
    """Whether `text` is an RFC 1123 label, as namespaces, containers and volumes need."""
    return len(text) <= 63 and _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Whether `text` is what Kubernetes takes for an RFC 1123 subdomain, as Secrets' names are.

    Unlike the RFC, Kubernetes has no limit of 63 characters between two dots.
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names
    """
    return len(text) <= 253 and _DNS_SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether `text` can be the key of a label: ``name`` or ``domain/name``.

    https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
    """
    domain, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(domain):
        return False
    return len(name) <= 63 and _LABEL_NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether `text` can be the value of a label; the empty one is."""
    return text == "" or (len(text) <= 63 and _LABEL_NAME.fullmatch(text) is not None)


def is_image_digest(text: str) -> bool:
    """Whether `text` names an image by digest; a tag may stand before it, but is not enough."""
    # Kubernetes trims every space that Unicode knows, and then refuses what it trimmed.
    has_space = any(character.isspace() for character in text)
    return len(text) <= 512 and not has_space and _DIGEST.fullmatch(text) is not None


def is_variable(text: str) -> bool:
    """Whether every supported Kubernetes takes `text` as a variable's name; 1.32 takes more."""
    return len(text) <= 253 and _VARIABLE.fullmatch(text) is not None


def is_data_key(text: str) -> bool:
    """Whether `text` can be a key in the data of a Secret or a ConfigMap."""
    return len(text) <= 253 and _DATA_KEY.fullmatch(text) is not None


def quantity(value: Json) -> Fraction:
    """The number that a Kubernetes quantity stands for: ``100m``, ``1.5Gi``, ``1e3``, ``2``.

    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/

    Raises:
        ValueError: where it is none.
    """
    match value:
        case bool():
            raise ValueError("true and false are no quantities")
        case int() if abs(value) <= LARGEST_INTEGER:
            return Fraction(value)
        case str() if found := _QUANTITY.fullmatch(value):
            number, suffix = Fraction(found["number"]), found["suffix"]
            if suffix is None:
                return number
            if suffix in _SUFFIXES:
                return number * _SUFFIXES[suffix]
            return number * Fraction(10) ** int(suffix[1:])
        case _:
            raise ValueError("it is neither a whole number nor text like 100m")
