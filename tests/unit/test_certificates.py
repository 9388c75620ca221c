"""Certificates: issued, read back, renewed in time, and never mixed up."""

import contextlib
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from shield_operator.certificates import (
    LEAF_LIFETIME,
    Bundle,
    CertificateError,
    issue_bundle,
    read_bundle,
    renew_leaf,
)

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOSTS = ("llm-shield-operator.llm-shield-system.svc", "127.0.0.1", "::1")


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return issue_bundle(HOSTS, NOW)


def test_a_bundle_survives_the_secret(bundle: Bundle) -> None:
    assert read_bundle(bundle.as_secret_data()) == bundle
    assert bundle.hosts == set(HOSTS)
    assert bundle.not_after == NOW + LEAF_LIFETIME


def test_openssl_trusts_the_leaf_by_its_authority(tmp_path: Path) -> None:
    """A TLS handshake in memory, with the strict checks that Python 3.13 makes by default."""
    bundle = issue_bundle(HOSTS, datetime.now(UTC))
    chain = tmp_path / "leaf.pem"
    chain.write_bytes(bundle.leaf.certificate + bundle.leaf.key)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(chain)
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    client_context.load_verify_locations(cadata=bundle.authority.certificate.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    for _ in range(2):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    assert client.version() == "TLSv1.3"


def test_each_authority_has_a_name_of_its_own(bundle: Bundle) -> None:
    assert issue_bundle(HOSTS, NOW).authority.certificate != bundle.authority.certificate


def test_a_renewed_leaf_keeps_the_authority(bundle: Bundle) -> None:
    later = NOW + timedelta(days=70)
    renewed = renew_leaf(bundle.authority, HOSTS, later)
    assert renewed.authority == bundle.authority
    assert renewed.not_after == later + LEAF_LIFETIME


def test_a_leaf_is_renewed_with_a_third_of_its_time_left(bundle: Bundle) -> None:
    assert bundle.why_renew(HOSTS, NOW + timedelta(days=59)) is None
    assert "ends at" in (bundle.why_renew(HOSTS, NOW + timedelta(days=61)) or "")
    assert bundle.why_renew([*HOSTS, "new.svc"], NOW) == "it is not for new.svc"


def test_what_is_missing_or_garbage_is_named(bundle: Bundle) -> None:
    for key in bundle.as_secret_data():
        data = bundle.as_secret_data()
        del data[key]
        with pytest.raises(CertificateError, match=key):
            read_bundle(data)
        for garbage in (b"", b"\0", b"-----BEGIN CERTIFICATE-----\nAAAA\n"):
            with pytest.raises(CertificateError):
                read_bundle({**data, key: garbage})


def test_parts_of_two_bundles_do_not_pass(bundle: Bundle) -> None:
    other = issue_bundle(HOSTS, NOW).as_secret_data()
    mine = bundle.as_secret_data()
    with pytest.raises(CertificateError, match=r"tls.key is not the key of tls.crt"):
        read_bundle({**mine, "tls.key": other["tls.key"]})
    with pytest.raises(CertificateError, match="not signed by"):
        read_bundle({**mine, "tls.crt": other["tls.crt"], "tls.key": other["tls.key"]})
    with pytest.raises(CertificateError, match="not the certificate of an authority"):
        read_bundle({**mine, "ca.crt": mine["tls.crt"], "ca.key": mine["tls.key"]})


def test_oscrypto_still_needs_the_wider_pattern() -> None:
    """When this fails, oscrypto can read OpenSSL 3.0.10: drop `_two_digit_openssl_patches`."""
    for backend in ("_libcrypto_cffi.py", "_libcrypto_ctypes.py"):
        source = resources.files("oscrypto").joinpath("_openssl", backend).read_text()
        assert r"'\\b(\\d\\.\\d\\.\\d[a-z]*)\\b'" in source


def test_the_pattern_is_widened_during_the_import_only() -> None:
    program = (
        "import re; before = re.search; import shield_operator.certificates; "
        "assert re.search is before; import oscrypto"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
