"""What ``kubectl get ssc`` says: Ready, or why not; written once a change."""

import json
import time
from typing import Any

import pytest

import examples
from controlplane import ControlPlane
from support import CONFIGS, apply, create, eventually, get, ready_condition, wait_reason

pytestmark = pytest.mark.usefixtures("operator")


def secret(control_plane: ControlPlane, namespace: str, name: str = "keys") -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    create(control_plane, f"/api/v1/namespaces/{namespace}/secrets", body)


def live(control_plane: ControlPlane, namespace: str) -> Any:
    return get(control_plane, f"{CONFIGS.format(namespace)}/shield")


def test_accepted(control_plane: ControlPlane, namespace: str) -> None:
    secret(control_plane, namespace)
    apply(control_plane, examples.config(namespace=namespace))
    condition = wait_reason(control_plane, namespace, "shield", "Accepted")
    assert condition["status"] == "True"
    assert condition["observedGeneration"] == 1
    row = control_plane.kubectl("get", "ssc", f"--namespace={namespace}", "--no-headers").stdout
    assert row.split()[:4] == ["shield", "True", "Accepted", "keys"]
    control_plane.kubectl(
        "wait", "--for=condition=Ready", "ssc/shield", f"--namespace={namespace}", "--timeout=5s"
    )


def test_a_missing_secret_is_named_until_it_is_there(
    control_plane: ControlPlane, namespace: str
) -> None:
    apply(control_plane, examples.config(namespace=namespace))
    condition = wait_reason(control_plane, namespace, "shield", "SecretNotFound")
    assert condition["status"] == "False"
    assert f"Secret keys is not in namespace {namespace}" in condition["message"]
    secret(control_plane, namespace)
    touch(control_plane, namespace)
    wait_reason(control_plane, namespace, "shield", "Accepted")
    control_plane.kubectl("delete", "secret", "keys", f"--namespace={namespace}")
    touch(control_plane, namespace)
    wait_reason(control_plane, namespace, "shield", "SecretNotFound")


def touch(control_plane: ControlPlane, namespace: str) -> None:
    """Any change of the config has its Secret looked up again; else it is once a minute."""
    control_plane.kubectl(
        "annotate",
        "--overwrite",
        "ssc/shield",
        f"touched={time.time()}",
        f"--namespace={namespace}",
    )


def test_invalid_and_back(control_plane: ControlPlane, namespace: str) -> None:
    secret(control_plane, namespace)
    apply(control_plane, examples.config(namespace=namespace, image=None, args=["--port=1"]))
    condition = wait_reason(control_plane, namespace, "shield", "Invalid")
    assert condition["status"] == "False"
    assert "spec.image is missing" in condition["message"]
    assert "spec.args sends the sidecar to port '1'" in condition["message"]
    assert "injectionHash" not in live(control_plane, namespace)["status"]
    apply(control_plane, examples.config(namespace=namespace))
    condition = wait_reason(control_plane, namespace, "shield", "Accepted")
    assert condition["observedGeneration"] == 2
    assert len(live(control_plane, namespace)["status"]["injectionHash"]) == 16


def test_every_missing_secret_is_named(control_plane: ControlPlane, namespace: str) -> None:
    mounts = [{"name": "ca", "secretName": "corporate-ca"}]
    apply(control_plane, examples.config(namespace=namespace, secretMounts=mounts))
    condition = wait_reason(control_plane, namespace, "shield", "SecretNotFound")
    assert "Secrets corporate-ca and keys are not in namespace" in condition["message"]
    assert live(control_plane, namespace)["status"]["missingSecrets"] == ["corporate-ca", "keys"]
    secret(control_plane, namespace)
    touch(control_plane, namespace)
    eventually(
        lambda: (
            "Secret corporate-ca is not"
            in wait_reason(control_plane, namespace, "shield", "SecretNotFound")["message"]
        )
    )
    assert live(control_plane, namespace)["status"]["missingSecrets"] == ["corporate-ca"]
    secret(control_plane, namespace, "corporate-ca")
    touch(control_plane, namespace)
    wait_reason(control_plane, namespace, "shield", "Accepted")
    assert "missingSecrets" not in live(control_plane, namespace)["status"]


def test_a_config_without_a_sidecar_says_so(control_plane: ControlPlane, namespace: str) -> None:
    rules: Any = {"mode": "None", "scheduling": {"nodeSelector": {"pool": "a"}}}
    apply(control_plane, examples.config(namespace=namespace, image=None, **rules))
    condition = wait_reason(control_plane, namespace, "shield", "Accepted")
    assert "without a sidecar" in condition["message"]


def test_a_status_is_written_once_a_change(control_plane: ControlPlane, namespace: str) -> None:
    secret(control_plane, namespace)
    apply(control_plane, examples.config(namespace=namespace))
    wait_reason(control_plane, namespace, "shield", "Accepted")
    before = live(control_plane, namespace)["metadata"]["resourceVersion"]
    time.sleep(1.5)
    assert live(control_plane, namespace)["metadata"]["resourceVersion"] == before
    touch(control_plane, namespace)
    touched = live(control_plane, namespace)["metadata"]["resourceVersion"]
    time.sleep(1.0)
    assert live(control_plane, namespace)["metadata"]["resourceVersion"] == touched


def test_conditions_of_others_stay(control_plane: ControlPlane, namespace: str) -> None:
    secret(control_plane, namespace)
    apply(control_plane, examples.config(namespace=namespace))
    wait_reason(control_plane, namespace, "shield", "Accepted")
    theirs = {
        "type": "Reviewed",
        "status": "True",
        "reason": "ByHand",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body = {
        "apiVersion": "llm-shield.io/v1alpha1",
        "kind": "ShieldSidecarConfig",
        "metadata": {"name": "shield", "namespace": namespace},
        "status": {"conditions": [theirs]},
    }
    control_plane.kubectl(
        "apply",
        "--server-side",
        "--subresource=status",
        "--field-manager=somebody",
        "-f",
        "-",
        input=json.dumps(body),
    )
    apply(control_plane, examples.config(namespace=namespace, port=9000))
    wait_reason(control_plane, namespace, "shield", "Accepted")
    conditions = live(control_plane, namespace)["status"]["conditions"]
    assert {one["type"] for one in conditions} == {"Ready", "UpToDate", "Reviewed"}


def test_the_clusters_default_needs_no_secret_of_its_own(control_plane: ControlPlane) -> None:
    own = "llm-shield-system"
    apply(control_plane, examples.config("default", own))
    try:
        condition = wait_reason(control_plane, own, "default", "Accepted")
        assert condition["status"] == "True"
        assert ready_condition(control_plane, own, "default") == condition
    finally:
        control_plane.kubectl("delete", "ssc", "default", f"--namespace={own}")
