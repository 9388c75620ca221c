"""The Helm chart: the same as install.yaml, for every value, and through a release's whole life.

With Helm 3 and Helm 4, which are both in use, and on a real API server.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import fields
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

import examples
from controlplane import ControlPlane, ensure_programs
from foreign import define
from localoperator import OperatorProcess
from manifests import CHART, INSTALL, ROOT, chart_files
from shield_operator import __version__, names
from shield_operator.settings import Settings
from support import (
    CONFIGS,
    INJECT,
    WEBHOOKS,
    apply,
    create_pod,
    eventually,
    get,
    has_sidecar,
    make_namespace,
    wait_reason,
)

NAMESPACE = names.OPERATOR_NAMESPACE
DIGEST = f"sha256:{'0' * 64}"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shieldsidecarconfigs.llm-shield.io"
ROLE = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{names.OPERATOR}"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{names.OPERATOR}"
HELMS_LABELS = {
    "helm.sh/chart",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
}

Identity = tuple[str, str]
Documents = dict[Identity, Any]


class Helm:
    """One Helm, with folders of its own and no plugins of the user's.

    Attributes:
        is_server_side: whether it applies server-side, with conflicts, as Helm 4 does.
    """

    def __init__(self, program: Path, home: Path) -> None:
        self.is_server_side = program.name == "helm4"
        self._program = program
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            **{f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")},
        }

    def run(
        self, *arguments: str, kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = self._environment | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
        return subprocess.run(
            [str(self._program), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=120,
        )

    def __call__(self, *arguments: str, kubeconfig: Path | None = None) -> str:
        """What a command prints; it must succeed."""
        result = self.run(*arguments, kubeconfig=kubeconfig)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def template(self, values: Any = None, *, namespace: str = NAMESPACE) -> Documents:
        """What the chart renders to with these values."""
        arguments = [part for key, value in (values or {}).items() for part in set_json(key, value)]
        text = self("template", names.OPERATOR, str(CHART), f"--namespace={namespace}", *arguments)
        return by_identity(text)


def set_json(key: str, value: Any) -> tuple[str, str]:
    return "--set-json", f"{key}={json.dumps(value)}"


def by_identity(text: str) -> Documents:
    documents = [document for document in yaml.safe_load_all(text) if document]
    found = {(d["kind"], d["metadata"]["name"]): d for d in documents}
    assert len(found) == len(documents)
    return found


@pytest.fixture(scope="session", params=["helm3", "helm4"])
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = ensure_programs([request.param])[request.param]
    return Helm(program, tmp_path_factory.mktemp(request.param))


# --- What it renders to ---------------------------------------------------------------------------


def test_the_charts_files_are_fresh() -> None:
    """When this fails: `make manifests`."""
    found = {
        path: path.read_text(encoding="utf-8")
        for path in (CHART / "files").rglob("*")
        if path.is_file()
    }
    assert found == chart_files()


def test_by_default_it_is_install_yaml(helm: Helm) -> None:
    """But for the Namespace, which Helm makes itself where asked to, and Helm's own labels."""
    rendered = helm.template()
    for document in rendered.values():
        labels = document["metadata"]["labels"]
        assert labels.keys() >= HELMS_LABELS
        for label in HELMS_LABELS:
            del labels[label]
    definition = rendered["CustomResourceDefinition", "shieldsidecarconfigs.llm-shield.io"]
    assert definition["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert definition["metadata"].pop("labels") == {}
    installed = by_identity(INSTALL.read_text(encoding="utf-8"))
    del installed["Namespace", NAMESPACE]
    del installed["Deployment", names.OPERATOR]["metadata"]["labels"]["app.kubernetes.io/version"]
    assert rendered == installed


def test_lint_has_nothing_to_say(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_the_versions_are_the_operators() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def deployment(documents: Documents) -> Any:
    return documents["Deployment", names.OPERATOR]["spec"]


def container(documents: Documents) -> Any:
    (found,) = deployment(documents)["template"]["spec"]["containers"]
    return found


def kinds(documents: Documents) -> set[str]:
    return {kind for kind, _ in documents}


def image(of: str) -> Callable[[Documents], bool]:
    return lambda documents: container(documents)["image"] == of


VALUES: dict[str, tuple[dict[str, Any], Callable[[Documents], bool]]] = {
    "a registry": (
        {"image.repository": "registry.example.com/shield", "image.tag": "0.1.0-1"},
        image("registry.example.com/shield:0.1.0-1"),
    ),
    "a digest": ({"image.digest": DIGEST}, image(f"{names.OPERATOR}@{DIGEST}")),
    "pull policy": (
        {"image.pullPolicy": "Always"},
        lambda d: container(d)["imagePullPolicy"] == "Always",
    ),
    "pull secrets": (
        {"imagePullSecrets": [{"name": "regcred"}]},
        lambda d: deployment(d)["template"]["spec"]["imagePullSecrets"] == [{"name": "regcred"}],
    ),
    "one replica": (
        {"replicas": 1},
        lambda d: deployment(d)["replicas"] == 1 and "PodDisruptionBudget" not in kinds(d),
    ),
    "another priority": (
        {"priorityClassName": "high"},
        lambda d: (
            deployment(d)["template"]["spec"]["priorityClassName"] == "high"
            and "ResourceQuota" not in kinds(d)
        ),
    ),
    "no priority": (
        {"priorityClassName": ""},
        lambda d: "priorityClassName" not in deployment(d)["template"]["spec"],
    ),
    "ports": (
        {"settings": {"WEBHOOK_PORT": 10250, "HEALTH_PORT": "8081"}},
        lambda d: [port["containerPort"] for port in container(d)["ports"]] == [10250, 8081],
    ),
    "resources": (
        {"resources": {"limits": {"memory": "1Gi"}}},
        lambda d: container(d)["resources"]["limits"] == {"memory": "1Gi"},
    ),
    "placement": (
        {
            "nodeSelector": {"pool": "infra"},
            "tolerations": [{"key": "infra", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {}},
            "podLabels": {"team": "a"},
            "podAnnotations": {"note": "1"},
        },
        lambda d: (
            deployment(d)["template"]["spec"]["nodeSelector"] == {"pool": "infra"}
            and deployment(d)["template"]["spec"]["affinity"] == {"podAntiAffinity": {}}
            and deployment(d)["template"]["metadata"]
            == {
                "labels": {"app.kubernetes.io/name": names.OPERATOR, "team": "a"},
                "annotations": {"note": "1"},
            }
        ),
    ),
    "no definition": (
        {"crds.install": False},
        lambda d: "CustomResourceDefinition" not in kinds(d),
    ),
    "a definition that goes": (
        {"crds.keep": False},
        lambda d: (
            "annotations"
            not in d["CustomResourceDefinition", "shieldsidecarconfigs.llm-shield.io"]["metadata"]
        ),
    ),
    "network policy": (
        {"networkPolicy.enabled": True},
        lambda d: "NetworkPolicy" in kinds(d),
    ),
    "monitoring": (
        {"monitoring.enabled": True},
        lambda d: {"ServiceMonitor", "PrometheusRule"} < kinds(d),
    ),
    "enforce": (
        {"enforce.enabled": True, "enforce.digests": [DIGEST, f"sha256:{'1' * 64}"]},
        lambda d: (
            d["ConfigMap", "llm-shield-enforce"]["data"]["digests"].splitlines()
            == [DIGEST, f"sha256:{'1' * 64}"]
        ),
    ),
    "files": (
        {
            "certificate.secretName": "certificate",
            "authentication.tokenSecretName": "token",
            "authentication.clientCASecretName": "authorities",
        },
        lambda d: (
            [v["secret"]["secretName"] for v in volumes(d) if "secret" in v]
            == ["certificate", "token", "authorities"]
        ),
    ),
}


def volumes(documents: Documents) -> list[Any]:
    found: list[Any] = deployment(documents)["template"]["spec"]["volumes"]
    return found


@pytest.mark.parametrize("what", VALUES)
def test_a_value_does_what_it_says_and_the_api_server_takes_it(
    helm: Helm, on_trial: ControlPlane, what: str
) -> None:
    values, expected = VALUES[what]
    documents = helm.template(values)
    assert expected(documents), documents
    dry = on_trial.kubectl(
        "apply", "--dry-run=server", "-f", "-", input=yaml.safe_dump_all(documents.values())
    )
    assert dry.stderr == ""


@pytest.fixture(scope="module")
def on_trial() -> Iterator[ControlPlane]:
    """A control plane for dry runs, with the operator's namespace and the kinds of others."""
    with ControlPlane.start() as control_plane:
        define(control_plane)
        make_namespace(control_plane, NAMESPACE)
        yield control_plane


def test_the_variables_are_settings_that_the_operator_can_read(helm: Helm) -> None:
    """All together, numbers included, with the mounted files in place."""
    given = {
        "K8S_SIDECAR_IMAGE": f"registry.example.com/proxy@{DIGEST}",
        "K8S_SIDECAR_SECRET_NAME": "keys",
        "K8S_FEATURE_GATES": "SidecarContainers=true,ImageVolume=false",
        "UNINJECTED_POD_POLICY": "Deny",
        "FAILURE_POLICY": "Ignore",
        "WEBHOOK_TIMEOUT_SECONDS": 10,
        "WEBHOOK_PORT": 10250,
        "HEALTH_PORT": 8081,
        "DRIFT_SCAN_SECONDS": 86400,
        "LOG_LEVEL": "DEBUG",
        "LOG_FORMAT": "text",
    }
    documents = helm.template(
        {"settings": given, **VALUES["files"][0]},
    )
    environment = {v["name"]: v["value"] for v in container(documents)["env"] if "value" in v}
    settings = Settings.from_env(environment)
    assert {key: environment[key] for key in given} == {k: str(v) for k, v in given.items()}
    mounted = {mount["mountPath"] for mount in container(documents)["volumeMounts"]}
    paths = [value for name, value in environment.items() if name.endswith("_FILE")]
    assert len(paths) == 5
    assert {str(Path(path).parent) for path in paths} < mounted
    assert settings.drift_scan_interval == 86400


def test_the_schema_has_every_setting_but_those_that_have_values_of_their_own() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    elsewhere = {
        "POD_NAMESPACE",  # the release's
        "WEBHOOK_SERVICE",  # the chart's
        "WEBHOOK_URL",  # of an operator outside
        "TLS_SECRET_NAME",  # the Role names it
        "TLS_CERT_FILE",  # certificate.secretName
        "TLS_KEY_FILE",
        "TLS_CA_FILE",
        "K8S_WEBHOOK_AUTH_TOKEN",  # not in a manifest: authentication.tokenSecretName
        "K8S_WEBHOOK_AUTH_TOKEN_FILE",
        "WEBHOOK_CLIENT_CA_FILE",  # authentication.clientCASecretName
    }
    every = {field.metadata["variable"] for field in fields(Settings)}
    assert set(schema["properties"]["settings"]["properties"]) == every - elsewhere


def test_every_value_has_its_default_and_a_comment() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    assert values.keys() | {"global"} == schema["properties"].keys()
    for name, value in values.items():
        inner = schema["properties"][name]
        if inner.get("additionalProperties") is False and name != "settings":
            assert value.keys() == inner["properties"].keys()
    assert text.count("#") >= len(values)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("replica", 2),
        ("replicas", 0),
        ("replicas", "two"),
        ("image.digest", "1.7.0"),
        ("image.pullPolicy", "Sometimes"),
        ("settings.FAILURE_POLICY", "Deny"),
        ("settings.WEBHOOK_TIMEOUT_SECONDS", 31),
        ("settings.WEBHOOK_URL", "https://example.com"),
        ("settings.K8S_WEBHOOK_AUTH_TOKEN", "secret"),
        ("settings.K8S_SIDECAR_IMAGE", "proxy:latest"),
        ("enforce.digests", ["proxy:1.7.0"]),
        ("podLabels", {"app.kubernetes.io/name": "mine"}),
    ],
)
def test_what_cannot_be_meant_is_refused(helm: Helm, key: str, value: Any) -> None:
    """With the value's name; what the operator would refuse at its start is refused here."""
    result = helm.run("template", names.OPERATOR, str(CHART), *set_json(key, value))
    assert result.returncode != 0
    assert key.rpartition(".")[2] in result.stderr


@pytest.mark.parametrize("component", ["enforce", "monitoring", "network-policy"])
def test_a_component_in_the_chart_is_that_of_the_overlay(
    helm: Helm, on_trial: ControlPlane, component: str
) -> None:
    built = on_trial.kubectl("kustomize", str(ROOT / "manifests" / "components" / component))
    value = {"network-policy": "networkPolicy"}.get(component, component)
    rendered = helm.template({f"{value}.enabled": True})
    for identity, document in by_identity(built.stdout).items():
        for label in HELMS_LABELS:
            del rendered[identity]["metadata"]["labels"][label]
        assert rendered[identity] == document


def test_another_namespace_is_the_operators_everywhere(helm: Helm) -> None:
    documents = helm.template(
        {"enforce.enabled": True, "monitoring.enabled": True, "networkPolicy.enabled": True},
        namespace="elsewhere",
    )
    text = yaml.safe_dump_all(documents.values())
    assert NAMESPACE not in text
    binding = documents["ClusterRoleBinding", names.OPERATOR]
    assert binding["subjects"][0]["namespace"] == "elsewhere"


# --- A release's life -----------------------------------------------------------------------------


@pytest.fixture
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as control_plane:
        yield control_plane


def older(folder: Path) -> Path:
    """The chart as an older release had it, with another definition."""
    chart = folder / "older"
    shutil.copytree(CHART, chart)
    definition = chart / "files" / "crds" / "shieldsidecarconfigs.yaml"
    text = definition.read_text(encoding="utf-8")
    assert "    - ssc\n" in text
    definition.write_text(text.replace("    - ssc\n", "    - old\n"), encoding="utf-8")
    return chart


def short_names(control_plane: ControlPlane) -> Any:
    return get(control_plane, CRD)["spec"]["names"]["shortNames"]


def test_a_release_from_its_installation_to_its_end(
    helm: Helm, cluster: ControlPlane, tmp_path: Path
) -> None:
    """Pods are injected through an upgrade and a rollback; the end leaves nothing that blocks."""
    which = (names.OPERATOR, f"--namespace={NAMESPACE}")

    def run(command: str, *arguments: str) -> None:
        helm(command, *which, *arguments, kubeconfig=cluster.kubeconfig)

    run("install", str(older(tmp_path)), "--create-namespace")
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{CRD.rpartition('/')[2]}")
    role = get(cluster, ROLE)["metadata"]["uid"]
    with OperatorProcess(cluster) as operator:
        operator.wait_ready()
        make_namespace(cluster, "shop", INJECT)
        apply(cluster, examples.config(namespace="shop", secretName=None))
        wait_reason(cluster, "shop", "shield", "Accepted")

        def is_served() -> bool:
            status, pod = create_pod(cluster, "shop", examples.pod())
            assert status == HTTPStatus.CREATED, pod
            return has_sidecar(pod)

        assert is_served()
        run("upgrade", str(CHART), "--set=replicas=3", *set_json("settings.LOG_LEVEL", "DEBUG"))
        assert get(cluster, DEPLOYMENT)["spec"]["replicas"] == 3
        assert short_names(cluster) == ["ssc"], "Helm leaves a folder crds/ alone"
        assert is_served()

        run("rollback", "1")
        spec = get(cluster, DEPLOYMENT)["spec"]
        assert spec["replicas"] == 2
        (container,) = spec["template"]["spec"]["containers"]
        assert [variable["name"] for variable in container["env"]] == ["POD_NAMESPACE"]
        assert short_names(cluster) == ["old"]
        # The role owns the webhook configuration: made anew, it would have taken that along.
        assert get(cluster, ROLE)["metadata"]["uid"] == role
        assert is_served()

        run("uninstall")
        eventually(lambda: get(cluster, WEBHOOKS) is None)
        status, pod = create_pod(cluster, "shop", examples.pod())
        assert status == HTTPStatus.CREATED, pod
        assert not has_sidecar(pod)
        assert get(cluster, WEBHOOKS) is None, "the operator does not bring it back"
    assert get(cluster, f"{CONFIGS.format('shop')}/shield"), "the configs are their owners'"

    run("install", str(CHART), "--set=crds.keep=false")
    assert short_names(cluster) == ["ssc"], "the definition that was kept is taken over"
    run("uninstall")
    eventually(lambda: get(cluster, CRD) is None)


def test_an_installation_by_kubectl_becomes_a_release(helm: Helm, cluster: ControlPlane) -> None:
    """With what it already has: configs stay, and so does the webhook configuration's owner."""
    cluster.kubectl("apply", "-f", str(INSTALL))
    role = get(cluster, ROLE)["metadata"]["uid"]
    arguments = (names.OPERATOR, str(CHART), f"--namespace={NAMESPACE}")
    refused = helm.run("install", *arguments, kubeconfig=cluster.kubeconfig)
    assert refused.returncode != 0
    over = ("--take-ownership", *(["--server-side=false"] if helm.is_server_side else []))
    helm("install", *arguments, *over, kubeconfig=cluster.kubeconfig)
    assert get(cluster, ROLE)["metadata"]["uid"] == role
    helm("upgrade", *arguments, "--set=replicas=3", kubeconfig=cluster.kubeconfig)
    assert get(cluster, DEPLOYMENT)["spec"]["replicas"] == 3
