"""Every fault that is tried: what is broken, how, and when it counts as over.

Each is a function from a stage that is not yet running to its report, and a row of the table in
``docs/reliability.md``. What is not well
`PATIENCE` after its fault has failed.
"""

import asyncio
import base64
import itertools
import ssl
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

import aiohttp

import examples
from faults.api_proxy import ApiProxy
from faults.prober import KINDS, LONE, Outcome, PodClient, Probe, outcome_of
from faults.stage import Report, Stage
from faults.strangers import molest
from localoperator import NAME, NAMESPACE, OperatorProcess
from shield_operator.certificates import KeyPair, issue_bundle
from shield_operator.certificates.issuing import issue_leaf
from shield_operator.names import PLURAL
from support import CONFIGS, WEBHOOKS, apply, create, eventually, get, wait_reason

SECRET: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}-tls"

_PAGES: Final = 41
"""Requests for one list of 2,000 configs, 50 at a time, and of those that were there before."""

ENDPOINT_GONE: Final = 3.0
"""Seconds after a SIGKILL until no connection is sent there any more: `Service` waits as long."""


@dataclass(frozen=True)
class Fault:
    """One row of the table."""

    name: str
    title: str
    run: Callable[[Stage], Report]
    seconds: float
    """About how long it takes; the long ones begin first."""
    alone: bool = False
    """Whether it is about load, and has the machine to itself."""
    api_away: bool = False
    """Whether the API server cannot answer for a while; else it must answer about every pod."""


FAULTS: Final[dict[str, Fault]] = {}

_Run = Callable[[Stage], Report]


def fault(
    title: str, seconds: float = 20, *, alone: bool = False, api_away: bool = False
) -> Callable[[_Run], _Run]:
    """Register a row of the table, under the function's name."""

    def register(run: _Run) -> _Run:
        name = run.__name__.replace("_", "-")
        FAULTS[name] = Fault(name, title, run, seconds, alone, api_away)
        return run

    return register


# --- Replicas -------------------------------------------------------------------------------------


@fault("one replica killed (SIGKILL)")
def one_killed(stage: Stage) -> Report:
    stage.begin()
    busier = max(stage.replicas, key=_answered)  # the one that the API server is connected to
    killed = time.monotonic()
    stage.kill(busier)
    stage.prober.tolerate(Outcome.REFUSED, killed, killed + ENDPOINT_GONE)
    time.sleep(ENDPOINT_GONE + 1)
    stage.start_replicas(1)
    stage.wait_endpoints()
    return stage.finish(killed)


def _answered(replica: OperatorProcess) -> float:
    """How many admissions it has answered."""
    _, metrics = replica.get("/metrics")
    lines = [
        line for line in metrics.splitlines() if line.startswith("llm_shield_admissions_total")
    ]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


@fault("one replica drained (SIGTERM), and replaced", seconds=28)
def one_drained(stage: Stage) -> Report:
    stage.begin()
    drained = max(stage.replicas, key=_answered)
    stage.replicas.remove(drained)
    stage.start_replicas(1)  # as a rollout does: the new one first
    stage.wait_endpoints()
    stopped = time.monotonic()
    drained.terminate()
    assert drained.wait() == 0
    return stage.finish(stopped)


def _both_killed(stage: Stage, expected: Outcome) -> Report:
    stage.begin()
    with stage.prober.tolerating(expected):
        for replica in list(stage.replicas):
            stage.kill(replica)
        time.sleep(5)
        restarted = time.monotonic()
        stage.start_replicas()
        eventually(lambda: any(stage.service.has([replica]) for replica in stage.replicas))
    return stage.finish(restarted)


@fault("both replicas gone for 5 s, `failurePolicy: Fail`")
def both_killed_under_fail(stage: Stage) -> Report:
    return _both_killed(stage, Outcome.REFUSED)


@fault("both replicas gone for 5 s, `failurePolicy: Ignore`")
def both_killed_under_ignore(stage: Stage) -> Report:
    stage.environment = {"FAILURE_POLICY": "Ignore"}
    return _both_killed(stage, Outcome.BARE)


# --- The API server and its store -----------------------------------------------------------------


@fault("API server restarted", api_away=True)
def api_server_restarted(stage: Stage) -> Report:
    stage.begin()
    stage.control_plane.stop_apiserver()
    time.sleep(3)
    stage.control_plane.start_apiserver()
    ended = time.monotonic()
    return stage.finish(ended, stage.change_config())


