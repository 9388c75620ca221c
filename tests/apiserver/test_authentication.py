"""The API server proves that it is the API server: by token and by client certificate."""

import base64
import json
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import pytest

import examples
from authorities import OwnAuthority
from controlplane import ControlPlane
from localoperator import OperatorProcess, install
from relay import Relay
from support import (
    INJECT,
    apply,
    counted,
    create_pod,
    eventually,
    has_sidecar,
    make_namespace,
    wait_reason,
)

TOKEN = "the-api-servers-token"
CLIENTS = OwnAuthority("rsa", "clients of webhooks")


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    """The webhook's address, which the API server's configuration has to know beforehand."""
    with Relay() as running:
        yield running


@pytest.fixture(scope="module")
def presenting(relay: Relay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that presents a token and a certificate to this one webhook.

    With the files that docs/authentication.md shows.
    """
    directory = tmp_path_factory.mktemp("admission")
    certificate, key = CLIENTS.issue("apiserver", usage="clientAuth")
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "users": [
            {
                "name": f"127.0.0.1:{relay.port}",
                "user": {
                    "token": TOKEN,
                    "client-certificate-data": base64.b64encode(certificate).decode(),
                    "client-key-data": base64.b64encode(key).decode(),
                },
            }
        ],
    }
    (directory / "webhooks.kubeconfig").write_text(json.dumps(kubeconfig), encoding="ascii")
    admission = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [
            {
                "name": "MutatingAdmissionWebhook",
                "configuration": {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "WebhookAdmissionConfiguration",
                    "kubeConfigFile": str(directory / "webhooks.kubeconfig"),
                },
            }
        ],
    }
    (directory / "admission.yaml").write_text(json.dumps(admission), encoding="ascii")
    flag = f"--admission-control-config-file={directory / 'admission.yaml'}"
    with ControlPlane.start(apiserver_args=[flag]) as running:
        install(running)
        make_namespace(running, "shop", INJECT)
        apply(running, examples.config(namespace="shop", secretName=None))
        yield running


def replica(control_plane: ControlPlane, relay: Relay, **environment: str) -> OperatorProcess:
    found = OperatorProcess(
        control_plane, webhook_url=f"https://127.0.0.1:{relay.port}", environment=environment
    )
    relay.set_backends(found.webhook_port)
    return found


def is_injected(control_plane: ControlPlane) -> bool:
    """Whether a pod that asks is injected; it is refused otherwise, and never bare."""
    status, answer = create_pod(control_plane, "shop", examples.pod())
    if status == HTTPStatus.CREATED:
        assert has_sidecar(answer)
        return True
    assert 'failed calling webhook "namespace.inject.llm-shield.io"' in answer["message"]
    return False


def test_the_token_by_environment(presenting: ControlPlane, relay: Relay) -> None:
    with replica(presenting, relay, K8S_WEBHOOK_AUTH_TOKEN=TOKEN) as operator:
        operator.wait_ready()
        wait_reason(presenting, "shop", "shield", "Accepted")
        eventually(lambda: is_injected(presenting))
        assert TOKEN not in operator.log_tail(10_000)


def test_a_token_that_changes(presenting: ControlPlane, relay: Relay, tmp_path: Path) -> None:
    """Refused while it is another one, with a count and a line in the log; never a bare pod."""
    file = tmp_path / "token"
    file.write_text("another-token\n", encoding="ascii")
    with replica(presenting, relay, K8S_WEBHOOK_AUTH_TOKEN_FILE=str(file)) as operator:
        operator.wait_ready()
        assert not is_injected(presenting)
        assert "the bearer token is missing or wrong" in operator.log_tail(1000)
        assert counted(operator, "unauthorized") > 0
        file.write_text(f"another-token\n{TOKEN}\n", encoding="ascii")
        eventually(lambda: is_injected(presenting))
        assert TOKEN not in operator.log_tail(10_000)


def test_the_client_certificate(presenting: ControlPlane, relay: Relay, tmp_path: Path) -> None:
    authorities = tmp_path / "clients.crt"
    authorities.write_bytes(OwnAuthority("ec", "somebody else").certificate)
    with replica(
        presenting,
        relay,
        WEBHOOK_CLIENT_CA_FILE=str(authorities),
        K8S_WEBHOOK_AUTH_TOKEN=TOKEN,
    ) as operator:
        operator.wait_ready()
        assert not is_injected(presenting)
        authorities.write_bytes(CLIENTS.certificate)
        eventually(lambda: is_injected(presenting))


@pytest.mark.parametrize(
    ("variable", "content", "problem"),
    [
        ("K8S_WEBHOOK_AUTH_TOKEN_FILE", "", "it holds no token"),
        ("WEBHOOK_CLIENT_CA_FILE", "garbage", "it holds no certificate"),
        ("WEBHOOK_CLIENT_CA_FILE", None, "it cannot be read: No such file or directory"),
    ],
)
def test_a_protection_that_is_of_no_use_stops_the_start(
    presenting: ControlPlane,
    tmp_path: Path,
    variable: str,
    content: str | None,
    problem: str,
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content, encoding="ascii")
    with OperatorProcess(presenting, environment={variable: str(file)}) as broken:
        assert broken.wait() == 1
        assert broken.log_tail() == f"error: {variable} is {file}: {problem}"
