"""The server that API servers send reviews to, behind Kopf's admission protocol.

It owns what Kopf's own gets wrong for a shield (docs/adr/0001-own-webhook-configuration.md,
docs/adr/0004-what-a-failure-answers.md):

* An answer passes only when the handler meant it: it was called, and a refusal is its own
  (`kopf.AdmissionError` with code 403). Everything else becomes HTTP 500, which is what
  ``failurePolicy`` decides about.
* Nothing but 500 is answered before the configs were listed once, since every answer would be
  wrong; and nothing but 404 on other paths, where Kopf would allow.
* The certificate changes from one connection to the next; the listener stays open.
* Who is slow, silent, a stranger, or sends too much is cut off (`connections`).
"""

import asyncio
import base64
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import nullcontext
from http import HTTPStatus
from typing import Any, Final, cast

import kopf
from aiohttp import hdrs, web

from shield_operator import names
from shield_operator.admission.handler import CURRENT, UnderWay
from shield_operator.authentication import Authentication
from shield_operator.bodies import Bodies, Body
from shield_operator.certificate_source import CertificateSource
from shield_operator.certificates import CertificateError, KeyPair
from shield_operator.coding import encode
from shield_operator.connections import KEEP_ALIVE, REQUEST, Connection, Connections
from shield_operator.listening import listen
from shield_operator.metrics import Metrics
from shield_operator.model import Json
from shield_operator.review import BadReviewError, Review, read_review
from shield_operator.state import State
from shield_operator.text import one_line
from shield_operator.tls import server_context

logger = logging.getLogger(__name__)

_LARGEST_REVIEW: Final = 20 * 2**20
"""Bytes. The API server takes objects of 3 MiB; in a review each of their characters may take six
(``\\u003c`` for ``<``), and there is a little around it."""

_SHUTDOWN: Final = 5.0
"""Seconds that a request under way may still take when the listener closes."""
_BACKLOG: Final = 128
_JSON: Final = {hdrs.CONTENT_TYPE: "application/json; charset=utf-8"}
_BETWEEN_WARNINGS: Final = 60.0
"""Seconds between two warnings of the same kind: strangers must not fill the log."""


