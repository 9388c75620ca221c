"""Certificates: issued, read back, renewed in time, and never mixed up."""

import base64
import contextlib
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from shield_operator.certificates import (
    LEAF_LIFETIME,
    OVERLAP,
    Bundle,
    CertificateError,
    ascii_host,
    issue_bundle,
    read_bundle,
    split_certificates,
)
from shield_operator.certificates.issuing import issue_leaf

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOSTS = ("llm-shield-operator.llm-shield-system.svc", "127.0.0.1", "::1")


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return issue_bundle(HOSTS, NOW)


def test_a_bundle_survives_the_secret(bundle: Bundle) -> None:
    assert read_bundle(bundle.as_secret_data()) == bundle
    assert bundle.hosts == set(HOSTS)
    assert bundle.leaf_validity.not_after == NOW + LEAF_LIFETIME


def test_openssl_trusts_the_leaf_by_its_authority(tmp_path: Path) -> None:
    """A TLS handshake in memory, with the strict checks that Python 3.13 makes by default."""
    bundle = issue_bundle(HOSTS, datetime.now(UTC))
    chain = tmp_path / "leaf.pem"
    chain.write_bytes(bundle.leaf.certificate + bundle.leaf.key)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(chain)
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    client_context.load_verify_locations(cadata=bundle.signer.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    for _ in range(2):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    assert client.version() == "TLSv1.3"


def test_each_authority_has_a_name_of_its_own(bundle: Bundle) -> None:
    assert issue_bundle(HOSTS, NOW).signer != bundle.signer


def step(bundle: Bundle, now: datetime, *live: bytes, hosts: Sequence[str] = HOSTS) -> Bundle:
    found = bundle.next(hosts, now, live)
    assert found is not None
    assert read_bundle(found[0].as_secret_data()) == found[0]
    return found[0]


def why(bundle: Bundle, now: datetime, *, hosts: Sequence[str] = HOSTS) -> str:
    found = bundle.next(hosts, now, ())
    assert found is not None
    return found[1]


def test_a_leaf_is_renewed_with_a_third_of_its_time_left(bundle: Bundle) -> None:
    assert bundle.next(HOSTS, NOW + timedelta(days=59), ()) is None
    later = NOW + timedelta(days=61)
    assert "it is good from" in why(bundle, later)
    renewed = step(bundle, later)
    assert renewed.authorities == bundle.authorities
    assert renewed.issuer == bundle.issuer
    assert renewed.leaf_validity.not_after == later + LEAF_LIFETIME
    assert renewed.next(HOSTS, later, ()) is None


def test_a_leaf_is_issued_for_new_hosts_and_keeps_the_others(bundle: Bundle) -> None:
    assert why(bundle, NOW, hosts=["new.svc"]) == "it is not for new.svc"
    assert step(bundle, NOW, hosts=["new.svc"]).hosts == {*HOSTS, "new.svc"}


def test_an_authority_is_replaced_in_three_steps(bundle: Bundle) -> None:
    """Announced beside the old one, then it signs the leaf, then the old one goes."""
    later = NOW + timedelta(days=3650 - 179)
    bundle = bundle.renew(HOSTS, later - timedelta(days=30))
    assert "its authority is good from" in why(bundle, later)
    announced = step(bundle, later)
    new = announced.issuer.certificate
    assert announced.authorities == (bundle.signer, new)
    assert announced.leaf == bundle.leaf
    assert announced.next(HOSTS, later, [bundle.signer]) is None  # until it is published

    overlapping = step(announced, later, bundle.signer, new)
    assert overlapping.authorities == (new, bundle.signer)
    assert overlapping.leaf != bundle.leaf
    assert overlapping.next(HOSTS, later + OVERLAP - timedelta(seconds=1), [new]) is None

    settled = step(overlapping, later + OVERLAP)
    assert settled.authorities == (new,)
    assert settled.leaf == overlapping.leaf
    assert settled.next(HOSTS, later + OVERLAP, [new]) is None


@pytest.mark.parametrize("moment", [NOW + timedelta(days=3651), NOW - timedelta(days=1)])
def test_an_authority_that_is_not_good_now_is_replaced_at_once(
    bundle: Bundle, moment: datetime
) -> None:
    """With a leaf of the new one: the old leaf is of no use to anybody."""
    assert "its authority is good from" in why(bundle, moment)
    replaced = step(bundle, moment)
    assert replaced.authorities == (replaced.issuer.certificate, bundle.signer)
    assert replaced.leaf_validity.includes(moment)


def test_an_announced_authority_signs_the_leaf_at_once_where_the_old_leaf_has_ended(
    bundle: Bundle,
) -> None:
    announced = bundle.announce(NOW)
    assert announced.next(HOSTS, NOW + timedelta(days=89), [bundle.signer]) is None
    replaced = step(announced, NOW + timedelta(days=91), bundle.signer)
    assert replaced.signer == announced.issuer.certificate


def test_a_leaf_never_outlives_its_authority(bundle: Bundle) -> None:
    late = NOW + timedelta(days=3650 - 40)
    leaf = issue_leaf(bundle.issuer, HOSTS, late)
    data = {**bundle.as_secret_data(), "tls.crt": leaf.certificate, "tls.key": leaf.key}
    assert read_bundle(data).leaf_validity.not_after == NOW + timedelta(days=3650)


def test_certificates_are_split_whatever_stands_around_them(bundle: Bundle) -> None:
    one, other = bundle.signer, issue_bundle(HOSTS, NOW).signer
    junk = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert split_certificates(b"# a\n" + one + junk + other.replace(b"\n", b"\r\n") + one) == (
        one,
        other,
    )
    for nothing in (b"", b"\0", b"garbage", junk, b"-----BEGIN CERTIFICATE-----"):
        assert split_certificates(nothing) == ()


@pytest.mark.parametrize("name", ["xn--bcher-kva.example", "0:0:0:0:0:0:0:1", "10.0.0.1"])
def test_hosts_come_back_in_the_form_that_settings_have_them(name: str) -> None:
    found = read_bundle(issue_bundle([name], NOW).as_secret_data())
    assert found.hosts == {ascii_host(name)}
    assert found.next([ascii_host(name)], NOW, ()) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda pem: pem.rstrip(),
        lambda pem: b"\n\n" + pem + b"trailing junk",
        lambda pem: pem.replace(b"\n", b"\r\n"),
        lambda pem: base64.b64decode(b"".join(pem.splitlines()[1:-1])),
    ],
    ids=["no last line break", "junk around", "CRLF", "DER"],
)
@pytest.mark.parametrize("key", ["tls.crt", "tls.key", "ca.crt", "ca.key"])
def test_what_can_be_read_is_encoded_anew(
    bundle: Bundle, key: str, change: Callable[[bytes], bytes]
) -> None:
    """OpenSSL is pickier than oscrypto: what it gets is always the same clean PEM."""
    data = bundle.as_secret_data()
    assert read_bundle({**data, key: change(data[key])}).as_secret_data() == data


