"""Requests to the API server: where they lead, and lists that come in pages."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from aiohttp.typedefs import Handler
from kubernetes.aio.client import ApiClient, Configuration

from shield_operator.cluster import Cluster, Forbidden, Refused, Viewer
from shield_operator.metrics import Metrics


def against(
    answer: Handler, call: Callable[[Cluster], Awaitable[None]], *, as_a_person: bool = False
) -> None:
    """Make calls to a server that answers so."""

    async def run() -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", answer)
        async with TestServer(app) as server:
            configuration = Configuration()
            configuration.host = str(server.make_url("")).rstrip("/")
            async with ApiClient(configuration) as client:
                await call(Viewer(client, "") if as_a_person else Cluster(client, Metrics()))

    asyncio.run(run())


def asked(namespace: str, name: str) -> list[str]:
    """The paths that a server sees when somebody looks for this Secret."""
    paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.raw_path)
        return web.json_response({})

    async def look(cluster: Cluster) -> None:
        await cluster.secret_exists(namespace, name)

    against(answer, look)
    return paths


@pytest.mark.parametrize(
    ("namespace", "name", "path"),
    [
        ("shop", "keys", "shop/secrets/keys"),
        ("shop", "a/../../b", "shop/secrets/a%2F..%2F..%2Fb"),
        ("x/../../../../version#", "a", "x%2F..%2F..%2F..%2F..%2Fversion%23/secrets/a"),
        ("shop", "a?watch=1", "shop/secrets/a%3Fwatch=1"),
        ("shop", "a%2Fb", "shop/secrets/a%252Fb"),
    ],
)
def test_a_name_is_one_segment_of_the_path(namespace: str, name: str, path: str) -> None:
    (found,) = asked(namespace, name)
    assert found == f"/api/v1/namespaces/{path}"


@pytest.mark.parametrize(("namespace", "name"), [("..", "a"), ("shop", ".."), ("shop", "")])
def test_a_name_that_is_no_segment_is_of_nothing(namespace: str, name: str) -> None:
    assert asked(namespace, name) == []


def test_a_list_that_expires_between_pages_fails_as_a_whole_and_begins_anew() -> None:
    """Not where it stood: the API server would go on with another state of things.

    https://kubernetes.io/docs/reference/using-api/api-concepts/#410-gone-responses
    """
    asked_for: list[str | None] = []
    expired = False

    async def answer(request: web.Request) -> web.Response:
        token = request.query.get("continue")
        asked_for.append(token)
        if token is None:
            return web.json_response({"metadata": {"continue": "next"}, "items": [{}, {}]})
        if expired:
            message = "The provided continue parameter is too old"
            more = {"continue": "inconsistent"}
            gone = {"code": 410, "reason": "Expired", "message": message, "metadata": more}
            return web.json_response(gone, status=410)
        return web.json_response({"metadata": {}, "items": [{}]})

    async def items(cluster: Cluster) -> list[Any]:
        return [item async for page in cluster.config_pages() for item in page]

    async def call(cluster: Cluster) -> None:
        nonlocal expired
        expired = True
        with pytest.raises(Refused, match=r"cannot list .*: The provided continue parameter"):
            await items(cluster)
        expired = False
        assert len(await items(cluster)) == 3

    against(answer, call)
    assert asked_for == [None, "next", None, "next"]


@pytest.mark.parametrize("as_a_person", [False, True])
def test_only_the_operators_account_is_told_to_apply_the_operators_rules(
    *, as_a_person: bool
) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"message": "you may not"}, status=403)

    async def call(cluster: Cluster) -> None:
        with pytest.raises(Forbidden) as refused:
            await cluster.secret_exists("shop", "keys")
        sentence = "cannot look for Secret shop/keys: you may not"
        rules = "; apply the RBAC rules of manifests/install.yaml"
        assert str(refused.value) == (sentence if as_a_person else sentence + rules)

    against(answer, call, as_a_person=as_a_person)
