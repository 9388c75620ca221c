"""The TLS contexts of the listener, and whether a client would accept what they serve."""

import ssl
import tempfile
from typing import Final

from shield_operator.certificates import CertificateError, KeyPair

_NO_CHECK_TIME: Final = 0x200000
"""OpenSSL's ``X509_V_FLAG_NO_CHECK_TIME``, which Python has no name for.
https://docs.openssl.org/3.0/man3/X509_VERIFY_PARAM_set_flags/
"""
_ROUNDS: Final = 4
"""Flights of a handshake in memory, more than any version of TLS has."""


def server_context(leaf: KeyPair, client_authorities: bytes | None = None) -> ssl.SSLContext:
    """A context for new connections.

    Args:
        leaf: what to serve with.
        client_authorities: PEM; where given, a client must have a certificate of one of them.

    Raises:
        CertificateError: where OpenSSL does not like any of it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    _load(context, leaf)
    if client_authorities is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        # A resumed session would not show its certificate again to a context that has changed.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        _trust(context, client_authorities)
    return context


def check_authorities(authorities: bytes) -> None:
    """Check that clients' certificates can be verified with these authorities, PEM.

    Raises:
        CertificateError: where OpenSSL does not like one of them.
    """
    _trust(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), authorities)


def _trust(context: ssl.SSLContext, client_authorities: bytes) -> None:
    try:
        context.load_verify_locations(cadata=client_authorities.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(f"the clients' authorities: {_reason(error)}") from error


def _load(context: ssl.SSLContext, leaf: KeyPair) -> None:
    """Make the context serve this leaf, which Python takes from files only."""

    def refuse() -> str:  # without it, OpenSSL would ask at the terminal
        raise CertificateError("the private key is encrypted: store it without a passphrase")

    with tempfile.NamedTemporaryFile() as certificate, tempfile.NamedTemporaryFile() as key:
        for file, content in ((certificate, leaf.certificate), (key, leaf.key)):
            file.write(content)
            file.flush()
        try:
            context.load_cert_chain(certificate.name, key.name, password=refuse)
        except ssl.SSLError as error:
            raise CertificateError(f"certificate and key: {_reason(error)}") from error


def verify(leaf: KeyPair, authorities: bytes, host: str, *, dates: bool = True) -> None:
    """Check that a client that trusts these authorities, and no others, accepts the leaf.

    With a handshake in memory, which checks all that one over the network would: the key, the
    chain, the name, what it may be used for, and the dates, unless they are not asked for.

    Raises:
        CertificateError: where it does not.
    """
    serving = server_context(leaf)
    calling = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    calling.hostname_checks_common_name = False  # as in Go
    calling.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate may be trusted itself
    if not dates:
        calling.verify_flags |= _NO_CHECK_TIME
    try:
        calling.load_verify_locations(cadata=authorities.decode("ascii", "replace"))
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = serving.wrap_bio(to_server, to_client, server_side=True)
        client = calling.wrap_bio(to_client, to_server, server_hostname=host)
        for _ in range(_ROUNDS):
            for side in (client, server):
                try:
                    side.do_handshake()
                except ssl.SSLWantReadError:
                    continue
    except ssl.SSLCertVerificationError as error:
        raise CertificateError(f"the certificate is not good: {error.verify_message}") from error
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(f"the certificate cannot be used: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """OpenSSL's words, such as KEY_VALUES_MISMATCH, without its error numbers."""
    words = getattr(error, "reason", None) or str(error)
    return str(words).replace("_", " ").lower()
