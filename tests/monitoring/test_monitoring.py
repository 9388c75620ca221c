"""Alerts and dashboard with a real Prometheus: `make test-monitoring`."""

import json
import re
import subprocess
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

import examples
from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, OperatorProcess, install
from manifests import ROOT
from monitoring.alerts import HEALTHY, PROVOKED, Series
from prometheus import Prometheus, ensure
from support import (
    INJECT,
    WebhookClient,
    apply,
    create_pod,
    eventually,
    make_namespace,
    wait_reason,
)

COMPONENT = ROOT / "manifests" / "components" / "monitoring"
RULES = yaml.safe_load((COMPONENT / "prometheusrule.yaml").read_text(encoding="utf-8"))["spec"]
ALERTS: dict[str, Any] = {rule["alert"]: rule for rule in RULES["groups"][0]["rules"]}
DASHBOARD = json.loads((COMPONENT / "llm-shield-operator.json").read_text(encoding="utf-8"))
PANELS: dict[str, Any] = {panel["title"]: panel for panel in DASHBOARD["panels"]}

# --- With series made up --------------------------------------------------------------------------


def promtool(*arguments: str, directory: Path) -> None:
    done = subprocess.run(
        [str(ensure("promtool")), *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def unit_test(series: Series, firing: list[str]) -> Any:
    """That these alerts, and no others, fire a day and a half later."""
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "36h",
                "exp_samples": [
                    {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in firing
                ],
            }
        ],
    }


def test_every_alert_is_provoked() -> None:
    assert list(ALERTS) == list(PROVOKED)


@pytest.mark.parametrize("alert", [None, *PROVOKED])
def test_an_alert_fires_when_it_should_and_no_other_does(alert: str | None, tmp_path: Path) -> None:
    """`None`: while all is well."""
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(RULES), encoding="utf-8")
    promtool("check", "rules", "rules.yml", directory=tmp_path)
    series = HEALTHY | (PROVOKED[alert] if alert else {})
    tests = {
        "rule_files": ["rules.yml"],
        "evaluation_interval": "1m",
        "tests": [unit_test(series, [alert] if alert else [])],
    }
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    promtool("test", "rules", "tests.yml", directory=tmp_path)


def test_every_alert_says_what_is_wrong_and_what_to_do() -> None:
    for rule in ALERTS.values():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description"}
    readme = (COMPONENT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", readme, re.MULTILINE)
    assert rows == [(name, rule["labels"]["severity"]) for name, rule in ALERTS.items()]


# --- With those of a real run ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def prometheus() -> Iterator[Prometheus]:
    """Two replicas that had something of everything to do, scraped the while."""
    quick = {"DRIFT_SCAN_SECONDS": "1"}
    with ControlPlane.start() as control_plane:
        install(control_plane)
        with OperatorProcess(control_plane, environment=quick) as first:
            first.wait_ready()
            url = f"https://127.0.0.1:{first.webhook_port}"
            with OperatorProcess(control_plane, environment=quick, webhook_url=url) as second:
                second.wait_ready()
                addresses = [f"127.0.0.1:{one.health_port}" for one in (first, second)]
                token = token_for_metrics(control_plane)
                with Prometheus(control_plane, token, addresses, RULES) as running:
                    eventually(lambda: len(running.query("up == 1")) == 3, timeout=60)
                    keep_busy(control_plane, running)
                    yield running


def token_for_metrics(control_plane: ControlPlane) -> Path:
    """Of an account that may read the API server's metrics and nothing else."""
    metadata = {"name": "prometheus"}
    role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", **metadata}
    subject = {"kind": "ServiceAccount", "namespace": "default", **metadata}
    rbac = "rbac.authorization.k8s.io/v1"
    apply(
        control_plane,
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"namespace": "default", **metadata},
        },
        {
            "apiVersion": rbac,
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
        },
        {
            "apiVersion": rbac,
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": role,
            "subjects": [subject],
        },
    )
    token = control_plane.directory / "prometheus.token"
    made = control_plane.kubectl("create", "token", "prometheus", "--namespace=default")
    token.write_text(made.stdout.strip(), encoding="utf-8")
    return token


def keep_busy(control_plane: ControlPlane, prometheus: Prometheus) -> None:
    """Pods that are injected, skipped and outdated; a config that is not ready; what is no review.

    Each twice, with a scrape between: a rate needs two values.
    """
    make_namespace(control_plane, "shop", INJECT)
    apply(control_plane, examples.config(namespace="shop", secretName=None))
    apply(
        control_plane, examples.config("missing", "shop", podSelector={"matchLabels": {"a": "b"}})
    )
    wait_reason(control_plane, "shop", "shield", "Accepted")
    wait_reason(control_plane, "shop", "missing", "SecretNotFound")
    webhook = WebhookClient(control_plane)
    for env in ("1", "2"):
        for pod in (examples.pod(), examples.pod(hostNetwork=True)):
            assert create_pod(control_plane, "shop", pod)[0] == HTTPStatus.CREATED
        webhook.request(b"garbage")
        variables = [{"name": "ROUND", "value": env}]
        apply(control_plane, examples.config(namespace="shop", secretName=None, env=variables))
        wait_reason(control_plane, "shop", "shield", "Accepted")
        counted = 'sum(llm_shield_admissions_total{outcome="unreadable"})'
        eventually(lambda: prometheus.query(counted)[0][1] == int(env))  # noqa: B023  # waited for


