"""Authentication's files: what cannot be used changes nothing."""

import asyncio
import base64
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import examples
from authorities import OwnAuthority
from shield_operator.authentication import Authentication
from shield_operator.certificates import CertificateError, split_certificates
from shield_operator.settings import SettingsError
from shield_operator.tls import check_authorities

GOOD, OTHER = OwnAuthority("ec", "good"), OwnAuthority("ec", "other")


def broken(pem: bytes) -> Iterator[bytes]:
    """The same, damaged so that only OpenSSL, which has to work with it, sees it."""
    der = base64.b64decode(b"".join(pem.splitlines()[1:-1]))
    for place in range(len(der)):
        changed = der[:place] + bytes([der[place] ^ 1]) + der[place + 1 :]
        for found in split_certificates(changed):
            try:
                check_authorities(found)
            except CertificateError:
                yield found


def test_clients_authorities_that_openssl_cannot_load_leave_the_last_good_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They would have every client refused."""
    file = tmp_path / "clients.crt"
    file.write_bytes(GOOD.certificate)
    settings = examples.settings(WEBHOOK_CLIENT_CA_FILE=str(file))
    authentication = Authentication(settings)
    before = authentication.client_authorities
    assert before == GOOD.certificate

    bad = next(broken(GOOD.certificate))
    file.write_bytes(OTHER.certificate + bad)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            asyncio.run(authentication.refresh())
    assert authentication.client_authorities == before
    assert len(caplog.messages) == 1
    assert "a certificate in it cannot be used" in caplog.text
    with pytest.raises(SettingsError, match="cannot be used"):
        Authentication(settings)

    file.write_bytes(OTHER.certificate)
    asyncio.run(authentication.refresh())
    assert authentication.client_authorities == OTHER.certificate
