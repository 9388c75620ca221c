"""An HTTPS proxy between the operator and the API server, which can be told to misbehave."""

import asyncio
import random
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final, Self

import aiohttp
from aiohttp import web

from controlplane import ControlPlane

_HOP_BY_HOP: Final = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


class ApiProxy:
    """Passes requests on, watches included; or answers in the API server's place, or not at all.

    It presents the API server's own certificate, so that its clients need another port only.
    """

    def __init__(self, control_plane: ControlPlane, seed: int = 1) -> None:
        self.port = 0
        self.injected = 0
        """How many requests were not passed on."""
        self._upstream = control_plane.url
        certificates = control_plane.directory / "certificates"
        self._server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server_context.load_cert_chain(
            certificates / "apiserver.crt", certificates / "apiserver.key"
        )
        self._client_context = ssl.create_default_context(cafile=str(control_plane.ca_file))
        self._random = random.Random(seed)  # noqa: S311  # repeatable
        self._status: HTTPStatus | None = None
        self._share = 0.0
        self._cut = False
        self._transports: set[asyncio.BaseTransport] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def kubeconfig(self, original: Path) -> Path:
        """The same account's kubeconfig, through this proxy."""
        path = original.with_suffix(".proxied")
        path.touch(mode=0o600)
        there = f"https://127.0.0.1:{self.port}"
        path.write_text(original.read_text().replace(self._upstream, there))
        return path

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    @contextmanager
    def answering(self, status: HTTPStatus, share: float) -> Iterator[None]:
        """Answer this share of the requests so; watches that run are ended first."""
        self._status, self._share = status, share
        self._loop.call_soon_threadsafe(self._end_streams)
        yield
        self._status = None

    @contextmanager
    def cut(self) -> Iterator[None]:
        """End every connection, and answer nobody."""
        self._cut = True
        self._loop.call_soon_threadsafe(self._end_streams)
        yield
        self._cut = False

    def _end_streams(self) -> None:
        for transport in self._transports:
            transport.close()

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._client_context, limit=0),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._server_context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        self._end_streams()
        await self._runner.cleanup()
        await self._session.close()
        await asyncio.sleep(0.1)  # the closed connections' transports end in the next rounds

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            raise web.HTTPBadGateway
        if self._cut:
            self.injected += 1
            transport.close()
            raise web.HTTPBadGateway
        if self._status is not None and self._random.random() < self._share:
            self.injected += 1
            return _failure(self._status)
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        self._transports.add(transport)
        try:
            async with self._session.request(
                request.method,
                self._upstream + request.raw_path,
                headers=headers,
                data=await request.read() or None,
            ) as answer:
                response = web.StreamResponse(status=answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in _HOP_BY_HOP:
                        response.headers.add(name, value)
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, OSError):
            transport.close()
            raise web.HTTPBadGateway from None
        finally:
            self._transports.discard(transport)


def _failure(status: HTTPStatus) -> web.Response:
    """What an API server that is too busy, or whose store is, says."""
    reason = {429: "TooManyRequests", 500: "InternalError"}[status]
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "message": "injected by a test",
        "code": int(status),
    }
    headers = {"Retry-After": "1"} if status == HTTPStatus.TOO_MANY_REQUESTS else {}
    return web.json_response(body, status=status, headers=headers)
