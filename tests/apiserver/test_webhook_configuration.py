"""The live webhook configuration: made, restored, shared with others, and gone with its owner."""

import time
from http import HTTPStatus
from typing import Any

import pytest
import yaml

import examples
from controlplane import ControlPlane
from localoperator import OperatorProcess
from manifests import INSTALL
from shield_operator.contention import BURST
from shield_operator.webhook import configuration, differs
from support import INJECT, WEBHOOKS, create_pod, eventually, get, has_sidecar, make_namespace

VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def live(control_plane: ControlPlane) -> Any:
    return get(control_plane, WEBHOOKS)


def patch(control_plane: ControlPlane, *operations: dict[str, Any]) -> None:
    control_plane.kubectl(
        "patch",
        "mutatingwebhookconfiguration",
        "llm-shield-operator",
        "--type=json",
        f"--patch={yaml.safe_dump(list(operations), default_flow_style=True)}",
    )


@pytest.mark.usefixtures("operator")
def test_it_holds_two_webhooks_and_no_validating_one_appears(control_plane: ControlPlane) -> None:
    found = live(control_plane)
    assert [hook["name"] for hook in found["webhooks"]] == [
        "namespace.inject.llm-shield.io",
        "pod.inject.llm-shield.io",
    ]
    wanted = configuration(examples.settings(), b"", found["metadata"]["ownerReferences"][0]["uid"])
    for hook, ours in zip(found["webhooks"], wanted["webhooks"], strict=True):
        del ours["clientConfig"]
        assert not differs(hook, ours)
        assert hook["clientConfig"]["url"].startswith("https://127.0.0.1:")
    assert get(control_plane, VALIDATING)["items"] == []


def applies(control_plane: ControlPlane) -> int:
    """How often anybody has applied a webhook configuration, as the API server itself counts.

    An apply that changes nothing leaves no other trace.
    """
    status, metrics = control_plane.request("GET", "/metrics")
    assert status == HTTPStatus.OK
    return sum(
        int(line.rpartition(" ")[2])
        for line in metrics.decode().splitlines()
        if line.startswith("apiserver_request_total{")
        and 'resource="mutatingwebhookconfigurations"' in line
        and 'verb="APPLY"' in line
    )


@pytest.mark.usefixtures("operator")
def test_it_is_not_written_while_nothing_differs(control_plane: ControlPlane) -> None:
    before = applies(control_plane)
    assert before > 0
    time.sleep(6)
    assert applies(control_plane) == before


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize(
    "edit",
    [
        {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
        {"op": "replace", "path": "/webhooks", "value": []},
        {
            "op": "add",
            "path": "/webhooks/0/namespaceSelector/matchExpressions/-",
            "value": {"key": "bypass", "operator": "DoesNotExist"},
        },
    ],
    ids=lambda edit: edit["path"],
)
def test_an_edit_is_undone_by_one_write(control_plane: ControlPlane, edit: dict[str, Any]) -> None:
    wanted, before = live(control_plane)["webhooks"], applies(control_plane)
    patch(control_plane, edit)
    assert live(control_plane).get("webhooks") != wanted
    eventually(lambda: live(control_plane).get("webhooks") == wanted)
    time.sleep(3)
    assert applies(control_plane) == before + 1


@pytest.mark.usefixtures("operator")
def test_deleted_it_comes_back(control_plane: ControlPlane) -> None:
    wanted = live(control_plane)["webhooks"]
    control_plane.kubectl("delete", "mutatingwebhookconfiguration", "llm-shield-operator")
    eventually(lambda: (live(control_plane) or {}).get("webhooks") == wanted)


@pytest.mark.usefixtures("operator")
def test_what_others_add_stays(control_plane: ControlPlane) -> None:
    theirs = {"op": "add", "path": "/metadata/annotations/their.io~1note", "value": "x"}
    ours = {"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 30}
    condition = {"name": "theirs", "expression": "true"}
    conditions = {"op": "add", "path": "/webhooks/1/matchConditions/-", "value": condition}
    webhook = live(control_plane)["webhooks"][0] | {"name": "their.webhook.io"}
    webhook["namespaceSelector"] = {"matchLabels": {"their.io/none": "x"}}
    patch(
        control_plane,
        theirs,
        ours,
        conditions,
        {"op": "add", "path": "/webhooks/-", "value": webhook},
    )
    eventually(lambda: live(control_plane)["webhooks"][0]["timeoutSeconds"] == 5)
    time.sleep(3)
    found = live(control_plane)
    assert found["metadata"]["annotations"]["their.io/note"] == "x"
    assert condition in found["webhooks"][1]["matchConditions"]
    assert [hook["name"] for hook in found["webhooks"]][2:] == ["their.webhook.io"]
    number = found["webhooks"][1]["matchConditions"].index(condition)
    patch(
        control_plane,
        {"op": "remove", "path": "/webhooks/2"},
        {"op": "remove", "path": f"/webhooks/1/matchConditions/{number}"},
    )


def test_against_another_writer_it_is_set_right_ever_less_often(
    own_control_plane: ControlPlane,
) -> None:
    """At once a few times, then once a minute: a fight that can be seen, and costs nothing."""
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        before, edits = applies(own_control_plane), 0
        deadline = time.monotonic() + 2 * (BURST + 4)
        while time.monotonic() < deadline:
            if live(own_control_plane)["webhooks"][0]["failurePolicy"] == "Fail":
                edit = {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}
                patch(own_control_plane, edit)
                edits += 1
            time.sleep(0.1)
        assert BURST - 1 <= applies(own_control_plane) - before <= BURST + 1
        assert edits >= BURST
        assert operator.log_tail(1000).count("somebody else keeps changing the webhook") == 1
        assert operator.get("/readyz")[0] == HTTPStatus.OK


def test_uninstalling_leaves_nothing_that_blocks_pods(own_control_plane: ControlPlane) -> None:
    """With the operator still running, as it does while its pods are being deleted."""
    make_namespace(own_control_plane, "shop", INJECT)
    with OperatorProcess(own_control_plane) as operator:
        operator.wait_ready()
        documents = list(yaml.safe_load_all(INSTALL.read_text(encoding="utf-8")))
        own_control_plane.kubectl(
            "delete", "--ignore-not-found", "-f", "-", input=yaml.safe_dump_all(documents)
        )
        eventually(lambda: live(own_control_plane) is None)
        time.sleep(6)  # one more round of the operator's
        assert live(own_control_plane) is None, operator.log_tail()
    status, pod = create_pod(own_control_plane, "shop", examples.pod())
    assert status == 201, pod
    assert not has_sidecar(pod)
    left = own_control_plane.kubectl("get", "namespaces", "--output=name").stdout
    assert "llm-shield-system" not in left
