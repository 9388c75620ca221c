"""What is counted; served at ``/metrics`` in Prometheus' text format."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, generate_latest


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

    def render(self) -> bytes:
        """All of them, as text."""
        return generate_latest(self._registry)