@fault("API server frozen for 60 s (SIGSTOP)", seconds=80, api_away=True)
def api_server_frozen(stage: Stage) -> Report:
    stage.begin()
    stage.control_plane.pause()
    try:
        time.sleep(60)
    finally:
        stage.control_plane.resume()
    ended = time.monotonic()
    return stage.finish(ended, stage.change_config())


@fault("etcd restarted", api_away=True)
def etcd_restarted(stage: Stage) -> Report:
    stage.begin()
    stage.control_plane.stop_etcd()
    time.sleep(5)
    stage.control_plane.start_etcd()
    ended = time.monotonic()
    return stage.finish(ended, stage.change_config())


@fault(
    "both replicas cut off; meanwhile a config deleted, one changed, one created, and the API "
    "server restarted",
    seconds=35,
    api_away=True,
)
def changed_unseen(stage: Stage) -> Report:
    with ApiProxy(stage.control_plane) as proxy:
        _proxied(stage, proxy)
        apply(stage.control_plane, examples.config(name="extra", namespace="other"))
        stage.begin()
        wait_reason(stage.control_plane, "other", "extra", "SecretNotFound")

        def forgotten() -> bool:
            """no replica injects by the deleted config"""
            return not any(stage.env_of(replica, "other") for replica in stage.replicas)

        assert not forgotten()
        with proxy.cut():
            time.sleep(1)
            stage.control_plane.kubectl("delete", "ssc", "extra", "--namespace=other")
            created = examples.config(name="late", namespace=NAMESPACE, secretName=None)
            apply(stage.control_plane, created)
            changed = stage.change_config()
            # Its successor cannot tell what was deleted before, so the watches begin anew.
            stage.control_plane.stop_apiserver()
            time.sleep(5)
            stage.control_plane.start_apiserver()
            time.sleep(2)
        ended = time.monotonic()

        def found() -> bool:
            """the created config has its status"""
            return bool(wait_reason(stage.control_plane, NAMESPACE, "late", "Accepted"))

        return stage.finish(ended, changed, found, forgotten)


def _misanswered(stage: Stage, status: HTTPStatus) -> Report:
    """Two of three requests, the beginnings of watches among them, for 15 s, and at a start."""
    with ApiProxy(stage.control_plane) as proxy:
        _proxied(stage, proxy)
        stage.begin()
        with proxy.answering(status, 2 / 3):
            stage.change_config()
            time.sleep(5)
            stage.start_replicas(1)
            time.sleep(10)
        ended = time.monotonic()
        injected = proxy.injected
        report = stage.finish(
            ended, stage.change_config(), lambda: stage.service.has(stage.replicas)
        )
    assert injected > 10, f"the proxy answered {injected} requests only"
    return report


@fault("two of three of the operator's requests answered 429 for 15 s", 35)
def too_many_requests(stage: Stage) -> Report:
    return _misanswered(stage, HTTPStatus.TOO_MANY_REQUESTS)


@fault("two of three of the operator's requests answered 500 for 15 s", 35)
def internal_errors(stage: Stage) -> Report:
    return _misanswered(stage, HTTPStatus.INTERNAL_SERVER_ERROR)


def _proxied(stage: Stage, proxy: ApiProxy) -> None:
    original = stage.control_plane.kubeconfig_for(NAME, NAMESPACE)
    stage.kubeconfig = proxy.kubeconfig(original)


# --- Certificates ---------------------------------------------------------------------------------


def _secret(stage: Stage) -> dict[str, bytes]:
    found = get(stage.control_plane, SECRET) or {"data": {}}
    return {key: base64.b64decode(value) for key, value in found["data"].items()}


def _put_into_secret(stage: Stage, data: Mapping[str, bytes]) -> None:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    status, answer = stage.control_plane.request("PATCH", SECRET, {"data": encoded})
    assert status == HTTPStatus.OK, answer


def _served(stage: Stage) -> list[bytes]:
    return [
        ssl.get_server_certificate(("127.0.0.1", replica.webhook_port)).encode().strip()
        for replica in stage.replicas
    ]


def _all_serve(stage: Stage, but: bytes) -> Callable[[], bool]:
    def check() -> bool:
        """all replicas serve the Secret's leaf, and not the one that was to go"""
        leaf = _secret(stage)["tls.crt"].strip()
        return leaf != but.strip() and set(_served(stage)) == {leaf}

    return check


