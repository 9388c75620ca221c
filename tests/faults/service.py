"""A Service in front of replicas that are processes: endpoints are those that are ready."""

import asyncio
import contextlib
import random
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from localoperator import OperatorProcess
from relay import Relay

_PERIOD: Final = 0.5
_FAILURES: Final = 2
"""Of the readiness probe, after which a replica gets no more connections: after a second or so."""
_UNTIL_GONE: Final = 3.0
"""Seconds for which a replica that vanished is still sent connections: what it takes a cluster to
notice (the kubelet looks at its containers once a second) and to tell every node."""
_PROBE_TIMEOUT: Final = 2.0


class _Health(Enum):
    READY = auto()
    NOT_READY = auto()
    GONE = auto()


class Service(Relay):
    """What kube-proxy and the endpoints' controller do for a Deployment's pods.

    A connection goes to one of the endpoints, whether that answers or not. Replicas become and
    cease to be endpoints by what ``/readyz`` says. Connections that are established go on.
    """

    def __init__(self) -> None:
        super().__init__()
        self._watchers: list[asyncio.Future[None]] = []

    @property
    def url(self) -> str:
        """What replicas announce as their address."""
        return f"https://127.0.0.1:{self.port}"

    def add(self, replica: OperatorProcess) -> None:
        """Look after this replica from now on, for as long as the Service is there."""
        asyncio.run_coroutine_threadsafe(
            self._watch(replica.webhook_port, replica.health_port), self._loop
        )

    def has(self, replicas: Iterable[OperatorProcess]) -> bool:
        """Whether each of these is an endpoint."""
        return {replica.webhook_port for replica in replicas} <= set(self._backends)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        endpoints = self._backends
        if not endpoints:
            raise ConnectionRefusedError
        return await asyncio.open_connection("127.0.0.1", random.choice(endpoints))  # noqa: S311

    async def _watch(self, port: int, health_port: int) -> None:
        loop = asyncio.get_running_loop()
        failures, gone_since = 0, None
        while True:
            match await _health(health_port):
                case _Health.READY:
                    failures, gone_since = 0, None
                    self._include(port)
                case _Health.NOT_READY:
                    failures += 1
                    if failures >= _FAILURES:
                        self._exclude(port)
                case _Health.GONE:
                    gone_since = gone_since or loop.time()
                    if loop.time() - gone_since >= _UNTIL_GONE - _PERIOD:
                        self._exclude(port)
            await asyncio.sleep(_PERIOD)

    def _include(self, port: int) -> None:
        if port not in self._backends:
            self._backends = (*self._backends, port)

    def _exclude(self, port: int) -> None:
        self._backends = tuple(one for one in self._backends if one != port)


async def _health(port: int) -> _Health:
    """What a kubelet's readiness probe finds there."""
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: replica\r\nConnection: close\r\n\r\n")
                status_line = await reader.readline()
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except ConnectionRefusedError:
        return _Health.GONE
    except (OSError, TimeoutError):
        return _Health.NOT_READY
    return _Health.READY if b" 200 " in status_line else _Health.NOT_READY
