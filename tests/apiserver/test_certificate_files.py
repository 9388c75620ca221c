"""A certificate from files: the API server trusts it through each change, pods are injected."""

import base64
import ssl
import time
from pathlib import Path

import examples
from authorities import OwnAuthority, encrypted, traditional
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess
from support import (
    INJECT,
    WEBHOOKS,
    apply,
    create_pod,
    eventually,
    get,
    has_sidecar,
    make_namespace,
    wait_reason,
)

HOST = "IP:127.0.0.1"


def test_a_certificate_from_files_changes_and_nobody_notices(
    own_control_plane: ControlPlane, tmp_path: Path
) -> None:
    """RSA, then EC of the same authority, half-written, and of another authority."""
    make_namespace(own_control_plane, "shop", INJECT)
    apply(own_control_plane, examples.config(namespace="shop", secretName=None))
    first, second = OwnAuthority("rsa", "first"), OwnAuthority("ec", "second")
    files = {
        "TLS_CERT_FILE": tmp_path / "tls.crt",
        "TLS_KEY_FILE": tmp_path / "tls.key",
        "TLS_CA_FILE": tmp_path / "ca.crt",
    }

    def put(certificate: bytes, key: bytes, authority: bytes) -> str:
        for path, content in zip(files.values(), (certificate, key, authority), strict=True):
            path.write_bytes(content)
        return certificate.decode().strip()

    wanted = put(*first.issue(HOST, "rsa"), first.certificate)
    environment = {variable: str(path) for variable, path in files.items()}
    with OperatorProcess(own_control_plane, environment=environment) as operator:
        operator.wait_ready()
        wait_reason(own_control_plane, "shop", "shield", "Accepted")

        def serves() -> bool:
            status, pod = create_pod(own_control_plane, "shop", examples.pod())
            assert status == 201, pod
            assert has_sidecar(pod)
            served = ssl.get_server_certificate(("127.0.0.1", operator.webhook_port))
            return served.strip() == wanted

        assert serves()
        left = operator.metric("llm_shield_certificate_not_after_seconds") - time.time()
        assert 89 * 86400 < left <= 90 * 86400
        certificate, key = first.issue(HOST, "ec")
        wanted = put(certificate, traditional(key), first.certificate)
        eventually(serves)

        before = wanted
        put(first.issue(HOST)[0], encrypted(key), first.certificate)
        complaint = "the private key is encrypted: store it without a passphrase"
        eventually(lambda: serves() and complaint in operator.log_tail(1000))
        assert wanted == before

        wanted = put(*second.issue(HOST), second.certificate)
        eventually(serves)
        for hook in get(own_control_plane, WEBHOOKS)["webhooks"]:
            bundle = base64.b64decode(hook["clientConfig"]["caBundle"])
            assert bundle == second.certificate + first.certificate
    secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-tls"
    assert get(own_control_plane, secret) is None
