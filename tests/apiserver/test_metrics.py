"""What `/metrics` tells, each by making it happen: to a leader, and to one that stands by.

One installation for the whole file. The tests are in order: the last ones break it.
"""

import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import pytest

import examples
from controlplane import ControlPlane
from localoperator import NAME, OperatorProcess, install
from relay import Relay
from shield_operator import __version__
from support import (
    CONFIGS,
    INJECT,
    WebhookClient,
    apply,
    counted,
    create_pod,
    eventually,
    get,
    make_namespace,
    wait_reason,
)

PACES = {"main.RELIST_INTERVAL": 1.0, "main.SECRETS_INTERVAL": 1.0}
DURATION = "llm_shield_admission_duration_seconds"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with ControlPlane.start() as running:
        install(running)
        make_namespace(running, "shop", INJECT)
        apply(running, examples.config(namespace="shop", secretName=None))
        yield running


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    with Relay() as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def leader(cluster: ControlPlane, relay: Relay) -> Iterator[OperatorProcess]:
    with OperatorProcess(
        cluster,
        webhook_url=f"https://127.0.0.1:{relay.port}",
        environment={"DRIFT_SCAN_SECONDS": "1"},
        paces=PACES,
    ) as operator:
        relay.set_backends(operator.webhook_port)
        operator.wait_ready()
        eventually(lambda: operator.metric("llm_shield_leading") == 1)
        wait_reason(cluster, "shop", "shield", "Accepted")
        yield operator


@pytest.fixture(scope="module")
def standby(
    cluster: ControlPlane, relay: Relay, leader: OperatorProcess
) -> Iterator[OperatorProcess]:
    """Another replica, which refuses what it cannot inject; only direct requests get to it."""
    assert leader.metric("llm_shield_leading") == 1
    with OperatorProcess(
        cluster,
        webhook_url=f"https://127.0.0.1:{relay.port}",
        environment={"UNINJECTED_POD_POLICY": "Deny"},
        paces=PACES,
    ) as operator:
        yield operator.wait_ready()


def rises(look: Callable[[], float], provoke: Callable[[], Any], by: float = 1) -> None:
    """Whether a count goes up by exactly this when something happens."""
    before = look()
    provoke()
    eventually(lambda: look() >= before + by)
    assert look() == before + by


def owned_pod(name: str, **spec: Any) -> dict[str, Any]:
    pod = examples.pod(owner="Crontab", **spec)
    pod["metadata"]["ownerReferences"][0] |= {"name": name, "uid": name}
    return pod


def make(cluster: ControlPlane, **spec: Any) -> None:
    assert create_pod(cluster, "shop", examples.pod(**spec))[0] == HTTPStatus.CREATED


def test_admissions_by_outcome_and_reason(cluster: ControlPlane, leader: OperatorProcess) -> None:
    webhook = WebhookClient(cluster, leader.webhook_port)
    out = examples.pod(labels={"llm-shield.io/inject": "false"})
    skipped = examples.pod(hostNetwork=True)
    rises(lambda: counted(leader, "injected"), lambda: webhook.review("shop", examples.pod()))
    rises(lambda: counted(leader, "ignored"), lambda: webhook.review("shop", out))
    rises(
        lambda: counted(leader, "skipped", "host-network"), lambda: webhook.review("shop", skipped)
    )
    rises(lambda: counted(leader, "unreadable"), lambda: webhook.request(b"garbage"))
    assert counted(leader, "failed") == 0


def test_a_refusal_is_denied_and_not_skipped(
    cluster: ControlPlane, standby: OperatorProcess
) -> None:
    webhook = WebhookClient(cluster, standby.webhook_port)
    rises(
        lambda: counted(standby, "denied", "host-network"),
        lambda: webhook.review("shop", examples.pod(hostNetwork=True)),
    )
    assert counted(standby, "skipped", "host-network") == 0


def test_how_long_admissions_take(cluster: ControlPlane, leader: OperatorProcess) -> None:
    webhook = WebhookClient(cluster, leader.webhook_port)

    def ten() -> None:
        for _ in range(10):
            webhook.review("shop", examples.pod())

    seconds = leader.metric(f"{DURATION}_sum")
    rises(lambda: leader.metric(f"{DURATION}_count"), ten, by=10)
    assert 0 < leader.metric(f"{DURATION}_sum") - seconds < 10
    assert leader.metric(f"{DURATION}_bucket", le="0.0001") <= leader.metric(f"{DURATION}_count")


def test_configs_by_readiness(cluster: ControlPlane, leader: OperatorProcess) -> None:
    def number(reason: str) -> float:
        return leader.metric("llm_shield_configs", reason=reason)

    assert (number("Accepted"), number("Invalid"), number("SecretNotFound")) == (1, 0, 0)
    apply(cluster, examples.config("no-image", "shop", image=None))
    apply(cluster, examples.config("no-secret", "shop"))
    eventually(lambda: (number("Invalid"), number("SecretNotFound")) == (1, 1))
    assert leader.metric("llm_shield_configs", status="False") == 2
    assert leader.metric("llm_shield_configs", status="True") == 1
    cluster.kubectl("delete", "ssc", "no-image", "no-secret", "--namespace=shop")
    eventually(lambda: leader.metric("llm_shield_configs") == 1)


