"""The overlays, each as kustomize makes it, on a real API server; by themselves and together."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from authorities import OwnAuthority
from controlplane import ControlPlane
from foreign import define
from manifests import INSTALL, ROOT
from shield_operator import names
from shield_operator.certificate_files import CertificateFiles
from shield_operator.certificate_source import served_hosts
from shield_operator.settings import Settings

COMPONENTS = ROOT / "manifests" / "components"
OVERLAYS = ROOT / "manifests" / "overlays"
ALL = sorted(path.name for path in COMPONENTS.iterdir())

Identity = tuple[str, str]


def by_identity(text: str) -> dict[Identity, Any]:
    return {(d["kind"], d["metadata"]["name"]): d for d in yaml.safe_load_all(text)}


def installation() -> dict[Identity, Any]:
    return by_identity(INSTALL.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane that also knows the kinds of other projects that the overlays use."""
    with ControlPlane.start() as control_plane:
        define(control_plane)
        yield control_plane


def test_every_component_has_its_overlay_and_a_line_in_the_readme() -> None:
    assert sorted(path.name for path in OVERLAYS.iterdir() if path.is_dir()) == ALL
    readme = (OVERLAYS / "README.md").read_text(encoding="utf-8")
    assert [name for name in ALL if f"| [{name}](../components/{name}/" not in readme] == []


@pytest.mark.parametrize("name", ALL)
def test_an_overlay_is_the_whole_installation_and_the_component(
    cluster: ControlPlane, name: str
) -> None:
    built = by_identity(cluster.kubectl("kustomize", str(OVERLAYS / name)).stdout)
    changed = {key for key, document in installation().items() if built.get(key) != document}
    assert changed == ({("Deployment", names.OPERATOR)} if name == "cert-manager" else set())
    added = built.keys() - installation().keys()
    assert added
    for key in added:
        labels = built[key]["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == names.OPERATOR


@pytest.mark.parametrize("name", ALL)
def test_the_api_server_takes_an_overlay_whole(cluster: ControlPlane, name: str) -> None:
    """Validated strictly: a field that the API server does not know would be refused."""
    overlay = ("-k", str(OVERLAYS / name))
    applied = cluster.kubectl("apply", *overlay)
    assert applied.stderr == ""
    assert f"deployment.apps/{names.OPERATOR} created" in applied.stdout
    cluster.kubectl("delete", *overlay, "--ignore-not-found")


def test_all_components_go_together(cluster: ControlPlane, tmp_path: Path) -> None:
    """As the README's own kustomization does it, which may name only what is below or relative."""
    depth = len(tmp_path.relative_to("/").parts)
    there = "../" * depth + str(ROOT / "manifests").lstrip("/")
    own = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{there}/install"],
        "components": [f"{there}/components/{name}" for name in ALL],
        "images": [{"name": names.OPERATOR, "newName": "registry.example.com/shield"}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    applied = cluster.kubectl("apply", "-k", str(tmp_path))
    assert applied.stderr == ""
    built = by_identity(cluster.kubectl("kustomize", str(tmp_path)).stdout)
    (container,) = container_of(built)
    assert container["image"].startswith("registry.example.com/shield:")
    each = [
        by_identity(cluster.kubectl("kustomize", str(OVERLAYS / name)).stdout).keys()
        for name in ALL
    ]
    assert built.keys() == set().union(*each)
    cluster.kubectl("delete", "-k", str(tmp_path), "--ignore-not-found")


def container_of(documents: dict[Identity, Any]) -> Any:
    return documents["Deployment", names.OPERATOR]["spec"]["template"]["spec"]["containers"]


# --- network-policy -------------------------------------------------------------------------------


def test_the_network_policy_is_for_the_operators_pods_and_ports(cluster: ControlPlane) -> None:
    built = by_identity(cluster.kubectl("kustomize", str(OVERLAYS / "network-policy")).stdout)
    spec = built["NetworkPolicy", names.OPERATOR]["spec"]
    template = built["Deployment", names.OPERATOR]["spec"]["template"]
    assert spec["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (container,) = container_of(built)
    ours = {port["name"] for port in container["ports"]}
    asked = [port["port"] for rule in spec["ingress"] for port in rule["ports"]]
    assert sorted(asked) == sorted(ours)
    (metrics,) = [rule for rule in spec["ingress"] if "from" in rule]
    assert [port["port"] for port in metrics["ports"]] == ["health"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]


# --- cert-manager ---------------------------------------------------------------------------------


@pytest.fixture
def with_cert_manager(cluster: ControlPlane) -> dict[Identity, Any]:
    return by_identity(cluster.kubectl("kustomize", str(OVERLAYS / "cert-manager")).stdout)


def test_the_certificate_is_for_the_name_that_the_api_server_calls(
    with_cert_manager: dict[Identity, Any],
) -> None:
    spec = with_cert_manager["Certificate", names.OPERATOR]["spec"]
    assert set(served_hosts(Settings())) <= set(spec["dnsNames"])
    issuer = with_cert_manager["Issuer", spec["issuerRef"]["name"]]["spec"]
    authority = with_cert_manager["Certificate", "llm-shield-operator-ca"]["spec"]
    assert issuer["ca"]["secretName"] == authority["secretName"]
    assert authority["isCA"]
    assert ("Issuer", authority["issuerRef"]["name"]) in with_cert_manager
    assert names.TLS_SECRET not in (spec["secretName"], authority["secretName"])


def test_the_operator_serves_what_is_mounted(
    with_cert_manager: dict[Identity, Any], tmp_path: Path
) -> None:
    """The mount, the variables and the files that cert-manager's Secret has go together."""
    (container,) = container_of(with_cert_manager)
    pod = with_cert_manager["Deployment", names.OPERATOR]["spec"]["template"]["spec"]
    spec = with_cert_manager["Certificate", names.OPERATOR]["spec"]
    (volume,) = [one for one in pod["volumes"] if "secret" in one]
    assert volume["secret"]["secretName"] == spec["secretName"]
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == volume["name"]]
    authority = OwnAuthority("ec")
    certificate, key = authority.issue(spec["dnsNames"][0], "ec")
    secret = {"tls.crt": certificate, "tls.key": key, "ca.crt": authority.certificate}
    for name, content in secret.items():
        (tmp_path / name).write_bytes(content)
    environment = {
        variable["name"]: variable["value"].replace(mount["mountPath"], str(tmp_path))
        for variable in container["env"]
        if "value" in variable
    }
    source = CertificateFiles(Settings.from_env(environment))
    assert asyncio.run(source.refresh())
    assert source.authorities == authority.certificate
