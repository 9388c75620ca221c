"""How it starts where something is missing: one sentence and a status, or a retry that says so."""

import socket
from http import HTTPStatus

import yaml

import examples
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess
from manifests import INSTALL
from support import WEBHOOKS, WebhookClient, eventually, get

DEFINITION = "crd/shieldsidecarconfigs.llm-shield.io"


def logged(operator: OperatorProcess, sentence: str) -> None:
    eventually(lambda: sentence in operator.log_tail(1000))


def test_an_unreachable_api_server_is_waited_for(own_control_plane: ControlPlane) -> None:
    account = own_control_plane.kubeconfig_for(NAME, NAMESPACE)
    own_control_plane.stop_apiserver()
    with OperatorProcess(own_control_plane, kubeconfig=account) as operator:
        logged(operator, "cannot read the API server's version: the API server is out of reach")
        assert "trying again in 5 s" in operator.log_tail()
        assert operator.get("/livez")[0] == HTTPStatus.OK
        assert operator.get("/readyz")[0] == HTTPStatus.SERVICE_UNAVAILABLE
        own_control_plane.start_apiserver()
        operator.wait_ready()
        assert "Traceback" not in operator.log_tail(1000)


def test_a_signal_ends_the_waiting(own_control_plane: ControlPlane) -> None:
    account = own_control_plane.kubeconfig_for(NAME, NAMESPACE)
    own_control_plane.stop_apiserver()
    with OperatorProcess(own_control_plane, kubeconfig=account) as operator:
        logged(operator, "out of reach")
        operator.terminate()
        assert operator.wait(5) == 0


def test_missing_permissions_are_named_and_waited_for(own_control_plane: ControlPlane) -> None:
    own_control_plane.kubectl("delete", "clusterrolebinding", NAME)
    with OperatorProcess(own_control_plane) as operator:
        logged(operator, "cannot list shieldsidecarconfigs: ")
        logged(operator, "apply the RBAC rules of manifests/install.yaml; trying again")
        status, text = operator.get("/readyz")
        assert status == HTTPStatus.SERVICE_UNAVAILABLE
        assert "the configs have not been listed yet" in text
        own_control_plane.kubectl("apply", "-f", "-", input=rbac())
        operator.wait_ready()


def rbac() -> str:
    documents = yaml.safe_load_all(INSTALL.read_text(encoding="utf-8"))
    return yaml.safe_dump_all(
        [document for document in documents if document["kind"] == "ClusterRoleBinding"]
    )


def test_a_missing_definition_is_waited_for(own_control_plane: ControlPlane) -> None:
    own_control_plane.kubectl("delete", DEFINITION)
    with OperatorProcess(own_control_plane) as operator:
        logged(
            operator, "cannot list shieldsidecarconfigs: the API server does not know them; kubectl"
        )
        assert operator.get("/readyz")[0] == HTTPStatus.SERVICE_UNAVAILABLE
        # It has its certificate and its webhooks; but without having seen the configs once it
        # answers 500, whoever asks, so that failurePolicy decides.
        eventually(lambda: get(own_control_plane, WEBHOOKS))
        review = WebhookClient.body("shop", examples.pod())
        status, _ = WebhookClient(own_control_plane).request(review)
        assert status == HTTPStatus.INTERNAL_SERVER_ERROR
        documents = yaml.safe_load_all(INSTALL.read_text(encoding="utf-8"))
        (definition,) = [d for d in documents if d["kind"] == "CustomResourceDefinition"]
        own_control_plane.kubectl("apply", "-f", "-", input=yaml.safe_dump(definition))
        operator.wait_ready()


def test_a_port_that_is_taken_is_one_sentence(own_control_plane: ControlPlane) -> None:
    for variable in ("WEBHOOK_PORT", "HEALTH_PORT"):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = str(taken.getsockname()[1])
            with OperatorProcess(own_control_plane, environment={variable: port}) as operator:
                assert operator.wait() == 1
                last = operator.log_tail(1)
        assert last.startswith("error: "), operator.log_tail()
        assert port in last
        assert "address already in use" in last
