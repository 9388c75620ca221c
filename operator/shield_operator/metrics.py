"""What is counted and measured; served at ``/metrics`` in Prometheus' text format.

https://prometheus.io/docs/practices/naming/

No label grows with pods: its values are words of ours, kinds of objects, or configs, whose series
go when they go. Every series that an alert looks at is there from the start, with 0: a rate over
one that begins with 1 would miss that one. ``docs/metrics.md`` lists them all, and a test compares.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from shield_operator import __version__
from shield_operator.decision import SkipReason
from shield_operator.status import ReadyReason

_DURATIONS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005),
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
"""Seconds: from the tenth of a millisecond that a decision takes, to where the API server gives up
by default."""

NO_ANSWER: Final = "none"
"""In place of an HTTP status."""

UNKNOWN: Final = "Unknown"

_WITHOUT_REASON: Final = ("injected", "ignored", "failed", "unreadable", "unauthorized")
_WITH_REASON: Final = ("skipped", "denied")

# When each series began: as many lines again, of use to nobody.
disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(slots=True)
class ApiRequest:
    """A request to the API server that is under way."""

    status: int | None = None
    """The HTTP status of the answer, once there is one."""


class Snapshot(Collector):
    """A gauge whose series are all set at once, and made only when they are scraped.

    The library's own gauge holds a kilobyte for each series.

    Args:
        name: the metric's.
        documentation: what it means.
        labels: their names.
        registry: where it is scraped.
    """

    _type: Final = "gauge"

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labelnames = labels
        self._values: Mapping[tuple[str, ...], float] = {}
        registry.register(self)

    def show(self, values: Mapping[tuple[str, ...], float]) -> None:
        """Have these series, by their labels, and no others."""
        self._values = values

    def collect(self) -> Iterator[Metric]:
        """The series, for a scrape."""
        family = GaugeMetricFamily(self._name, self._documentation, labels=self._labelnames)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family


class Metrics:
    """The operator's metrics, in a registry of their own."""

    CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._registry = ours = CollectorRegistry()
        self.admissions = Counter(
            "llm_shield_admissions",
            "Requests of the API server, by outcome (injected, ignored, skipped, denied, failed, "
            "unreadable, unauthorized) and, where a pod was skipped or denied, the reason. A skip "
            "is no failure.",
            ("outcome", "reason"),
            registry=ours,
        )
        self._admissions = {
            labels: self.admissions.labels(*labels)
            for labels in (
                *((outcome, "") for outcome in _WITHOUT_REASON),
                *((outcome, reason.value) for outcome in _WITH_REASON for reason in SkipReason),
            )
        }
        self.admission_duration = Histogram(
            "llm_shield_admission_duration_seconds",
            "How long answering a review took, from its last byte to the answer.",
            buckets=_DURATIONS,
            registry=ours,
        )
        self.api_requests = Counter(
            "llm_shield_api_requests",
            "Requests that this replica sent to the API server, Kopf's own left out, by method, "
            f"resource and the status of the answer ({NO_ANSWER} where there was no answer).",
            ("method", "resource", "code"),
            registry=ours,
        )
        self.build_info = Gauge(
            "llm_shield_build_info",
            "1, with the operator's version.",
            ("version",),
            registry=ours,
        )
        self.build_info.labels(__version__).set(1)
        self.certificate_not_after = Gauge(
            "llm_shield_certificate_not_after_seconds",
            "When the certificate that this replica serves with ends, in seconds since 1970; NaN "
            "before there is one.",
            registry=ours,
        )
        self.configs = Gauge(
            "llm_shield_configs",
            "Configs that this replica knows, by status and reason of their condition Ready "
            "(Unknown where nobody has looked at the present generation yet).",
            ("status", "reason"),
            registry=ours,
        )
        self.events = Counter(
            "llm_shield_events",
            "Kubernetes Events of this replica, by what they are about (config, or pod) and result "
            "(written, failed, or dropped where there were too many).",
            ("about", "result"),
            registry=ours,
        )
        self.leading = Gauge(
            "llm_shield_leading",
            "Whether this replica is the one that writes (1), or stands by (0).",
            registry=ours,
        )
        self.loop_failures = Counter(
            "llm_shield_loop_failures",
            "Runs of a loop that failed, by loop. All are tried again: the API server may be away. "
            "Where it is not, the log has the reason.",
            ("loop",),
            registry=ours,
        )
        self.pods = Snapshot(
            "llm_shield_pods",
            "Pods at the last scan, by config and state (injected, or outdated: injected with "
            "another plan than the config's present one). The leader has them.",
            ("config", "state"),
            registry=ours,
        )
        self.skipped_pods = Snapshot(
            "llm_shield_skipped_pods",
            "Pods that asked for the sidecar and do not have it, at the last scan, by reason. The "
            "leader has them.",
            ("reason",),
            registry=ours,
        )
        self.watch_age = Gauge(
            "llm_shield_watch_age_seconds",
            "How long ago the watch of the configs had last brought all that a list showed; a list "
            "is made every minute. NaN before the first.",
            registry=ours,
        )
        self.watch_age.set(math.nan)
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)

    def admission(self, outcome: str, reason: str = "") -> None:
        """Count the answer to one request; called in every one, so its series are at hand."""
        series = self._admissions.get((outcome, reason))
        (series or self.admissions.labels(outcome, reason)).inc()

    @contextmanager
    def api_request(self, method: str, resource: str) -> Iterator[ApiRequest]:
        """Count a request to the API server, with the status that it is given by the end."""
        request = ApiRequest()
        try:
            yield request
        finally:
            code = NO_ANSWER if request.status is None else str(request.status)
            self.api_requests.labels(method, resource, code).inc()

    def show_configs(self, number: Callable[[ReadyReason | None], int]) -> None:
        """Have the number of configs of each readiness looked up at each scrape."""
        for reason in (*ReadyReason, None):
            labels = (reason.status, reason.value) if reason else (UNKNOWN, UNKNOWN)
            self.configs.labels(*labels).set_function(partial(number, reason))

    def render(self) -> bytes:
        """All of them, as text; and what Prometheus' clients tell of every process."""
        return generate_latest(self._registry) + generate_latest(self._process)
