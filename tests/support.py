"""What tests against the API server do over and over."""

import base64
import http.client
import json
import ssl
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlsplit

import yaml

from controlplane import ControlPlane
from localoperator import OperatorProcess

_Found = TypeVar("_Found")

INJECT = {"llm-shield.io/inject": "enabled"}
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/llm-shield-operator"
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
"""Of each review that `WebhookClient` makes."""
CONFIGS = "/apis/llm-shield.io/v1alpha1/namespaces/{}/shieldsidecarconfigs"


def eventually(look: Callable[[], _Found | None], timeout: float = 20.0) -> _Found:
    """What `look` returns once it is true."""
    deadline = time.monotonic() + timeout
    while not (found := look()):
        assert time.monotonic() < deadline, f"not so within {timeout:.0f} s: {look}"
        time.sleep(0.05)
    return found


def get(control_plane: ControlPlane, path: str) -> Any:
    """The object at a path, or None."""
    status, content = control_plane.request("GET", path)
    return json.loads(content) if status == HTTPStatus.OK else None


def create(control_plane: ControlPlane, path: str, body: Any) -> Any:
    """What the API server makes of an object."""
    status, content = control_plane.request("POST", path, body)
    assert status == HTTPStatus.CREATED, content
    return json.loads(content)


def apply(control_plane: ControlPlane, *documents: Any) -> None:
    """``kubectl apply``."""
    control_plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(documents))


def make_namespace(
    control_plane: ControlPlane, name: str, labels: dict[str, str] | None = None
) -> None:
    """Create a namespace, and wait until pods can be created in it.

    Admission refuses a pod until the controller manager has made the `default` service account.
    """
    metadata = {"name": name, "labels": labels or {}}
    create(control_plane, "/api/v1/namespaces", {"metadata": metadata})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    eventually(lambda: get(control_plane, account), timeout=30)


def create_pod(control_plane: ControlPlane, namespace: str, pod: Any) -> tuple[int, Any]:
    """Create a pod: the status, and the pod or the reason against it."""
    status, content = control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    return status, json.loads(content)


def has_sidecar(pod: Any) -> bool:
    """Whether the pod has our container."""
    spec = pod["spec"]
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    return any(container["name"] == "llm-shield-proxy" for container in containers)


def ready_condition(control_plane: ControlPlane, namespace: str, name: str) -> Any:
    """A config's ``Ready`` condition as written for its present generation, or None."""
    config = get(control_plane, f"{CONFIGS.format(namespace)}/{name}")
    status = (config or {}).get("status", {})
    if not config or status.get("observedGeneration") != config["metadata"]["generation"]:
        return None
    (found,) = [one for one in status["conditions"] if one["type"] == "Ready"]
    return found


def wait_reason(control_plane: ControlPlane, namespace: str, name: str, reason: str) -> Any:
    """The ``Ready`` condition, once its reason is this one."""

    def look() -> Any:
        found = ready_condition(control_plane, namespace, name)
        return found if found and found["reason"] == reason else None

    return eventually(look)


def sidecar_of(pod: Any) -> Any:
    """The one sidecar of a pod, wherever it stands."""
    spec = pod["spec"]
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    (found,) = [one for one in containers if one["name"] == "llm-shield-proxy"]
    return found


def server_version(control_plane: ControlPlane) -> tuple[int, int]:
    """The API server's version, as (1, 36)."""
    version = json.loads(control_plane.request("GET", "/version")[1])
    return int(version["major"]), int(version["minor"])


def has_native_sidecars(control_plane: ControlPlane) -> bool:
    """Whether the API server's version tells the operator that every kubelet has them."""
    return server_version(control_plane) >= (1, 32)


def counted(operator: OperatorProcess, outcome: str, reason: str = "") -> float:
    """How many admissions ended so."""
    sample = f'llm_shield_admissions_total{{outcome="{outcome}",reason="{reason}"}} '
    _, metrics = operator.get("/metrics")
    return sum(
        float(line.removeprefix(sample)) for line in metrics.splitlines() if line.startswith(sample)
    )


def holds(found: Any, wanted: Any) -> bool:
    """Whether all of `wanted` is in `found`, which the API server may have added defaults to."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            holds(found.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list) and len(found) == len(wanted) and all(map(holds, found, wanted))
        )
    return bool(found == wanted)


class WebhookClient:
    """Calls the webhook as the API server does: at the announced URL, trusting the announced CA."""

    def __init__(self, control_plane: ControlPlane, port: int | None = None) -> None:
        hook = get(control_plane, WEBHOOKS)["webhooks"][0]["clientConfig"]
        url = urlsplit(hook["url"])
        authority = base64.b64decode(hook["caBundle"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._address = ("127.0.0.1", port or url.port)
        self._path = url.path

    def request(
        self, content: bytes, *, method: str = "POST", path: str | None = None
    ) -> tuple[int, bytes]:
        """The answer to one request: status and body."""
        host, port = self._address
        connection = http.client.HTTPSConnection(host, port, timeout=10, context=self._context)
        try:
            connection.request(method, path or self._path, content)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def review(self, namespace: str, pod: Any) -> Any:
        """The response to a review of this pod's creation."""
        status, content = self.request(self.body(namespace, pod))
        assert status == HTTPStatus.OK, content
        answer = json.loads(content)
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert answer["response"]["uid"] == UID
        return answer["response"]

    @staticmethod
    def body(namespace: str, pod: Any) -> bytes:
        """A review of this pod's creation."""
        request = {
            "uid": UID,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": namespace,
            "userInfo": {"username": "test"},
            "object": pod,
        }
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        return json.dumps(body).encode()


def operations(response: Any) -> list[Any]:
    """The JSON Patch in an admission response."""
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    found: list[Any] = json.loads(base64.b64decode(response["patch"]))
    return found
