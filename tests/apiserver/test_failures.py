"""What a failure answers: under Fail no pod that asked starts bare, and nobody else is touched."""

import http.client
import socket
import ssl
import time
from http import HTTPStatus

import pytest

import examples
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess
from support import (
    INJECT,
    WEBHOOKS,
    WebhookClient,
    apply,
    create_pod,
    eventually,
    get,
    has_sidecar,
    make_namespace,
    wait_reason,
)


def test_while_the_operator_is_down_only_pods_that_asked_are_refused(
    own_control_plane: ControlPlane,
) -> None:
    make_namespace(own_control_plane, "shop", INJECT)
    make_namespace(own_control_plane, "other")
    apply(own_control_plane, examples.config(namespace="shop", secretName=None))
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        wait_reason(own_control_plane, "shop", "shield", "Accepted")
        _, pod = create_pod(own_control_plane, "shop", examples.pod())
        assert has_sidecar(pod)
        assert operator.interrupt() == 0
    status, answer = create_pod(own_control_plane, "shop", examples.pod())
    assert status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert 'failed calling webhook "namespace.inject.llm-shield.io"' in answer["message"]
    assert create_pod(own_control_plane, "other", examples.pod())[0] == HTTPStatus.CREATED
    opted_out = examples.pod(labels={"llm-shield.io/inject": "false"})
    assert create_pod(own_control_plane, "shop", opted_out)[0] == HTTPStatus.CREATED
    assert create_pod(own_control_plane, "other", examples.pod(labels=INJECT))[0] == (
        HTTPStatus.INTERNAL_SERVER_ERROR
    )
    with OperatorProcess(own_control_plane) as successor:
        successor.wait_ready()
        url = f"https://127.0.0.1:{successor.webhook_port}/inject"  # not its predecessor's
        eventually(
            lambda: get(own_control_plane, WEBHOOKS)["webhooks"][0]["clientConfig"]["url"] == url
        )
        _, pod = create_pod(own_control_plane, "shop", examples.pod())
        assert has_sidecar(pod)


def test_under_ignore_pods_start_bare_while_the_operator_is_down(
    own_control_plane: ControlPlane,
) -> None:
    make_namespace(own_control_plane, "shop", INJECT)
    with OperatorProcess(own_control_plane, environment={"FAILURE_POLICY": "Ignore"}) as operator:
        operator.wait_ready()
    status, pod = create_pod(own_control_plane, "shop", examples.pod())
    assert status == HTTPStatus.CREATED
    assert not has_sidecar(pod)


def test_under_deny_a_skipped_pod_is_refused_and_others_are_not(
    own_control_plane: ControlPlane,
) -> None:
    """A refusal that is meant stands under Ignore too: it is an answer, not a failure."""
    make_namespace(own_control_plane, "shop", INJECT)
    policies = {"UNINJECTED_POD_POLICY": "Deny", "FAILURE_POLICY": "Ignore"}
    with OperatorProcess(own_control_plane, environment=policies) as operator:
        operator.wait_ready()
        status, answer = create_pod(own_control_plane, "shop", examples.pod())
        assert status == HTTPStatus.FORBIDDEN
        assert "not injected (no-sidecar-config)" in answer["message"]
        opted_out = examples.pod(labels={"llm-shield.io/inject": "false"})
        assert create_pod(own_control_plane, "shop", opted_out)[0] == HTTPStatus.CREATED
        assert "Webhook 'inject'" not in operator.log_tail(1000)  # a denial is no failure
        _, metrics = operator.get("/metrics")
        assert 'outcome="denied",reason="no-sidecar-config"} 1.0' in metrics


def test_an_operator_that_lost_its_account_answers_on(own_control_plane: ControlPlane) -> None:
    """Kopf gives up for want of a valid token; admissions need neither Kopf nor a token."""
    make_namespace(own_control_plane, "shop", INJECT)
    apply(own_control_plane, examples.config(namespace="shop", secretName=None))
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        own_control_plane.kubectl("delete", "serviceaccount", NAME, f"--namespace={NAMESPACE}")
        own_control_plane.stop_apiserver()  # ends the watches, which were let in before
        own_control_plane.start_apiserver()
        eventually(lambda: "Kopf has given up: " in operator.log_tail(10_000), 60)
        for _ in range(3):
            _, pod = create_pod(own_control_plane, "shop", examples.pod())
            assert has_sidecar(pod)
        assert operator.get("/readyz")[0] == HTTPStatus.OK


def test_a_pod_that_is_huge_and_never_valid_is_refused_before_it_costs_anything(
    webhook: WebhookClient, operator: OperatorProcess
) -> None:
    """Admission comes before validation: 650,000 nameless variables in 2 MB."""
    pod = examples.pod()
    pod["spec"]["containers"][0]["env"] = [{}] * 650_000
    request = webhook.body("nowhere", pod)
    before = operator.peak_memory()
    status, answer = webhook.request(request)
    assert (status, answer) == (
        HTTPStatus.BAD_REQUEST,
        b"the body holds more than 200000 objects and lists\n",
    )
    assert operator.peak_memory() - before < 32 * 2**20


def test_half_open_connections_are_dropped(operator: OperatorProcess) -> None:
    with socket.create_connection(("127.0.0.1", operator.webhook_port), timeout=10) as silent:
        assert silent.recv(1) == b""  # closed by the operator, after 5 s


