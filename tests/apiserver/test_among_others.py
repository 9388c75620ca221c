"""Injected pods among all else that admits, changes, counts and owns pods in a cluster."""

import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import examples
from controlplane import ControlPlane
from localoperator import OperatorProcess
from neighbour import Neighbour
from shield_operator.names import PAYLOAD_STAGE, SIDECAR
from strategies import CONFIGS, VALID_PODS
from support import (
    apply,
    counted,
    create,
    create_pod,
    eventually,
    get,
    make_namespace,
    wait_reason,
)

TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"  # a path


def without_host_ipc(config: dict[str, Any]) -> dict[str, Any]:
    spec = dict(config["spec"])
    if "application" in spec:
        spec["application"] = {k: v for k, v in spec["application"].items() if k != "hostIPC"}
    return {**config, "spec": spec}


def use(control_plane: ControlPlane, namespace: str, config: dict[str, Any]) -> None:
    """Make this the namespace's one config, and wait until the operator knows it."""
    metadata = {"name": "shield", "namespace": namespace}
    apply(control_plane, {**config, "metadata": metadata})
    wait_reason(control_plane, namespace, "shield", "Accepted")


def prepare(control_plane: ControlPlane, namespace: str) -> None:
    """Label the namespace, and create the Secrets that the example configs name."""
    control_plane.kubectl("label", "namespace", namespace, "llm-shield.io/inject=enabled")
    for name in ("keys", "corporate-ca"):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
        create(control_plane, f"/api/v1/namespaces/{namespace}/secrets", secret)


@pytest.fixture
def shielded(control_plane: ControlPlane, operator: OperatorProcess, namespace: str) -> str:
    del operator
    prepare(control_plane, namespace)
    return namespace


def containers(pod: Any) -> list[str]:
    spec = pod["spec"]
    return [c["name"] for c in [*spec.get("initContainers", []), *spec["containers"]]]


# --- Other webhooks -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["everything", "everything-plain", "everything-but-the-sidecar"])
def test_webhooks_before_and_after_ours_lead_to_no_duplicate(
    control_plane: ControlPlane, shielded: str, kind: str
) -> None:
    """The one after ours changes the pod, so that the API server asks us a second time."""
    use(control_plane, shielded, CONFIGS[kind])
    with (
        Neighbour(control_plane, "a-neighbour", shielded),
        Neighbour(control_plane, "z-neighbour", shielded),
    ):

        def both_are_asked() -> Any:  # a new webhook configuration takes a moment
            path = f"/api/v1/namespaces/{shielded}/pods?dryRun=All"
            pod = create(control_plane, path, examples.pod())
            found = containers(pod)
            return pod if {"a-neighbour", "z-neighbour"} <= {*found} else None

        pod = eventually(both_are_asked)
    found = containers(pod)
    assert len(found) == len(set(found))
    assert ("llm-shield-proxy" in found) == (kind != "everything-but-the-sidecar")
    assert "llm-shield-payload-stage" in found
    assert pod["metadata"]["labels"] == {"llm-shield.io/injected": "true"}
    assert "llm-shield.io/kept-by-user" not in pod["metadata"]["annotations"]
    web = next(c for c in pod["spec"]["containers"] if c["name"] == "web")
    assert web["args"] == ["--kv", "shield", "--chunked"]
    variables = [variable["name"] for variable in web["env"]]
    assert variables == ["PYTHONPATH", "OPENAI_BASE_URL", "SEED", "HOME"]
    assert web["env"][0]["value"] == "/opt/connector"


def meddle(pod: Any) -> None:
    """What mirrors of registries, policies and wrappers of commands do to every pod."""
    pod["metadata"].setdefault("labels", {})["meddled"] = "with"
    for volume in pod["spec"].get("volumes") or []:
        if "emptyDir" in volume:
            volume["emptyDir"]["sizeLimit"] = "32Mi"
    for container in [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]:
        container["image"] = container["image"].replace("example.com", "mirror.example.com")
        container["imagePullPolicy"] = "Always"
        container["command"] = ["wrapper"]


@pytest.mark.parametrize("kind", ["everything", "everything-but-the-sidecar"])
def test_what_a_webhook_after_ours_does_to_our_containers_is_no_conflict(
    control_plane: ControlPlane, shielded: str, kind: str
) -> None:
    use(control_plane, shielded, CONFIGS[kind])
    path = f"/api/v1/namespaces/{shielded}/pods?dryRun=All"
    with Neighbour(control_plane, "z-neighbour", shielded, meddle):

        def meddled() -> Any:
            pod = create(control_plane, path, examples.pod())
            return pod if "meddled" in pod["metadata"]["labels"] else None

        pod = eventually(meddled)
        assert pod["metadata"]["labels"] == {"llm-shield.io/injected": "true", "meddled": "with"}
        found = containers(pod)
        assert len(found) == len(set(found))
        # And so for a copy of the pod, after its config has changed.
        other = examples.PAYLOAD_IMAGE.replace("1" * 64, "2" * 64)
        config = CONFIGS[kind]
        payload = {**config["spec"]["payload"], "image": other}
        use(control_plane, shielded, {**config, "spec": {**config["spec"], "payload": payload}})
        copied = {"metadata": {"name": "copy"}, "spec": pod["spec"]}
        restored = create(control_plane, path, copied)
        assert containers(restored) == found
        assert "llm-shield.io/injection-skipped" not in restored["metadata"].get("labels", {})


