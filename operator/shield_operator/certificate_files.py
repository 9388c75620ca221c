"""A certificate that somebody else keeps in files, such as a mounted Secret of cert-manager's."""

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from shield_operator.certificate_source import ServedCertificate, served_hosts, utc_now
from shield_operator.certificates import (
    Certificate,
    CertificateError,
    KeyPair,
    split_certificates,
)
from shield_operator.settings import Settings
from shield_operator.tls import verify

logger = logging.getLogger(__name__)

_LAST_PART: Final = 0.3
"""Of its life, in which nobody has renewed a certificate that should have been by now.

cert-manager does it with a third left.
"""

_Contents = tuple[bytes, bytes, bytes]


class CertificateFiles(ServedCertificate):
    """A `CertificateSource` by files: read again and again, and taken when they fit together.

    A pair that is half-written, or of which only one file was replaced yet, is left alone, and the
    last good one goes on being served.
    """

    def __init__(self, settings: Settings, *, now: Callable[[], datetime] = utc_now) -> None:
        self._paths = tuple(
            Path(path)
            for path in (settings.tls_cert_file, settings.tls_key_file, settings.tls_ca_file)
            if path is not None
        )
        self._host = served_hosts(settings)[-1]
        super().__init__(now)
        self._taken: _Contents | None = None
        self._complaint: str | None = None
        self._warned_of: KeyPair | None = None

    async def refresh(self) -> bool:
        """Read the files, and serve with what they hold; returns whether to publish anew."""
        changed = self._look()
        self._warn_of_its_end()
        return changed

    def _look(self) -> bool:
        try:
            contents = self._read()
            if contents == self._taken:
                self._complaint = None
                return False
            certificate = self._certificate(contents)
        except CertificateError as error:
            self._tell(str(error))
            return False
        self._taken, self._complaint = contents, None
        logger.info("read a new certificate from %s", self._paths[0])
        return self._want(certificate)

    def _read(self) -> _Contents:
        try:
            certificate, key, authorities = (path.read_bytes() for path in self._paths)
        except OSError as error:
            raise CertificateError(f"cannot read {error.filename}: {error.strerror}") from error
        return certificate, key, authorities

    def _certificate(self, contents: _Contents) -> Certificate:
        certificate, key, authority_file = contents
        authorities = split_certificates(authority_file)
        if not authorities:
            raise CertificateError(f"{self._paths[2]} holds no certificate")
        leaf = KeyPair(certificate, key)
        try:
            verify(leaf, b"".join(authorities), self._host)
        except CertificateError as error:
            raise CertificateError(
                f"{self._paths[0]}, {self._paths[1]} and {self._paths[2]} cannot be served with "
                f"for {self._host}: {error}"
            ) from error
        return Certificate(leaf, frozenset(authorities), authorities)

    def _warn_of_its_end(self) -> None:
        """Say once that what is served ends soon: only who keeps the files can renew it."""
        good = self.validity
        if good is None or self._warned_of == self.leaf:
            return
        if good.not_after - self._now() < good.length * _LAST_PART:
            logger.warning(
                "the certificate of %s ends at %s and was not renewed: renew it, or pods that ask "
                "for the shield are refused from then on",
                self._paths[0],
                good.not_after,
            )
            self._warned_of = self.leaf

    def _tell(self, sentence: str) -> None:
        """Log it once, until something else is wrong."""
        if sentence != self._complaint:
            rest = "the last good certificate stays" if self._taken else "waiting for a good one"
            logger.warning("%s; %s", sentence, rest)
        self._complaint = sentence