@pytest.fixture(scope="module")
def webhook(control_plane: ControlPlane, operator: OperatorProcess) -> WebhookClient:
    return WebhookClient(control_plane, operator.webhook_port)


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/", b"{}", HTTPStatus.NOT_FOUND),
        ("POST", "/inject/", b"{}", HTTPStatus.NOT_FOUND),
        ("POST", "/inject/anything", b"{}", HTTPStatus.NOT_FOUND),
        ("GET", "/inject", b"", HTTPStatus.METHOD_NOT_ALLOWED),
        ("PUT", "/inject", b"{}", HTTPStatus.METHOD_NOT_ALLOWED),
        ("POST", "/inject", b"", HTTPStatus.BAD_REQUEST),
        ("POST", "/inject", b"{", HTTPStatus.BAD_REQUEST),
        ("POST", "/inject", b'{"kind": "AdmissionReview"}', HTTPStatus.BAD_REQUEST),
        ("POST", "/inject", b" " * (21 * 2**20), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
def test_what_is_no_review_gets_a_clear_answer(
    webhook: WebhookClient, method: str, path: str, content: bytes, status: HTTPStatus
) -> None:
    assert webhook.request(content, method=method, path=path)[0] == status


def test_a_pod_of_three_mebibytes_is_answered(webhook: WebhookClient) -> None:
    pod = examples.pod()
    variables = [{"name": f"V{number}", "value": "<" * 1200} for number in range(1500)]
    pod["spec"]["containers"][0]["env"] = variables
    pod["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": {"f:x": "y" * 2**20}}]
    response = webhook.review("nowhere", pod)
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"


def test_strangers_on_the_port_do_not_harm(
    webhook: WebhookClient, operator: OperatorProcess
) -> None:
    address = ("127.0.0.1", operator.webhook_port)
    with socket.create_connection(address, timeout=5) as plain:
        plain.sendall(b"GET /inject HTTP/1.1\r\n\r\n")
    untrusting = http.client.HTTPSConnection(*address, context=ssl.create_default_context())
    with socket.create_connection(address, timeout=5), pytest.raises(ssl.SSLError):
        untrusting.request("POST", "/inject", b"{}")
    assert webhook.review("nowhere", examples.pod())["allowed"] is True


def test_old_tls_is_refused(operator: OperatorProcess) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", operator.webhook_port), timeout=5) as plain,
        pytest.raises(ssl.SSLError),
    ):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_terminated_replica_serves_on_and_then_ends_in_order(
    own_control_plane: ControlPlane,
) -> None:
    make_namespace(own_control_plane, "shop", INJECT)
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        operator.terminate()
        eventually(lambda: operator.get("/readyz")[0] == HTTPStatus.SERVICE_UNAVAILABLE, 2.0)
        assert operator.get("/livez")[0] == HTTPStatus.OK
        for _ in range(5):
            assert create_pod(own_control_plane, "shop", examples.pod())[0] == HTTPStatus.CREATED
        assert operator.wait() == 0


def test_a_terminated_replica_ends_though_connections_stay_open(
    own_control_plane: ControlPlane,
) -> None:
    """The API server keeps its connection open, and has nothing more to ask."""
    make_namespace(own_control_plane, "shop", INJECT)
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        assert create_pod(own_control_plane, "shop", examples.pod())[0] == HTTPStatus.CREATED
        operator.terminate()
        assert operator.wait(20) == 0


def test_under_ignore_a_failing_operator_lets_pods_start_bare_and_counts(
    own_control_plane: ControlPlane,
) -> None:
    """It runs, and answers 500, since it could not list the configs: not a verdict."""
    make_namespace(own_control_plane, "shop", INJECT)
    own_control_plane.kubectl("delete", "crd", "shieldsidecarconfigs.llm-shield.io")
    with OperatorProcess(own_control_plane, environment={"FAILURE_POLICY": "Ignore"}) as operator:
        eventually(lambda: get(own_control_plane, WEBHOOKS))
        status, pod = create_pod(own_control_plane, "shop", examples.pod())
        assert status == HTTPStatus.CREATED
        assert not has_sidecar(pod)
        _, metrics = operator.get("/metrics")
        assert 'llm_shield_admissions_total{outcome="failed",reason=""} 1.0' in metrics


def test_a_webhook_that_may_not_be_written_is_no_fight(own_control_plane: ControlPlane) -> None:
    """A permission that is lost and comes back: said as it is, and healed at once."""
    path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{NAME}"
    rules = get(own_control_plane, path)["rules"]
    without = [
        rule | {"verbs": [verb for verb in rule["verbs"] if verb != "patch"]}
        if "mutatingwebhookconfigurations" in rule["resources"]
        else rule
        for rule in rules
    ]
    own_control_plane.request("PATCH", path, {"rules": without})
    with OperatorProcess(own_control_plane) as operator:
        eventually(lambda: "cannot apply MutatingWebhookConfiguration" in operator.log_tail(100))
        time.sleep(20)
        assert "somebody else" not in operator.log_tail(1000)
        assert "recovered" not in operator.log_tail(1000)
        own_control_plane.request("PATCH", path, {"rules": rules})
        operator.wait_ready(12)
