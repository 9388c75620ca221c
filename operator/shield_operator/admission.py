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
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import kopf
from aiohttp import web

from shield_operator import names, patch, pods
from shield_operator.decision import Ignore, Inject, Skip, decide, one_line
from shield_operator.metrics import Metrics
from shield_operator.model import Json
from shield_operator.rotation import SharedCertificate
from shield_operator.settings import UninjectedPodPolicy
from shield_operator.state import State

logger = logging.getLogger(__name__)

_LARGEST_REVIEW: Final = 8 * 2**20
"""Bytes. The API server takes objects of 3 MiB; a review holds one, and a little around it."""

_SHUTDOWN: Final = 5.0
"""Seconds that a request under way may still take when the listener closes."""


# --- The review -----------------------------------------------------------------------------------


class BadReviewError(Exception):
    """What was sent is not an admission review that can be answered; says why in a sentence."""


@dataclass(frozen=True, slots=True)
class Review:
    """An admission review, read from bytes that anybody may have sent."""

    body: Json
    uid: str
    namespace: str
    pod: Json

    @property
    def is_pod_creation(self) -> bool:
        """Whether it is about what we are registered for. Anything else is none of our business."""
        request = self.body["request"]
        resource = pods.mapping(request, "resource")
        return (
            (resource.get("group"), resource.get("resource")) == ("", "pods")
            and not request.get("subResource")
            and request.get("operation") == "CREATE"
        )

    def __str__(self) -> str:
        """The pod, for a log line: nothing of its content."""
        return f"pod {self.namespace}/{pods.described(self.pod)}"


def read_review(content: bytes) -> Review:
    """Read an ``AdmissionReview`` of ``admission.k8s.io/v1``.

    Raises:
        BadReviewError: where it is none.
    """
    try:
        body = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadReviewError("the body is not JSON") from error
    if not isinstance(body, dict) or body.get("kind") != "AdmissionReview":
        raise BadReviewError("the body is not an AdmissionReview")
    if body.get("apiVersion") != "admission.k8s.io/v1":
        raise BadReviewError("the AdmissionReview is not of version admission.k8s.io/v1")
    request = body.get("request")
    if not isinstance(request, dict):
        raise BadReviewError("request is missing")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise BadReviewError("request.uid is missing")
    review = Review(body, uid, str(request.get("namespace") or ""), request.get("object"))
    if review.is_pod_creation:
        _check_pod_creation(request)
    return review


def _check_pod_creation(request: Mapping[str, Json]) -> None:
    pod = request.get("object")
    if not isinstance(pod, dict):
        raise BadReviewError("request.object is missing")
    for field in ("metadata", "spec"):
        if not isinstance(pod.get(field), dict):
            raise BadReviewError(f"request.object.{field} is not an object")
    if not isinstance(request.get("userInfo"), dict):
        raise BadReviewError("request.userInfo is missing")
    if not request.get("namespace"):
        raise BadReviewError("request.namespace is missing")


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
    """Serves ``POST /inject`` with a certificate that others keep fresh in the TLS context."""

    def __init__(
        self,
        state: State,
        metrics: Metrics,
        certificate: SharedCertificate,
        *,
        host: str | None,
    ) -> None:
        super().__init__(addr=host, port=state.settings.webhook_port, context=certificate.context)
        self._state = state
        self._metrics = metrics
        self._certificate = certificate

    async def __call__(self, fn: Any) -> AsyncIterator[Any]:  # noqa: ANN401  # Kopf's own types
        """Serve for as long as the operator runs; `fn` is Kopf's way to the handler."""

        async def answer(request: web.Request) -> web.Response:
            return await self._answer(fn, request)

        await self._certificate.available.wait()
        app = web.Application(client_max_size=_LARGEST_REVIEW)
        app.add_routes([web.post(names.INJECT_PATH, answer)])
        runner = web.AppRunner(
            app, handle_signals=False, access_log=None, shutdown_timeout=_SHUTDOWN
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, self.addr, self.port or 0, ssl_context=self.context)
            await site.start()
            self._state.serving = True
            logger.info("serving admissions on port %d", self.port)
            yield {}
            await asyncio.Event().wait()
        finally:
            self._state.serving = False
            await runner.cleanup()

    async def _answer(self, fn: Any, request: web.Request) -> web.Response:  # noqa: ANN401
        response = await self._respond(fn, await request.read())
        if self._state.draining:
            response.force_close()
        return response

    async def _respond(self, fn: Any, content: bytes) -> web.Response:  # noqa: ANN401
        if not self._state.listed:
            return self._failed("the configs have not been listed yet")
        try:
            review = read_review(content)
        except BadReviewError as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{error}\n")
        if not review.is_pod_creation:
            return web.json_response(_allowed(review))
        token = _current.set(review)
        try:
            answer = await fn(review.body)
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


def _allowed(review: Review) -> Json:
    """The answer to a review that is none of our business: yes, as it is."""
    return {
        "apiVersion": review.body["apiVersion"],
        "kind": review.body["kind"],
        "response": {"uid": review.uid, "allowed": True},
    }
