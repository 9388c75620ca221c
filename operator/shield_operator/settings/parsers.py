"""How each setting is read: text -> value, or what it should be.

A `ValueError` of theirs ends the sentence "X is 'v': it must be …".
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import urlsplit

from shield_operator.model import is_dns_label, is_dns_subdomain, is_image_digest


class FeatureGate(StrEnum):
    """Cluster features whose state `K8S_FEATURE_GATES` may state where the version does not."""

    SIDECAR_CONTAINERS = "SidecarContainers"
    IMAGE_VOLUME = "ImageVolume"


def _text(accepts: Callable[[str], bool], wanted: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not accepts(text):
            raise ValueError(wanted)
        return text

    return parse


def _between(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\d{1,9}", text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return parse


namespace: Final = _text(is_dns_label, "a namespace's name")
name: Final = _text(is_dns_subdomain, "a DNS subdomain, such as 'my-name'")
service: Final = _text(is_dns_label, "a Service's name")
image: Final = _text(
    is_image_digest, "an image with its digest, such as 'name@sha256:<64 hex digits>'"
)
file: Final = _text(bool, "the path of a file")
port: Final = _between(1, 65535)
timeout: Final = _between(1, 30)
interval: Final = _between(1, 86400)


def is_token(text: str) -> bool:
    """Whether a header can carry it as a bearer token."""
    return re.fullmatch(r"[!-~]+", text) is not None


token: Final = _text(is_token, "a bearer token, of ASCII characters without spaces")


def url(text: str) -> str:
    """An https URL of nothing but host and port, the host as certificates spell it."""
    try:
        parts = urlsplit(text)
        host, port = _canonical_host(parts.hostname or ""), parts.port
        rest = parts.username or parts.query or parts.fragment or parts.path.strip("/")
    except ValueError:
        host, port, rest = "", None, ""
    if not host or port == 0 or parts.scheme != "https" or rest:
        raise ValueError(
            "an https URL of a DNS name or an IP address, without path and query, such as "
            "'https://127.0.0.1:9443'"
        )
    return f"https://{host}" if port is None else f"https://{host}:{port}"


def _canonical_host(host: str) -> str:
    """The host as certificates spell it; in brackets where it is an IPv6 address.

    Raises:
        ValueError: where it is neither a DNS name nor an address without a zone.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        last = host.rpartition(".")[2]
        if not is_dns_subdomain(host) or last.isdigit():  # 127.1 is no name either
            raise
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.scope_id:
        raise ValueError(host)
    return f"[{address}]"


def gates(text: str) -> Mapping[FeatureGate, bool]:
    """The feature gates that the text names, and their states."""
    found: dict[FeatureGate, bool] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        gate_name, _, value = part.partition("=")
        if gate_name not in list(FeatureGate) or value not in {"true", "false"}:
            known = " or ".join(f"{gate}=true|false" for gate in FeatureGate)
            raise ValueError(f"a comma-separated list of {known}")
        found[FeatureGate(gate_name)] = value == "true"
    return found


_Choice = TypeVar("_Choice", bound=StrEnum)


def one_of(choices: type[_Choice]) -> Callable[[str], _Choice]:
    """A parser of one of these words."""

    def parse(text: str) -> _Choice:
        try:
            return choices(text)
        except ValueError:
            raise ValueError(" or ".join(choices)) from None

    return parse
