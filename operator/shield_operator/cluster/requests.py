"""Requests to an API server: one way for all.

JSON goes in and comes out; what can go wrong comes out as one of the errors in ``errors``.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import ClassVar, Final

from kubernetes.aio.client import ApiClient

from shield_operator import names, raw
from shield_operator.cluster.errors import OUR_RULES, Refused, error_for, translated
from shield_operator.metrics import Metrics
from shield_operator.model import Json

FIELD_MANAGER: Final = names.OPERATOR
TIMEOUT: Final = 10.0
"""Seconds for one call; each of ours is small, and a frozen API server must be noticed."""
_PAGE: Final = 500
"""Objects a page of a list."""

JSON: Final = "application/json"
METADATA_ONLY: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_ONLY_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_APPLY: Final = "application/apply-patch+yaml"


class ApiServer:
    """What every call has in common: its time, its metric, its errors."""

    _advice: ClassVar[str] = OUR_RULES
    """What to do where our account may not do something."""

    def __init__(self, client: ApiClient, metrics: Metrics) -> None:
        self._client = client
        self._metrics = metrics

    async def _pages(
        self,
        path: str,
        *,
        what: str,
        query: Mapping[str, str] | None = None,
        accept: str = JSON,
        limit: int | None = None,
    ) -> AsyncIterator[list[Json]]:
        """A list, so many items at a time.

        https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
        """
        asked = {**(query or {}), "limit": str(limit or _PAGE)}
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
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Json:
        """One call. `what` completes the sentence "cannot …"."""
        with (
            self._metrics.api_request(method, _resource(path)) as request,
            translated(what, TIMEOUT),
        ):
            async with asyncio.timeout(TIMEOUT):
                serialized = await self._client.param_serialize(
                    method,
                    path,
                    query_params=list((query or {}).items()),
                    header_params={"Accept": accept, "Content-Type": content_type},
                    body=body,
                    auth_settings=["BearerToken"],
                )
                response = await self._client.call_api(*serialized, _request_timeout=TIMEOUT)
                request.status = response.status
                content = await response.read()
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            raise error_for(response.status, content, what, self._advice)
        try:
            return json.loads(content)
        except ValueError as error:
            raise Refused(f"cannot {what}: the answer is not JSON") from error


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
