"""The metrics: named as Prometheus asks, listed in the documents, and small whatever happens."""

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Counter, Histogram

from shield_operator import __version__
from shield_operator.decision import SkipReason
from shield_operator.metrics import Metrics
from shield_operator.status import ReadyReason

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def families(metrics: Metrics) -> list[Any]:
    """Each metric of ours, in order."""
    return [one for one in vars(metrics).values() if hasattr(one, "_labelnames")]


def full_name(family: Any) -> str:
    return f"{family._name}_total" if isinstance(family, Counter) else str(family._name)


def samples(metrics: Metrics, name: str) -> dict[str, float]:
    """The values of one metric, by its labels as they are written."""
    found = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", metrics.render().decode(), re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def test_the_page_lists_every_metric_as_it_describes_itself() -> None:
    rows = [
        f"| `{full_name(one)}` | {one._type} | "
        f"{', '.join(f'`{label}`' for label in one._labelnames)} | {one._documentation} |"
        for one in families(Metrics())
    ]
    listed = re.findall(r"^\| `llm_shield_.+$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == rows


def test_names_follow_prometheus_conventions() -> None:
    """https://prometheus.io/docs/practices/naming/"""
    for family in families(Metrics()):
        name = full_name(family)
        assert re.fullmatch(r"llm_shield_[a-z_]+", name)
        assert name.endswith("_total") == isinstance(family, Counter)
        measures_time = any(word in name for word in ("duration", "age", "not_after"))
        assert name.endswith("_seconds") == measures_time


def test_every_outcome_is_there_from_the_start() -> None:
    """A rate over a series that begins with 1 misses that one."""
    found = samples(Metrics(), "llm_shield_admissions_total")
    assert set(found.values()) == {0.0}
    for outcome in ("skipped", "denied"):
        for reason in SkipReason:
            assert f'outcome="{outcome}",reason="{reason}"' in found
    assert 'outcome="injected",reason=""' in found


def test_an_admission_is_counted_where_it_belongs() -> None:
    metrics = Metrics()
    metrics.admission("skipped", "host-network")
    metrics.admission("injected")
    found = samples(metrics, "llm_shield_admissions_total")
    assert {labels for labels, value in found.items() if value} == {
        'outcome="skipped",reason="host-network"',
        'outcome="injected",reason=""',
    }


def test_durations_are_told_apart_below_a_millisecond() -> None:
    metrics = Metrics()
    assert isinstance(metrics.admission_duration, Histogram)
    for seconds in (0.00005, 0.0002, 0.0004, 0.0008):
        metrics.admission_duration.observe(seconds)
    found = samples(metrics, "llm_shield_admission_duration_seconds_bucket")
    below = {labels: value for labels, value in found.items() if value < 4}
    assert below == {'le="0.0001"': 1, 'le="0.00025"': 2, 'le="0.0005"': 3}


def test_configs_are_looked_up_at_each_scrape() -> None:
    metrics = Metrics()
    numbers: dict[ReadyReason | None, int] = {}
    metrics.show_configs(lambda reason: numbers.get(reason, 0))
    assert set(samples(metrics, "llm_shield_configs").values()) == {0.0}
    numbers |= {ReadyReason.ACCEPTED: 3, ReadyReason.INVALID: 2, None: 1}
    assert samples(metrics, "llm_shield_configs") == {
        'reason="Accepted",status="True"': 3,
        'reason="Invalid",status="False"': 2,
        'reason="SecretNotFound",status="False"': 0,
        'reason="Unknown",status="Unknown"': 1,
    }


def test_a_scrape_shows_the_series_of_one_scan_and_no_others() -> None:
    metrics = Metrics()
    metrics.pods.show({("shop/a", "injected"): 1, ("shop/b", "injected"): 2})
    (family,) = metrics.pods.collect()
    metrics.pods.show({("shop/b", "injected"): 3, ("shop/c", "injected"): 4})
    assert [sample.value for sample in family.samples] == [1, 2]
    assert samples(metrics, "llm_shield_pods") == {
        'config="shop/b",state="injected"': 3,
        'config="shop/c",state="injected"': 4,
    }
    metrics.pods.show({})
    assert samples(metrics, "llm_shield_pods") == {}


def test_a_request_is_counted_with_the_status_of_its_answer() -> None:
    metrics = Metrics()
    with metrics.api_request("PATCH", "secrets") as request:
        request.status = 409
    with pytest.raises(OSError, match="gone"), metrics.api_request("PATCH", "secrets"):
        raise OSError("gone")
    assert samples(metrics, "llm_shield_api_requests_total") == {
        'code="409",method="PATCH",resource="secrets"': 1,
        'code="none",method="PATCH",resource="secrets"': 1,
    }


def test_the_version_and_the_process_are_told() -> None:
    metrics = Metrics()
    assert samples(metrics, "llm_shield_build_info") == {f'version="{__version__}"': 1}
    assert samples(metrics, "process_resident_memory_bytes")[""] > 2**20
