"""Creating pods all the time, and noting what becomes of each."""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from http.client import HTTPException, HTTPSConnection
from typing import Any, Final, Self
from urllib.parse import urlsplit

import examples
from controlplane import ControlPlane
from support import INJECT, has_sidecar

SHOP: Final = "shop"
"""A namespace that is labelled in, with a config."""
LONE: Final = "lone"
"""One that is not labelled, with a config: pods ask for themselves."""
OTHER: Final = "other"
"""One that has nothing to do with the shield."""


@dataclass(frozen=True)
class Kind:
    """A sort of pod: where it is created, what it is, how often a second."""

    name: str
    namespace: str
    pod: Any
    asked: bool
    rate: float


KINDS: Final = (
    Kind("in by namespace", SHOP, examples.pod(), asked=True, rate=8),
    Kind("in by label", LONE, examples.pod(labels=INJECT), asked=True, rate=4),
    Kind(
        "opted out",
        SHOP,
        examples.pod(labels={"llm-shield.io/inject": "disabled"}),
        asked=False,
        rate=3,
    ),
    Kind("never asked", OTHER, examples.pod(), asked=False, rate=3),
)


class Outcome(StrEnum):
    """What became of a pod."""

    RIGHT = "right"
    REFUSED = "refused for the webhook's sake"
    BARE = "bare though it asked"
    MEDDLED = "changed though it did not ask"
    UNANSWERED = "not answered by the API server, or refused for reasons of its own"


@dataclass(frozen=True)
class Probe:
    """One pod that was tried; times are of the monotonic clock."""

    kind: Kind
    begin: float
    end: float
    outcome: Outcome
    detail: str


@dataclass
class _Tolerance:
    outcome: Outcome
    begin: float
    end: float = float("inf")

    def covers(self, probe: Probe) -> bool:
        """Whether the probe was under way while this was to be expected."""
        return (
            probe.outcome is self.outcome
            and probe.kind.asked
            and probe.begin <= self.end
            and probe.end >= self.begin
        )


@dataclass
class Prober:
    """Creates pods of each kind, from a thread each, and deletes them again."""

    control_plane: ControlPlane
    probes: list[Probe] = field(default_factory=list)
    _tolerances: list[_Tolerance] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        for kind in KINDS:
            thread = threading.Thread(target=self._probe_on, args=[kind], daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop, once the pods under way are answered."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_TIMEOUT + 1)

    @contextmanager
    def tolerating(self, outcome: Outcome, seconds: float = 0.0) -> Iterator[None]:
        """For pods that asked, this is as it must be: in the block, and `seconds` after it."""
        tolerance = _Tolerance(outcome, time.monotonic())
        self._tolerances.append(tolerance)
        yield
        tolerance.end = time.monotonic() + seconds

    def tolerate(self, outcome: Outcome, begin: float, end: float) -> None:
        """For pods that asked, this is as it must be in this time."""
        self._tolerances.append(_Tolerance(outcome, begin, end))

    def wrong(self, outcome: Outcome) -> list[Probe]:
        """The pods of this outcome that should have had another."""
        return [p for p in self.having(outcome) if not self._tolerated(p)]

    def as_expected(self) -> list[Probe]:
        """The pods that were not right, as they must not be while the fault lasts."""
        return [p for p in self.probes if p.outcome is not Outcome.RIGHT and self._tolerated(p)]

    def having(self, outcome: Outcome) -> list[Probe]:
        """The pods of this outcome."""
        return [probe for probe in self.probes if probe.outcome is outcome]

    def last_trouble(self) -> float:
        """When the last pod that was not right was done with; 0 where there was none."""
        return max((p.end for p in self.probes if p.outcome is not Outcome.RIGHT), default=0.0)

    def calm_since(self, moment: float, pods: int = 8) -> bool:
        """Whether of each kind so many pods in a row were right after that moment, to the last."""
        return all(
            len(found) >= pods and all(p.outcome is Outcome.RIGHT for p in found[-pods:])
            for found in (
                [p for p in self.probes if p.kind is kind and p.begin >= moment] for kind in KINDS
            )
        )

    def note(self, probe: Probe) -> None:
        """Count a pod that somebody else has tried."""
        self.probes.append(probe)

    def _tolerated(self, probe: Probe) -> bool:
        return any(tolerance.covers(probe) for tolerance in self._tolerances)

    def _probe_on(self, kind: Kind) -> None:
        client = PodClient(self.control_plane)
        upcoming = time.monotonic()
        while not self._stop.wait(max(0.0, upcoming - time.monotonic())):
            upcoming = max(upcoming + 1 / kind.rate, time.monotonic())
            self.note(client.probe(kind))


_TIMEOUT: Final = 8.0
"""Seconds for a pod; the API server waits 5 s for a webhook."""


class PodClient:
    """Creates pods as administrator, over a connection that it keeps."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.context = ssl.create_default_context(cafile=str(control_plane.ca_file))
        address = urlsplit(control_plane.url)
        self._connection = HTTPSConnection(
            address.hostname or "", address.port, timeout=_TIMEOUT, context=self.context
        )
        self.headers = {
            "Authorization": f"Bearer {_token(control_plane)}",
            "Content-Type": "application/json",
        }

    def merge(self, path: str, changes: Any) -> None:
        """Change an object by a merge patch."""
        kind = {"Content-Type": "application/merge-patch+json"}
        status, answer = self._request("PATCH", path, changes, kind)
        assert status == HTTPStatus.OK, answer

    def probe(self, kind: Kind) -> Probe:
        """Create a pod and delete it."""
        begin = time.monotonic()
        path = f"/api/v1/namespaces/{kind.namespace}/pods"
        try:
            status, answer = self._request("POST", path, kind.pod)
        except (OSError, HTTPException, ValueError) as error:
            self._connection.close()
            return Probe(kind, begin, time.monotonic(), Outcome.UNANSWERED, repr(error))
        outcome, detail = outcome_of(kind, status, answer)
        end = time.monotonic()
        if status == HTTPStatus.CREATED:
            with suppress(OSError, HTTPException, ValueError):
                self._request("DELETE", f"{path}/{answer['metadata']['name']}?gracePeriodSeconds=0")
        return Probe(kind, begin, end, outcome, detail)

    def _request(
        self, method: str, path: str, body: Any = None, headers: Any = None
    ) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body)
        try:
            self._connection.request(method, path, content, {**self.headers, **(headers or {})})
            response = self._connection.getresponse()
            return response.status, json.loads(response.read())
        except BaseException:
            self._connection.close()
            raise


def _token(control_plane: ControlPlane) -> str:
    kubeconfig = json.loads(control_plane.kubeconfig.read_text())
    return str(kubeconfig["users"][0]["user"]["token"])


def outcome_of(kind: Kind, status: int, answer: Any) -> tuple[Outcome, str]:
    """What became of the pod, and what there is to know about it."""
    if status == HTTPStatus.CREATED:
        detail = str(answer["metadata"].get("annotations", {}))
        if has_sidecar(answer) == kind.asked:
            return Outcome.RIGHT, ""
        return (Outcome.BARE if kind.asked else Outcome.MEDDLED), detail
    message = str(answer.get("message", answer))
    # The probes are valid pods: what is invalid about one came with a patch of ours.
    ours = (
        "calling webhook" in message
        or "admission webhook" in message
        or status == HTTPStatus.UNPROCESSABLE_ENTITY
    )
    return (Outcome.REFUSED if ours else Outcome.UNANSWERED), f"{status} {message}"
