"""What was found in a cluster, before anybody says whether that is well."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias, TypeVar

from shield_operator.diagnosis.permissions import Permission
from shield_operator.model import Json


@dataclass(frozen=True, slots=True)
class Unseen:
    """Something could not be looked at, and why."""

    why: str


_Kind = TypeVar("_Kind")
Fact: TypeAlias = _Kind | Unseen


@dataclass(frozen=True, slots=True)
class Answer:
    """What a replica answered at its health port."""

    pod: str
    status: int
    text: str


class Served(StrEnum):
    """What came of a TLS connection from here to the webhook's URL."""

    TRUSTED = "trusted"
    NOT_TRUSTED = "not trusted"
    OUT_OF_REACH = "out of reach"


@dataclass(frozen=True, slots=True)
class Connection:
    """A TLS connection to the webhook's URL, trusting what the API server is told to trust."""

    served: Served
    why: str = ""
    until: datetime | None = None
    """When the certificate that was served ends, where it was trusted."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A pod that was tried with ``--dry-run=server``: as it would have been made, or why not."""

    namespace: str
    pod: Json = None
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All of them; objects are as the API server has them, None where there is no such object."""

    version: Fact[Json]
    definition: Fact[Json] = None
    deployment: Fact[Json] = None
    webhooks: Fact[Json] = None
    tls_secret: Fact[Mapping[str, bytes] | None] = None
    answers: Fact[tuple[Answer, ...]] = ()
    connection: Fact[Connection | None] = None
    """None where the webhook is not called by URL."""
    lease: Fact[Json] = None
    lease_renewed: bool = False
    """Whether it was seen to be renewed."""
    permissions: Fact[Mapping[Permission, bool]] = field(default_factory=dict)
    """The operator's."""
    probe: Fact[Probe] = Unseen("no pod was tried")
    unknown_settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsBefore:
    """What matters before an installation."""

    version: Fact[Json]
    definition: Fact[Json] = None
    deployment: Fact[Json] = None
    serves_webhooks: Fact[bool] = True
    """Whether the API server has mutating webhook configurations at all."""
    installer: Fact[Mapping[Permission, bool]] = field(default_factory=dict)
    """What the person may do."""