# --- The API server's own plugins -----------------------------------------------------------------


def test_the_api_server_asks_once_and_nobody_of_ours_gets_a_token(
    control_plane: ControlPlane, shielded: str, operator: OperatorProcess
) -> None:
    use(control_plane, shielded, CONFIGS["everything"])
    before = counted(operator, "injected"), counted(operator, "ignored")
    for number in range(5):
        pod = examples.pod(initContainers=[{"name": "migrate", "image": "example.com/web:1"}])
        pod["metadata"]["name"] = f"pod-{number}"
        status, made = create_pod(control_plane, shielded, pod)
        assert status == HTTPStatus.CREATED, made
        names = {volume["name"] for volume in made["spec"]["volumes"] if "projected" in volume}
        spec = made["spec"]
        containers = {c["name"]: c for c in (*spec["initContainers"], *spec["containers"])}
        for container in (containers[SIDECAR], containers[PAYLOAD_STAGE]):
            (where,) = [m for m in container["volumeMounts"] if m["mountPath"] == TOKEN]
            assert where["name"] == "llm-shield-no-token"
            assert names.isdisjoint(mount["name"] for mount in container["volumeMounts"])
        web = made["spec"]["containers"][0]
        assert any(mount["mountPath"] == TOKEN for mount in web["volumeMounts"])
    after = counted(operator, "injected"), counted(operator, "ignored")
    assert after == (before[0] + 5, before[1])


@pytest.mark.parametrize("kind", sorted(CONFIGS))
def test_a_restricted_namespace_with_a_quota_and_limits_admits_the_result(
    control_plane: ControlPlane, shielded: str, kind: str
) -> None:
    use(control_plane, shielded, without_host_ipc(CONFIGS[kind]))
    amounts = {"requests.cpu": "4", "requests.memory": "8Gi"}
    amounts |= {"limits.cpu": "8", "limits.memory": "8Gi"}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": shielded},
        "spec": {"hard": amounts},
    }
    bounds = {
        "type": "Container",
        "min": {"cpu": "50m", "memory": "64Mi"},
        "max": {"cpu": "2", "memory": "2Gi"},
        "default": {"cpu": "500m", "memory": "512Mi"},
    }
    limit_range = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "bounds", "namespace": shielded},
        "spec": {"limits": [bounds]},
    }
    apply(control_plane, quota, limit_range)
    control_plane.kubectl(
        "label", "namespace", shielded, "pod-security.kubernetes.io/enforce=restricted"
    )
    path = f"/api/v1/namespaces/{shielded}/resourcequotas/quota"
    eventually(lambda: get(control_plane, path).get("status", {}).get("hard"))
    status, pod = create_pod(control_plane, shielded, examples.pod(containers=[examples.STRICT]))
    assert status == HTTPStatus.CREATED, pod
    assert pod["metadata"]["labels"]["llm-shield.io/injected"] == "true"
    for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]:
        amounts = container["resources"]["requests"] | container["resources"]["limits"]
        assert not {"0", "", None} & set(amounts.values())


# --- Controllers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "value", "host_network"),
    [
        ("llm-shield.io/injected", "true", True),
        ("llm-shield.io/injection-skipped", "host-network", False),
    ],
)
def test_a_replica_set_that_selects_by_our_label_does_not_run_away(
    control_plane: ControlPlane, shielded: str, label: str, value: str, host_network: bool
) -> None:
    """Had we changed the label, each pod would be lost to its controller, which makes another."""
    use(control_plane, shielded, CONFIGS["native"])
    labels = {"app": "web", label: value}
    template = examples.pod(hostNetwork=host_network)
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": shielded},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }
    apply(control_plane, replica_set)

    def pods() -> dict[str, Any]:
        found = get(control_plane, f"/api/v1/namespaces/{shielded}/pods")["items"]
        return {pod["metadata"]["uid"]: pod for pod in found}

    eventually(lambda: len(pods()) >= 2)
    first = pods()
    time.sleep(2)
    assert pods().keys() == first.keys()
    assert len(first) == 2
    annotation = "skip-reason" if host_network else "injection-hash"
    for pod in first.values():
        assert pod["metadata"]["labels"][label] == value
        assert f"llm-shield.io/{annotation}" in pod["metadata"]["annotations"]


# --- Any pod --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def namespaces(control_plane: ControlPlane, operator: OperatorProcess) -> Iterator[dict[str, str]]:
    """A namespace for each kind of config."""
    del operator
    found = {kind: f"any-pod-{kind}" for kind in CONFIGS}
    for kind, name in found.items():
        make_namespace(control_plane, name)
        prepare(control_plane, name)
        use(control_plane, name, CONFIGS[kind])
    yield found
    for name in found.values():
        control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


@given(VALID_PODS, st.sampled_from(sorted(CONFIGS)))
@hypothesis_settings(max_examples=400, deadline=None, derandomize=True, database=None)
def test_the_api_server_takes_whatever_it_took_before(
    control_plane: ControlPlane, namespaces: dict[str, str], pod: dict[str, Any], kind: str
) -> None:
    path = f"/api/v1/namespaces/{namespaces[kind]}/pods?dryRun=All"
    made = create(control_plane, path, {"apiVersion": "v1", "kind": "Pod", **pod})
    assert made["metadata"]["labels"]["llm-shield.io/injected"] == "true", made["metadata"]
