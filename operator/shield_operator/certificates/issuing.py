"""Issuing single certificates, and looking into them."""

import base64
import ipaddress
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
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
CLOCK_SKEW: Final = timedelta(minutes=10)
"""How far one machine's clock may be behind another's without refusing a new certificate."""
_LATEST_END: Final = datetime(2049, 12, 31, tzinfo=UTC)
"""Certificates write later dates in another way, which certbuilder does not know."""

_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL
)
_VERIFIERS: Final[Mapping[str, Callable[..., None]]] = {
    "ecdsa": asymmetric.ecdsa_verify,
    "rsassa_pkcs1v15": asymmetric.rsa_pkcs1v15_verify,
    "rsassa_pss": asymmetric.rsa_pss_verify,
}


class CertificateError(Exception):
    """Data that is not the certificate and key it should be; the message says what is wrong."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever goes wrong inside is a `CertificateError`: the data is damaged there.

    asn1crypto parses each part of a certificate when it is first looked at, and nothing says what
    it raises then.
    """
    try:
        yield
    except CertificateError:
        raise
    except Exception as error:
        why = " ".join(str(error).split())
        raise CertificateError(f"{what} holds what cannot be read: {why}") from error


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

    @property
    def length(self) -> timedelta:
        """How long it is good in all."""
        return self.not_after - self.not_before

    def includes(self, moment: datetime) -> bool:
        """Whether it is good at that moment, by whichever clock."""
        return self.not_before - CLOCK_SKEW <= moment < self.not_after


def issue_authority(now: datetime) -> KeyPair:
    """A new authority, self-signed, with a name of its own."""
    public, private = asymmetric.generate_pair("ec", curve="secp256r1")
    builder = CertificateBuilder(
        {"common_name": f"{names.OPERATOR}-ca-{secrets.token_hex(4)}"}, public
    )
    builder.self_signed = True
    builder.ca = True
    _set_lifetime(builder, now, now + AUTHORITY_LIFETIME)
    return _key_pair(builder.build(private), private)


def issue_leaf(authority: KeyPair, hosts: Sequence[str], now: datetime) -> KeyPair:
    """A new leaf of this authority, for these DNS names and IP addresses; never outliving it."""
    public, private = asymmetric.generate_pair("ec", curve="secp256r1")
    builder = CertificateBuilder({"common_name": names.OPERATOR}, public)
    issuer = asymmetric.load_certificate(authority.certificate)
    builder.issuer = issuer
    addresses = [host for host in hosts if _is_address(host)]
    builder.subject_alt_domains = [host for host in hosts if host not in addresses]
    builder.subject_alt_ips = addresses
    builder.extended_key_usage = {"server_auth"}
    _set_lifetime(builder, now, min(now + LEAF_LIFETIME, validity(issuer.asn1).not_after))
    return _key_pair(builder.build(asymmetric.load_private_key(authority.key)), private)


def checked_pair(pair: KeyPair, which: str) -> tuple[KeyPair, x509.Certificate]:
    """The pair encoded anew, so that OpenSSL reads it whatever stood around it.

    Raises:
        CertificateError: where it cannot be read, or the key is another certificate's.
    """
    try:
        certificate = asymmetric.load_certificate(pair.certificate)
        public = certificate.public_key.asn1.dump()
    except Exception as error:  # oscrypto has no common base class for what it raises
        raise CertificateError(f"{which}.crt is not a certificate") from error
    try:
        key = asymmetric.load_private_key(pair.key)
        same = key.public_key.asn1.dump() == public
    except Exception as error:
        raise CertificateError(f"{which}.key is not a private key") from error
    if not same:
        raise CertificateError(f"{which}.key is not the key of {which}.crt")
    return _key_pair(certificate, key), certificate.asn1


def split_certificates(data: bytes) -> tuple[bytes, ...]:
    """Each certificate of a PEM bundle (or a single DER one), encoded anew, once, in order.

    What is not a certificate is left out: others may have written it.
    """
    found: dict[bytes, None] = {}
    for block in _CERTIFICATE.findall(data) or [base64.b64encode(data)]:
        with suppress(Exception):  # asn1crypto has no common base class for what it raises
            der = base64.b64decode(b"".join(block.split()), validate=True)
            certificate = x509.Certificate.load(der, strict=True)
            # It is read as far as it is looked at only; the rest might be garbage.
            validity(certificate)
            certificate.public_key.dump()
            found[pem_armor_certificate(certificate)] = None
    return tuple(found)


def is_signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether that authority has signed it, by name and by signature."""
    try:
        verify = _VERIFIERS.get(certificate["signature_algorithm"].signature_algo)
        if verify is None or not authority.ca or certificate.issuer != authority.subject:
            return False
        verify(
            asymmetric.load_public_key(authority.public_key),
            certificate["signature_value"].native,
            certificate["tbs_certificate"].dump(),
            certificate.hash_algo,
        )
    except Exception:  # noqa: BLE001  # does not fit, or is damaged
        return False
    return True


def load_authority(pem: bytes) -> x509.Certificate:
    """A certificate of `split_certificates`, to be looked into."""
    return asymmetric.load_certificate(pem).asn1


def ascii_host(host: str) -> str:
    """A DNS name or an IP address in the one form that two of them can be compared in.

    Raises:
        ValueError: where it is neither.
    """
    with suppress(ValueError):
        return str(ipaddress.ip_address(host))
    return host.encode("idna").decode("ascii").lower()


def read_validity(certificate: bytes) -> Validity:
    """From when to when a certificate, PEM, is good; the first one where there is a chain.

    Raises:
        CertificateError: where it is none.
    """
    found = split_certificates(certificate)
    if not found:
        raise CertificateError("tls.crt holds no certificate")
    return validity(load_authority(found[0]))


def validity(certificate: x509.Certificate) -> Validity:
    """From when to when it is good."""
    return Validity(
        certificate.not_valid_before.astimezone(UTC), certificate.not_valid_after.astimezone(UTC)
    )


def _set_lifetime(builder: CertificateBuilder, now: datetime, end: datetime) -> None:
    builder.begin_date = now - CLOCK_SKEW
    builder.end_date = min(end, _LATEST_END)


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
