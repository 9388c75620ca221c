"""A certificate in files: of any kind, taken when it is whole, and the last good one stays."""

import asyncio
import contextlib
import os
import re
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import examples
from authorities import Kind, OwnAuthority, encrypted, openssl, traditional
from shield_operator.certificate_files import CertificateFiles
from shield_operator.certificate_source import utc_now
from shield_operator.certificates import split_certificates
from shield_operator.tls import server_context

SERVICE = "llm-shield-operator.llm-shield-system.svc"
FIRST, SECOND = OwnAuthority("ec", "first"), OwnAuthority("rsa", "second")


class Mount:
    """A mounted Secret: its files are links into a folder that is swapped as a whole."""

    def __init__(self, directory: Path, now: Callable[[], datetime] = utc_now) -> None:
        self._directory = directory
        self._versions = 0
        self.source = CertificateFiles(
            examples.settings(
                TLS_CERT_FILE=str(directory / "tls.crt"),
                TLS_KEY_FILE=str(directory / "tls.key"),
                TLS_CA_FILE=str(directory / "ca.crt"),
            ),
            now=now,
        )

    def put(self, certificate: bytes, key: bytes, authority: bytes) -> None:
        self._versions += 1
        version = self._directory / f"..{self._versions}"
        version.mkdir()
        for name, content in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", authority)):
            (version / name).write_bytes(content)
            link = self._directory / name
            if not link.is_symlink():
                link.symlink_to(f"..data/{name}")
        (self._directory / "..next").symlink_to(version.name)
        os.replace(self._directory / "..next", self._directory / "..data")  # noqa: PTH105  # as the kubelet does

    def look(self) -> bool:
        return asyncio.run(self.source.refresh())

    def publish(self) -> tuple[bytes, ...]:
        authorities = self.source.authorities
        assert authorities is not None
        self.source.saw([authorities, authorities])
        return split_certificates(authorities)

    @property
    def served(self) -> bytes | None:
        return self.source.leaf.certificate if self.source.leaf else None


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path)


def start(mount: Mount, authority: OwnAuthority = FIRST) -> bytes:
    """Begin with a good pair that is served; returns its certificate."""
    certificate, key = authority.issue(SERVICE)
    mount.put(certificate, key, authority.certificate)
    mount.source.saw([])
    assert mount.look()
    assert mount.served == certificate
    mount.publish()
    return certificate


@pytest.mark.parametrize("kind", ["rsa", "ec", "ed25519"])
@pytest.mark.parametrize("form", ["PKCS#8", "traditional"])
def test_keys_of_every_kind_and_form_are_served(mount: Mount, kind: Kind, form: str) -> None:
    if (kind, form) == ("ed25519", "traditional"):
        form = "PKCS#8"  # it has no other
    certificate, key = SECOND.issue(SERVICE, kind)
    mount.put(certificate, traditional(key) if form == "traditional" else key, SECOND.certificate)
    mount.source.saw([])
    assert mount.look()
    assert mount.source.leaf is not None
    assert handshake(server_context(mount.source.leaf), SECOND.certificate) == SERVICE


def test_a_traditional_key_with_its_parameters_before_it_is_served(mount: Mount) -> None:
    """As ``openssl ecparam -genkey`` writes it."""
    certificate, key = FIRST.issue(SERVICE)
    parameters = openssl("ecparam", "-name", "prime256v1")
    mount.put(certificate, parameters + traditional(key), FIRST.certificate)
    mount.source.saw([])
    assert mount.look()


def test_a_chain_is_served_whole_and_an_intermediate_may_be_trusted_itself(mount: Mount) -> None:
    intermediate = OwnAuthority()
    intermediate.certificate, intermediate.key = FIRST.issue("sub", authority=True)
    certificate, key = intermediate.issue(SERVICE)
    mount.source.saw([])
    for chain, authority in (
        (certificate + intermediate.certificate, FIRST.certificate),
        (certificate, intermediate.certificate),
    ):
        mount.put(chain, key, authority)
        assert mount.look()
        mount.publish()
        assert mount.served == chain


