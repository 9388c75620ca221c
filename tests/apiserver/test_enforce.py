"""The overlay that refuses pods without the sidecar, provoked on a real API server."""

import copy
import json
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest

import examples
from controlplane import CONTROLLERS, ControlPlane
from localoperator import OperatorProcess, install
from manifests import ROOT
from shield_operator import names
from support import (
    INJECT,
    apply,
    create_pod,
    eventually,
    get,
    has_sidecar,
    make_namespace,
    sidecar_of,
    wait_reason,
)

ENFORCE = {"llm-shield.io/enforce": "enabled"}
DIGESTS = f"{names.OPERATOR_NAMESPACE}/configmaps/llm-shield-enforce"
DIGEST = examples.IMAGE.partition("@")[2]
NO_SIDECAR = "demands the shield (llm-shield.io/enforce), and the pod has no sidecar"
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/llm-shield-enforce"
TYPE_CHECKER = "validatingadmissionpolicy-status-controller"
COMPONENT = ROOT / "manifests" / "components" / "enforce"

EXECUTES = {"exec": {"command": ["true"]}}
FAIL_CLOSED = {"name": "SHIELD_FAILURE_MODE", "value": "FAIL_CLOSED"}
FAIL_OPEN = {"name": "SHIELD_FAILURE_MODE", "value": "FAIL_OPEN"}

Refuses = Callable[[Any, str], None]


def list_digests(control_plane: ControlPlane, digests: str) -> None:
    status, _ = control_plane.request(
        "PATCH", f"/api/v1/namespaces/{DIGESTS}", {"data": {"digests": digests}}
    )
    assert status == HTTPStatus.OK


@pytest.fixture(scope="module")
def enforcing() -> Iterator[ControlPlane]:
    """A cluster with the policy in force, the operator running, and a namespace of each kind."""
    with ControlPlane.start(controllers=(*CONTROLLERS, TYPE_CHECKER)) as control_plane:
        install(control_plane)
        control_plane.kubectl("apply", "-k", str(COMPONENT))
        list_digests(control_plane, f"# what we trust\n  {DIGEST}  # 1.7.0\nsha256:{'9' * 64}\n")
        make_namespace(control_plane, "shop", INJECT | ENFORCE)
        make_namespace(control_plane, "free")
        with OperatorProcess(control_plane) as operator:
            operator.wait_ready()
            apply(control_plane, examples.config(namespace="shop", secretName=None))
            wait_reason(control_plane, "shop", "shield", "Accepted")

            def in_force() -> bool:
                status, _ = create_pod(control_plane, "shop", out(examples.pod()))
                return status == HTTPStatus.FORBIDDEN

            eventually(in_force)
            yield control_plane


@pytest.fixture
def refuses(enforcing: ControlPlane) -> Refuses:
    """Creates a pod in the shop, which must be refused with this text."""

    def refused(pod: Any, because: str) -> None:
        status, answer = create_pod(enforcing, "shop", pod)
        assert status == HTTPStatus.FORBIDDEN, answer
        assert because in answer["message"]

    return refused


def out(pod: Any) -> Any:
    """The pod, opted out of the injection."""
    pod["metadata"].setdefault("labels", {})["llm-shield.io/inject"] = "disabled"
    return pod


@pytest.fixture
def injected(enforcing: ControlPlane) -> Any:
    """A new pod as the operator injects it, in the shop."""
    status, pod = create_pod(enforcing, "shop", examples.pod())
    assert status == HTTPStatus.CREATED, pod
    assert has_sidecar(pod)
    return pod


def anew(injected: Any) -> Any:
    """A pod with the spec, labels and annotations of an injected one, opted out by its maker."""
    metadata = {key: injected["metadata"][key] for key in ("labels", "annotations")}
    pod = {"metadata": {"generateName": "anew-", **metadata}, "spec": injected["spec"]}
    return out(copy.deepcopy(pod))


