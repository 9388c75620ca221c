"""What is counted; served at ``/metrics`` in Prometheus' text format."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Metrics:
    """The operator's metrics, in a registry of their own."""

    CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.admissions = Counter(
            "llm_shield_admissions",
            "Pods that the API server asked about, by outcome "
            "(injected, ignored, skipped, denied, failed, unreadable, unauthorized) and, where "
            "there is one, the reason.",
            ("outcome", "reason"),
            registry=self._registry,
        )
        self.api_requests = Counter(
            "llm_shield_api_requests",
            "Requests that this replica sent to the API server, Kopf's own left out, by method and "
            "resource.",
            ("method", "resource"),
            registry=self._registry,
        )
        self.certificate_not_after = Gauge(
            "llm_shield_certificate_not_after_seconds",
            "When the certificate that this replica serves with ends, in seconds since 1970; NaN "
            "before there is one.",
            registry=self._registry,
        )
        self.leading = Gauge(
            "llm_shield_leading",
            "Whether this replica is the one that writes (1), or stands by (0).",
            registry=self._registry,
        )
        self.loop_failures = Counter(
            "llm_shield_loop_failures",
            "Runs of a loop that failed, by loop. All are tried again: the API server may be away. "
            "Where it is not, the log has the reason.",
            ("loop",),
            registry=self._registry,
        )
        self.pods = Gauge(
            "llm_shield_pods",
            "Pods at the last scan, by config and state (injected, or outdated: injected with "
            "another plan than the config's present one). The leader has them.",
            ("config", "state"),
            registry=self._registry,
        )
        self.skipped_pods = Gauge(
            "llm_shield_skipped_pods",
            "Pods that asked for the sidecar and do not have it, at the last scan, by reason. The "
            "leader has them.",
            ("reason",),
            registry=self._registry,
        )

    def render(self) -> bytes:
        """All of them, as text."""
        return generate_latest(self._registry)
