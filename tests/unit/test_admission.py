"""The answers of the webhook when something fails behind it: what `failurePolicy` decides about."""

import asyncio
import base64
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from aiohttp import web

import examples
from examples import config, pod
from shield_operator import admission
from shield_operator.admission import AdmissionServer
from shield_operator.admission.handler import CURRENT
from shield_operator.authentication import Authentication
from shield_operator.cluster import Cluster
from shield_operator.lookup import SecretLookup
from shield_operator.metrics import Metrics
from shield_operator.rotation import SharedCertificate
from shield_operator.state import State
from support import WebhookClient

Handler = Callable[[Any], Awaitable[Any]]


class Replica:
    """An admission server with its state, and a handler in place of Kopf."""

    def __init__(self, handler: Handler | None, **environment: str) -> None:
        settings = examples.settings(**environment)
        self.state = State(settings)
        self.state.listed = True
        self.metrics = Metrics()
        self.lookup = SecretLookup(self.secret_exists)
        self.asked: list[str] = []
        self.server = AdmissionServer(
            self.state,
            self.metrics,
            SharedCertificate(cast("Cluster", None), settings),
            Authentication(settings),
            host="127.0.0.1",
        )
        self.handler = handler

    async def secret_exists(self, namespace: str, name: str) -> bool:
        self.asked.append(f"{namespace}/{name}")
        return False

    def answer(self, content: bytes) -> web.Response:
        async def run() -> web.Response:
            if self.handler is not None:
                connected = self.server(self.handler)
                await anext(connected)
            return await self.server._respond(content)

        return asyncio.run(run())

    @property
    def failures(self) -> float:
        return float(self.metrics.admissions.labels("failed", "")._value.get())


def content_of(response: web.Response) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


REVIEW = WebhookClient.body("shop", pod())