class AdmissionServer(kopf.WebhookServer):
    """Serves ``POST /inject`` with a certificate that others keep fresh.

    For Kopf it is the webhook server that takes over its way to the handler. The listener is a loop
    of ours beside Kopf: when Kopf has to be started again, admissions go on.
    """

    def __init__(
        self,
        state: State,
        metrics: Metrics,
        certificate: CertificateSource,
        authentication: Authentication,
        *,
        host: str | None,
        told: Callable[[Review, str, str, str], None] = lambda *_: None,
    ) -> None:
        super().__init__()
        self._host = host
        self._state = state
        self._metrics = metrics
        self._certificate = certificate
        self._authentication = authentication
        self._told = told
        self._handler: Any = None
        self._bodies = Bodies()
        self._one_large_review = asyncio.Lock()  # each may take many times its size of memory
        self._context_of: tuple[KeyPair | None, bytes | None] | None = None
        self._warned: dict[str, float] = {}
        self.connections: Connections | None = None

    async def __call__(self, fn: Any) -> AsyncIterator[Any]:  # noqa: ANN401  # Kopf's own types
        """Take over `fn`, Kopf's way to the handler, for as long as this Kopf runs and longer."""
        self._handler = fn
        self._state.connected = True
        yield {}
        await asyncio.Event().wait()

    async def runner(self) -> web.ServerRunner:
        """What is behind the listener: ``POST /inject``, and nothing else.

        No application of aiohttp's: to find the one route there is, and all that routes may have,
        cost more than to decide about a pod.
        """
        server = web.Server(
            self._route,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE,
            lingering_time=REQUEST,
            # No API server compresses a review; 5 MiB that unpack to gigabytes cost memory and time
            # before their size is known.
            auto_decompress=False,
        )
        return web.ServerRunner(server, handle_signals=False, shutdown_timeout=_SHUTDOWN)

    async def serve(self) -> None:
        """Listen, from the first certificate on until cancelled.

        Raises:
            CannotListenError: where the port is taken.
        """
        await self._certificate.available.wait()
        port = self._state.settings.webhook_port
        runner = await self.runner()
        await runner.setup()
        try:
            self.connections = Connections(cast("web.Server", runner.server), self._next_context)
            listeners = listen(self._host, port, backlog=_BACKLOG)
            self._state.serving = True
            logger.info("serving admissions on port %d", port)
            await self.connections.serve(listeners)
        finally:
            self._state.serving = False
            await runner.cleanup()

    def _next_context(self) -> ssl.SSLContext:
        """The TLS context of the next connection: what it is made of may have changed.

        Raises:
            CertificateError: where it cannot be made.
        """
        parts = (self._certificate.leaf, self._authentication.client_authorities)
        if self.context is None or parts != self._context_of:
            leaf, client_authorities = parts
            if leaf is None:
                raise CertificateError("there is no certificate yet")
            self.context = server_context(leaf, client_authorities)
            self._context_of = parts
        return self.context

    async def _route(self, request: web.BaseRequest) -> web.Response:
        if request.path != names.INJECT_PATH:
            return web.Response(status=HTTPStatus.NOT_FOUND, text="404: Not Found")
        if request.method != hdrs.METH_POST:
            return web.Response(
                status=HTTPStatus.METHOD_NOT_ALLOWED,
                text="405: Method Not Allowed",
                headers={hdrs.ALLOW: hdrs.METH_POST},
            )
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return await self._answer(request)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        connection = Connection.of(request.transport)
        if not self._authentication.admits(request.headers.get("Authorization")):
            return self._refused(
                HTTPStatus.UNAUTHORIZED, "the bearer token is missing or wrong", "unauthorized"
            )
        with self._bodies.receiving(connection.abort if connection else lambda: None) as body:
            try:
                await _read(request, body)
            except web.HTTPRequestEntityTooLarge:
                return self._refused(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                    f"the body is above {_LARGEST_REVIEW} bytes",
                )
            except Exception as error:  # noqa: BLE001  # bad chunks, encodings: whatever was sent
                sentence = f"the body cannot be read: {error}"
                return self._refused(HTTPStatus.BAD_REQUEST, sentence)
            if connection is not None:
                connection.received()
            begin = time.perf_counter()
            async with self._one_large_review if body.is_large else nullcontext():
                response = await self._respond(bytes(body.content))
            self._metrics.admission_duration.observe(time.perf_counter() - begin)
        if self._state.draining:
            response.force_close()
        if connection is not None:
            connection.answered()
        return response

    async def _respond(self, content: bytes) -> web.Response:
        if not self._state.listed or self._handler is None:
            self._count("failed")
            return _failure("the operator is still starting and does not know the configs yet")
        try:
            review = read_review(content)
        except BadReviewError as error:
            return self._refused(HTTPStatus.BAD_REQUEST, str(error))
        if not review.is_pod_creation:
            return _json(_allowed(review))
        answer = await self._ask_handler(review)
        if answer is None:
            return _failure(f"the operator failed on {review}; its log says why")
        return _json(answer)

    async def _ask_handler(self, review: Review) -> Json:
        """The handler's answer, or None where there is none that it meant."""
        under_way = UnderWay(review)
        token = CURRENT.set(under_way)
        try:
            answer = await self._handler(review.for_kopf())
            patch = _patch(under_way.operations)
        except Exception:  # whatever it is, failurePolicy decides about the pod
            logger.exception("%s: the operator failed", review)
        else:
            response = answer["response"]
            meant = response["allowed"] or response["status"]["code"] == HTTPStatus.FORBIDDEN
            if meant and under_way.outcome:
                self._count(under_way.outcome, under_way.reason)
                self._told(review, under_way.outcome, under_way.reason, under_way.sentence)
                response |= patch
                return answer
            # Kopf allows what it finds no handler for: that pod would be bare.
            why = "Kopf did not call the handler" if meant else response["status"]["message"]
            logger.error("%s: the operator failed: %s", review, why)
        finally:
            CURRENT.reset(token)
        self._count("failed")
        return None

    def _refused(
        self, status: HTTPStatus, sentence: str, outcome: str = "unreadable"
    ) -> web.Response:
        """Refuse what is no review. Should it be one after all, somebody's pod depends on it."""
        now = asyncio.get_running_loop().time()
        if now - self._warned.get(outcome, -_BETWEEN_WARNINGS) >= _BETWEEN_WARNINGS:
            self._warned[outcome] = now
            logger.warning("a request was refused: %s", one_line(sentence))
        self._count(outcome)
        response = web.Response(status=status, text=f"{sentence}\n")
        if status is HTTPStatus.UNAUTHORIZED:
            response.headers["WWW-Authenticate"] = "Bearer"
        response.force_close()
        return response

    def _count(self, outcome: str, reason: str = "") -> None:
        self._metrics.admission(outcome, reason)


async def _read(request: web.BaseRequest, body: Body) -> None:
    """Take in the body.

    Raises:
        HTTPRequestEntityTooLarge: where it is above any review's size.
        CutOffError: where it had to make room for others.
    """
    async for chunk in request.content.iter_any():
        size = len(body.content) + len(chunk)
        if size > _LARGEST_REVIEW:
            raise web.HTTPRequestEntityTooLarge(_LARGEST_REVIEW, size)
        await body.add(chunk)
    body.complete()


def _patch(operations: list[Json]) -> Mapping[str, str]:
    """A JSON Patch as a review's response carries it; nothing, where nothing changes."""
    if not operations:
        return {}
    return {"patch": base64.b64encode(encode(operations)).decode(), "patchType": "JSONPatch"}


def _json(answer: Json) -> web.Response:
    return web.Response(body=encode(answer), headers=_JSON)


def _failure(sentence: str) -> web.Response:
    return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR, text=f"{sentence}\n")


def _allowed(review: Review) -> Json:
    """The answer to a review that is none of our business: yes, as it is."""
    return {
        "apiVersion": review.body["apiVersion"],
        "kind": review.body["kind"],
        "response": {"uid": review.uid, "allowed": True},
    }
