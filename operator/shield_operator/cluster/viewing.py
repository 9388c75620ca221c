"""`Viewer`: what the command line reads of a cluster, as the person who runs it. It writes nothing.

Where an object is not there, or there is none of its kind, None comes back.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from kubernetes.aio.client import ApiClient

from shield_operator import kinds, names, raw
from shield_operator.cluster.client import Cluster
from shield_operator.cluster.credentials import find_users_configuration
from shield_operator.cluster.errors import OUR_RULES, Forbidden, NotFound, translated
from shield_operator.kinds import Kind
from shield_operator.metrics import Metrics
from shield_operator.model import Json

_TIMEOUT: Final = 10.0
_JSON: Final = "application/json"
_METADATA_ONLY_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class Viewer(Cluster):
    """The API server, as a person sees it.

    Attributes:
        namespace: the one that kubectl would take where none is given.
    """

    def __init__(self, client: ApiClient, namespace: str) -> None:
        super().__init__(client, Metrics())  # which nobody looks at
        self.namespace = namespace

    @classmethod
    @asynccontextmanager
    async def connect_as_user(
        cls, kubeconfig: str | None = None, context: str | None = None
    ) -> AsyncIterator["Viewer"]:
        """Use the cluster that kubectl would use.

        Raises:
            NoCredentials: where there is none, or no such context. Nothing is sent yet.
        """
        configuration, namespace = await find_users_configuration(kubeconfig, context)
        configuration.retries = None
        async with ApiClient(configuration) as client:
            yield cls(client, namespace)

    # --- Objects ----------------------------------------------------------------------------------

    async def find(self, kind: Kind, name: str, namespace: str | None = None) -> Json:
        """One object, or None."""
        what = f"read {kind.singular} {f'{namespace}/' if namespace else ''}{name}"
        try:
            return await self._request("GET", kind.path(namespace, name), what=what)
        except NotFound:
            return None

    async def list_all(
        self, kind: Kind, namespace: str | None = None, *, selector: str = "", metadata: bool = True
    ) -> list[Json]:
        """Every object of a namespace, or of the cluster; none where there is no such kind.

        Args:
            kind: what to list.
            namespace: where.
            selector: for which labels.
            metadata: only the objects' metadata, which is all that most questions need.
        """
        query = {"labelSelector": selector} if selector else {}
        if kind.plural == "pods":
            query["fieldSelector"] = _UNFINISHED
        accept = _METADATA_ONLY_LIST if metadata else _JSON
        where = f" in namespace {namespace}" if namespace else ""
        pages = self._pages(
            kind.path(namespace), what=f"list {kind.plural}{where}", query=query, accept=accept
        )
        try:
            return [item async for page in pages for item in page]
        except NotFound:
            return []

    async def configs(self, namespace: str | None = None) -> list[Json]:
        """The ``ShieldSidecarConfig`` resources of a namespace, or of the cluster.

        Raises:
            NotFound: where the CustomResourceDefinition is not installed.
        """
        what = f"list {names.PLURAL}"
        try:
            pages = self._pages(kinds.CONFIG.path(namespace), what=what)
            return [item async for page in pages for item in page]
        except NotFound as error:
            raise NotFound(
                f"cannot {what}: the API server does not know them; kubectl shield check says "
                "what to do"
            ) from error

    # --- Questions --------------------------------------------------------------------------------

    async def server_version(self) -> Json:
        """What the API server says of itself."""
        return await self._request("GET", "/version", what="read the API server's version")

    async def serves(self, kind: Kind) -> bool:
        """Whether the API server has this kind of object."""
        path = kind.path().rpartition("/")[0]
        try:
            found = await self._request("GET", path, what=f"look for {kind.plural}")
        except NotFound:
            return False
        return any(one.get("name") == kind.plural for one in raw.items(found, "resources"))

    async def may(self, attributes: Json, user: Json = None) -> bool:
        """Whether we, or another user, may do something.

        https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access

        Args:
            attributes: ``resourceAttributes`` of a review.
            user: its ``user`` and ``groups``, where it is about somebody else.
        """
        kind = "SelfSubjectAccessReview" if user is None else "SubjectAccessReview"
        answer = await self._request(
            "POST",
            f"/apis/authorization.k8s.io/v1/{kind.lower()}s",
            body={
                "apiVersion": "authorization.k8s.io/v1",
                "kind": kind,
                "spec": {"resourceAttributes": attributes, **(user or {})},
            },
            what=f"ask for permissions ({kind})",
        )
        return raw.mapping(answer, "status").get("allowed") is True

    async def try_pod(self, namespace: str, pod: Json) -> Json:
        """What would become of a pod: admitted and thrown away (``--dry-run=server``).

        Raises:
            Forbidden, Refused: with the API server's sentence, where it would not be.
        """
        return await self._request(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods",
            body=pod,
            query={"dryRun": "All"},
            what=f"create a pod in namespace {namespace} (dry run)",
        )

    async def ask_pod(self, namespace: str, name: str, port: int, path: str) -> tuple[int, str]:
        """What a pod answers on a plain HTTP port, through the API server: status and text."""
        address = f"/api/v1/namespaces/{namespace}/pods/http:{name}:{port}/proxy{path}"
        what = f"ask pod {namespace}/{name} through the API server"
        with translated(what, _TIMEOUT):
            async with asyncio.timeout(_TIMEOUT):
                request = await self._client.param_serialize(
                    "GET", address, header_params={"Accept": "*/*"}, auth_settings=["BearerToken"]
                )
                response = await self._client.call_api(*request, _request_timeout=_TIMEOUT)
                text = (await response.read()).decode(errors="replace")
        try:
            status = json.loads(text)
        except ValueError:
            return response.status, text
        # Not the pod has answered but the API server, for one that it may not or cannot ask.
        if response.status == HTTPStatus.FORBIDDEN:
            message = raw.mapping(status).get("message")
            raise Forbidden(f"cannot {what}: {message or 'it is not permitted'}")
        return response.status, str(raw.mapping(status).get("message") or text)

    # --- One way for all --------------------------------------------------------------------------

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
        try:
            return await super()._request(
                method,
                path,
                what=what,
                body=body,
                query=query,
                content_type=content_type,
                accept=accept,
            )
        except Forbidden as error:  # a person's rules are not ours to name
            raise Forbidden(str(error).removesuffix(OUR_RULES)) from None