def refusal(code: int) -> Any:
    response = {"uid": "u", "allowed": False, "status": {"code": code, "message": "no"}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def test_a_refusal_that_was_meant_is_an_answer() -> None:
    async def handler(_: Any) -> Any:
        CURRENT.get().outcome = "denied"
        return refusal(403)

    replica = Replica(handler)
    assert replica.answer(REVIEW).status == 200
    assert replica.failures == 0


@pytest.mark.parametrize("answer", [{"uid": "u", "allowed": True}, refusal(403)["response"]])
def test_an_answer_without_our_handler_is_a_failure(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Kopf allows a pod, as it is, where it finds no handler for it."""

    async def handler(_: Any) -> Any:
        return {"response": answer}

    replica = Replica(handler)
    assert replica.answer(REVIEW).status == 500
    assert counted(replica) == {("failed", ""): 1}
    assert "Kopf did not call the handler" in caplog.text


@pytest.mark.parametrize("code", [500, 400, 404, 200])
def test_any_other_refusal_is_a_failure(code: int) -> None:
    async def handler(_: Any) -> Any:
        return refusal(code)

    replica = Replica(handler)
    assert replica.answer(REVIEW).status == 500
    assert replica.failures == 1


def test_an_exception_is_a_failure_logged_by_name_and_without_the_pod(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(_: Any) -> Any:
        raise ZeroDivisionError

    caplog.set_level(logging.ERROR)
    replica = Replica(handler)
    response = replica.answer(REVIEW)
    assert response.status == 500
    assert replica.failures == 1
    (record,) = caplog.records
    assert record.getMessage() == "pod shop/web-…: the operator failed"
    assert "example.com/web" not in caplog.text


def test_a_patch_that_json_has_no_words_for_is_a_failure_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(_: Any) -> Any:
        CURRENT.get().outcome = "injected"
        CURRENT.get().operations.append({"op": "add", "path": "/spec", "value": object()})
        return {"response": {"uid": "u", "allowed": True}}

    replica = Replica(handler)
    assert replica.answer(REVIEW).status == 500
    assert counted(replica) == {("failed", ""): 1}
    assert "pod shop/web-…: the operator failed" in caplog.text


def test_before_the_configs_were_listed_everything_is_a_failure() -> None:
    async def handler(_: Any) -> Any:
        raise AssertionError

    replica = Replica(handler)
    replica.state.listed = False
    assert replica.answer(REVIEW).status == 500
    assert replica.answer(b"garbage").status == 500
    assert Replica(None).answer(REVIEW).status == 500


@pytest.mark.parametrize(
    "changes", [{"operation": "UPDATE"}, {"subResource": "ephemeralcontainers"}]
)
def test_what_is_none_of_our_business_is_allowed_as_it_is(changes: dict[str, str]) -> None:
    async def handler(_: Any) -> Any:
        raise AssertionError

    body = json.loads(REVIEW)
    body["request"] |= changes
    response = Replica(handler).answer(json.dumps(body).encode())
    assert json.loads(content_of(response)) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": body["request"]["uid"], "allowed": True},
    }


def through_the_handler(replica: Replica) -> Handler:
    """What Kopf does between the server and `admission.inject`."""

    async def handler(_: Any) -> Any:
        warnings: list[str] = []
        await admission.inject(replica.state, replica.lookup, warnings)
        return {"response": {"uid": "u", "allowed": True, "warnings": warnings}}

    return handler


def test_concurrent_reviews_do_not_mix() -> None:
    """Each request has its own namespace, which Kopf does not pass on to the handler."""
    replica = Replica(None)
    for namespace in ("a", "b", "c"):
        replica.state.config_changed(config(namespace=namespace))
    decide = through_the_handler(replica)

    async def slow(body: Any) -> Any:
        await asyncio.sleep(0.001)
        return await decide(body)

    async def run() -> list[str]:
        await anext(replica.server(slow))
        bodies = [WebhookClient.body(namespace, pod()) for namespace in "abc" * 5]
        answers = await asyncio.gather(*(replica.server._respond(body) for body in bodies))
        patches = [json.loads(content_of(answer))["response"]["patch"] for answer in answers]
        return [base64.b64decode(patch).decode() for patch in patches]

    for namespace, patch in zip("abc" * 5, asyncio.run(run()), strict=True):
        assert f'"{namespace}/shield@' in patch


def counted(replica: Replica) -> dict[tuple[str, str], float]:
    """How often each outcome was counted."""
    (family,) = replica.metrics.admissions.collect()
    return {
        (sample.labels["outcome"], sample.labels["reason"]): sample.value
        for sample in family.samples
        if sample.name.endswith("_total") and sample.value
    }


@pytest.mark.parametrize(
    ("a_pod", "environment", "outcome"),
    [
        (pod(), {}, ("injected", "")),
        (pod(labels={"llm-shield.io/inject": "false"}), {}, ("ignored", "")),
        (pod(hostNetwork=True), {}, ("skipped", "host-network")),
    ],
)
def test_each_outcome_is_counted_once(
    a_pod: Any, environment: dict[str, str], outcome: tuple[str, str]
) -> None:
    replica = Replica(None, **environment)
    replica.state.config_changed(config())
    replica.handler = through_the_handler(replica)
    assert replica.answer(WebhookClient.body("shop", a_pod)).status == 200
    assert counted(replica) == {outcome: 1}


def test_a_patch_that_fails_counts_as_a_failure_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("shield_operator.patch.operations", broken)
    replica = Replica(None)
    replica.state.config_changed(config())
    replica.handler = through_the_handler(replica)
    assert replica.answer(REVIEW).status == 500
    assert counted(replica) == {("failed", ""): 1}


def test_what_cannot_be_read_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Under Ignore it lets a pod start bare, should it have been a pod."""
    replica = Replica(through_the_handler(Replica(None)))
    assert replica.answer(b"garbage").status == 400
    assert counted(replica) == {("unreadable", ""): 1}
    assert "a request was refused: the body is not JSON" in caplog.text


@pytest.mark.parametrize(
    ("a_pod", "a_config", "asked"),
    [
        (pod(), config(), []),
        (pod(annotations={"llm-shield.io/keys-secret": "keys"}), config(), []),
        (pod(annotations={"llm-shield.io/keys-secret": "own"}), config(), ["shop/own"]),
        (pod(), config("default", "llm-shield-system"), ["shop/keys"]),
        (pod(), config("default", "llm-shield-system", secretName=None), []),
        (pod(hostNetwork=True), config("default", "llm-shield-system"), []),
    ],
)
def test_only_secrets_that_no_status_tells_of_are_asked_for(
    a_pod: Any, a_config: Any, asked: list[str]
) -> None:
    replica = Replica(None)
    replica.state.config_changed(a_config)
    replica.handler = through_the_handler(replica)
    response = json.loads(content_of(replica.answer(WebhookClient.body("shop", a_pod))))["response"]
    assert replica.asked == asked
    warned = [line for line in response["warnings"] if "is not in namespace shop" in line]
    assert len(warned) == len(asked)
