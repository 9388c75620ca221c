"""`Cluster`: each call that the operator makes to the API server is one method here."""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote

from kubernetes.aio.client import ApiClient

from shield_operator import kinds, names, raw
from shield_operator.cluster.credentials import Connection, connection_of, find_configuration
from shield_operator.cluster.errors import NotFound, Refused
from shield_operator.cluster.lease import Lease
from shield_operator.cluster.requests import (
    FIELD_MANAGER,
    METADATA_ONLY,
    METADATA_ONLY_LIST,
    ApiServer,
)
from shield_operator.metrics import Metrics
from shield_operator.model import ConfigRef, Json
from shield_operator.plan import ClusterVersion

_CONFIGS_A_PAGE: Final = 50
"""Whole objects, unlike pods: the heap grows by what a page takes while it is read, for good."""

_STRATEGIC: Final = "application/strategic-merge-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_PODS: Final = "/api/v1/pods"
_WEBHOOK_CONFIGURATION: Final = (
    f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{names.OPERATOR}"
)
_CLUSTER_ROLE: Final = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{names.OPERATOR}"


class Cluster(ApiServer):
    """The API server, as our account sees it."""

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

    async def config_pages(self, namespace: str | None = None) -> AsyncIterator[list[Json]]:
        """Every ``ShieldSidecarConfig`` of the cluster, or of a namespace, page by page.

        Raises:
            NotFound: where the CustomResourceDefinition is not installed.
        """
        what = f"list {names.PLURAL}"
        try:
            path = kinds.CONFIG.path(namespace)
            async for page in self._pages(path, what=what, limit=_CONFIGS_A_PAGE):
                yield page
        except NotFound as error:
            raise NotFound(
                f"cannot {what}: the API server does not know them; kubectl shield check says "
                "what to do"
            ) from error

    def unfinished_pods(self, label_selector: str) -> AsyncIterator[list[Json]]:
        """The metadata of the cluster's pods that are not at their end, page by page."""
        query = {
            "labelSelector": label_selector,
            "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
        }
        return self._pages(_PODS, query=query, accept=METADATA_ONLY_LIST, what="list pods")

    async def secret_exists(self, namespace: str, name: str) -> bool:
        """Whether the Secret is there; its content is not asked for."""
        try:
            await self._request(
                "GET",
                _secret_path(namespace, name),
                accept=METADATA_ONLY,
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
        path = f"{kinds.CONFIG.path(ref.namespace, ref.name)}/status"
        return await self._apply(path, body, what=f"write the status of {names.KIND} {ref}")

    # --- Events -----------------------------------------------------------------------------------

    async def create_event(self, namespace: str, event: Json) -> None:
        """Create a Kubernetes Event."""
        path = kinds.EVENT.path(_segment(namespace))
        await self._request("POST", path, body=event, what=f"write an event in {namespace}")


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


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value).decode("ascii") for key, value in data.items()}
