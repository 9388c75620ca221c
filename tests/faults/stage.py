"""What a fault is tried on: a control plane, two replicas behind a Service, and a prober."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Self

import examples
from controlplane import ControlPlane
from faults.handshakes import Handshakes
from faults.prober import LONE, OTHER, SHOP, Outcome, Prober
from faults.service import Service
from localoperator import OperatorProcess, install
from support import (
    CONFIGS,
    INJECT,
    WebhookClient,
    apply,
    create,
    eventually,
    make_namespace,
    operations,
    ready_condition,
    wait_reason,
)

BASELINE: Final = 1.5
"""Seconds for which all must be well before a fault."""
PATIENCE: Final = 30.0
"""Seconds after which it is given up that all will ever be well again."""


@dataclass(frozen=True)
class Report:
    """What became of the pods, and how soon after the fault all was well: a row of the table."""

    tried: int
    refused: int
    bare: int
    meddled: int
    expected: int
    unanswered: int
    recovery: float
    remark: str
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Self:
        """From another process."""
        return cls(**{**found, "problems": tuple(found["problems"])})


class Stage:
    """A cluster in which all is well, with everything that a fault may want to break."""

    def __init__(self, control_plane: ControlPlane, service: Service, stack: ExitStack) -> None:
        self.control_plane = control_plane
        self.service = service
        self.prober = Prober(control_plane)
        self.replicas: list[OperatorProcess] = []
        self.environment: dict[str, str] = {}
        self.kubeconfig: Path | None = None
        self.remark = ""
        self._handshakes: Handshakes | None = None
        self._stack = stack
        self._logs: list[Path] = []
        self._generation = 0

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Self]:
        """A control plane with everything installed, and two namespaces that have configs."""
        with ExitStack() as stack:
            control_plane = stack.enter_context(ControlPlane.start())
            install(control_plane)
            for name, labels in ((SHOP, INJECT), (LONE, {}), (OTHER, {})):
                make_namespace(control_plane, name, labels)
            create(
                control_plane,
                f"/api/v1/namespaces/{SHOP}/secrets",
                {"metadata": {"name": "keys"}},
            )
            apply(
                control_plane,
                examples.config(namespace=SHOP),
                examples.config(namespace=LONE, secretName=None),
            )
            yield cls(control_plane, stack.enter_context(Service()), stack)

    def start_replicas(self, count: int = 2) -> list[OperatorProcess]:
        """Start replicas more; they become endpoints of the Service once they are ready."""
        started = [
            OperatorProcess(
                self.control_plane,
                webhook_url=self.service.url,
                kubeconfig=self.kubeconfig,
                environment=self.environment,
            )
            for _ in range(count)
        ]
        for replica in started:
            self._stack.callback(replica.kill)
            self._logs.append(replica.log)
            self.service.add(replica)
        self.replicas += started
        return started

    def begin(self) -> None:
        """Start both replicas and the prober, and wait until all is well."""
        self.start_replicas()
        self.wait_endpoints()
        for namespace in (SHOP, LONE):
            wait_reason(self.control_plane, namespace, "shield", "Accepted")
        self._stack.enter_context(self.prober)
        begin = time.monotonic()
        self.wait_well(begin, BASELINE)

    def wait_endpoints(self) -> None:
        """Wait until every replica that was not stopped is an endpoint."""
        for replica in self.replicas:
            replica.wait_ready()
        eventually(lambda: self.service.has(self.replicas))

    def kill(self, replica: OperatorProcess) -> None:
        """SIGKILL."""
        replica.kill()
        self.replicas.remove(replica)

    def wait_well(self, since: float, seconds: float = 1.0) -> None:
        """Wait until pods of each kind are right, one after another, for this time."""
        eventually(
            lambda: (
                self.prober.last_trouble() + seconds < time.monotonic()
                and self.prober.calm_since(max(since, self.prober.last_trouble()))
            ),
            PATIENCE,
        )

    @contextmanager
    def shaking_hands(self) -> Iterator[None]:
        """Open new connections to every replica meanwhile; each must be trusted."""
        with Handshakes(self.control_plane, self.replicas) as handshakes:
            self._handshakes = handshakes
            yield

    def finish(
        self, ended: float, *checks: Callable[[], object], healed: float | None = None
    ) -> Report:
        """Wait until all is well, and report.

        Args:
            ended: when the fault was over, by the monotonic clock.
            checks: what has to be true for all to be well, beside the prober's pods.
            healed: when all else was well, where that was seen before.
        """
        problems = []
        healed = ended if healed is None else healed
        for check in checks:
            try:
                eventually(lambda check=check: _holds(check), PATIENCE)  # type: ignore[misc]
            except AssertionError:
                problems.append(f"not so {PATIENCE:.0f} s after the fault: {check.__doc__}")
            healed = max(healed, time.monotonic())
        try:
            self.wait_well(ended)
        except AssertionError:
            problems.append(f"pods are not right {PATIENCE:.0f} s after the fault")
        if self._handshakes is not None:
            assert self._handshakes.tried > 10
            problems += [f"not trusted: {refused}" for refused in self._handshakes.refused[:5]]
        self.prober.stop()
        prober = self.prober
        meddled = prober.having(Outcome.MEDDLED)
        refused, bare = prober.wrong(Outcome.REFUSED), prober.wrong(Outcome.BARE)
        problems += [
            f"{probe.begin - ended:+.2f} s: {probe.kind.name}: {probe.outcome}: {probe.detail}"
            for probe in (*refused[:5], *bare[:5], *meddled[:5])
        ]
        return Report(
            tried=len(prober.probes),
            refused=len(refused),
            bare=len(bare),
            meddled=len(meddled),
            expected=len(prober.as_expected()),
            unanswered=len(prober.having(Outcome.UNANSWERED)),
            recovery=max(healed, prober.last_trouble()) - ended,
            remark=self.remark,
            problems=tuple(problems),
        )

    def logs(self, lines: int = 60) -> str:
        """The end of each replica's log."""
        parts = []
        for log in self._logs:
            text = log.read_text(encoding="utf-8", errors="replace").splitlines()
            parts.append("\n".join((f"--- {log.name}", *text[-lines:])))
        return "\n".join(parts)

    # --- Whether the replicas see what goes on --------------------------------------------------

    def change_config(self) -> Callable[[], bool]:
        """Change the config of a namespace; what comes back tells whether all follow it."""
        self._generation += 1
        value = str(self._generation)
        spec = {"env": [{"name": "ROUND", "value": value}]}
        path = f"{CONFIGS.format(SHOP)}/shield"
        status, answer = self.control_plane.request("PATCH", path, {"spec": spec})
        assert status == HTTPStatus.OK, answer

        def followed() -> bool:
            """every replica injects by the changed config, and its status is up to date"""
            return (
                all(
                    value in self.env_of(replica, SHOP).get("ROUND", "")
                    for replica in self.replicas
                )
                and ready_condition(self.control_plane, SHOP, "shield") is not None
            )

        return followed

    def env_of(self, replica: OperatorProcess, namespace: str) -> dict[str, str]:
        """The sidecar's variables in what this replica answers now; none where it skips."""
        response = WebhookClient(self.control_plane, replica.webhook_port).review(
            namespace, examples.pod()
        )
        containers = [
            operation["value"]
            for operation in operations(response)
            if operation["path"].startswith("/spec/initContainers")
        ]
        flat = [c for value in containers for c in (value if isinstance(value, list) else [value])]
        return {
            variable["name"]: variable.get("value", "")
            for container in flat
            for variable in container.get("env", [])
        }


def _holds(check: Callable[[], object]) -> bool:
    try:
        return bool(check())
    except (OSError, AssertionError, KeyError, TypeError):
        return False