def real(expression: str) -> str:
    """A panel's query as Grafana would send it."""
    return expression.replace("$__rate_interval", "1m")


@pytest.mark.parametrize("title", PANELS)
def test_a_panels_queries_have_something_to_show(prometheus: Prometheus, title: str) -> None:
    for target in PANELS[title]["targets"]:
        query = real(target["expr"])
        samples = eventually(lambda: prometheus.query(query))  # noqa: B023  # waited for
        labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        assert all(labels <= sample.keys() for sample, _ in samples), samples


def without_threshold(expression: str) -> str:
    """What an alert compares, and not the comparison."""
    found = re.fullmatch(r"(.+) (?:[<>]|==) [\d* ]+", expression, re.DOTALL)
    assert found, expression
    return found[1]


NEVER_IN_A_GOOD_RUN = {
    "LLMShieldWebhookUnreachable",
    "LLMShieldPodsStartBare",
}
"""Of the API server's counters that are not there until something fails."""


@pytest.mark.parametrize("alert", [name for name in ALERTS if name not in NEVER_IN_A_GOOD_RUN])
def test_an_alert_looks_at_series_that_are_there(prometheus: Prometheus, alert: str) -> None:
    query = without_threshold(ALERTS[alert]["expr"])
    assert eventually(lambda: prometheus.query(query))


def test_prometheus_evaluates_every_rule_without_an_error(prometheus: Prometheus) -> None:
    def evaluated() -> Any:
        rules = prometheus.rules()
        return rules if all(rule["health"] != "unknown" for rule in rules) else None

    rules = eventually(evaluated)
    assert sorted(rule["name"] for rule in rules) == sorted(ALERTS)
    assert [rule for rule in rules if rule["health"] != "ok"] == []


def test_what_is_wrong_in_the_run_is_noticed_and_nothing_else(prometheus: Prometheus) -> None:
    """Pending, where an alert waits before it fires."""
    wrong = {
        "LLMShieldAdmissionsFail",
        "LLMShieldPodsWithoutSidecar",
        "LLMShieldConfigNotReady",
        "LLMShieldPodsOutdated",
    }

    def noticed() -> bool:
        states = {rule["name"]: rule["state"] for rule in prometheus.rules()}
        return {name for name, state in states.items() if state != "inactive"} == wrong

    eventually(noticed)


def test_pods_that_are_refused_since_nobody_answers_fire_an_alert() -> None:
    """The API server's own counters: the operator's are gone with it."""
    with ControlPlane.start() as control_plane:
        install(control_plane)
        make_namespace(control_plane, "shop", INJECT)
        with OperatorProcess(control_plane) as operator:
            operator.wait_ready()
        token = token_for_metrics(control_plane)
        with Prometheus(control_plane, token, ["127.0.0.1:1"], RULES) as prometheus:

            def fires() -> bool:
                status, _ = create_pod(control_plane, "shop", examples.pod())
                assert status == HTTPStatus.INTERNAL_SERVER_ERROR
                states = {rule["name"]: rule["state"] for rule in prometheus.rules()}
                return bool(states["LLMShieldWebhookUnreachable"] == "firing")

            eventually(fires, timeout=60)
            states = {rule["name"]: rule["state"] for rule in prometheus.rules()}
            assert states["LLMShieldOperatorDown"] == "pending"
            assert states["LLMShieldPodsStartBare"] == "inactive"


def test_pods_that_start_bare_fire_an_alert() -> None:
    with ControlPlane.start() as control_plane:
        install(control_plane)
        make_namespace(control_plane, "shop", INJECT)
        with OperatorProcess(control_plane, environment={"FAILURE_POLICY": "Ignore"}) as operator:
            operator.wait_ready()
        token = token_for_metrics(control_plane)
        with Prometheus(control_plane, token, ["127.0.0.1:1"], RULES) as prometheus:

            def fires() -> bool:
                status, _ = create_pod(control_plane, "shop", examples.pod())
                assert status == HTTPStatus.CREATED
                states = {rule["name"]: rule["state"] for rule in prometheus.rules()}
                return bool(states["LLMShieldPodsStartBare"] == "firing")

            eventually(fires, timeout=60)


# --- With the Prometheus operator's objects -------------------------------------------------------


def test_the_monitor_finds_the_replicas_by_the_job_that_the_alerts_know(
    control_plane: ControlPlane,
) -> None:
    text = control_plane.kubectl("kustomize", str(ROOT / "manifests" / "overlays" / "monitoring"))
    built = {(d["kind"], d["metadata"]["name"]): d for d in yaml.safe_load_all(text.stdout)}
    monitor, service = built["ServiceMonitor", NAME], built["Service", f"{NAME}-metrics"]
    assert service["metadata"]["namespace"] == monitor["metadata"]["namespace"] == NAMESPACE
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    chosen = [
        name
        for (kind, name), one in built.items()
        if kind == "Service" and wanted <= one["metadata"]["labels"].items()
    ]
    assert chosen == [f"{NAME}-metrics"]
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == NAME
    (endpoint,) = monitor["spec"]["endpoints"]
    (port,) = service["spec"]["ports"]
    assert endpoint["port"] == port["name"]
    template = built["Deployment", NAME]["spec"]["template"]
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    (container,) = template["spec"]["containers"]
    assert port["targetPort"] in {one["name"] for one in container["ports"]}