def test_pods_injected_outdated_and_skipped(cluster: ControlPlane, leader: OperatorProcess) -> None:
    make_namespace(cluster, "drift", INJECT)
    apply(cluster, examples.config(namespace="drift", secretName=None))
    wait_reason(cluster, "drift", "shield", "Accepted")

    def number(state: str) -> float:
        return leader.metric("llm_shield_pods", config="drift/shield", state=state)

    for host_network in (False, False, True):
        pod = examples.pod(hostNetwork=host_network)
        assert create_pod(cluster, "drift", pod)[0] == HTTPStatus.CREATED
    eventually(lambda: (number("injected"), number("outdated")) == (2, 0))
    skipped = leader.metric("llm_shield_skipped_pods", reason="host-network")
    assert skipped >= 1
    apply(cluster, examples.config(namespace="drift", secretName=None, port=9000))
    eventually(lambda: (number("injected"), number("outdated")) == (2, 2))
    cluster.kubectl("delete", "ssc", "shield", "--namespace=drift")
    eventually(lambda: 'config="drift/shield"' not in leader.get("/metrics")[1])


def test_no_label_grows_with_pods(cluster: ControlPlane, leader: OperatorProcess) -> None:
    def series() -> set[str]:
        text = leader.get("/metrics")[1]
        lines = (line for line in text.splitlines() if not line.startswith("#"))
        return {line.rpartition(" ")[0] for line in lines}

    make(cluster)
    make(cluster, hostNetwork=True)
    time.sleep(2)
    before = series()
    webhook = WebhookClient(cluster, leader.webhook_port)
    for number in range(50):
        webhook.review("shop", owned_pod(f"web-{number}"))
        webhook.review("shop", owned_pod(f"skipped-{number}", hostNetwork=True))
        webhook.review(f"namespace-{number}", examples.pod())
    time.sleep(2)
    new = series() - before
    # The first of a kind: a pod without a config, an event that was written.
    assert {one for one in new if "web-" in one or "namespace-" in one} == set()
    assert len(new) < 5, new


def test_events_written_and_dropped(cluster: ControlPlane, leader: OperatorProcess) -> None:
    def number(result: str) -> float:
        return leader.metric("llm_shield_events_total", about="pod", result=result)

    webhook = WebhookClient(cluster, leader.webhook_port)
    written, dropped = number("written"), number("dropped")
    for index in range(60):
        webhook.review("shop", owned_pod(f"many-{index}", hostNetwork=True))
    eventually(lambda: number("written") > written and number("dropped") > dropped)


def test_the_certificates_end_the_leader_and_the_version(
    leader: OperatorProcess, standby: OperatorProcess
) -> None:
    for replica, leads in ((leader, 1), (standby, 0)):
        days = (replica.metric("llm_shield_certificate_not_after_seconds") - time.time()) / 86400
        assert 80 < days < 91
        assert replica.metric("llm_shield_leading") == leads
        assert replica.metric("llm_shield_build_info", version=__version__) == 1
        assert replica.metric("process_resident_memory_bytes") > 2**20


def test_requests_to_the_api_server_by_resource_and_status(
    cluster: ControlPlane, leader: OperatorProcess
) -> None:
    def number(**labels: str) -> float:
        return leader.metric("llm_shield_api_requests_total", **labels)

    path = f"{CONFIGS.format('shop')}/counted"
    written = {"method": "PATCH", "resource": "shieldsidecarconfigs", "code": "200"}
    absent = number(method="GET", resource="secrets", code="404")
    before = number(**written)
    apply(cluster, examples.config("counted", "shop"))
    wait_reason(cluster, "shop", "counted", "SecretNotFound")
    assert number(**written) > before
    assert number(method="GET", resource="secrets", code="404") > absent
    assert number(method="PUT", resource="leases", code="200") > 0
    assert number(method="POST", resource="leases", code="201") == 1
    assert number(method="POST", resource="events", code="201") > 0
    assert cluster.request("DELETE", path)[0] == HTTPStatus.OK


def test_an_event_that_may_not_be_written_fails_and_nothing_else_does(
    cluster: ControlPlane, leader: OperatorProcess
) -> None:
    role = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{NAME}"
    rules = get(cluster, role)["rules"]
    without = [rule for rule in rules if rule["resources"] != ["events"]]
    cluster.request("PATCH", role, {"rules": without})
    webhook = WebhookClient(cluster, leader.webhook_port)
    tries = iter(range(1000))

    def has_failed() -> bool:
        name = f"forbidden-{next(tries)}"
        assert webhook.review("shop", owned_pod(name, hostNetwork=True))["allowed"]
        time.sleep(0.5)
        return leader.metric("llm_shield_events_total", about="pod", result="failed") > 0

    eventually(has_failed, timeout=60)
    assert leader.metric("llm_shield_api_requests_total", resource="events", code="403") > 0
    assert "cannot write an event in shop" in leader.log_tail(1000)
    cluster.request("PATCH", role, {"rules": rules})


def test_a_config_that_nobody_has_looked_at_is_unknown(
    cluster: ControlPlane, leader: OperatorProcess, standby: OperatorProcess
) -> None:
    leader.freeze()
    try:
        apply(cluster, examples.config("ignored", "shop", secretName=None))
        eventually(lambda: standby.metric("llm_shield_configs", status="Unknown") == 1, 6)
    finally:
        leader.thaw()
    eventually(lambda: standby.metric("llm_shield_configs", status="Unknown") == 0, 30)


def test_an_api_server_that_is_away_makes_the_watch_old_and_loops_fail(
    cluster: ControlPlane, leader: OperatorProcess
) -> None:
    def age() -> float:
        return leader.metric("llm_shield_watch_age_seconds")

    eventually(lambda: age() < 3)
    time.sleep(2)
    assert age() < 10  # lists come every second here, and show nothing that is not known
    failures = leader.metric("llm_shield_loop_failures_total", loop="configs")
    cluster.stop_apiserver()
    eventually(lambda: age() > 10, timeout=30)
    assert leader.metric("llm_shield_loop_failures_total", loop="configs") > failures
    assert leader.metric("llm_shield_api_requests_total", code="none") > 0
    cluster.start_apiserver()
    eventually(lambda: age() < 3, timeout=30)
