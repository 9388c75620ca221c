"""Certificates as somebody else makes them: by openssl, with keys of every kind."""

import base64
import secrets
import subprocess
import tempfile
from pathlib import Path
from typing import Final, Literal

Kind = Literal["rsa", "ec", "ed25519"]

_NEW_KEY: Final[dict[Kind, tuple[str, ...]]] = {
    "rsa": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
    "ec": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "ed25519": ("-algorithm", "ED25519"),
}


def openssl(*arguments: str, given: bytes | None = None) -> bytes:
    """What ``openssl`` prints."""
    return subprocess.run(
        ["openssl", *arguments],  # noqa: S607  # wherever the system has it
        input=given,
        capture_output=True,
        check=True,
    ).stdout


def new_key(kind: Kind) -> bytes:
    """A private key, PKCS#8."""
    return openssl("genpkey", *_NEW_KEY[kind])


def traditional(key: bytes) -> bytes:
    """The same key as PKCS#1 (RSA) or SEC 1 (EC)."""
    return openssl("pkey", "-traditional", given=key)


def encrypted(key: bytes) -> bytes:
    """The same key with a passphrase."""
    return openssl("pkey", "-aes256", "-passout", "pass:secret", given=key)


def spoiled_authority(pem: bytes) -> bytes:
    """An authority whose basic constraints are not what they must be, which shows late."""
    first, *lines, last = pem.splitlines()
    der = bytearray(base64.b64decode(b"".join(lines)))
    constraints = der.index(bytes.fromhex("0603551d13"))
    der[der.index(bytes.fromhex("30030101ff"), constraints)] = 0x31
    return b"\n".join((first, base64.b64encode(der), last, b""))


class OwnAuthority:
    """An authority that openssl made.

    Attributes:
        certificate: PEM.
    """

    def __init__(
        self,
        kind: Kind = "ec",
        name: str = "their authority",
        *,
        usage: str = "keyCertSign,cRLSign",
    ) -> None:
        self.key = new_key(kind)
        with tempfile.TemporaryDirectory() as directory:
            key = Path(directory) / "key"
            key.write_bytes(self.key)
            self.certificate = openssl(
                "req", "-x509", "-new", "-key", str(key), "-subj", f"/CN={name}", "-days", "3650",
                "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", f"keyUsage=critical,{usage}",
            )  # fmt: skip

    def issue(
        self,
        host: str,
        kind: Kind = "ec",
        *,
        usage: str = "serverAuth",
        days: int = 90,
        authority: bool = False,
    ) -> tuple[bytes, bytes]:
        """A certificate for a DNS name or ``IP:…``, and its key, both PEM."""
        leaf_key = new_key(kind)
        kind_of_name = host if host.startswith("IP:") else f"DNS:{host}"
        extensions = (
            "basicConstraints=critical,CA:TRUE\n"
            if authority
            else f"extendedKeyUsage={usage}\nsubjectAltName={kind_of_name}\n"
        )
        with tempfile.TemporaryDirectory() as directory:
            key, ca_key, ca, extra, request = (
                Path(directory) / name for name in ("key", "ca.key", "ca", "extra", "request")
            )
            key.write_bytes(leaf_key)
            ca_key.write_bytes(self.key)
            ca.write_bytes(self.certificate)
            extra.write_text(extensions, encoding="ascii")
            request.write_bytes(
                openssl("req", "-new", "-key", str(key), "-subj", f"/O=them/CN={kind}")
            )
            certificate = openssl(
                "x509", "-req", "-in", str(request), "-CA", str(ca), "-CAkey", str(ca_key),
                "-set_serial", str(secrets.randbits(63)), "-days", str(days),
                "-extfile", str(extra),
            )  # fmt: skip
        return certificate, leaf_key

    def secret_data(self, host: str) -> dict[str, bytes]:
        """A Secret as the operator's own: all that it needs to go on with this authority."""
        certificate, key = self.issue(host, "rsa")
        return {
            "tls.crt": certificate,
            "tls.key": key,
            "ca.crt": self.certificate,
            "ca.key": self.key,
        }
