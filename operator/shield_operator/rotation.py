"""Keeping the replica's certificate: from the shared Secret into the live TLS context."""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import urlsplit

from shield_operator.certificates import (
    Bundle,
    CertificateError,
    KeyPair,
    issue_bundle,
    read_bundle,
    renew_leaf,
)
from shield_operator.cluster import Cluster, Conflict, NotFound
from shield_operator.settings import Settings

logger = logging.getLogger(__name__)


class SharedCertificate:
    """The certificate that all replicas share; the first one to write it wins.

    Its authority goes into the webhook configuration and its leaf into `context`, the one TLS
    context of the listener: new connections get a new leaf, and no listener is closed for it.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._where = (settings.namespace, settings.tls_secret_name)
        self._hosts = served_hosts(settings)
        self._now = now
        self._loaded: Bundle | None = None
        self.context = _server_context()
        self.available = asyncio.Event()
        """Set when the context has a certificate for the first time."""

    @property
    def authority(self) -> bytes | None:
        """The certificate, PEM, that the API server must trust; None before there is one."""
        return self._loaded.authority.certificate if self._loaded else None

    async def refresh(self) -> bool:
        """Look at the Secret, put it right where it is not, and serve with what it holds.

        Returns:
            Whether the authority is a new one.

        Raises:
            ClusterError: where the API server does not let us; what was served goes on being.
        """
        try:
            bundle = await self._shared_bundle()
        except Conflict:
            bundle = await self._shared_bundle()
        if bundle == self._loaded:
            return False
        _load(self.context, bundle.leaf)
        is_new = self._loaded is None or self._loaded.authority != bundle.authority
        self._loaded = bundle
        self.available.set()
        logger.info("serving with a certificate until %s", bundle.leaf_validity.not_after)
        return is_new

    async def _shared_bundle(self) -> Bundle:
        """The Secret's content, after it was created, renewed or repaired where that was needed."""
        namespace, name = self._where
        try:
            data, version = await self._cluster.read_tls_secret(namespace, name)
        except NotFound:
            bundle = self._loaded or issue_bundle(self._hosts, self._now())
            await self._cluster.create_tls_secret(namespace, name, bundle.as_secret_data())
            logger.info("created Secret %s/%s with a new certificate", namespace, name)
            return bundle
        now = self._now()
        try:
            found = read_bundle(data)
            _load(_server_context(), found.leaf)
        except (CertificateError, ssl.SSLError) as error:
            bundle, why = self._loaded or issue_bundle(self._hosts, now), str(error)
            logger.warning("Secret %s/%s holds no certificate to serve with: %s", *self._where, why)
        else:
            # The names of the others stay in, or replicas of different settings would take turns.
            hosts = sorted(found.hosts.union(self._hosts))
            if reason := found.why_replace(now):
                bundle, why = issue_bundle(hosts, now), reason
            elif reason := found.why_renew(self._hosts, now):
                bundle, why = renew_leaf(found.authority, hosts, now), reason
            else:
                if self._loaded is None:
                    # Changes nothing, but fails where our account may not renew it one day.
                    await self._cluster.replace_tls_secret(namespace, name, {}, version)
                return found
        await self._cluster.replace_tls_secret(namespace, name, bundle.as_secret_data(), version)
        logger.info("replaced the certificate in Secret %s/%s: %s", namespace, name, why)
        return bundle


def served_hosts(settings: Settings) -> tuple[str, ...]:
    """The names and addresses by which the API server calls us."""
    service = f"{settings.webhook_service}.{settings.namespace}.svc"
    if settings.webhook_url is None:
        return (service,)
    return (service, urlsplit(settings.webhook_url).hostname or "")


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load(context: ssl.SSLContext, leaf: KeyPair) -> None:
    """Make new connections use this leaf. Python takes it from a file only.

    Raises:
        ssl.SSLError: where OpenSSL does not like it.
    """
    with tempfile.NamedTemporaryFile() as file:
        file.write(leaf.certificate + leaf.key)
        file.flush()
        context.load_cert_chain(file.name)