def test_what_is_missing_or_garbage_is_named(bundle: Bundle) -> None:
    for key in bundle.as_secret_data():
        data = bundle.as_secret_data()
        del data[key]
        with pytest.raises(CertificateError, match=key):
            read_bundle(data)
        for garbage in (b"", b"\0", b"-----BEGIN CERTIFICATE-----\nAAAA\n"):
            with pytest.raises(CertificateError):
                read_bundle({**data, key: garbage})


def damaged(pem: bytes, step: int) -> Iterator[bytes]:
    """The same with one byte of its content or of its PEM changed, or cut off."""
    first, *lines, last = pem.splitlines()
    der = base64.b64decode(b"".join(lines))
    for place in range(0, len(der), step):
        for byte in {der[place] ^ 1, der[place] ^ 0x80, 0xFF}:
            content = der[:place] + bytes([byte]) + der[place + 1 :]
            yield b"\n".join((first, base64.b64encode(content), last))
        yield b"\n".join((first, base64.b64encode(der[:place]), last))
    for place in range(0, len(pem), 10 * step):
        yield pem[:place]
        yield pem[:place] + bytes([pem[place] ^ 1]) + pem[place + 1 :]


@pytest.mark.parametrize(("key", "step"), [("ca.crt", 2), ("tls.crt", 2), ("tls.key", 5)])
def test_whatever_byte_of_a_bundle_is_damaged_it_is_read_or_refused(
    bundle: Bundle, key: str, step: int
) -> None:
    """Any other exception would end the replica, and each one after it: nobody repairs it then."""
    data = bundle.as_secret_data()
    refused = 0
    for change in damaged(data[key], step):
        try:
            found = read_bundle({**data, key: change})
            found.next(HOSTS, NOW + timedelta(days=61), ())
        except CertificateError:
            refused += 1
    assert refused > 50


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
