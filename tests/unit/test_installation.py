"""The operator's settings, as its Deployment shows them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import examples
from shield_operator.installation import environment_of, installation_of
from shield_operator.settings import Settings, SettingsError

INSTALL = Path(__file__).resolve().parents[2] / "manifests" / "install.yaml"


def deployment(*env: dict[str, Any], args: tuple[str, ...] = ("run",)) -> dict[str, Any]:
    container = {"name": "operator", "args": [*args], "env": [*env]}
    return {
        "metadata": {"namespace": "tools"},
        "spec": {"template": {"spec": {"containers": [{"name": "x"}, container]}}},
    }


def test_the_manifests_own_deployment_has_the_default_settings() -> None:
    documents = yaml.safe_load_all(INSTALL.read_text(encoding="utf-8"))
    (found,) = [one for one in documents if one["kind"] == "Deployment"]
    assert installation_of(found, {}).settings == Settings()
    assert installation_of(found, {}).unknown == ()


def test_variables_and_flags() -> None:
    field = {
        "name": "POD_NAMESPACE",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
    }
    image = {"name": "K8S_SIDECAR_IMAGE", "value": examples.IMAGE}
    other = {"name": "PATH", "value": "/bin"}
    args = ("run", "--health-port=8081", "--failure-policy", "Ignore", "--unknown", "x")
    found = installation_of(deployment(field, image, other, args=args), {}).settings
    assert (found.namespace, found.sidecar_image) == ("tools", examples.IMAGE)
    assert (found.health_port, found.failure_policy.value) == (8081, "Ignore")


def test_what_comes_from_elsewhere_is_named_as_unknown() -> None:
    hidden = {"name": "FAILURE_POLICY", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}
    found = installation_of(deployment(hidden), {})
    assert found.unknown == ("FAILURE_POLICY",)
    assert found.settings.failure_policy.value == "Fail"


def test_settings_of_another_version_are_named_as_unknown() -> None:
    newer = {"name": "FAILURE_POLICY", "value": "Perhaps"}
    found = installation_of(deployment(newer), {})
    assert found.settings.failure_policy.value == "Fail"
    assert "FAILURE_POLICY is 'Perhaps'" in found.unknown[0]


def test_a_persons_environment_counts_where_it_decides_about_pods() -> None:
    environment = {
        "K8S_SIDECAR_IMAGE": examples.IMAGE,
        "LOG_LEVEL": "of another program",
        "POD_NAMESPACE": "of-the-pod-that-this-runs-in",
    }
    found = installation_of(None, environment).settings
    assert found == Settings(sidecar_image=examples.IMAGE)
    assert installation_of(None, environment, "tools").settings.namespace == "tools"
    with pytest.raises(SettingsError):
        installation_of(None, {"UNINJECTED_POD_POLICY": "x"})


def test_garbage_is_no_deployment() -> None:
    deep: Any = {"spec": {"template": {"spec": {"containers": [1]}}}}
    garbages: list[Any] = [None, {}, {"spec": []}, deep]
    for garbage in garbages:
        assert environment_of(garbage) == ({}, ())