def test_a_renewed_leaf_is_served_at_once(mount: Mount) -> None:
    start(mount)
    certificate, key = FIRST.issue(SERVICE, "rsa")
    mount.put(certificate, key, FIRST.certificate)
    assert not mount.look()  # nothing else to publish
    assert mount.served == certificate
    assert not mount.look()


def test_a_new_authority_is_published_beside_the_old_one_before_it_is_served(mount: Mount) -> None:
    before = start(mount)
    certificate, key = SECOND.issue(SERVICE)
    mount.put(certificate, key, SECOND.certificate)
    assert mount.look()
    assert mount.served == before
    assert set(mount.publish()) == {FIRST.certificate, SECOND.certificate}
    assert mount.served == certificate


def test_what_is_no_good_leaves_the_last_good_one(
    mount: Mount, caplog: pytest.LogCaptureFixture
) -> None:
    before = start(mount)
    certificate, key = FIRST.issue(SERVICE)
    _, other_key = FIRST.issue(SERVICE)
    ours = FIRST.certificate
    for contents, complaint in (
        ((certificate, other_key, ours), "key values mismatch"),
        ((certificate[: len(certificate) // 2], key, ours), "cannot be served with"),
        ((certificate, key[:40], ours), "cannot be served with"),
        ((b"", key, ours), "cannot be served with"),
        ((certificate, b"\0garbage", ours), "cannot be served with"),
        ((certificate, key, b"garbage"), "ca.crt holds no certificate"),
        ((certificate, encrypted(key), ours), "the private key is encrypted: store it without"),
        ((certificate, key, SECOND.certificate), "unable to get local issuer certificate"),
        ((*FIRST.issue("other.svc"), ours), f"Hostname mismatch.*{SERVICE}"),
        ((*FIRST.issue(SERVICE, usage="clientAuth"), ours), "certificate is not good"),
    ):
        caplog.clear()
        mount.put(*contents)
        for _ in range(2):
            assert not mount.look()
        assert mount.served == before
        (message,) = caplog.messages  # once
        assert message.endswith("; the last good certificate stays")
        assert contents_free(message)
        assert re.search(complaint, message), message
    mount.put(certificate, key, ours)
    mount.look()
    assert mount.served == certificate


def contents_free(message: str) -> bool:
    return "PRIVATE KEY" not in message and "BEGIN" not in message


def test_files_that_are_missing_are_waited_for(
    mount: Mount, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert not mount.look()
    assert mount.source.authorities is None
    assert caplog.messages == [
        f"cannot read {tmp_path / 'tls.crt'}: No such file or directory; waiting for a good one"
    ]
    start(mount)


def handshake(context: ssl.SSLContext, authority: bytes) -> str:
    """The name that a client sees that trusts this authority, by a handshake in memory."""
    client_context = ssl.create_default_context(cadata=authority.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=SERVICE)
    for _ in range(3):
        for side in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    details: dict[str, Any] = client.getpeercert() or {}
    ((_, name),) = details["subjectAltName"]
    return str(name)


def test_a_certificate_that_nobody_renews_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = datetime.now(UTC)
    mount = Mount(tmp_path, lambda: now)
    start(mount)
    for days, warnings in ((0, 0), (60, 0), (64, 1), (65, 1), (89, 1)):
        now = datetime.now(UTC) + timedelta(days=days)
        mount.look()
        assert caplog.text.count("and was not renewed") == warnings
    certificate, key = SECOND.issue(SERVICE, days=2)
    now = datetime.now(UTC)
    mount.put(certificate, key, SECOND.certificate)
    mount.look()
    mount.publish()
    now += timedelta(days=1.9)
    mount.look()
    assert caplog.text.count("and was not renewed") == 2
