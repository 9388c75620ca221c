"""Where the replica's certificate comes from: a small interface, and what its sources share."""

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import urlsplit

from shield_operator.certificates import Certificate, KeyPair, Trust, Validity, read_validity
from shield_operator.settings import Settings

logger = logging.getLogger(__name__)


class CertificateSource(Protocol):
    """Keeps the replica's certificate fresh; asked by the listener and by the publisher.

    A leaf is served only when the live webhook configuration carries its authority
    (docs/adr/0005-overlapping-authorities.md), so a source is told what that carries.
    """

    @property
    def leaf(self) -> KeyPair | None:
        """What to serve the next connection with; None before there is one."""

    @property
    def validity(self) -> Validity | None:
        """From when to when that is good; None before there is one."""

    @property
    def available(self) -> asyncio.Event:
        """Set once there is a leaf."""

    @property
    def authorities(self) -> bytes | None:
        """The certificates, PEM, to publish as the CA bundle; None before there are any."""

    @property
    def needs(self) -> bytes | None:
        """Those of them, PEM, that what is served now needs; None before anything is served."""

    @property
    def lacking(self) -> bytes:
        """Those, PEM, that what is served or wanted needs and that were not found live."""

    async def refresh(self) -> bool:
        """Look for a new certificate; returns whether there is something else to publish.

        Raises:
            ClusterError: where the API server does not let us; what was served goes on being.
        """

    def saw(self, ca_bundles: Collection[bytes]) -> None:
        """The live webhook configuration was read: the CA bundle of each of our webhooks in it.

        Every replica has to tell, whether it writes the configuration or not.
        """


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class ServedCertificate:
    """The part that both sources share: a wanted leaf is served as soon as it is trusted."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._trust = Trust()
        self._announced: Certificate | None = None
        self.available = asyncio.Event()
        """Set once there is a leaf."""

    @property
    def leaf(self) -> KeyPair | None:
        """What to serve the next connection with; None before there is one."""
        return self._trust.served.leaf if self._trust.served else None

    @property
    def validity(self) -> Validity | None:
        """From when to when that is good; None before there is one."""
        return read_validity(self.leaf.certificate) if self.leaf else None

    @property
    def authorities(self) -> bytes | None:
        """The certificates, PEM, that the API server must trust; None before there are any."""
        return b"".join(self._trust.authorities(self._now())) or None

    @property
    def needs(self) -> bytes | None:
        """Those of them, PEM, that what is served now needs; None before anything is served."""
        return b"".join(sorted(self._trust.served.needs)) if self._trust.served else None

    @property
    def lacking(self) -> bytes:
        """Those, PEM, that what is served or wanted needs and that were not found live."""
        return b"".join(self._trust.lacking)

    def saw(self, ca_bundles: Collection[bytes]) -> None:
        """The live webhook configuration was read: the CA bundle of each of our webhooks in it."""
        self._trust.saw(ca_bundles, self._now())
        self._serve()

    def _want(self, certificate: Certificate) -> bool:
        """Serve with this as soon as that may be; returns whether there is more to publish."""
        before = self.authorities
        self._trust.want(certificate, self._now())
        if not self._serve() and self.leaf is not None and certificate != self._announced:
            logger.info("the new certificate is served once the API server trusts its authority")
            self._announced = certificate
        return self.authorities != before

    def _serve(self) -> bool:
        """Change to the wanted leaf where that may be; returns whether it is served."""
        if self._trust.serve(self._now()):
            logger.info("serving with a new certificate")
        if self.leaf is not None:
            self.available.set()
        return self._trust.is_served


def served_hosts(settings: Settings) -> tuple[str, ...]:
    """The names and addresses by which the API server calls us; the last one is what it uses."""
    service = f"{settings.webhook_service}.{settings.namespace}.svc"
    if settings.webhook_url is None:
        return (service,)
    return (service, urlsplit(settings.webhook_url).hostname or "")
