"""``kubectl shield explain``, of what the real webhook has done or has never seen."""

import time
from typing import Any

import pytest
import yaml

import examples
from controlplane import ControlPlane
from plugin import shield, shield_json
from support import (
    CONFIGS,
    INJECT,
    apply,
    create_pod,
    eventually,
    get,
    has_native_sidecars,
    make_namespace,
    wait_reason,
)

pytestmark = pytest.mark.usefixtures("operator")

KEYS = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}


def labelled(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("label", "namespace", namespace, "llm-shield.io/inject=enabled")


def configured(control_plane: ControlPlane, namespace: str, **spec: Any) -> None:
    secret = {**KEYS, "metadata": {"name": "keys", "namespace": namespace}}
    apply(control_plane, secret, examples.config(namespace=namespace, **spec))
    wait_reason(control_plane, namespace, "shield", "Accepted")


def named_pod(name: str, **given: Any) -> dict[str, Any]:
    pod = examples.pod(**given)
    del pod["metadata"]["generateName"]
    pod["metadata"]["name"] = name
    return pod


def explained(control_plane: ControlPlane, namespace: str, target: str) -> Any:
    kubeconfig = control_plane.kubeconfig
    return shield_json("explain", target, "-n", namespace, kubeconfig=kubeconfig)


def test_a_pod_that_has_the_sidecar_and_then_is_outdated(
    control_plane: ControlPlane, namespace: str
) -> None:
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    create_pod(control_plane, namespace, named_pod("web"))
    found = explained(control_plane, namespace, "web")
    assert (found["shielded"], found["live"]["standing"]) == (True, "current")
    assert found["live"]["config"] == f"{namespace}/shield"

    configured(control_plane, namespace, port=8001)
    text = shield("explain", "pod/web", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert text.exit_code == 0
    assert f"injected by ShieldSidecarConfig {namespace}/shield in generation 1" in text.stdout
    assert "outdated: its config has another plan by now" in text.stdout
    assert f"kubectl delete pod/web -n {namespace}" in text.stdout


SKIPPED: dict[str, dict[str, Any]] = {
    "host-network": {"hostNetwork": True},
    "port-conflict": {
        "containers": [{"name": "web", "image": "i", "ports": [{"containerPort": 8000}]}]
    },
    "no-sidecar-config": {"annotations": {"llm-shield.io/config": "elsewhere"}},
    "target-container-not-found": {"annotations": {"llm-shield.io/container": "wbe"}},
    "volume-name-conflict": {"volumes": [{"name": "llm-shield-tmp", "emptyDir": {}}]},
}


def test_a_skipped_pod_with_the_word_of_its_label(
    control_plane: ControlPlane, namespace: str
) -> None:
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    for reason, shape in SKIPPED.items():
        _, pod = create_pod(control_plane, namespace, named_pod(reason, **shape))
        label = pod["metadata"]["labels"]["llm-shield.io/injection-skipped"]
        found = explained(control_plane, namespace, reason)
        assert (label, found["reason"], found["live"]["reason"]) == (reason, reason, reason)
        failed = [step["reason"] for step in found["steps"] if step["verdict"] == "failed"]
        assert failed == [reason]
        text = shield("explain", reason, "-n", namespace, kubeconfig=control_plane.kubeconfig)
        assert text.exit_code == 3
        assert f"When it was created: not injected ({reason}): " in text.stdout
        assert "Made anew, it would be skipped for the same reason" in text.stdout


def test_a_skipped_pod_of_a_controller_whose_config_came_later(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The label that the operator put on the pod is no fault of its template's."""
    labelled(control_plane, namespace)
    pod = named_pod("web", owner="ReplicaSet")
    _, made = create_pod(control_plane, namespace, pod)
    assert made["metadata"]["labels"]["llm-shield.io/injection-skipped"] == "no-sidecar-config"
    configured(control_plane, namespace)
    text = shield("explain", "web", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert text.exit_code == 3
    assert "When it was created: not injected (no-sidecar-config)" in text.stdout
    assert "Made anew, it would be injected" in text.stdout
    assert "remove it from the template" not in text.stdout


def test_labelled_too_late(control_plane: ControlPlane, namespace: str) -> None:
    """The webhook never saw the pod; explain says so, why, and what to do; and that helps."""
    configured(control_plane, namespace)
    create_pod(control_plane, namespace, named_pod("early"))
    time.sleep(1.1)  # times in metadata are whole seconds
    labelled(control_plane, namespace)
    text = shield("explain", "early", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert text.exit_code == 3
    assert "When it was created: nothing was done about it" in text.stdout
    assert f"and namespace {namespace} got its label llm-shield.io/inject at" in text.stdout
    assert "Made anew, it would be injected" in text.stdout
    (cause,) = explained(control_plane, namespace, "early")["live"]["causes"]
    assert cause["certainty"] == "likely"

    control_plane.kubectl("delete", "pod", "early", "-n", namespace, "--grace-period=0", "--force")
    create_pod(control_plane, namespace, named_pod("early"))
    again = shield("explain", "early", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert again.exit_code == 0


def test_a_pods_own_label_set_too_late(control_plane: ControlPlane, namespace: str) -> None:
    configured(control_plane, namespace)
    create_pod(control_plane, namespace, named_pod("early"))
    time.sleep(1.1)
    control_plane.kubectl("label", "pod", "early", "llm-shield.io/inject=true", "-n", namespace)
    (cause,) = explained(control_plane, namespace, "early")["live"]["causes"]
    assert cause["certainty"] == "likely"
    assert "and the pod got its label" in cause["message"]


def test_labelled_in_time_is_not_blamed(control_plane: ControlPlane, namespace: str) -> None:
    """A bare pod whose label was there in time: nothing is made up about the past."""
    labelled(control_plane, namespace)
    pod = named_pod("out", labels={"llm-shield.io/inject": "false"})
    create_pod(control_plane, namespace, pod)
    text = shield("explain", "out", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert text.exit_code == 3
    assert "✗ label  the pod has llm-shield.io/inject=false, which says no" in text.stdout
    assert "because" not in text.stdout
    assert "the operator is not asked about it" in text.stdout


def test_nobody_asked(control_plane: ControlPlane, namespace: str) -> None:
    create_pod(control_plane, namespace, named_pod("web"))
    found = explained(control_plane, namespace, "web")
    assert (found["outcome"], found["live"]["standing"]) == ("ignored", "bare")
    assert found["steps"][0]["saw"].endswith("to get the sidecar")


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "i"}], "restartPolicy": "Never"},
}


def test_a_workloads_template(control_plane: ControlPlane, namespace: str) -> None:
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    metadata = {"namespace": namespace, "name": "web"}
    always = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
    selector = {"matchLabels": {"app": "web"}}
    apps = {"apiVersion": "apps/v1", "metadata": metadata}
    batch = {"apiVersion": "batch/v1", "metadata": metadata}
    job = {"template": TEMPLATE}
    documents = [
        {**apps, "kind": "Deployment", "spec": {"selector": selector, "template": always}},
        {**apps, "kind": "StatefulSet", "spec": {"selector": selector, "template": always}},
        {**apps, "kind": "DaemonSet", "spec": {"selector": selector, "template": always}},
        {**batch, "kind": "Job", "spec": job},
        {
            **batch,
            "kind": "CronJob",
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}},
        },
    ]
    apply(control_plane, *documents)
    for target in ("deploy/web", "sts/web", "DaemonSet/web", "jobs/web", "cj/web"):
        text = shield("explain", target, "-n", namespace, kubeconfig=control_plane.kubeconfig)
        assert text.exit_code == 0, text.output
        kind = "native sidecar" if has_native_sidecars(control_plane) else "plain container"
        assert f"Outcome: injected: a {kind}" in text.stdout
    pod = eventually(lambda: pod_of(control_plane, namespace, "web-"))
    assert explained(control_plane, namespace, pod)["shielded"] is True


def pod_of(control_plane: ControlPlane, namespace: str, prefix: str) -> str | None:
    pods = get(control_plane, f"/api/v1/namespaces/{namespace}/pods")["items"]
    return next((p["metadata"]["name"] for p in pods if p["metadata"]["name"] > prefix), None)


def test_wiring_alone_counts(control_plane: ControlPlane, namespace: str) -> None:
    labelled(control_plane, namespace)
    apply(
        control_plane,
        examples.config(
            namespace=namespace,
            mode="None",
            image=None,
            secretName=None,
            scheduling={"nodeSelector": {"pool": "a"}},
        ),
    )
    wait_reason(control_plane, namespace, "shield", "Accepted")
    create_pod(control_plane, namespace, named_pod("web"))
    text = shield("explain", "web", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert text.exit_code == 0, text.output
    assert "When it was created: wired by ShieldSidecarConfig" in text.stdout
    copied = named_pod("copied", labels={"llm-shield.io/inject": "false"})
    copied["metadata"]["annotations"] = {"llm-shield.io/injected-config": f"{namespace}/shield"}
    create_pod(control_plane, namespace, copied)
    forged = shield("explain", "copied", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert forged.exit_code == 3


def test_a_missing_secret_is_told(control_plane: ControlPlane, namespace: str) -> None:
    labelled(control_plane, namespace)
    apply(control_plane, examples.config(namespace=namespace))
    wait_reason(control_plane, namespace, "shield", "SecretNotFound")
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": "web"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {**TEMPLATE, "spec": {"containers": [{"name": "web", "image": "i"}]}},
        },
    }
    apply(control_plane, deployment)
    text = shield("explain", "deploy/web", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert f"{namespace}/keys is not there: the pod will wait until it is" in text.stdout
    assert text.exit_code == 0


def test_somebody_who_may_see_only_the_namespace(
    control_plane: ControlPlane, namespace: str
) -> None:
    """The owner of a namespace: what cannot be read is told, and the rest explained."""
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    create_pod(control_plane, namespace, named_pod("web"))
    kubeconfig = viewer_of(control_plane, namespace)
    text = shield("explain", "web", kubeconfig=kubeconfig)
    assert text.exit_code == 0, text.output
    assert "note: Deployment llm-shield-system/llm-shield-operator cannot be read" in text.stdout
    other = f"{namespace}-other"
    make_namespace(control_plane, other)
    refused = shield("explain", "web", "-n", other, kubeconfig=kubeconfig)
    assert refused.exit_code == 1
    assert len(refused.stderr.splitlines()) == 1
    assert refused.stderr.startswith(f"error: cannot read pod {other}/web: pods ")
    assert "install.yaml" not in refused.stderr


def viewer_of(control_plane: ControlPlane, namespace: str) -> Any:
    """Somebody who may read this namespace, and its configs."""
    rules = [{"apiGroups": ["llm-shield.io", ""], "resources": ["*"], "verbs": ["get", "list"]}]
    about = {"namespace": namespace, "name": "viewer"}
    subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "viewer"}
    rbac = "rbac.authorization.k8s.io/v1"
    apply(
        control_plane,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about},
        {"apiVersion": rbac, "kind": "Role", "metadata": about, "rules": rules},
        {
            "apiVersion": rbac,
            "kind": "RoleBinding",
            "metadata": about,
            "roleRef": role,
            "subjects": [subject],
        },
    )
    return control_plane.kubeconfig_for("viewer", namespace)