@fault("certificate about to expire (in 20 s)")
def certificate_expires(stage: Stage) -> Report:
    stage.begin()
    data = _secret(stage)
    long_ago = datetime.now(UTC) - timedelta(days=90) + timedelta(seconds=20)
    authority = KeyPair(data["ca.crt"], data["ca.key"])
    expiring = issue_leaf(authority, [f"{NAME}.{NAMESPACE}.svc", "127.0.0.1"], long_ago)
    renewed = _all_serve(stage, expiring.certificate)
    with stage.shaking_hands():
        written = time.monotonic()
        _put_into_secret(stage, {"tls.crt": expiring.certificate, "tls.key": expiring.key})
        eventually(renewed)
        healed = time.monotonic()
        time.sleep(max(0.0, written + 21 - healed))  # beyond the old one's end
        assert renewed()
    return stage.finish(written, healed=healed)


@fault("CA and certificate replaced by another's")
def ca_replaced(stage: Stage) -> Report:
    stage.begin()
    before = _secret(stage)["tls.crt"]
    hosts = [f"{NAME}.{NAMESPACE}.svc", "127.0.0.1"]
    with stage.shaking_hands():
        replaced = time.monotonic()
        _put_into_secret(stage, issue_bundle(hosts, datetime.now(UTC)).as_secret_data())
        return stage.finish(replaced, _all_serve(stage, before))


@fault("TLS Secret deleted")
def tls_secret_deleted(stage: Stage) -> Report:
    stage.begin()
    with stage.shaking_hands():
        stage.control_plane.kubectl("delete", "secret", f"{NAME}-tls", f"--namespace={NAMESPACE}")
        deleted = time.monotonic()
        return stage.finish(deleted, _all_serve(stage, b""))


@fault("garbage in the TLS Secret")
def garbage_in_tls_secret(stage: Stage) -> Report:
    stage.begin()
    broken = dict.fromkeys(("tls.crt", "tls.key", "ca.crt", "ca.key"), b"garbage \x00\xff")
    with stage.shaking_hands():
        written = time.monotonic()
        _put_into_secret(stage, broken)
        return stage.finish(written, _all_serve(stage, broken["tls.crt"]))


@fault("one byte changed in the TLS Secret's CA certificate")
def byte_changed_in_ca(stage: Stage) -> Report:
    """It reads as a certificate, but for its basic constraints: a SET instead of a SEQUENCE."""
    stage.begin()
    content = bytearray(ssl.PEM_cert_to_DER_cert(_secret(stage)["ca.crt"].decode()))
    basic_constraints = content.index(bytes.fromhex("0603551d13"))
    content[content.index(b"\x30\x03\x01\x01\xff", basic_constraints)] = 0x31
    broken = ssl.DER_cert_to_PEM_cert(bytes(content)).encode()

    def put_right() -> bool:
        """the Secret's CA certificate is whole again, and all replicas serve the Secret's leaf"""
        data = _secret(stage)
        return broken.strip() not in data["ca.crt"] and set(_served(stage)) == {
            data["tls.crt"].strip()
        }

    with stage.shaking_hands():
        written = time.monotonic()
        _put_into_secret(stage, {"ca.crt": broken})
        assert not put_right()
        return stage.finish(written, put_right)


# --- The webhook configuration --------------------------------------------------------------------


def _webhooks_gone(stage: Stage, remove: Callable[[], object]) -> Report:
    """Bare pods are tolerated until it is back: nobody asks us about them."""
    stage.begin()
    wanted = get(stage.control_plane, WEBHOOKS)["webhooks"]

    def restored() -> bool:
        """the webhook configuration is as it was"""
        return bool((get(stage.control_plane, WEBHOOKS) or {}).get("webhooks") == wanted)

    with stage.prober.tolerating(Outcome.BARE, seconds=1.0):
        removed = time.monotonic()
        remove()
        eventually(restored)
    return stage.finish(removed, restored)


@fault("webhook configuration emptied")
def webhooks_emptied(stage: Stage) -> Report:
    return _webhooks_gone(
        stage, lambda: stage.control_plane.request("PATCH", WEBHOOKS, {"webhooks": []})
    )


@fault("webhook configuration deleted")
def webhooks_deleted(stage: Stage) -> Report:
    return _webhooks_gone(stage, lambda: stage.control_plane.request("DELETE", WEBHOOKS))


# --- Load -----------------------------------------------------------------------------------------


