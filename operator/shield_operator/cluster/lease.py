"""A Lease: the client library's lock, with a time limit on every call, our errors, and UTC.

https://kubernetes.io/docs/concepts/architecture/leases/

The library's own runner is not used: it ends with the first connection that fails, waits without
end for a frozen API server, and writes local time as UTC.
"""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, cast

from kubernetes.aio.client import ApiClient, V1Lease
from kubernetes.aio.client.api_response import ApiResponse
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from shield_operator.cluster.errors import NotFound, Refused, translated
from shield_operator.metrics import ApiRequest, Metrics

_TIMEOUT: Final = 3.0
"""Seconds for one call; a holder must have time for a second try."""
_TIME: Final = "%Y-%m-%d %H:%M:%S.%f"
"""How the library wants to be told a time, which it takes for UTC."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What a Lease says. Two that are equal are the same: each renewal changes `renewed`."""

    holder: str | None
    duration: float
    """Seconds after its last renewal that it is the holder's."""
    acquired: str
    renewed: str


class Lease:
    """One Lease object, to be held as one identity; who may hold it is for the caller to say."""

    def __init__(
        self, client: ApiClient, metrics: Metrics, namespace: str, name: str, identity: str
    ) -> None:
        self.identity = identity
        self._where = (name, namespace)
        self._lock = LeaseLock(name, namespace, identity, client)
        # LeaseLock logs an ApiException with a traceback and returns False; ours pass through it.
        self._api = _Translating(self._lock.api_instance, f"Lease {namespace}/{name}", metrics)
        api: Any = self._api
        self._lock.api_instance = api

    async def read(self) -> LeaseRecord | None:
        """What it says now; None where there is none.

        Raises:
            ClusterError: where the API server does not let us.
        """
        try:
            _, record = await self._lock.get(*self._where)
        except NotFound:
            return None
        record = cast("LeaderElectionRecord", record)  # or an ApiException, which never gets there
        return LeaseRecord(
            record.holder_identity,
            float(record.lease_duration or 0),
            record.acquire_time or "",
            record.renew_time or "",
        )

    async def create(self, duration: float, now: datetime) -> None:
        """Create it, held by us.

        Raises:
            Conflict: where another replica was first.
        """
        await self._lock.create(*self._where, self._record(duration, _text(now), now))

    async def take(self, duration: float, now: datetime) -> None:
        """Make it ours, as it was when it was read last.

        Raises:
            Conflict: where it has been changed since.
        """
        await self._update(self._record(duration, _text(now), now))

    async def renew(self, last: LeaseRecord, duration: float, now: datetime) -> None:
        """Keep it, as it was when it was read or written last.

        Raises:
            Conflict: where it has been changed since.
        """
        await self._update(self._record(duration, last.acquired or _text(now), now))

    async def release(self) -> None:
        """Leave it to whoever wants it, as it was when it was read last.

        Raises:
            Conflict: where it has been changed since.
        """
        lease = self._lock.lease_reference
        if lease is not None and lease.spec is not None:
            lease.spec.holder_identity = ""  # the library's `update` wants a holder
            await self._lock.api_instance.replace_namespaced_lease(*self._where, lease)

    async def _update(self, record: LeaderElectionRecord) -> None:
        await self._lock.update(*self._where, record)
        self._lock.lease_reference = self._api.written  # the library's lock leaves its version out

    def _record(self, duration: float, acquired: str, now: datetime) -> LeaderElectionRecord:
        return LeaderElectionRecord(self.identity, str(int(duration)), acquired, _text(now))


def _text(now: datetime) -> str:
    """The time for the library, in UTC.

    Never without a fraction: it would leave a zero out, and the API server would not read the rest.
    """
    now = now.astimezone(UTC)
    return now.replace(microsecond=now.microsecond or 1).strftime(_TIME)


async def _answer(
    request: ApiRequest, call: Awaitable[ApiResponse[V1Lease]]
) -> ApiResponse[V1Lease]:
    """The answer to a call, its status noted whatever it is."""
    try:
        response = await call
    except ApiException as error:
        request.status = error.status
        raise
    request.status = response.status_code
    return response


class _Translating:
    """The three calls of ``CoordinationV1Api`` that LeaseLock makes."""

    def __init__(self, api: Any, described: str, metrics: Metrics) -> None:  # noqa: ANN401
        self._api = api
        self._described = described
        self._metrics = metrics
        self.written: V1Lease | None = None

    async def read_namespaced_lease(self, name: str, namespace: str) -> V1Lease:
        call = self._api.read_namespaced_lease_with_http_info(name, namespace)
        return await self._call("GET", "read", call)

    async def create_namespaced_lease(self, namespace: str, body: V1Lease, **_: object) -> V1Lease:
        call = self._api.create_namespaced_lease_with_http_info(namespace, body)
        return await self._call("POST", "create", call)

    async def replace_namespaced_lease(self, name: str, namespace: str, body: V1Lease) -> V1Lease:
        call = self._api.replace_namespaced_lease_with_http_info(name, namespace, body)
        self.written = await self._call("PUT", "write", call)
        return self.written

    async def _call(self, method: str, verb: str, call: Awaitable[ApiResponse[V1Lease]]) -> V1Lease:
        what = f"{verb} {self._described}"
        try:
            with self._metrics.api_request(method, "leases") as request, translated(what, _TIMEOUT):
                async with asyncio.timeout(_TIMEOUT):
                    response = await _answer(request, call)
                return response.data
        except ValueError as error:  # the library's models are strict
            raise Refused(f"cannot {what}: the answer is not a Lease") from error
