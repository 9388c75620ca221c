"""Whatever is sent to the webhook is answered in order: through HTTP, Kopf and the real handler.

The API server decodes a pod before it asks, so that known fields have their types; their values
are validated only after admission. Others on the network send what they like. None of it may become
a 5xx, which is for failures of the operator's own.
"""

import asyncio
import base64
import copy
import functools
import gzip
import json
import zlib
from collections.abc import AsyncGenerator, Awaitable, Iterator
from typing import Any, TypeVar, cast

import aiohttp
import jsonpatch
import kopf
import pytest
from aiohttp import web
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from kopf._cogs.structs.ephemera import AnyMemo
from kopf._cogs.structs.references import Insights, Resource
from kopf._core.engines.admission import serve_admission_request
from kopf._core.reactor.inventory import ResourceMemories
from kubernetes.aio.client import ApiClient, Configuration

import examples
from shield_operator import names
from shield_operator.cluster import Cluster
from shield_operator.main import Operator
from shield_operator.metrics import Metrics
from support import UID, WebhookClient, has_sidecar

_Result = TypeVar("_Result")

NAMESPACES = ("shop", "several", "broken", "nowhere")

many = functools.partial(
    hypothesis_settings,
    deadline=None,  # the machine may be busy
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Replica:
    """The operator's server, with its registrations, as Kopf would run them; and a client of it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, **environment: str) -> None:
        self._loop = loop
        self._client = self.run(_client_of_nobody())
        metrics = Metrics()
        cluster = Cluster(self._client, metrics)
        self.api_requests = metrics.api_requests
        operator = Operator(examples.settings(**environment), cluster, metrics)
        state = operator._state
        state.listed = True
        for config in (
            examples.config(),
            examples.config("one", "several"),
            examples.config("two", "several"),
            examples.config("shield", "broken", image="no-digest"),
        ):
            state.config_changed(config)
        insights = Insights(webhook_resources={Resource("", "v1", "pods", namespaced=True)})
        handler = functools.partial(
            serve_admission_request,
            settings=operator._kopf._settings(),
            registry=operator._registry(),
            insights=insights,
            memories=ResourceMemories(),
            memobase=AnyMemo(kopf.Memo()),
            indices={},
        )
        self._connected = cast("AsyncGenerator[Any]", operator._server(handler))
        self.run(anext(self._connected))
        self._runner = self.run(operator._server.runner())
        self._session = self.run(self._open())
        self._url = "http://{}:{}{}".format(*self._runner.addresses[0], names.INJECT_PATH)

    def run(self, coroutine: Awaitable[_Result]) -> _Result:
        return self._loop.run_until_complete(coroutine)

    def send(self, content: bytes, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        async def send() -> tuple[int, bytes]:
            async with self._session.post(self._url, data=content, headers=headers) as response:
                return response.status, await response.read()

        return self.run(send())

    def close(self) -> None:
        self.run(self._session.close())
        self.run(self._client.close())
        self.run(self._runner.cleanup())
        self.run(self._connected.aclose())

    async def _open(self) -> aiohttp.ClientSession:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))


async def _client_of_nobody() -> ApiClient:
    """Where no API server is: what is looked up there stays unknown."""
    return ApiClient(Configuration(host="http://127.0.0.1:9"))


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


@pytest.fixture(scope="module")
def replica(loop: asyncio.AbstractEventLoop) -> Iterator[Replica]:
    running = Replica(loop)
    yield running
    running.close()


@pytest.fixture(scope="module")
def denying(loop: asyncio.AbstractEventLoop) -> Iterator[Replica]:
    """One whose policy is to refuse what it skips."""
    running = Replica(loop, UNINJECTED_POD_POLICY="Deny")
    yield running
    running.close()


# --- What is sent ---------------------------------------------------------------------------------

texts = st.text(max_size=12) | st.sampled_from(
    ["", "default", "Always", "llm-shield-proxy", "llm-shield-tmp", "\x00", "\ud800", "9" * 400]
)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=True) | texts
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
label_values = texts | st.sampled_from([*names.IN_VALUES, *names.OUT_VALUES, "yes"])
our_keys = st.sampled_from(
    [
        names.INJECT_LABEL,
        names.CONFIG_ANNOTATION,
        names.KEYS_SECRET_ANNOTATION,
        names.CONTAINER_ANNOTATION,
        names.IMAGE_PULL_SECRETS_ANNOTATION,
        names.INJECTED_LABEL,
        names.INJECTION_SKIPPED_LABEL,
        names.SKIP_REASON_ANNOTATION,
        *names.INJECTED_ANNOTATIONS,
        names.DEFAULT_CONTAINER_ANNOTATION,
        names.MIRROR_POD_ANNOTATION,
    ]
)
strings = st.dictionaries(our_keys | texts, label_values, max_size=5)
quantities = st.sampled_from(["1", "100m", "1Ki", "0", "-1", "1e3", "1.5Gi", "x", ""]) | texts
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), quantities, max_size=3
)
resources = st.fixed_dictionaries({}, optional={"requests": amounts, "limits": amounts})
variables = st.fixed_dictionaries(
    {"name": texts | st.just(names.MARK_VARIABLE)},
    optional={
        "value": texts | st.just("shop/shield@0123456789abcdef"),
        "valueFrom": st.just({"fieldRef": {"fieldPath": "metadata.name"}}),
    },
)
containers = st.fixed_dictionaries(
    {"name": texts, "image": texts},
    optional={
        "command": st.lists(texts, max_size=2),
        "args": st.lists(texts, max_size=2),
        "env": st.lists(variables, max_size=3),
        "ports": st.lists(
            st.fixed_dictionaries(
                {"containerPort": st.integers(-1, 70_000) | st.just(8000)},
                optional={"protocol": st.sampled_from(["TCP", "UDP", "SCTP", ""]), "name": texts},
            ),
            max_size=2,
        ),
        "resources": resources,
        "restartPolicy": st.sampled_from(["Always", "Never", ""]),
        "volumeMounts": st.lists(
            st.fixed_dictionaries({"name": texts, "mountPath": texts}), max_size=2
        ),
        "securityContext": st.fixed_dictionaries({}, optional={"runAsUser": st.integers(-1, 9)}),
    },
)
volumes: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"name": texts}, optional={"emptyDir": st.just({})}
)
references = st.fixed_dictionaries(
    {"apiVersion": texts, "kind": texts | st.just("Job"), "name": texts, "uid": texts},
    optional={"controller": st.booleans()},
)
pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "name": texts,
                "generateName": texts,
                "namespace": texts,
                "labels": strings | st.none(),
                "annotations": strings | st.none(),
                "ownerReferences": st.lists(references, max_size=2),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(containers, max_size=3) | st.none()},
            optional={
                "initContainers": st.lists(containers, max_size=2) | st.none(),
                "volumes": st.lists(volumes, max_size=3) | st.none(),
                "hostNetwork": st.booleans(),
                "hostPID": st.booleans(),
                "os": st.fixed_dictionaries({"name": texts | st.just("windows")}),
                "nodeSelector": st.dictionaries(
                    st.just("kubernetes.io/os") | texts, texts | st.just("windows"), max_size=2
                ),
                "resources": resources,
                "securityContext": st.fixed_dictionaries(
                    {}, optional={"runAsUser": st.integers(-1, 1), "runAsNonRoot": st.booleans()}
                ),
                "automountServiceAccountToken": st.booleans(),
                "restartPolicy": texts,
                "serviceAccountName": texts,
                "anything": values,
            },
        ),
    }
)


def review(namespace: str, pod: Any) -> bytes:
    return WebhookClient.body(namespace, pod)


@st.composite
def damaged_json(draw: st.DrawFn) -> bytes:
    """A review in which, at one or more places, something else stands, or nothing."""
    body = json.loads(review("shop", draw(pods | st.just(examples.pod()))))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(body))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        if draw(st.booleans()):
            holder[key] = copy.deepcopy(draw(values))
        else:
            del holder[key]
    return json.dumps(body).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder and key or position in JSON."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


@st.composite
def damaged_bytes(draw: st.DrawFn) -> bytes:
    """The bytes of a review of which a part is replaced, left out, or twice there."""
    content = review("shop", examples.pod())
    begin, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    part = draw(st.binary(max_size=20) | st.just(content[begin:end] * 2))
    return content[:begin] + part + content[end:]


# --- What has to come back ------------------------------------------------------------------------


def check(status: int, answer: bytes, content: bytes) -> None:
    """A clear refusal to read it, or an answer to this very review with a patch that applies."""
    if status != 200:
        assert status == 400, answer
        assert answer.endswith(b"\n"), answer
        return
    request = json.loads(content)["request"]
    body = json.loads(answer)
    assert (body["apiVersion"], body["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = body["response"]
    assert response["uid"] == request["uid"]
    assert response["allowed"] is True
    for warning in response.get("warnings", []):
        assert len(warning) <= 256
        assert "\n" not in warning
    if "patch" in response:
        patched(response, request["object"])


def patched(response: Any, pod: Any) -> Any:
    operations = json.loads(base64.b64decode(response.get("patch", "W10=")))
    return jsonpatch.apply_patch(pod, operations)


@given(content=st.binary(max_size=300) | damaged_bytes())
@many(max_examples=1000)
def test_bytes(replica: Replica, content: bytes) -> None:
    check(*replica.send(content), content)


def unhashable(where: str) -> bytes:
    pod = examples.pod()
    pod["spec"][where] = [{"name": []}]
    return review("shop", pod)


def with_labels(labels: Any) -> bytes:
    pod = examples.pod()
    pod["metadata"] |= {"labels": labels, "annotations": labels}
    return review("shop", pod)


@example(content=with_labels([{}]))
@example(content=with_labels("x"))
@example(content=unhashable("volumes"))
@example(content=unhashable("initContainers"))
@example(content=unhashable("imagePullSecrets"))
@given(content=values.map(json.dumps).map(str.encode) | damaged_json())
@many(max_examples=1500)
def test_json(replica: Replica, content: bytes) -> None:
    check(*replica.send(content), content)


@given(namespace=st.sampled_from(NAMESPACES), pod=pods)
@many(max_examples=1000)
def test_a_hostile_pod_in_a_review_as_it_should_be(
    replica: Replica, namespace: str, pod: Any
) -> None:
    """It gets an outcome, and a second invocation changes nothing."""
    content = review(namespace, pod)
    status, answer = replica.send(content)
    assert status == 200, answer
    check(status, answer, content)
    changed = patched(json.loads(answer)["response"], pod)
    labels = changed["metadata"].get("labels") or {}
    if labels.get(names.INJECT_LABEL) not in names.OUT_VALUES:
        assert has_sidecar_or_reason(changed), changed
    status, answer = replica.send(review(namespace, changed))
    assert status == 200, answer
    assert "patch" not in json.loads(answer)["response"], (changed, answer)


def has_sidecar_or_reason(pod: Any) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    containers = [
        *(pod["spec"].get("initContainers") or []),
        *(pod["spec"].get("containers") or []),
    ]
    return bool(annotations.get(names.SKIP_REASON_ANNOTATION)) or any(
        container["name"] == names.SIDECAR for container in containers
    )


@given(namespace=st.sampled_from(NAMESPACES), pod=pods)
@many(max_examples=250)
def test_under_deny_a_pod_is_shielded_opted_out_or_refused(
    denying: Replica, namespace: str, pod: Any
) -> None:
    status, answer = denying.send(review(namespace, pod))
    assert status == 200, answer
    response = json.loads(answer)["response"]
    if not response["allowed"]:
        assert response["status"]["code"] == 403
        assert response["status"]["message"].startswith("not injected (")
        assert "patch" not in response
        return
    changed = patched(response, pod)
    labels = changed["metadata"].get("labels") or {}
    assert labels.get(names.INJECT_LABEL) in names.OUT_VALUES or has_sidecar(
        {"spec": {"initContainers": [], "containers": [], **_present(changed["spec"])}}
    )


def _present(mapping: Any) -> Any:
    return {key: value for key, value in mapping.items() if value is not None}


@given(
    content=st.binary(max_size=300) | st.just(review("shop", examples.pod())),
    encoding=st.sampled_from(["gzip", "deflate", "br", "zstd", "identity", "x"]),
    kind=st.sampled_from(["application/json", "application/json; charset=x", "x", "", "text/a/b"]),
)
@many(max_examples=250)
def test_headers(replica: Replica, content: bytes, encoding: str, kind: str) -> None:
    headers = {"Content-Type": kind, "Content-Encoding": encoding}
    status, _ = replica.send(content, headers)
    assert status in {200, 400}


@pytest.mark.parametrize(
    ("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_what_is_packed_is_not_unpacked(replica: Replica, encoding: str, pack: Any) -> None:
    """The API server packs nothing; a little of it might be gigabytes."""
    content = pack(review("shop", examples.pod()))
    status, answer = replica.send(content, {"Content-Encoding": encoding})
    assert (status, answer) == (400, b"the body is not JSON\n")


def test_after_all_that_an_ordinary_pod_gets_its_sidecar(replica: Replica) -> None:
    status, answer = replica.send(review("shop", examples.pod()))
    assert status == 200
    response = json.loads(answer)["response"]
    assert response["uid"] == UID
    assert has_sidecar(patched(response, examples.pod()))


def asked(replica: Replica) -> float:
    """How many requests it has sent to the API server."""
    (family,) = replica.api_requests.collect()
    return sum(sample.value for sample in family.samples if sample.name.endswith("_total"))


def test_an_admission_asks_the_api_server_nothing(replica: Replica) -> None:
    """But for a Secret that the pod itself names, which nothing else tells of."""
    before = asked(replica)
    for namespace in NAMESPACES:
        for pod in (examples.pod(), examples.pod(hostNetwork=True)):
            assert replica.send(review(namespace, pod))[0] == 200
    assert asked(replica) == before
    own = {names.KEYS_SECRET_ANNOTATION: "own-of-this-test"}
    assert replica.send(review("shop", examples.pod(annotations=own)))[0] == 200
    assert asked(replica) == before + 1