def test_what_is_not_there_is_one_sentence(control_plane: ControlPlane, namespace: str) -> None:
    kubeconfig = control_plane.kubeconfig
    sentences = {
        ("nobody",): f"error: there is no pod nobody in namespace {namespace}",
        ("deploy/nobody",): f"error: there is no deployment nobody in namespace {namespace}",
        ("node/nobody",): "error: node/nobody is neither a pod's name nor KIND/NAME, where KIND",
    }
    for arguments, sentence in sentences.items():
        found = shield("explain", *arguments, "-n", namespace, kubeconfig=kubeconfig)
        assert (found.exit_code, found.stdout) == (1, "")
        assert found.stderr.startswith(sentence)
        assert len(found.stderr.splitlines()) == 1


def test_the_context_says_which_namespace(control_plane: ControlPlane, namespace: str) -> None:
    create_pod(control_plane, namespace, named_pod("web"))
    config = yaml.safe_load(control_plane.kubeconfig.read_text(encoding="utf-8"))
    context = {**config["contexts"][0]["context"], "namespace": namespace}
    config["contexts"].append({"name": "mine", "context": context})
    path = control_plane.directory / f"{namespace}.kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    found = shield("explain", "web", "--context", "mine", kubeconfig=path)
    assert found.stdout.startswith(f"pod {namespace}/web\n")
    elsewhere = shield(
        "explain", "web", "--context=mine", f"--kubeconfig={path}", kubeconfig=path.with_name("no")
    )
    assert elsewhere.stdout == found.stdout
    wrong = shield("explain", "web", "--context", "yours", kubeconfig=path)
    assert (wrong.exit_code, len(wrong.stderr.splitlines())) == (1, 1)


