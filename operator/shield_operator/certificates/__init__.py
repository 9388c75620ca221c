"""Certificates: a long-lived authority of our own, short leaves of it, and when to serve which.

Pure but for randomness; the time is passed in. The only importer of certbuilder, and of oscrypto
and asn1crypto below it (docs/adr/0002-certbuilder.md).

* `issuing` makes single certificates and looks into them.
* `bundle` is what the replicas share, and the steps by which its authority is replaced.
* `trust` is what one replica may serve, given what the API server trusts
  (docs/adr/0005-overlapping-authorities.md).
"""

from shield_operator.certificates.bundle import Bundle, issue_bundle, read_bundle
from shield_operator.certificates.issuing import (
    AUTHORITY_LIFETIME,
    LEAF_LIFETIME,
    CertificateError,
    KeyPair,
    Validity,
    ascii_host,
    leaf_validity,
    split_certificates,
)
from shield_operator.certificates.trust import OVERLAP, Certificate, Trust

__all__ = [
    "AUTHORITY_LIFETIME",
    "LEAF_LIFETIME",
    "OVERLAP",
    "Bundle",
    "Certificate",
    "CertificateError",
    "KeyPair",
    "Trust",
    "Validity",
    "ascii_host",
    "issue_bundle",
    "leaf_validity",
    "read_bundle",
    "split_certificates",
]
