"""The certificate that all replicas share, in a Secret: issued, renewed, its authority replaced."""

import logging
from collections.abc import Callable
from datetime import datetime

from shield_operator.certificate_source import ServedCertificate, served_hosts, utc_now
from shield_operator.certificates import (
    Bundle,
    CertificateError,
    KeyPair,
    issue_bundle,
    read_bundle,
)
from shield_operator.cluster import Cluster, Conflict, NotFound
from shield_operator.settings import Settings
from shield_operator.tls import server_context, verify

logger = logging.getLogger(__name__)


class SharedCertificate(ServedCertificate):
    """A `CertificateSource` by a Secret that any replica may write; the first one to do it wins."""

    def __init__(
        self, cluster: Cluster, settings: Settings, *, now: Callable[[], datetime] = utc_now
    ) -> None:
        self._cluster = cluster
        self._where = (settings.namespace, settings.tls_secret_name)
        self._hosts = served_hosts(settings)
        super().__init__(now)
        self._last_good: Bundle | None = None
        self._checked: KeyPair | None = None
        """The leaf that was last looked at as clients do; what they make of it does not change."""

    async def refresh(self) -> bool:
        """Look at the Secret, put it right where it is not, and serve with what it holds.

        Returns:
            Whether there is something else to publish.

        Raises:
            ClusterError: where the API server does not let us; what was served goes on being.
        """
        try:
            bundle = await self._shared_bundle()
        except Conflict:
            bundle = await self._shared_bundle()
        if bundle != self._last_good:
            logger.info("the certificate is good until %s", bundle.leaf_validity.not_after)
        self._last_good = bundle
        return self._want(bundle.certificate)

    async def _shared_bundle(self) -> Bundle:
        """The Secret's content, after it was created or taken a step further where that was due."""
        namespace, name = self._where
        try:
            data, version = await self._cluster.read_tls_secret(namespace, name)
        except NotFound:
            bundle = self._new_bundle()
            await self._cluster.create_tls_secret(namespace, name, bundle.as_secret_data())
            logger.info("created Secret %s/%s with a new certificate authority", namespace, name)
            return bundle
        try:
            found = read_bundle(data)
            server_context(found.leaf)
            step = found.next(self._hosts, self._now(), self._trust.live)
            if step is None and found.leaf != self._checked:
                step = self._in_place_of_a_refused(found)
                self._checked = found.leaf if step is None else None
        except CertificateError as error:
            bundle, why = self._new_bundle(), str(error)
            logger.warning("Secret %s/%s holds no certificate to serve with: %s", *self._where, why)
        else:
            if step is None:
                if self._last_good is None:
                    # Changes nothing, but fails where our account may not renew it one day.
                    await self._cluster.replace_tls_secret(namespace, name, {}, version)
                return found
            bundle, why = step
        await self._cluster.replace_tls_secret(namespace, name, bundle.as_secret_data(), version)
        logger.info("replaced the certificate in Secret %s/%s: %s", namespace, name, why)
        return bundle

    def _in_place_of_a_refused(self, found: Bundle) -> tuple[Bundle, str] | None:
        """Another leaf, and why, where clients refuse this one, as a hand-made one may be.

        `Bundle.next` has looked at names and dates only.

        Raises:
            CertificateError: where another leaf of this issuer is no better, but a new authority's.
        """
        if (why := self._why_refused(found)) is None:
            return None
        renewed = found.renew(self._hosts, self._now())
        if self._why_refused(renewed) is None:
            return renewed, why
        if self._why_refused(issue_bundle(self._hosts, self._now())) is None:
            raise CertificateError(why)
        logger.warning("clients may refuse every certificate for %s: %s", self._hosts[-1], why)
        return None

    def _why_refused(self, bundle: Bundle) -> str | None:
        try:
            verify(bundle.leaf, bundle.signer, self._hosts[-1], dates=False)
        except CertificateError as error:
            return str(error)
        return None

    def _new_bundle(self) -> Bundle:
        """A new authority; the last good leaf, where there is one, stays until it is trusted."""
        if self._last_good is not None:
            return self._last_good.announce(self._now())
        return issue_bundle(self._hosts, self._now())
