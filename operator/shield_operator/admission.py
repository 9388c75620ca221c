"""Answering the API server: our server on Kopf's admission protocol, and the handler behind it.

The server owns what Kopf's own gets wrong for a shield (docs/adr/0001-own-webhook-configuration.md,
docs/adr/0004-what-a-failure-answers.md):

* A refusal passes only when the handler meant it (`kopf.AdmissionError` with code 403). Everything
  else that goes wrong becomes HTTP 500, which is what ``failurePolicy`` decides about.
* Nothing but 500 is answered before the configs were listed once, since every answer would be
  wrong; and nothing but 404 on other paths, where Kopf would allow.
* The certificate changes in the live TLS context; the listener stays open.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Final, cast

import kopf
from aiohttp import web

from shield_operator import names, patch
from shield_operator.decision import Ignore, Inject, Skip, decide, one_line
from shield_operator.metrics import Metrics
from shield_operator.model import Json
from shield_operator.review import BadReviewError, Review, read_review
from shield_operator.rotation import SharedCertificate
from shield_operator.settings import UninjectedPodPolicy
from shield_operator.state import State

logger = logging.getLogger(__name__)

_LARGEST_REVIEW: Final = 8 * 2**20
"""Bytes. The API server takes objects of 3 MiB; a review holds one, and a little around it."""

_LARGE_REVIEW: Final = 256 * 2**10
"""Bytes. Larger ones are taken one at a time: each may take many times its size of memory."""

_SHUTDOWN: Final = 5.0
"""Seconds that a request under way may still take when the listener closes."""
_HANDSHAKE: Final = 5.0
"""Seconds that a TLS handshake may take; half-open connections must not pile up."""
_BACKLOG: Final = 128


_current: ContextVar[Review] = ContextVar("review")
"""The review under way: what Kopf does not pass on to the handler, its namespace above all."""


# --- The handler ----------------------------------------------------------------------------------


def inject(state: State, metrics: Metrics, answer: kopf.Patch, warnings: list[str]) -> None:
    """Decide about the pod of the review under way, and put the outcome into Kopf's answer.

    Raises:
        kopf.AdmissionError: 403, where the pod is skipped and the settings say to deny it then.
    """
    review = _current.get()
    decision = decide(
        review.pod,
        review.namespace,
        None,
        state.secrets(review.namespace),
        state.configs,
        state.settings,
    )
    warnings.extend(decision.warnings)
    if label := patch.outcome_label_kept(review.pod, decision):
        warnings.append(
            one_line(
                f"label {label} is the operator's to write, and stays as it is because the pod's "
                "controller may look for it: remove it from the template"
            )
        )
    match decision:
        case Ignore():
            outcome, reason = "ignored", ""
        case Inject():
            outcome, reason = "injected", ""
        case Skip(reason, sentence):
            outcome = "skipped"
            if state.settings.uninjected_pod_policy is UninjectedPodPolicy.DENY:
                metrics.admissions.labels("denied", reason).inc()
                logger.debug("%s: denied, %s", review, reason)
                raise kopf.AdmissionError(f"not injected ({reason}): {sentence}", code=403)
    answer.fns.append(lambda pod: patch.apply(pod, decision))
    metrics.admissions.labels(outcome, reason).inc()
    logger.debug("%s: %s %s", review, outcome, reason)


# --- The server -----------------------------------------------------------------------------------


class AdmissionServer(kopf.WebhookServer):
    """Serves ``POST /inject`` with a certificate that others keep fresh in the TLS context.

    For Kopf it is the webhook server that takes over its way to the handler. The listener is a loop
    of ours beside Kopf: when Kopf has to be started again, admissions go on.
    """

    def __init__(
        self,
        state: State,
        metrics: Metrics,
        certificate: SharedCertificate,
        *,
        host: str | None,
    ) -> None:
        super().__init__(context=certificate.context)
        self._host = host
        self._state = state
        self._metrics = metrics
        self._certificate = certificate
        self._handler: Any = None
        self._one_large_review = asyncio.Lock()

    async def __call__(self, fn: Any) -> AsyncIterator[Any]:  # noqa: ANN401  # Kopf's own types
        """Take over `fn`, Kopf's way to the handler, for as long as this Kopf runs and longer."""
        self._handler = fn
        self._state.connected = True
        yield {}
        await asyncio.Event().wait()

    async def serve(self) -> None:
        """Listen, from the first certificate on until cancelled.

        Raises:
            OSError: where the port cannot be listened on.
        """
        await self._certificate.available.wait()
        port = self._state.settings.webhook_port
        app = web.Application(client_max_size=_LARGEST_REVIEW)
        app.add_routes([web.post(names.INJECT_PATH, self._answer)])
        runner = web.AppRunner(
            app, handle_signals=False, access_log=None, shutdown_timeout=_SHUTDOWN
        )
        await runner.setup()
        try:
            # As aiohttp's TCPSite does, which has no way to bound the handshake.
            listener = await asyncio.get_running_loop().create_server(
                cast("web.Server", runner.server),
                self._host,
                port,
                ssl=self.context,
                ssl_handshake_timeout=_HANDSHAKE,
                backlog=_BACKLOG,
            )
            async with listener:
                self._state.serving = True
                logger.info("serving admissions on port %d", port)
                await asyncio.Event().wait()
        finally:
            self._state.serving = False
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            content = await request.read()
        except web.HTTPRequestEntityTooLarge:
            logger.warning("a review of more than %d bytes was refused", _LARGEST_REVIEW)
            raise
        except Exception as error:  # noqa: BLE001  # bad chunks, encodings: whatever was sent
            return _bad_request(f"the body cannot be read: {error}")
        if len(content) <= _LARGE_REVIEW:
            response = await self._respond(content)
        else:
            async with self._one_large_review:
                response = await self._respond(content)
        if self._state.draining:
            response.force_close()
        return response

    async def _respond(self, content: bytes) -> web.Response:
        if not self._state.listed or self._handler is None:
            return self._failed("the operator is only starting: no pod can be decided about yet")
        try:
            review = read_review(content)
        except BadReviewError as error:
            return _bad_request(str(error))
        if not review.is_pod_creation:
            return web.json_response(_allowed(review))
        token = _current.set(review)
        try:
            answer = await self._handler(review.body)
        except Exception:  # whatever it is, failurePolicy decides about the pod
            logger.exception("%s: the operator failed", review)
            return self._failed(f"the operator failed on {review}; its log says why")
        finally:
            _current.reset(token)
        response = answer["response"]
        if not response["allowed"] and response["status"]["code"] != HTTPStatus.FORBIDDEN:
            logger.error("%s: the operator failed: %s", review, response["status"]["message"])
            return self._failed(f"the operator failed on {review}; its log says why")
        return web.json_response(answer)

    def _failed(self, sentence: str) -> web.Response:
        self._metrics.admissions.labels("failed", "").inc()
        return web.Response(status=HTTPStatus.INTERNAL_SERVER_ERROR, text=f"{sentence}\n")


def _bad_request(sentence: str) -> web.Response:
    return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{sentence}\n")


def _allowed(review: Review) -> Json:
    """The answer to a review that is none of our business: yes, as it is."""
    return {
        "apiVersion": review.body["apiVersion"],
        "kind": review.body["kind"],
        "response": {"uid": review.uid, "allowed": True},
    }
