"""What users see: their pods, with and without the sidecar, on a real API server."""

import json
from http import HTTPStatus
from typing import Any

import pytest

import examples
from controlplane import ControlPlane
from localoperator import OperatorProcess
from support import (
    INJECT,
    apply,
    counted,
    create,
    create_pod,
    eventually,
    get,
    has_native_sidecars,
    has_sidecar,
    make_namespace,
    sidecar_of,
    wait_reason,
)


@pytest.fixture
def shielded(control_plane: ControlPlane, operator: OperatorProcess, namespace: str) -> str:
    """A labelled namespace with a Secret and a config that is ready."""
    del operator
    control_plane.kubectl("label", "namespace", namespace, "llm-shield.io/inject=enabled")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    create(control_plane, f"/api/v1/namespaces/{namespace}/secrets", secret)
    apply(control_plane, examples.config(namespace=namespace))
    wait_reason(control_plane, namespace, "shield", "Accepted")
    return namespace


def deployment(name: str, namespace: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    template = examples.pod(labels={"app": name, **(labels or {})})
    del template["metadata"]["generateName"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }


def pods_of(control_plane: ControlPlane, namespace: str, name: str) -> list[Any]:
    """The two pods of a Deployment."""
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{name}"

    def look() -> list[Any] | None:
        found: list[Any] = get(control_plane, path)["items"]
        return found if len(found) == 2 else None

    return eventually(look)


def test_the_pods_of_a_deployment_get_the_sidecar(
    control_plane: ControlPlane, shielded: str, operator: OperatorProcess
) -> None:
    before = counted(operator, "injected"), counted(operator, "ignored")
    apply(control_plane, deployment("web", shielded))
    for pod in pods_of(control_plane, shielded, "web"):
        sidecar = sidecar_of(pod)
        native = has_native_sidecars(control_plane)
        assert sidecar.get("restartPolicy") == ("Always" if native else None)
        assert (sidecar in pod["spec"]["containers"]) == (not native)
        assert pod["metadata"]["labels"]["llm-shield.io/injected"] == "true"
        annotations = pod["metadata"]["annotations"]
        assert annotations["llm-shield.io/injected-config"] == f"{shielded}/shield"
        assert [mount["name"] for mount in sidecar["volumeMounts"]] == [
            "llm-shield-tmp",
            "llm-shield-no-token",
        ]
    # The API server had no reason to ask a second time about either of the two.
    assert (counted(operator, "injected"), counted(operator, "ignored")) == (
        before[0] + 2,
        before[1],
    )


def test_pods_that_did_not_ask_are_untouched(
    control_plane: ControlPlane, shielded: str, namespace: str
) -> None:
    apply(control_plane, deployment("out", shielded, {"llm-shield.io/inject": "false"}))
    for pod in pods_of(control_plane, shielded, "out"):
        assert not has_sidecar(pod)
        assert "annotations" not in pod["metadata"]
    control_plane.kubectl("label", "namespace", namespace, "llm-shield.io/inject-")
    status, pod = create_pod(control_plane, namespace, examples.pod())
    assert status == HTTPStatus.CREATED
    assert not has_sidecar(pod)
    assert "annotations" not in pod["metadata"]


def test_a_pod_can_ask_in_a_namespace_that_does_not(
    control_plane: ControlPlane, shielded: str
) -> None:
    control_plane.kubectl("label", "namespace", shielded, "llm-shield.io/inject-")
    _, pod = create_pod(control_plane, shielded, examples.pod(labels=INJECT))
    assert has_sidecar(pod)


def test_a_skipped_pod_says_why_to_whoever_made_it(
    control_plane: ControlPlane, shielded: str
) -> None:
    pod = examples.pod(hostNetwork=True)
    pod["metadata"]["name"] = "skipped"
    made = control_plane.kubectl(
        "create", f"--namespace={shielded}", "-f", "-", input=json.dumps(pod)
    )
    assert "Warning: not injected (host-network): the pod uses the node's network" in made.stderr
    found = get(control_plane, f"/api/v1/namespaces/{shielded}/pods/skipped")
    assert not has_sidecar(found)
    assert found["metadata"]["labels"]["llm-shield.io/injection-skipped"] == "host-network"
    assert "hostNetwork" in found["metadata"]["annotations"]["llm-shield.io/skip-reason"]


def test_a_missing_secret_is_warned_about_when_a_pod_is_made(
    control_plane: ControlPlane, shielded: str
) -> None:
    apply(control_plane, examples.config(namespace=shielded, secretName="nowhere"))
    wait_reason(control_plane, shielded, "shield", "SecretNotFound")
    pod = examples.pod()
    pod["metadata"]["name"] = "waits"

    def warned() -> bool:  # the status comes back to the operator by its watch
        made = control_plane.kubectl(
            "create",
            "--dry-run=server",
            f"--namespace={shielded}",
            "-f",
            "-",
            input=json.dumps(pod),
        )
        return "Secret nowhere is not in namespace" in made.stderr

    eventually(warned)


def test_a_dry_run_gives_the_same_patch_and_writes_nothing(
    control_plane: ControlPlane, shielded: str
) -> None:
    path = f"/api/v1/namespaces/{shielded}/pods"
    dry = create(control_plane, f"{path}?dryRun=All", examples.pod())
    assert get(control_plane, path)["items"] == []
    real = create(control_plane, path, examples.pod())
    without_token = [
        {key: value for key, value in container.items() if key != "volumeMounts"}
        for container in dry["spec"]["containers"]
    ]
    assert without_token == [
        {key: value for key, value in container.items() if key != "volumeMounts"}
        for container in real["spec"]["containers"]
    ]
    assert dry["spec"].get("initContainers") == real["spec"].get("initContainers")
    assert sidecar_of(dry) == sidecar_of(real)


def test_a_config_is_used_as_soon_as_it_is_there(
    control_plane: ControlPlane, operator: OperatorProcess, namespace: str
) -> None:
    del operator
    control_plane.kubectl("label", "namespace", namespace, "llm-shield.io/inject=true")
    _, pod = create_pod(control_plane, namespace, examples.pod())
    assert pod["metadata"]["labels"]["llm-shield.io/injection-skipped"] == "no-sidecar-config"
    apply(control_plane, examples.config(namespace=namespace))
    eventually(lambda: has_sidecar(create_pod(control_plane, namespace, examples.pod())[1]), 3.0)
    control_plane.kubectl("delete", "ssc", "shield", f"--namespace={namespace}")
    eventually(
        lambda: not has_sidecar(create_pod(control_plane, namespace, examples.pod())[1]), 3.0
    )


@pytest.mark.parametrize("excluded", ["kube-system", "llm-shield-system"])
def test_system_namespaces_are_always_out(
    control_plane: ControlPlane, operator: OperatorProcess, excluded: str
) -> None:
    del operator
    control_plane.kubectl("label", "namespace", excluded, "llm-shield.io/inject=true")
    try:
        eventually(
            lambda: get(control_plane, f"/api/v1/namespaces/{excluded}/serviceaccounts/default")
        )
        path = f"/api/v1/namespaces/{excluded}/pods?dryRun=All"
        pod = create(control_plane, path, examples.pod(labels=INJECT, containers=[examples.STRICT]))
        assert not has_sidecar(pod)
    finally:
        control_plane.kubectl("label", "namespace", excluded, "llm-shield.io/inject-")


def test_mirror_pods_are_left_alone_but_their_annotation_is_no_way_around_the_shield(
    control_plane: ControlPlane, shielded: str
) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "test-nodes"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "test-nodes"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        | {"name": "test-nodes"},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}
        ],
    }
    apply(control_plane, role, binding)
    # Without a Secret: the API server refuses mirror pods that name one, whoever makes them.
    apply(control_plane, examples.config(namespace=shielded, secretName=None))
    wait_reason(control_plane, shielded, "shield", "Accepted")
    pod = examples.pod(annotations={"kubernetes.io/config.mirror": "x"}, nodeName="n1")
    pod["metadata"]["name"] = "mirror"

    def made(*impersonation: str) -> Any:
        answer = control_plane.kubectl(
            "create",
            "--dry-run=server",
            "--output=json",
            f"--namespace={shielded}",
            "-f",
            "-",
            *impersonation,
            input=json.dumps(pod),
        )
        return json.loads(answer.stdout)

    assert has_sidecar(made())
    node = ("--as=system:node:n1", "--as-group=system:nodes", "--as-group=system:authenticated")
    assert not has_sidecar(made(*node))


