"""`Cluster`: each call that the operator makes to the API server is one method here.

JSON goes in and comes out; what can go wrong comes out as one of the errors in ``errors``.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from kubernetes.aio.client import ApiClient

from shield_operator import kinds, names, raw
from shield_operator.cluster.credentials import Connection, connection_of, find_configuration
from shield_operator.cluster.errors import NotFound, Refused, error_for, translated
from shield_operator.cluster.lease import Lease
from shield_operator.metrics import Metrics
from shield_operator.model import ConfigRef, Json
from shield_operator.plan import ClusterVersion

FIELD_MANAGER: Final = names.OPERATOR
_TIMEOUT: Final = 10.0
"""Seconds for one call; each of ours is small, and a frozen API server must be noticed."""
_PAGE: Final = 50
"""Objects a page of a list. The heap grows by what a page takes while it is read, for good."""

_APPLY: Final = "application/apply-patch+yaml"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_JSON: Final = "application/json"
_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_ONLY_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_CONFIGS: Final = f"/apis/{names.API_GROUP}/{names.API_VERSION}/{names.PLURAL}"
_PODS: Final = "/api/v1/pods"
_WEBHOOK_CONFIGURATION: Final = (
    f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{names.OPERATOR}"
)
_CLUSTER_ROLE: Final = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{names.OPERATOR}"


class Cluster:
    """The API server, as our account sees it."""

    def __init__(self, client: ApiClient, metrics: Metrics) -> None:
        self._client = client
        self._metrics = metrics

    @classmethod
    @asynccontextmanager
    async def connect(cls, metrics: Metrics) -> AsyncIterator["Cluster"]:
        """Use ``KUBECONFIG`` where it is set, else the pod's service account, else ``~/.kube``.

        Raises:
            NoCredentials: where there is none of them. Nothing is sent yet.
        """
        configuration = await find_configuration()
        configuration.retries = None
        async with ApiClient(configuration) as client:
            yield cls(client, metrics)

    async def connection(self) -> Connection:
        """What this client uses, for Kopf, which has a client of its own."""
        return await connection_of(self._client.configuration)

    def lease(self, namespace: str, name: str, identity: str) -> Lease:
        """The Lease of that name, to be held as `identity`."""
        return Lease(self._client, self._metrics, namespace, name, identity)

    # --- Reading ----------------------------------------------------------------------------------

    async def version(self) -> ClusterVersion:
        """The API server's version."""
        what = "read the API server's version"
        answer = await self._request("GET", "/version", what=what)
        try:
            return ClusterVersion.parse(str(raw.mapping(answer).get("gitVersion")))
        except ValueError as error:
            raise Refused(f"cannot {what}: {error}; is this an API server?") from error

    async def config_pages(self) -> AsyncIterator[list[Json]]:
        """Every ``ShieldSidecarConfig`` of the cluster, page by page.

        Raises:
            NotFound: where the CustomResourceDefinition is not installed.
        """
        what = f"list {names.PLURAL}"
        try:
            async for page in self._pages(_CONFIGS, what=what):
                yield page
        except NotFound as error:
            raise NotFound(
                f"cannot {what}: the API server does not know them; apply manifests/install.yaml"
            ) from error

    def unfinished_pods(self, label_selector: str) -> AsyncIterator[list[Json]]:
        """The metadata of the cluster's pods that are not at their end, page by page."""
        query = {
            "labelSelector": label_selector,
            "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
        }
        return self._pages(_PODS, query=query, accept=_METADATA_ONLY_LIST, what="list pods")

    async def secret_exists(self, namespace: str, name: str) -> bool:
        """Whether the Secret is there; its content is not asked for."""
        try:
            await self._request(
                "GET",
                _secret_path(namespace, name),
                accept=_METADATA_ONLY,
                what=f"look for Secret {namespace}/{name}",
            )
        except NotFound:
            return False
        return True

    # --- Our TLS Secret ---------------------------------------------------------------------------

    async def read_tls_secret(self, namespace: str, name: str) -> tuple[dict[str, bytes], str]:
        """The Secret's content, and the version of it that `replace_tls_secret` wants.

        Values that are not base64 are left out.
        """
        what = f"read Secret {namespace}/{name}"
        secret = await self._request("GET", _secret_path(namespace, name), what=what)
        data = {}
        for key, value in raw.mapping(secret, "data").items():
            try:
                data[key] = base64.b64decode(value, validate=True)
            except ValueError:
                continue
        return data, str(raw.mapping(secret, "metadata").get("resourceVersion"))

    async def create_tls_secret(self, namespace: str, name: str, data: Mapping[str, bytes]) -> None:
        """Create the Secret.

        Raises:
            Conflict: where another replica was first.
        """
        await self._request(
            "POST",
            f"/api/v1/namespaces/{namespace}/secrets",
            body={
                "apiVersion": "v1",
                "kind": "Secret",
                "type": "kubernetes.io/tls",
                "metadata": {
                    "namespace": namespace,
                    "name": name,
                    "labels": {"app.kubernetes.io/name": names.OPERATOR},
                },
                "data": _encoded(data),
            },
            what=f"create Secret {namespace}/{name}",
        )

    async def replace_tls_secret(
        self, namespace: str, name: str, data: Mapping[str, bytes], resource_version: str
    ) -> None:
        """Replace these values of the Secret; its type, labels and other values stay.

        Raises:
            Conflict: where another replica was first.
        """
        await self._request(
            "PATCH",
            _secret_path(namespace, name),
            body={"metadata": {"resourceVersion": resource_version}, "data": _encoded(data)},
            content_type=_MERGE_PATCH,
            what=f"change Secret {namespace}/{name} (if it is deleted, a new one is made)",
        )

    # --- The webhook configuration, and what owns it ----------------------------------------------

    async def cluster_role_uid(self) -> str:
        """The uid of our own ClusterRole, the owner of the webhook configuration."""
        role = await self._request("GET", _CLUSTER_ROLE, what=f"read ClusterRole {names.OPERATOR}")
        return str(raw.mapping(role, "metadata").get("uid"))

    async def read_webhook_configuration(self) -> Json:
        """Our webhook configuration as it is now."""
        what = f"read MutatingWebhookConfiguration {names.OPERATOR}"
        return await self._request("GET", _WEBHOOK_CONFIGURATION, what=what)

    async def apply_webhook_configuration(self, configuration: Json) -> Json:
        """Create or change our fields of it; the fields of others stay."""
        what = f"apply MutatingWebhookConfiguration {names.OPERATOR}"
        return await self._apply(_WEBHOOK_CONFIGURATION, configuration, what=what)

    async def add_trust(self, patch: Json) -> Json:
        """Change the CA bundles of our webhook configuration, and nothing else of it.

        Not by an apply, which would take away whatever it does not name; the next apply takes the
        fields back.

        Raises:
            Conflict: where somebody else was first.
        """
        return await self._request(
            "PATCH",
            _WEBHOOK_CONFIGURATION,
            body=patch,
            query={"fieldManager": FIELD_MANAGER},
            content_type=_STRATEGIC,
            what=f"add an authority to MutatingWebhookConfiguration {names.OPERATOR}",
        )

    # --- Status -----------------------------------------------------------------------------------

    async def apply_status(self, ref: ConfigRef, status: Json) -> Json:
        """Write our fields of a config's status; the whole object comes back."""
        body = {
            "apiVersion": f"{names.API_GROUP}/{names.API_VERSION}",
            "kind": names.KIND,
            "metadata": {"namespace": ref.namespace, "name": ref.name},
            "status": status,
        }
        path = (
            f"/apis/{names.API_GROUP}/{names.API_VERSION}/namespaces/{ref.namespace}"
            f"/{names.PLURAL}/{ref.name}/status"
        )
        return await self._apply(path, body, what=f"write the status of {names.KIND} {ref}")

    # --- Events -----------------------------------------------------------------------------------

    async def create_event(self, namespace: str, event: Json) -> None:
        """Create a Kubernetes Event."""
        path = kinds.EVENT.path(_segment(namespace))
        await self._request("POST", path, body=event, what=f"write an event in {namespace}")

    # --- One way for all --------------------------------------------------------------------------

    async def _pages(
        self,
        path: str,
        *,
        what: str,
        query: Mapping[str, str] | None = None,
        accept: str = _JSON,
    ) -> AsyncIterator[list[Json]]:
        """A list, so many items at a time.

        https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
        """
        asked = {**(query or {}), "limit": str(_PAGE)}
        while True:
            page = await self._request("GET", path, query=asked, accept=accept, what=what)
            yield [*raw.items(page, "items")]
            proceed = raw.mapping(page, "metadata").get("continue")
            if not proceed:
                return
            asked["continue"] = str(proceed)

    async def _apply(self, path: str, body: Json, *, what: str) -> Json:
        """Server-side apply, taking over whatever fields of ours another writer has changed.

        https://kubernetes.io/docs/reference/using-api/server-side-apply/
        """
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self._request(
            "PATCH", path, body=body, query=query, content_type=_APPLY, what=what
        )

    async def _request(
        self,
        method: str,
        path: str,
        *,
        what: str,
        body: Json = None,
        query: Mapping[str, str] | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Json:
        """One call. `what` completes the sentence "cannot …"."""
        with (
            self._metrics.api_request(method, _resource(path)) as request,
            translated(what, _TIMEOUT),
        ):
            async with asyncio.timeout(_TIMEOUT):
                serialized = await self._client.param_serialize(
                    method,
                    path,
                    query_params=list((query or {}).items()),
                    header_params={"Accept": accept, "Content-Type": content_type},
                    body=body,
                    auth_settings=["BearerToken"],
                )
                response = await self._client.call_api(*serialized, _request_timeout=_TIMEOUT)
                request.status = response.status
                content = await response.read()
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            raise error_for(response.status, content, what)
        try:
            return json.loads(content)
        except ValueError as error:
            raise Refused(f"cannot {what}: the answer is not JSON") from error


def _secret_path(namespace: str, name: str) -> str:
    """The names come with reviews, and must not lead elsewhere."""
    return f"/api/v1/namespaces/{_segment(namespace)}/secrets/{_segment(name)}"


def _segment(name: str) -> str:
    """A name as one segment of a path.

    Raises:
        NotFound: where there is no such segment: dots cannot be quoted, and two lead upwards.
    """
    if not name.strip("."):
        raise NotFound(f"nothing is called {name!r}")
    return quote(name, safe="")


def _resource(path: str) -> str:
    """What kind of object a path is about, such as ``secrets``."""
    match path.strip("/").split("/"):
        case ["api", _, "namespaces", _, resource, *_]:
            return resource
        case ["apis", _, _, "namespaces", _, resource, *_]:
            return resource
        case ["api", _, resource, *_] | ["apis", _, _, resource, *_]:
            return resource
        case other:
            return other[0]


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value).decode("ascii") for key, value in data.items()}
