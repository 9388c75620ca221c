"""Counting the injected pods, so that each config's status can tell how many are outdated."""

from shield_operator.cluster import Cluster
from shield_operator.drift import SELECTORS, Tally
from shield_operator.metrics import Metrics
from shield_operator.reconciler import Reconciler
from shield_operator.state import State


class Scanner:
    """Lists the pods that carry an outcome, page by page, and keeps the numbers only."""

    def __init__(
        self, cluster: Cluster, state: State, reconciler: Reconciler, metrics: Metrics
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._reconciler = reconciler
        self._metrics = metrics

    async def scan(self) -> None:
        """Count anew, and have the statuses written whose pods are others than before.

        Raises:
            ClusterError: where the API server does not let us; the last numbers stay.
        """
        if not self._state.listed:
            return
        tally = Tally(self._state.configs)
        for selector in SELECTORS:
            async for page in self._cluster.unfinished_pods(selector):
                tally.add(page)
        before, self._state.plans = self._state.plans, tally.plans
        if before is None:
            self._reconciler.enqueue_counted(entry.ref for entry in self._state.configs)
        else:
            refs = before.keys() | tally.plans.keys()
            self._reconciler.enqueue_counted(
                ref for ref in refs if before.get(ref) != tally.plans.get(ref)
            )
        self._show(tally)

    def forget(self) -> None:
        """Another replica counts from now on."""
        self._state.plans = None
        self._metrics.pods.show({})
        self._metrics.skipped_pods.show({})

    def _show(self, tally: Tally) -> None:
        numbers: dict[tuple[str, ...], float] = {}
        for config, counts in tally.counts().items():
            numbers[config, "injected"] = counts.injected
            if counts.outdated is not None:
                numbers[config, "outdated"] = counts.outdated
        self._metrics.pods.show(numbers)
        skipped: dict[tuple[str, ...], float] = {(k,): n for k, n in tally.skipped.items()}
        self._metrics.skipped_pods.show(skipped)
