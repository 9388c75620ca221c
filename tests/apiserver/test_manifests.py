"""The manifests: install.yaml is fresh, kustomize agrees, and every permission has its reason."""

from typing import Any

import yaml

from controlplane import ControlPlane
from manifests import INSTALL, KUSTOMIZATION, ROOT, render
from shield_operator import __version__, names
from shield_operator.settings import Settings
from support import eventually


def installed(kind: str, name: str = names.OPERATOR) -> dict[str, Any]:
    documents = yaml.safe_load_all(INSTALL.read_text(encoding="utf-8"))
    (found,) = [d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name]
    return dict(found)


def test_install_yaml_is_fresh() -> None:
    """When this fails: `make manifests`."""
    assert INSTALL.read_text(encoding="utf-8") == render()


def test_kustomize_builds_the_same(control_plane: ControlPlane) -> None:
    built = control_plane.kubectl("kustomize", str(KUSTOMIZATION)).stdout

    def by_identity(text: str) -> dict[tuple[str, str], Any]:
        return {(d["kind"], d["metadata"]["name"]): d for d in yaml.safe_load_all(text)}

    assert by_identity(built) == by_identity(INSTALL.read_text(encoding="utf-8"))


def test_every_rule_has_its_reason_beside_it() -> None:
    lines = (ROOT / "manifests" / "base" / "rbac.yaml").read_text(encoding="utf-8").splitlines()
    rules = [number for number, line in enumerate(lines) if line.startswith("  - apiGroups:")]
    assert len(rules) == 13
    assert all(lines[number - 1].startswith("  # ") for number in rules)


def test_no_rule_is_wider_than_it_must_be() -> None:
    for kind in ("ClusterRole", "Role"):
        for rule in installed(kind)["rules"]:
            assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
            if rule["resources"] == ["secrets"]:
                assert not {"list", "watch", "update", "delete"} & set(rule["verbs"])
                assert "patch" not in rule["verbs"] or "resourceNames" in rule


def test_names_and_version_agree_with_the_code() -> None:
    assert installed("Namespace", names.OPERATOR_NAMESPACE)
    for kind in ("Deployment", "Service", "ServiceAccount", "ClusterRole", "PodDisruptionBudget"):
        assert installed(kind)["metadata"]["name"] == names.OPERATOR
    (container,) = installed("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{names.OPERATOR}:{__version__}"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"webhook": Settings().webhook_port, "health": Settings().health_port}
    named = [r["resourceNames"] for r in installed("Role")["rules"] if r.get("resourceNames")]
    assert named == [[names.TLS_SECRET], [names.OPERATOR]]


def test_the_api_server_admits_the_operators_own_pods(own_control_plane: ControlPlane) -> None:
    """The namespace enforces Pod Security "restricted"; the whole file applies in one go."""
    applied = own_control_plane.kubectl("apply", "-f", str(INSTALL))
    assert applied.stderr == ""
    namespace = f"--namespace={names.OPERATOR_NAMESPACE}"

    def pods() -> list[str]:
        return own_control_plane.kubectl("get", "pods", "--output=name", namespace).stdout.split()

    eventually(lambda: len(pods()) == 2)
    labels = installed("Namespace", names.OPERATOR_NAMESPACE)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_deployment_survives_a_drain() -> None:
    spec = installed("Deployment")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert installed("PodDisruptionBudget")["spec"]["minAvailable"] == 1
    pod = spec["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 30
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert list(pod["affinity"]["podAntiAffinity"]) == [
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    (quota,) = installed("ResourceQuota")["spec"]["scopeSelector"]["matchExpressions"]
    assert quota["values"] == [pod["priorityClassName"]]
    assert pod["containers"][0]["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert pod["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_no_ca_bundle_is_in_a_manifest() -> None:
    assert "caBundle" not in INSTALL.read_text(encoding="utf-8")
    assert "WebhookConfiguration\n" not in INSTALL.read_text(encoding="utf-8")