def test_a_pod_that_opts_out_is_refused_and_one_that_is_injected_let_in(
    refuses: Refuses, injected: Any
) -> None:
    refuses(out(examples.pod()), NO_SIDECAR)
    assert sidecar_of(injected)["image"] == examples.IMAGE


def test_a_pod_that_cannot_have_the_sidecar_is_refused(refuses: Refuses) -> None:
    refuses(examples.pod(hostNetwork=True), NO_SIDECAR)


def test_forged_stamps_are_no_way_in(refuses: Refuses, injected: Any) -> None:
    forged = examples.pod(
        labels=injected["metadata"]["labels"], annotations=injected["metadata"]["annotations"]
    )
    assert forged["metadata"]["labels"]["llm-shield.io/injected"] == "true"
    refuses(out(forged), NO_SIDECAR)


def test_the_sidecar_of_a_manifest_is_as_good_as_the_operators(
    enforcing: ControlPlane, injected: Any
) -> None:
    """As ``kubectl shield inject`` makes it: what counts is the container."""
    status, pod = create_pod(enforcing, "shop", anew(injected))
    assert status == HTTPStatus.CREATED, pod


@pytest.mark.parametrize(
    "image",
    [
        f"example.com/llm-shield-proxy:1.7.0@sha256:{'2' * 64}",
        "example.com/llm-shield-proxy:1.7.0",
        f"example.com/{DIGEST.replace(':', '/')}",
        f"example.com/llm-shield-proxy@{DIGEST}@sha256:{'2' * 64}",
    ],
    ids=["another digest", "a tag", "a name like the digest", "two digests"],
)
def test_the_marks_on_another_image_are_no_way_in(
    refuses: Refuses, injected: Any, image: str
) -> None:
    forged = anew(injected)
    sidecar_of(forged)["image"] = image
    refuses(forged, f"{image}, is none that ConfigMap llm-shield-enforce")


def test_a_digest_counts_under_every_name(enforcing: ControlPlane, injected: Any) -> None:
    mirrored = anew(injected)
    sidecar_of(mirrored)["image"] = f"mirror.example.com:5000/proxy@{DIGEST}"
    status, pod = create_pod(enforcing, "shop", mirrored)
    assert status == HTTPStatus.CREATED, pod


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"command": ["sleep", "infinity"]}, "remove its command"),
        ({"lifecycle": {"postStart": {"exec": {"command": ["true"]}}}}, "remove its command"),
        ({"livenessProbe": EXECUTES}, "remove its command"),
        ({"readinessProbe": EXECUTES}, "remove its command"),
        ({"startupProbe": EXECUTES}, "remove its command"),
        ({"env": [FAIL_OPEN]}, "must fail closed"),
        ({"env": []}, "must fail closed"),
        ({"env": [FAIL_CLOSED, FAIL_OPEN]}, "must fail closed"),
        ({"env": [FAIL_CLOSED, FAIL_OPEN | {"name": "shield_Failure_mode"}]}, "must fail closed"),
    ],
    ids=[
        "command",
        "lifecycle",
        "liveness probe",
        "readiness probe",
        "startup probe",
        "fail open",
        "says nothing",
        "says both",
        "says both, in another case",
    ],
)
def test_the_right_image_made_to_do_something_else_is_no_way_in(
    refuses: Refuses, injected: Any, change: Any, because: str
) -> None:
    forged = anew(injected)
    sidecar_of(forged).update(change)
    refuses(forged, because)


def test_a_config_that_fails_open_makes_pods_that_are_refused(
    enforcing: ControlPlane, refuses: Refuses
) -> None:
    """Whoever owns the config owns no exception."""
    apply(enforcing, examples.config("open", "shop", env=[FAIL_OPEN]))
    wait_reason(enforcing, "shop", "open", "SecretNotFound")
    refuses(examples.pod(annotations={"llm-shield.io/config": "open"}), "must fail closed")
    enforcing.kubectl("delete", "ssc", "open", "--namespace=shop")


