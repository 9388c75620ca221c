"""Where the API server is found, and with which token: the same for our client and for Kopf."""

import asyncio
import json
from pathlib import Path

import pytest
from kubernetes.aio.config import incluster_config

from shield_operator.cluster import Connection
from shield_operator.cluster.credentials import connection_of, find_configuration

CERTIFICATE = "-----BEGIN CERTIFICATE-----\n"


def connection() -> Connection:
    async def find() -> Connection:
        return await connection_of(await find_configuration())

    return asyncio.run(find())


@pytest.fixture
def in_a_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a kubelet gives a pod: two variables, and the service account's files."""
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("pod-token")
    authority.write_text(CERTIFICATE)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "198.18.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return tmp_path


def kubeconfig(folder: Path) -> Path:
    cluster = {"server": "https://127.0.0.1:6443", "insecure-skip-tls-verify": True}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "file-token"}}],
        "contexts": [{"name": "local", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


def test_in_a_pod_it_is_the_service_account(in_a_pod: Path) -> None:
    found = connection()
    assert found.server == "https://198.18.0.1:443"
    assert found.token == "pod-token"
    assert found.ca_path == str(in_a_pod / "ca.crt")
    assert not found.insecure


def test_a_kubeconfig_that_is_set_wins(in_a_pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(in_a_pod)))
    found = connection()
    assert found.server == "https://127.0.0.1:6443"
    assert found.token == "file-token"
    assert found.insecure


def test_outside_of_a_pod_it_is_the_users_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path).rename(tmp_path / ".kube" / "config")
    assert connection().token == "file-token"
