"""The plain HTTP port: ``/livez``, ``/readyz`` and ``/metrics``."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

from aiohttp import web

from shield_operator.listening import binding
from shield_operator.metrics import Metrics

_SHUTDOWN: Final = 1.0
"""Seconds that a probe under way may still take when the operator stops."""


@asynccontextmanager
async def serve_health(
    host: str | None,
    port: int,
    metrics: Metrics,
    *,
    not_alive: Callable[[], tuple[str, ...]],
    not_ready: Callable[[], tuple[str, ...]],
) -> AsyncIterator[None]:
    """Answer probes while the block runs.

    ``/livez`` is 200 when `not_alive` has nothing to say, else 503 with all that it says; so is
    ``/readyz`` with `not_ready`.

    Raises:
        CannotListenError: where the port is taken.
    """

    async def livez(_: web.Request) -> web.Response:
        return _verdict(not_alive())

    async def readyz(_: web.Request) -> web.Response:
        return _verdict(not_ready())

    one_at_a_time = asyncio.Lock()

    async def scrape(_: web.Request) -> web.Response:
        async with one_at_a_time:  # in a thread: thousands of configs must not hold admissions up
            body = await asyncio.to_thread(metrics.render)
        return web.Response(body=body, headers={"Content-Type": Metrics.CONTENT_TYPE})

    app = web.Application()
    app.add_routes(
        [web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", scrape)]
    )
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=_SHUTDOWN)
    await runner.setup()
    try:
        with binding(port):
            await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()


def _verdict(problems: tuple[str, ...]) -> web.Response:
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return web.Response(status=status, text="\n".join(problems or ("ok",)) + "\n")
