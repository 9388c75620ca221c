"""``kubectl shield status``: what is there, what is old, what is bare, and the way out of it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import examples
from apiserver.test_cli_explain import configured, labelled, named_pod, viewer_of
from controlplane import ControlPlane
from plugin import shield, shield_json
from support import (
    INJECT,
    apply,
    create_pod,
    eventually,
    get,
    has_sidecar,
    make_namespace,
    wait_reason,
)

pytestmark = pytest.mark.usefixtures("operator")


def deployment(namespace: str, name: str = "web", replicas: int = 2) -> dict[str, Any]:
    containers = [{"name": "web", "image": "example.com/web:1"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {
            "replicas": replicas,
            # No node runs the pods, so that none becomes ready: old ones go all the same.
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}},
        },
    }


def pods(control_plane: ControlPlane, namespace: str) -> list[Any]:
    found: list[Any] = get(control_plane, f"/api/v1/namespaces/{namespace}/pods")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def workload(control_plane: ControlPlane, namespace: str, name: str) -> Any:
    found = shield_json("status", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    return next((one for one in found["workloads"] if one["name"] == name), None)


def test_bare_pods_are_found_and_the_command_helps(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Labelled too late, then the config changed: both times the command is the way out."""
    configured(control_plane, namespace)
    apply(control_plane, deployment(namespace))
    eventually(lambda: len(pods(control_plane, namespace)) == 2)
    labelled(control_plane, namespace)
    found = workload(control_plane, namespace, "web")
    assert (found["kind"], found["pods"], found["bare"], found["injected"]) == (
        "Deployment",
        2,
        2,
        0,
    )
    command = f"kubectl rollout restart deployment/web -n {namespace}"
    assert found["remedy"] == command
    text = shield("status", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert f"\n  {command}\n" in text.stdout
    control_plane.kubectl(*command.split()[1:])

    def all_current() -> bool:
        one = workload(control_plane, namespace, "web") or {}  # none between old and new pods
        return (one.get("pods"), one.get("injected"), one.get("outdated")) == (2, 2, 0)

    eventually(all_current)
    assert all(map(has_sidecar, pods(control_plane, namespace)))

    configured(control_plane, namespace, port=8001)
    found = workload(control_plane, namespace, "web")
    assert (found["injected"], found["outdated"], found["remedy"]) == (2, 2, command)
    time.sleep(1.1)  # a second restart within the same second would change nothing
    control_plane.kubectl(*command.split()[1:])
    eventually(all_current)
    final = workload(control_plane, namespace, "web")
    assert (final["injected"], final["bare"], final["remedy"]) == (2, 0, None)


def test_skipped_pods_with_their_reasons(control_plane: ControlPlane, namespace: str) -> None:
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    create_pod(control_plane, namespace, named_pod("host", hostNetwork=True))
    create_pod(control_plane, namespace, named_pod("good"))
    create_pod(control_plane, namespace, named_pod("out", labels={"llm-shield.io/inject": "false"}))
    found = shield_json("status", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    shown = {one["name"]: (one["injected"], one["skipped"]) for one in found["workloads"]}
    assert shown == {"good": (1, {}), "host": (0, {"host-network": 1})}
    (config,) = found["configs"]
    assert (config["ready"], config["injected"], config["outdated"]) == ("True", 1, 0)
    text = shield("status", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert f"  kubectl shield explain host -n {namespace}" in text.stdout


def test_a_config_that_is_not_ready_says_why(control_plane: ControlPlane, namespace: str) -> None:
    apply(control_plane, examples.config(namespace=namespace))

    def told() -> str:
        return shield(
            "status", "-n", namespace, kubeconfig=control_plane.kubeconfig, columns=60
        ).stdout

    eventually(lambda: "SecretNotFound" in told())
    text = told()
    assert f"{namespace}/shield: Secret keys is not in" in text
    wrapped = text[text.index(f"{namespace}/shield:") :].partition("\n\n")[0]
    assert all(len(line) <= 60 for line in wrapped.splitlines())


def test_pods_of_a_job_are_shown_by_their_cron_job(
    control_plane: ControlPlane, namespace: str
) -> None:
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    apply(
        control_plane,
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"namespace": namespace, "name": "nightly"},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}},
        },
    )
    control_plane.kubectl("create", "job", "now", "--from=cronjob/nightly", "-n", namespace)
    found = eventually(lambda: workload(control_plane, namespace, "nightly"))
    assert (found["kind"], found["injected"]) == ("CronJob", 1)


