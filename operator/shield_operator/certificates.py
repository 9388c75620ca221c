"""Issuing and reading certificates: a long-lived authority of our own, and short leaves of it.

Pure but for randomness; the time is passed in. The only importer of certbuilder, and of oscrypto
and asn1crypto below it (docs/adr/0002-certbuilder.md).
"""

import ipaddress
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from shield_operator import names


@contextmanager
def _two_digit_openssl_patches() -> Iterator[None]:
    """Let oscrypto 1.3.0 recognize OpenSSL 3.0.10 and later while it is imported.

    Its pattern for the version takes one digit a part, and the fix was never released. The test
    ``test_oscrypto_still_needs_the_wider_pattern`` says when this can go.
    """
    search = re.search
    narrow, wide = r"\b(\d\.\d\.\d[a-z]*)\b", r"\b(\d\.\d+\.\d+[a-z]*)\b"

    def tolerant(pattern: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401  # as re's
        return search(wide if pattern == narrow else pattern, *arguments, **options)

    re.search = tolerant
    try:
        yield
    finally:
        re.search = search


with _two_digit_openssl_patches():
    from asn1crypto import x509
    from certbuilder import CertificateBuilder, pem_armor_certificate
    from oscrypto import asymmetric

AUTHORITY_LIFETIME: Final = timedelta(days=3650)
LEAF_LIFETIME: Final = timedelta(days=90)
_CLOCK_SKEW: Final = timedelta(minutes=10)
"""How far another machine's clock may be behind ours without refusing a new certificate."""


class CertificateError(Exception):
    """Data that is not the certificate and key it should be; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Validity:
    """From when to when a certificate is good."""

    not_before: datetime
    not_after: datetime

    def includes(self, moment: datetime) -> bool:
        """Whether it is good at that moment."""
        return self.not_before <= moment < self.not_after


@dataclass(frozen=True, slots=True)
class Bundle:
    """All that a replica serves with: its leaf, and the authority that signed it."""

    authority: KeyPair
    authority_validity: Validity
    leaf: KeyPair
    leaf_validity: Validity
    hosts: frozenset[str]
    """The names and addresses that the leaf is for, in their ASCII forms."""

    def as_secret_data(self) -> dict[str, bytes]:
        """The content of the shared Secret (type ``kubernetes.io/tls``)."""
        return _secret_data(self.authority, self.leaf)

    def why_replace(self, now: datetime) -> str | None:
        """Why the authority must be issued again, and the leaf with it; None where it is good."""
        validity = self.authority_validity
        if not validity.includes(now):
            return f"its authority is good from {validity.not_before} to {validity.not_after} only"
        return None

    def why_renew(self, hosts: Sequence[str], now: datetime) -> str | None:
        """Why the leaf must be issued again, or None where it is good for these hosts."""
        if missing := sorted(set(hosts) - self.hosts):
            return f"it is not for {', '.join(missing)}"
        validity = self.leaf_validity
        if not validity.includes(now) or validity.not_after - now < LEAF_LIFETIME / 3:
            return f"it is good from {validity.not_before} to {validity.not_after}"
        return None


def issue_bundle(hosts: Sequence[str], now: datetime) -> Bundle:
    """A new authority, and a leaf of it for these DNS names and IP addresses."""
    public, private = asymmetric.generate_pair("ec", curve="secp256r1")
    builder = CertificateBuilder(
        {"common_name": f"{names.OPERATOR}-ca-{secrets.token_hex(4)}"}, public
    )
    builder.self_signed = True
    builder.ca = True
    _set_lifetime(builder, now, AUTHORITY_LIFETIME)
    return renew_leaf(_key_pair(builder.build(private), private), hosts, now)


def renew_leaf(authority: KeyPair, hosts: Sequence[str], now: datetime) -> Bundle:
    """A new leaf of this authority, for these DNS names and IP addresses."""
    public, private = asymmetric.generate_pair("ec", curve="secp256r1")
    builder = CertificateBuilder({"common_name": names.OPERATOR}, public)
    builder.issuer = asymmetric.load_certificate(authority.certificate)
    addresses = [host for host in hosts if _is_address(host)]
    builder.subject_alt_domains = [host for host in hosts if host not in addresses]
    builder.subject_alt_ips = addresses
    builder.extended_key_usage = {"server_auth"}
    _set_lifetime(builder, now, LEAF_LIFETIME)
    leaf = builder.build(asymmetric.load_private_key(authority.key))
    return read_bundle(_secret_data(authority, _key_pair(leaf, private)))


def read_bundle(data: Mapping[str, bytes]) -> Bundle:
    """Read what `Bundle.as_secret_data` wrote, and check that its parts belong together.

    What comes back is encoded anew, so that OpenSSL reads it whatever stood around it.

    Raises:
        CertificateError: where anything is missing, unreadable, or does not fit the rest.
    """
    try:
        given_authority = KeyPair(data["ca.crt"], data["ca.key"])
        given_leaf = KeyPair(data["tls.crt"], data["tls.key"])
    except KeyError as missing:
        raise CertificateError(f"{missing.args[0]} is missing") from None
    authority, ca_certificate = _checked_pair(given_authority, "ca")
    leaf, certificate = _checked_pair(given_leaf, "tls")
    if not ca_certificate.ca:
        raise CertificateError("ca.crt is not the certificate of an authority")
    try:
        asymmetric.ecdsa_verify(
            asymmetric.load_public_key(ca_certificate.public_key),
            certificate["signature_value"].native,
            certificate["tbs_certificate"].dump(),
            certificate.hash_algo,
        )
    except Exception as error:  # oscrypto has no common base class for what it raises
        raise CertificateError("tls.crt is not signed by ca.crt") from error
    try:
        hosts = frozenset(map(ascii_host, (*certificate.valid_domains, *certificate.valid_ips)))
        return Bundle(authority, _validity(ca_certificate), leaf, _validity(certificate), hosts)
    except ValueError as error:
        raise CertificateError(f"tls.crt or ca.crt holds what cannot be read: {error}") from error


def read_validity(certificate: bytes) -> Validity:
    """From when to when a certificate, PEM, is good.

    Raises:
        CertificateError: where it is none.
    """
    try:
        return _validity(asymmetric.load_certificate(certificate).asn1)
    except Exception as error:  # oscrypto has no common base class for what it raises
        raise CertificateError("tls.crt is not a certificate") from error


def ascii_host(host: str) -> str:
    """A DNS name or an IP address in the one form that two of them can be compared in.

    Raises:
        ValueError: where it is neither.
    """
    with suppress(ValueError):
        return str(ipaddress.ip_address(host))
    return host.encode("idna").decode("ascii").lower()


def _secret_data(authority: KeyPair, leaf: KeyPair) -> dict[str, bytes]:
    return {
        "tls.crt": leaf.certificate,
        "tls.key": leaf.key,
        "ca.crt": authority.certificate,
        "ca.key": authority.key,
    }


def _checked_pair(pair: KeyPair, which: str) -> tuple[KeyPair, x509.Certificate]:
    try:
        certificate = asymmetric.load_certificate(pair.certificate)
        public = certificate.public_key.asn1.dump()
    except Exception as error:
        raise CertificateError(f"{which}.crt is not a certificate") from error
    try:
        key = asymmetric.load_private_key(pair.key)
        same = key.public_key.asn1.dump() == public
    except Exception as error:
        raise CertificateError(f"{which}.key is not a private key") from error
    if not same:
        raise CertificateError(f"{which}.key is not the key of {which}.crt")
    return _key_pair(certificate, key), certificate.asn1


def _validity(certificate: x509.Certificate) -> Validity:
    return Validity(
        certificate.not_valid_before.astimezone(UTC), certificate.not_valid_after.astimezone(UTC)
    )


def _set_lifetime(builder: CertificateBuilder, now: datetime, lifetime: timedelta) -> None:
    builder.begin_date = now - _CLOCK_SKEW
    builder.end_date = now + lifetime


def _key_pair(certificate: x509.Certificate, private: asymmetric.PrivateKey) -> KeyPair:
    return KeyPair(
        pem_armor_certificate(certificate), asymmetric.dump_private_key(private, passphrase=None)
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
