"""Requests to the API server: what comes with a review leads nowhere else than it says."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import ApiClient, Configuration

from shield_operator.cluster import Cluster
from shield_operator.metrics import Metrics


def asked(namespace: str, name: str) -> list[str]:
    """The paths that a server sees when somebody looks for this Secret."""
    paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        paths.append(request.raw_path)
        return web.json_response({})

    async def look() -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", answer)
        async with TestServer(app) as server:
            configuration = Configuration()
            configuration.host = str(server.make_url("")).rstrip("/")
            async with ApiClient(configuration) as client:
                await Cluster(client, Metrics()).secret_exists(namespace, name)

    asyncio.run(look())
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