@pytest.fixture
def two_namespaces(control_plane: ControlPlane) -> Iterator[tuple[str, str]]:
    stamp = f"{time.time_ns():x}"
    asking, other = f"asking-{stamp}", f"other-{stamp}"
    make_namespace(control_plane, asking, INJECT)
    make_namespace(control_plane, other)
    yield asking, other
    for name in (asking, other):
        control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


def test_all_namespaces(control_plane: ControlPlane, two_namespaces: tuple[str, str]) -> None:
    asking, other = two_namespaces
    configured(control_plane, asking)
    configured(control_plane, other)
    create_pod(control_plane, asking, named_pod("by-namespace"))
    create_pod(control_plane, other, named_pod("nobody-asked"))
    create_pod(control_plane, other, named_pod("late"))
    control_plane.kubectl("label", "pod", "late", "llm-shield.io/inject=true", "-n", other)
    found = shield_json("status", "-A", kubeconfig=control_plane.kubeconfig)
    here = {
        (one["namespace"], one["name"]): (one["injected"], one["bare"])
        for one in found["workloads"]
        if one["namespace"] in two_namespaces
    }
    assert here == {(asking, "by-namespace"): (1, 0), (other, "late"): (0, 1)}
    text = shield("status", "-A", "-o", "yaml", kubeconfig=control_plane.kubeconfig)
    as_yaml = yaml.safe_load(text.stdout)
    assert as_yaml.keys() == found.keys()
    # Other tests' namespaces come and go meanwhile.
    ours = [
        [w for w in f["workloads"] if w["namespace"] in two_namespaces] for f in (as_yaml, found)
    ]
    assert ours[0] == ours[1]


def test_a_pod_that_lost_its_labels_is_not_bare(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The sidecar itself tells; labels are for queries."""
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    create_pod(control_plane, namespace, named_pod("web"))
    control_plane.kubectl("label", "pod", "web", "llm-shield.io/injected-", "-n", namespace)
    found = workload(control_plane, namespace, "web")
    assert (found["injected"], found["bare"]) == (1, 0)


def test_somebody_who_may_see_only_the_namespace(
    control_plane: ControlPlane, namespace: str
) -> None:
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    apply(control_plane, deployment(namespace, replicas=1))
    eventually(lambda: pods(control_plane, namespace))
    kubeconfig = viewer_of(control_plane, namespace)
    text = shield("status", kubeconfig=kubeconfig)
    assert text.exit_code == 0, text.output
    assert "replicaset/web-" in text.stdout
    assert "pods are shown by their ReplicaSet" in text.stdout
    everywhere = shield("status", "-A", kubeconfig=kubeconfig)
    assert (everywhere.exit_code, len(everywhere.stderr.splitlines())) == (1, 1)


def test_a_sidecar_in_the_template_is_named_instead_of_a_restart(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    file = tmp_path / "web.yaml"
    file.write_text(yaml.safe_dump(deployment(namespace, replicas=1)))
    kubeconfig = control_plane.kubeconfig
    injected = shield("inject", "-f", str(file), "--from-cluster", kubeconfig=kubeconfig).stdout
    control_plane.kubectl("apply", "-f", "-", input=injected)
    eventually(lambda: pods(control_plane, namespace))
    configured(control_plane, namespace, port=8001)
    told = "the sidecar stands in the template of deployment/web: inject its manifest again"
    assert told in workload(control_plane, namespace, "web")["remedy"]
    (pod,) = pods(control_plane, namespace)
    name = pod["metadata"]["name"]
    text = shield("explain", name, "-n", namespace, kubeconfig=kubeconfig).stdout
    assert told in text
    assert "rollout restart" not in text


def test_what_a_new_pod_would_wait_for_comes_first(
    control_plane: ControlPlane, namespace: str
) -> None:
    for name, shape in (("early", {}), ("host", {"hostNetwork": True})):
        create_pod(control_plane, namespace, named_pod(name, **shape))
    labelled(control_plane, namespace)
    found = workload(control_plane, namespace, "early")["remedy"]
    assert found.startswith(f"first create a ShieldSidecarConfig in namespace {namespace}")
    apply(control_plane, examples.config(namespace=namespace))
    wait_reason(control_plane, namespace, "shield", "SecretNotFound")
    found = workload(control_plane, namespace, "early")["remedy"]
    assert found.startswith(f"first create Secret keys in namespace {namespace}; then: kubectl")
    assert "would not get the sidecar" in workload(control_plane, namespace, "host")["remedy"]
    secret = {"apiVersion": "v1", "kind": "Secret"}
    apply(control_plane, {**secret, "metadata": {"name": "keys", "namespace": namespace}})
    found = workload(control_plane, namespace, "early")["remedy"]
    assert found.startswith(f"kubectl delete pod/early -n {namespace}")