def test_everybody_asks_alike(control_plane: ControlPlane, namespace: str) -> None:
    """What explain says of a pod that is created now is what the webhook does then."""
    make = f"{namespace}-in"
    make_namespace(control_plane, make, INJECT)
    configured(control_plane, make)
    _, pod = create_pod(control_plane, make, named_pod("web"))
    found = explained(control_plane, make, "web")
    annotations = pod["metadata"]["annotations"]
    assert found["live"]["injectionHash"] == annotations["llm-shield.io/injection-hash"]
    written = get(control_plane, f"{CONFIGS.format(make)}/shield")["status"]["injectionHash"]
    assert written == annotations["llm-shield.io/injection-hash"]


def test_what_would_be_if_another_config_was_applied(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Configs, labels and a version that are given count as if the cluster had them."""
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    web = {"name": "web", "image": "i", "ports": [{"containerPort": 9000}]}
    pod = named_pod("web", containers=[web])
    path = control_plane.directory / f"{namespace}.yaml"
    path.write_text(yaml.safe_dump(examples.config(namespace=namespace, port=9000)))
    kubeconfig = control_plane.kubeconfig
    create_pod(control_plane, namespace, pod)
    there = shield_json("explain", "web", "-n", namespace, kubeconfig=kubeconfig)
    assert there["live"]["madeAnew"] == "injected"
    arguments = ("explain", "web", "-n", namespace, "-c", str(path))
    then = shield_json(*arguments, kubeconfig=kubeconfig)
    assert then["live"]["madeAnew"] == "port-conflict"
    label = ("--namespace-labels", "llm-shield.io/inject=disabled")
    out = shield("explain", "web", "-n", namespace, *label, kubeconfig=kubeconfig)
    assert out.exit_code == 0  # the sidecar is there, whatever would be today
    assert "Made anew, it would be ignored" in out.stdout
    old = ("--kubernetes-version", "1.30")
    plain = shield("explain", "web", "-n", namespace, *old, kubeconfig=kubeconfig)
    assert plain.exit_code == 0


def test_a_file_with_what_the_cluster_has(control_plane: ControlPlane, namespace: str) -> None:
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    path = control_plane.directory / f"{namespace}-pod.yaml"
    path.write_text(yaml.safe_dump({**named_pod("web"), "kind": "Pod"}))
    arguments = ("explain", "-f", str(path), "-n", namespace)
    alone = shield(*arguments, kubeconfig=control_plane.kubeconfig)
    assert alone.exit_code == 3
    assert "label one of them" in " ".join(alone.stdout.split())
    asked = shield(*arguments, "--from-cluster", kubeconfig=control_plane.kubeconfig)
    assert asked.exit_code == 0, asked.output
    assert f"{namespace}/shield, which is for every pod" in asked.stdout


def test_a_config_that_is_gone(control_plane: ControlPlane, namespace: str) -> None:
    """The pod goes on with what it has; made anew, it would be skipped."""
    labelled(control_plane, namespace)
    configured(control_plane, namespace)
    create_pod(control_plane, namespace, named_pod("web"))
    control_plane.kubectl("delete", "ssc", "shield", "-n", namespace)
    text = shield("explain", "web", "-n", namespace, kubeconfig=control_plane.kubeconfig)
    assert text.exit_code == 0
    assert "whether that is current is not known" in text.stdout
    assert "Made anew, it would be not injected (no-sidecar-config)" in text.stdout
