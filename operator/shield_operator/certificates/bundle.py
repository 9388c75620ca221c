"""What all replicas share: a leaf, the authorities to trust, and the key of the next leaf.

An authority is replaced in three steps, each of them one write of the shared Secret, by whichever
replica is first. Where a bundle stands can be read from it:

==============  =========================  =======================================================
state           ``ca.crt``                 next step, and when
==============  =========================  =======================================================
settled         issuer                     *announce* a new issuer: the old one is near its end, or
                                           the Secret was deleted or holds garbage
announced       signer of the leaf,        a leaf of the new issuer: once the live webhook
                new issuer                 configuration carries it, or the leaf has ended
overlapping     issuer, which has signed   *drop* the old one: `OVERLAP` after the leaf was issued
                the leaf, and the old one
==============  =========================  =======================================================

``ca.key`` is always the issuer's. Somebody else may write a wholly new bundle at any time; that a
replica does not serve it too early is `trust`'s part.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from shield_operator.certificates.issuing import (
    CLOCK_SKEW,
    CertificateError,
    KeyPair,
    Validity,
    ascii_host,
    checked_pair,
    is_signed_by,
    issue_authority,
    issue_leaf,
    load_authority,
    reading,
    split_certificates,
    validity,
)
from shield_operator.certificates.trust import OVERLAP, Certificate

_LAST_PART: Final = timedelta(days=180)
"""An authority is replaced when so much is left of it: well above a leaf's lifetime."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The content of the shared Secret (type ``kubernetes.io/tls``)."""

    authorities: tuple[bytes, ...]
    """Certificates, PEM, to trust: the one that signed the leaf comes first."""
    issuer: KeyPair
    """The authority that signs the next leaf."""
    issuer_validity: Validity
    leaf: KeyPair
    leaf_validity: Validity
    hosts: frozenset[str]
    """The names and addresses that the leaf is for, in their ASCII forms."""

    @property
    def signer(self) -> bytes:
        """The authority that signed the leaf."""
        return self.authorities[0]

    @property
    def certificate(self) -> Certificate:
        """What a replica serves with this bundle."""
        return Certificate(self.leaf, frozenset((self.signer,)), self.authorities)

    def as_secret_data(self) -> dict[str, bytes]:
        """The values to store."""
        return {
            "tls.crt": self.leaf.certificate,
            "tls.key": self.leaf.key,
            "ca.crt": b"".join(self.authorities),
            "ca.key": self.issuer.key,
        }

    def announce(self, now: datetime) -> "Bundle":
        """The same leaf, with a new issuer beside the authority that signed it.

        No others: an issuer that was announced and has signed nothing needs no trust, and one of
        before is published for as long as it is in use (`Trust`).
        """
        issuer = issue_authority(now)
        authorities = (self.signer, issuer.certificate)
        issuer_validity = validity(load_authority(issuer.certificate))
        return replace(
            self, authorities=authorities, issuer=issuer, issuer_validity=issuer_validity
        )

    def next(
        self, hosts: Collection[str], now: datetime, live: Collection[bytes]
    ) -> tuple["Bundle", str] | None:
        """The next step, and why it is due; None where nothing is to be done now.

        Args:
            hosts: the names and addresses that the leaf must be for.
            now: the time.
            live: the authorities, PEM, that the live webhook configuration carries.

        Raises:
            CertificateError: where somebody else's issuer cannot be used for a leaf.
        """
        if reason := self._why_replace(now):
            announced = self.announce(now)
            return (announced if self._is_of_use(now) else announced.renew(hosts, now)), reason
        if self.signer != self.issuer.certificate:
            if self.issuer.certificate in live:
                return self.renew(hosts, now), "its new authority is published"
            # Nobody is let down by another leaf where this one has ended.
            return None if self._is_of_use(now) else (self.renew(hosts, now), "it has ended")
        if reason := self._why_renew(hosts, now):
            return self.renew(hosts, now), reason
        issued = self.leaf_validity.not_before + CLOCK_SKEW
        if len(self.authorities) > 1 and now - issued >= OVERLAP:
            alone = (self.signer,)
            return replace(self, authorities=alone), "its old authority is not needed any more"
        return None

    def renew(self, hosts: Collection[str], now: datetime) -> "Bundle":
        """A new leaf of the issuer.

        Raises:
            CertificateError: where somebody else's issuer cannot be used for one.
        """
        # The names of others stay in, or replicas of different settings would take turns.
        with reading("ca.crt"):
            leaf = issue_leaf(self.issuer, sorted(self.hosts.union(hosts)), now)
        return read_bundle(
            {**self.as_secret_data(), "tls.crt": leaf.certificate, "tls.key": leaf.key}
        )

    def _is_of_use(self, now: datetime) -> bool:
        """Whether the leaf is good now, and its authority too."""
        signer = validity(load_authority(self.signer))
        return self.leaf_validity.includes(now) and signer.includes(now)

    def _why_replace(self, now: datetime) -> str | None:
        """Why the issuer must be replaced, or None where it is good for long."""
        good = self.issuer_validity
        if not good.includes(now) or good.not_after - now < min(_LAST_PART, good.length / 3):
            return f"its authority is good from {good.not_before} to {good.not_after} only"
        return None

    def _why_renew(self, hosts: Collection[str], now: datetime) -> str | None:
        """Why the leaf must be issued again, or None where it is good for these hosts."""
        if missing := sorted(set(hosts) - self.hosts):
            return f"it is not for {', '.join(missing)}"
        good = self.leaf_validity
        if not good.includes(now) or good.not_after - now < good.length / 3:
            return f"it is good from {good.not_before} to {good.not_after}"
        return None


