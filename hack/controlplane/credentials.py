"""What a client needs to be let in: a token, a signing key, kubeconfigs.

All of it is made for one run and lies in the run's own folder, readable by its owner only.
"""

import base64
import json
import secrets
from pathlib import Path

# RFC 5915's ECPrivateKey without its optional public key, which readers compute: a sequence of
# version 1, the 32 octets of the scalar, and the curve's name, prime256v1.
_P256_BEFORE = bytes.fromhex("30310201010420")
_P256_AFTER = bytes.fromhex("a00a06082a8648ce3d030107")
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def signing_key() -> str:
    """Return a new PEM key with which the API server signs service accounts' tokens.

    An elliptic curve's private key is a random number in a fixed frame, so neither openssl nor a
    library is needed.
    """
    scalar = 1 + secrets.randbelow(_P256_ORDER - 1)
    frame = _P256_BEFORE + scalar.to_bytes(32) + _P256_AFTER
    body = base64.encodebytes(frame).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{body}-----END EC PRIVATE KEY-----\n"


def certificate_authority(bundle: str) -> str:
    """Return the authority's certificate of a PEM bundle: the last, after the server's own."""
    begin = "-----BEGIN CERTIFICATE-----"
    return begin + bundle.rpartition(begin)[2]


def kubeconfig(
    *,
    url: str,
    authority: str,
    user: str,
    token: str,
    namespace: str,
    impersonated: tuple[str, ...] = (),
) -> str:
    """Return a kubeconfig of one user; JSON, which every reader of YAML reads.

    Args:
        url: the API server's address.
        authority: PEM certificate that it is trusted by.
        user: the user's name.
        token: the user's token.
        namespace: the default one.
        impersonated: where the token is an administrator's who acts as another: as whom (a name,
            then groups).
    """
    name = "local"
    certificate = base64.b64encode(authority.encode()).decode()
    cluster = {"server": url, "certificate-authority-data": certificate}
    context = {"cluster": name, "user": user, "namespace": namespace}
    who: dict[str, object] = {"token": token}
    if impersonated:
        who |= {"as": impersonated[0], "as-groups": list(impersonated[1:])}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": who}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
    return json.dumps(document, indent=2)


def write_private(path: Path, text: str) -> Path:
    """Write a file that only its owner may read, from its first moment on."""
    path.touch(mode=0o600)
    path.write_text(text)
    return path