def test_a_copy_of_an_injected_pod_has_exactly_one_sidecar(
    control_plane: ControlPlane, shielded: str
) -> None:
    """A backup, or `kubectl debug --copy-to`, brings the container along."""
    pods = f"/api/v1/namespaces/{shielded}/pods"
    original = create(control_plane, pods, examples.pod())
    copied = {
        **original,
        "metadata": {"name": "restored", "labels": original["metadata"]["labels"]},
    }
    copied.pop("status")
    restored = create(control_plane, pods, copied)
    assert sidecar_of(restored) == sidecar_of(original)
    control_plane.kubectl(
        "debug",
        original["metadata"]["name"],
        "--copy-to=debugged",
        "--image=example.com/debug:1",
        "--attach=false",
        "--profile=general",
        f"--namespace={shielded}",
    )
    debugged = get(control_plane, f"{pods}/debugged")
    assert sidecar_of(debugged)["image"] == examples.IMAGE


def test_another_namespaces_config_is_not_used(control_plane: ControlPlane, shielded: str) -> None:
    other = f"{shielded}-other"
    make_namespace(control_plane, other, INJECT)
    _, pod = create_pod(control_plane, other, examples.pod())
    assert pod["metadata"]["labels"]["llm-shield.io/injection-skipped"] == "no-sidecar-config"
    control_plane.request("DELETE", f"/api/v1/namespaces/{other}")