def issue_bundle(hosts: Collection[str], now: datetime) -> Bundle:
    """A new authority, and a leaf of it for these DNS names and IP addresses."""
    authority = issue_authority(now)
    leaf = issue_leaf(authority, sorted(hosts), now)
    return read_bundle(
        {
            "tls.crt": leaf.certificate,
            "tls.key": leaf.key,
            "ca.crt": authority.certificate,
            "ca.key": authority.key,
        }
    )


def read_bundle(data: Mapping[str, bytes]) -> Bundle:
    """Read what `Bundle.as_secret_data` wrote, and check that its parts belong together.

    Raises:
        CertificateError: where anything is missing, unreadable, or does not fit the rest.
    """
    try:
        given_authorities, issuer_key = data["ca.crt"], data["ca.key"]
        given_leaf = KeyPair(data["tls.crt"], data["tls.key"])
    except KeyError as missing:
        raise CertificateError(f"{missing.args[0]} is missing") from None
    with reading("tls.crt or ca.crt"):
        return _parsed(given_authorities, issuer_key, given_leaf)


def _parsed(given_authorities: bytes, issuer_key: bytes, given_leaf: KeyPair) -> Bundle:
    authorities = split_certificates(given_authorities)
    issuer = _issuer(authorities, issuer_key)
    issuer_certificate = load_authority(issuer.certificate)
    if not issuer_certificate.ca:
        raise CertificateError("ca.crt is not the certificate of an authority")
    leaf, certificate = checked_pair(given_leaf, "tls")
    signers = [one for one in authorities if is_signed_by(certificate, load_authority(one))]
    if not signers:
        raise CertificateError("tls.crt is not signed by ca.crt")
    signer = issuer.certificate if issuer.certificate in signers else signers[0]
    return Bundle(
        authorities=(signer, *(one for one in authorities if one != signer)),
        issuer=issuer,
        issuer_validity=validity(issuer_certificate),
        leaf=leaf,
        leaf_validity=validity(certificate),
        hosts=frozenset(map(ascii_host, (*certificate.valid_domains, *certificate.valid_ips))),
    )


def _issuer(authorities: tuple[bytes, ...], key: bytes) -> KeyPair:
    """The authority that the key belongs to."""
    why = CertificateError("ca.crt is not a certificate")
    for authority in reversed(authorities):
        try:
            return checked_pair(KeyPair(authority, key), "ca")[0]
        except CertificateError as error:
            why = error
    raise why