@fault("200 pods at once", alone=True)
def two_hundred_pods(stage: Stage) -> Report:
    stage.begin()
    began = time.monotonic()
    probes = asyncio.run(_create_at_once(stage, 200))
    for probe in probes:
        stage.prober.note(probe)
    ended = time.monotonic()
    slowest = max(probe.end - probe.begin for probe in probes)
    stage.remark = f"all within {ended - began:.1f} s, the slowest {slowest:.1f} s"
    return stage.finish(ended)


async def _create_at_once(stage: Stage, count: int) -> list[Probe]:
    kind = KINDS[0]
    client = PodClient(stage.control_plane)
    connector = aiohttp.TCPConnector(ssl=client.context, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=client.headers) as session:
        url = f"{stage.control_plane.url}/api/v1/namespaces/{kind.namespace}/pods"

        async def create() -> Probe:
            begin = time.monotonic()
            async with session.post(url, json=kind.pod) as response:
                outcome, detail = outcome_of(kind, response.status, await response.json())
            return Probe(kind, begin, time.monotonic(), outcome, detail)

        return list(await asyncio.gather(*(create() for _ in range(count))))


@fault("50 configs, each changed up to ten times a second, for 10 s", alone=True)
def configs_changing(stage: Stage) -> Report:
    configs = _configs(50)
    names = [config["metadata"]["name"] for config in configs]
    apply(stage.control_plane, *configs)
    stage.begin()
    seconds, a_second = 10.0, 10.0
    count = itertools.count()
    end = time.monotonic() + seconds

    def keep_changing(mine: list[str]) -> None:
        client = PodClient(stage.control_plane)
        rounds = 0
        begin = time.monotonic()
        while time.monotonic() < end:
            for name in mine:
                client.merge(f"{CONFIGS.format(LONE)}/{name}", {"spec": {"port": 8000 + rounds}})
                next(count)
            rounds += 1
            time.sleep(max(0.0, begin + rounds / a_second - time.monotonic()))

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(keep_changing, [names[start::5] for start in range(5)]))
    ended = time.monotonic()
    changes = next(count)
    stage.remark = f"{changes / seconds:.0f} changes a second were reached"

    return stage.finish(ended, _all_written(stage), stage.change_config())


def _configs(count: int) -> list[Any]:
    """Configs that each are for pods of their own."""
    names = [f"config-{number}" for number in range(count)]
    return [
        examples.config(name, LONE, secretName=None, podSelector={"matchLabels": {"for": name}})
        for name in names
    ]


def _all_written(stage: Stage) -> Callable[[], bool]:
    def check() -> bool:
        """every config's status is of its latest generation"""
        items = get(stage.control_plane, CONFIGS.format(LONE))["items"]
        return all(
            item.get("status", {}).get("observedGeneration") == item["metadata"]["generation"]
            for item in items
        )

    return check


@fault("replicas started among 2,000 configs", 90, alone=True)
def thousands_of_configs(stage: Stage) -> Report:
    """A start lists them, and Kopf brings them one by one; no replica may be taken for dead."""
    stage.begin()
    configs = _configs(2000)
    path = CONFIGS.format(LONE)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda config: create(stage.control_plane, path, config), configs))
    created = time.monotonic()
    eventually(_all_written(stage), 90)
    written = time.monotonic()
    newcomers = stage.start_replicas()
    stage.wait_endpoints()
    ready = time.monotonic()
    while time.monotonic() < ready + 15:
        for replica in newcomers:
            assert replica.get("/livez") == (HTTPStatus.OK, "ok\n")
        time.sleep(0.5)
    lists = [
        replica.metric("llm_shield_api_requests_total", resource=PLURAL) for replica in newcomers
    ]
    assert max(lists) <= 5 * _PAGES, lists
    stage.remark = (
        f"ready {ready - written:.1f} s after the start; the statuses were written "
        f"{written - created:.1f} s after the last config was created"
    )
    return stage.finish(time.monotonic(), stage.change_config())


@fault("garbage and slow clients on the webhook's port for 15 s", alone=True)
def strangers(stage: Stage) -> Report:
    stage.begin()
    ports = [replica.webhook_port for replica in stage.replicas]
    count = molest(ports, 15)
    ended = time.monotonic()
    peak = max(replica.peak_memory() for replica in stage.replicas) / 2**20
    stage.remark = f"{count} connections; {peak:.0f} MiB at the most"
    return stage.finish(ended)
