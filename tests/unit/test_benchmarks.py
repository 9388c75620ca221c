"""What `make bench` makes of its figures; the figures themselves it measures when it is run."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from benchmarks.comparison import bars, capacity, chart, pods, report
from benchmarks.comparison.figures import Figure, exponent
from benchmarks.comparison.measure import NONE
from benchmarks.comparison.peers import FLASK, GO, KOPF, NOOP, OURS, PLAIN, PROXY, THROUGH, TITLES

DOCS = Path(__file__).resolve().parents[2] / "docs"
TURNS = [*(f"{size}/1" for size in pods.SIZES), "plain/16"]
ADDED = {NOOP: 0.5, GO: 1.0, PROXY: 2.0, FLASK: 4.0, KOPF: 2.6, OURS: 1.1, PLAIN: 1.0}
THROUGHPUT = {NOOP: 9000, GO: 5000, PROXY: 700, FLASK: 150, KOPF: 900, OURS: 1800}


def around(value: float) -> list[float]:
    return [value, value * 0.9, value * 1.1]


def results(**changes: Any) -> Any:
    """Results of a run in which every promise is kept, but for what a test changes."""
    configs = {
        count: {
            "start": 1.0,
            "resident": 75e6 + int(count) * 2000,
            "after_reviews": 85e6,
            "peak": 90e6,
            "per_second": around(1500),
            "p50_ms": around(0.6),
        }
        for count in ("1", "100", "5000")
    }
    reviews = {
        name: {
            turn: {
                "requests": 100,
                "patched": 100,
                "failures": {},
                "bytes": 900,
                "per_second": around(THROUGHPUT[name]),
                "p50_ms": around(0.6),
                "p99_ms": around(1.6),
                "cpu_ms": around(0.5),
            }
            for turn in TURNS
        }
        for name in TITLES
    }
    created: dict[str, Any] = {
        turn: {
            name: {
                "added_p50_ms": around(ADDED[name]),
                "added_p99_ms": 3.0,
                "per_second": 600.0,
                "failures": {},
            }
            for name in THROUGH
        }
        | {NONE: {"p50_ms": around(2.0), "p99_ms": 6.0, "failures": {}}}
        for turn in TURNS
    }
    fitted = {"p50_ms": [1.0, 2.0, 4.0], "exponent": 1.0}
    found: dict[str, Any] = {
        "machine": {
            "date": "2026-01-02",
            "revision": "0123456",
            "cores": 2,
            "cpu": "a processor",
            "python": "3.11.2",
            "load_before": 0.1,
            "rounds": 7,
            "creations": 40,
            "seconds": 0.7,
            "minutes": 12.0,
        },
        "start": {name: around(1.5) for name in TITLES},
        "api": created,
        "direct": reviews,
        "memory": {name: {"resident": 80e6, "peak": 200e6} for name in TITLES},
        "series": {"bytes": [1000, 2000, 4000], "of": dict.fromkeys(TITLES, fitted)},
        "imports": {"the interpreter": 9e6, "Kopf": 40e6},
        "calls": {"seconds": 7.0, "idle": 4, "answering": 5, "admissions": 9000},
        "profile": {
            "parts": {"TLS": 100.0, "Kopf": 200.0},
            "functions": [["x.py:f", 90.0]],
            "admissions": 3000,
        },
        "configs": configs,
        "endurance": [{"requests": 10_000, "resident": 90e6} for _ in range(10)],
        "simulation": {
            "requests": 9000,
            "failures": {},
            "seconds": 30.0,
            "per_second": 300.0,
            "p50_ms": 40.0,
            "p99_ms": 90.0,
            "cpu_ms": 0.8,
            "resident_before": 90e6,
            "resident_after": 91e6,
            "peak": 95e6,
            "configs": 5000,
            "namespaces": 2000,
        },
    }
    found |= changes
    return json.loads(json.dumps(found))


def test_every_promise_is_kept_where_the_figures_are_good() -> None:
    assert [bar.title for bar in bars.judge(results()) if not bar.met] == []


def test_a_missed_promise_says_by_how_much_and_where_the_time_goes() -> None:
    slow = results()
    slow["api"]["plain/1"][OURS]["added_p50_ms"] = around(1.8)
    judged = bars.judge(slow)
    (first, *_) = [bar for bar in judged if not bar.met]
    assert first.missed_by == pytest.approx(0.5)
    page = report.page(slow, judged)
    assert "**missed by 50%**" in page
    assert "Most of an admission's time in this operator goes into Kopf (67%), TLS (33%)" in page


def test_a_figure_that_could_not_be_measured_is_no_promise_kept() -> None:
    broken = results()
    broken["direct"][PROXY]["plain/16"]["per_second"] = None
    (bar,) = [bar for bar in bars.judge(broken) if "throughput" in bar.title]
    assert not bar.met
    assert bar.verdict.startswith("no figure")


def test_a_difference_below_the_noise_keeps_no_promise() -> None:
    noisy = results()
    noisy["api"]["plain/1"][OURS]["added_p50_ms"] = around(-0.2)
    judged = bars.judge(noisy)
    assert [bar.met for bar in judged[:4]] == [False] * 4


def test_a_growing_memory_and_calls_in_requests_are_missed_promises() -> None:
    growing = [{"requests": 10_000, "resident": 90e6 + 1e6 * n} for n in range(10)]
    asking = {"seconds": 7.0, "idle": 4, "answering": 9004, "admissions": 9000}
    judged = bars.judge(results(endurance=growing, calls=asking))
    missed = [bar.title for bar in judged if not bar.met]
    assert len(missed) == 2
    assert "change of the resident memory" in missed[0]
    assert "calls to the API server" in missed[1]


def test_pods_that_were_refused_are_named_in_the_page() -> None:
    refusing = results()
    refusing["api"]["plain/1"][KOPF]["failures"] = {"HTTP 500: too | large": 7}
    page = report.page(refusing, [])
    assert "plain: 7 creations failed with Kopf as it comes: `HTTP 500: too / large`." in page


def test_the_page_and_the_chart_have_every_webhook() -> None:
    page = report.page(results(), bars.judge(results()))
    drawing = chart.draw(results())
    words = "".join(ET.fromstring(drawing).itertext())  # noqa: S314  # made a line above
    for title in TITLES.values():
        assert title in page
        assert title in words


def test_the_capacity_follows_from_the_throughput() -> None:
    assert capacity.replicas(20, 1800) == 2
    assert capacity.replicas(1000, 1800) == 3
    assert capacity.minutes(100) == 25
    page = capacity.page(results())
    assert "none failed, and each had its sidecar" in page
    assert "1.2 minutes of one core" in page


def test_exponents_and_spreads() -> None:
    assert exponent([1, 2, 4], [3, 6, 12]) == pytest.approx(1)
    assert exponent([1, 2, 4], [1, 4, 16]) == pytest.approx(2)
    assert Figure.of([5, 1, 2, 3, 4]).text(".0f") == "3 (2\N{EN DASH}4)"
    assert Figure.of([2.0]).text() == "2.00"


def test_the_pods_are_of_the_sizes_that_they_are_named_by() -> None:
    managed = pods.large_managed_fields()["metadata"]["managedFields"]
    assert 2**20 <= len(json.dumps(managed, separators=(",", ":"))) < 1.05 * 2**20
    assert len(pods.many_containers()["spec"]["containers"]) == 20
    assert len(pods.many_variables()["spec"]["containers"][0]["env"]) == 1500


def test_the_pages_are_of_the_webhooks_and_promises_that_there_are() -> None:
    """As `make bench` writes them."""
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    promised = [bar.title for bar in bars.judge(results())]
    assert [title for title in (*TITLES.values(), *promised) if f"| {title} |" not in page] == []
    drawing = "".join(ET.parse(DOCS / "benchmarks.svg").getroot().itertext())  # noqa: S314  # ours
    assert [title for title in TITLES.values() if title not in drawing] == []
    assert "## Tried" in (DOCS / "capacity.md").read_text(encoding="utf-8")