def test_an_init_container_that_ends_is_no_sidecar(refuses: Refuses) -> None:
    only_at_first = {"name": "llm-shield-proxy", "image": examples.IMAGE}
    refuses(out(examples.pod(initContainers=[only_at_first])), NO_SIDECAR)


def test_the_image_of_a_running_pod_cannot_be_changed(
    enforcing: ControlPlane, injected: Any
) -> None:
    set_image = ("set", "image", "--namespace=shop", f"pod/{injected['metadata']['name']}")
    refused = enforcing.kubectl(*set_image, "llm-shield-proxy=example.com/other:1", check=False)
    assert refused.returncode == 1
    assert "example.com/other:1, is none that ConfigMap" in refused.stderr
    enforcing.kubectl(*set_image, "web=example.com/web:2")


def test_older_pods_stay_and_can_be_changed_and_deleted(enforcing: ControlPlane) -> None:
    """A Job's pod must lose its finalizer, a node's must get its labels."""
    make_namespace(enforcing, "older")
    bare = examples.pod()
    bare["metadata"] |= {"name": "bare", "finalizers": ["example.com/accounting"]}
    status, _ = create_pod(enforcing, "older", bare)
    assert status == HTTPStatus.CREATED
    enforcing.kubectl("label", "namespace", "older", "llm-shield.io/enforce=true")

    def in_force() -> bool:
        return create_pod(enforcing, "older", examples.pod())[0] == HTTPStatus.FORBIDDEN

    eventually(in_force)
    enforcing.kubectl("label", "pod", "bare", "--namespace=older", "seen=true")
    enforcing.kubectl("delete", "pod", "bare", "--namespace=older", "--wait=false")
    path = "/api/v1/namespaces/older/pods/bare"
    status, content = enforcing.request("PATCH", path, {"metadata": {"finalizers": None}})
    assert status == HTTPStatus.OK, content
    eventually(lambda: get(enforcing, path) is None)


def test_other_namespaces_are_left_alone(enforcing: ControlPlane) -> None:
    status, pod = create_pod(enforcing, "free", examples.pod())
    assert status == HTTPStatus.CREATED, pod


def test_the_pods_of_a_deployment_are_refused_where_one_looks(enforcing: ControlPlane) -> None:
    template = out(examples.pod(labels={"app": "web"}))
    del template["metadata"]["generateName"]
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    for key in ("apiVersion", "kind"):
        del template[key]
    metadata = {"name": "web", "namespace": "shop"}
    apply(
        enforcing,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
    )
    events = "/api/v1/namespaces/shop/events?fieldSelector=reason%3DFailedCreate"
    eventually(lambda: NO_SIDECAR in json.dumps(get(enforcing, events)))
    enforcing.kubectl("delete", "deployment", "web", "--namespace=shop")


def test_without_a_list_no_pod_is_let_in(enforcing: ControlPlane) -> None:
    """As after `kubectl apply`, and where somebody deletes the list."""

    def refused(because: str) -> bool:
        status, answer = create_pod(enforcing, "shop", examples.pod())
        return status != HTTPStatus.CREATED and because in answer["message"]

    list_digests(enforcing, "")
    eventually(lambda: refused("is none that ConfigMap llm-shield-enforce"))
    enforcing.request("DELETE", f"/api/v1/namespaces/{DIGESTS}")
    eventually(lambda: refused("no params found"))
    enforcing.kubectl("apply", "-k", str(COMPONENT))
    list_digests(enforcing, DIGEST)
    eventually(lambda: create_pod(enforcing, "shop", examples.pod())[0] == HTTPStatus.CREATED)


def test_the_api_server_finds_no_fault_in_the_expressions(enforcing: ControlPlane) -> None:
    status = eventually(lambda: get(enforcing, POLICY).get("status"))
    assert status["typeChecking"] == {}


def test_the_policy_names_what_the_operator_does() -> None:
    policy = (COMPONENT / "policy.yaml").read_text(encoding="utf-8")
    assert f"c.name == '{names.SIDECAR}'" in policy
    assert names.MIRROR_POD_ANNOTATION in policy
