"""Everything that runs: Kopf's registrations, and the loops beside them. A table of contents."""

import asyncio
import ipaddress
import itertools
import logging
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Final
from urllib.parse import urlsplit

import kopf

from shield_operator import admission, names
from shield_operator.admission import AdmissionServer
from shield_operator.cluster import Cluster, ClusterError
from shield_operator.decision import one_line
from shield_operator.health import serve_health
from shield_operator.metrics import Metrics
from shield_operator.model import Json
from shield_operator.periodic import Periodic
from shield_operator.publishing import Publisher
from shield_operator.reconciler import Reconciler
from shield_operator.rotation import SharedCertificate
from shield_operator.settings import Settings
from shield_operator.state import State

logger = logging.getLogger(__name__)

CERTIFICATE_INTERVAL: Final = 5.0
PUBLISHING_INTERVAL: Final = 2.0
RELIST_INTERVAL: Final = 60.0
SECRETS_INTERVAL: Final = 60.0
VERSION_INTERVAL: Final = 600.0
"""Seconds between two looks: at the shared Secret, the webhook configuration, all configs (Kopf
misses deletions while its watch reconnects), the Secrets that they name, the cluster's version."""

CONNECT_INTERVAL: Final = 5.0
"""Seconds between two tries to reach the API server at the start."""

DRAIN: Final = 10.0
"""Seconds to go on serving after SIGTERM, until no API server sends anything here any more."""

KOPF_BACKOFF: Final = 1.0
LONGEST_KOPF_BACKOFF: Final = 30.0
"""Seconds before Kopf is started again after it has given up."""

WATCH_TIMEOUT: Final = 240
"""Seconds after which a watch is begun anew, so that a silently dead one does not last."""


class _Backoffs:
    """Seconds between Kopf's tries of a request, without end: watches outlast the API server."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((1, 2), itertools.repeat(5))


async def run(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Raises:
        NoCredentials: where there is no way to reach an API server.
        OSError: where one of the ports cannot be listened on.
    """
    async with Cluster.connect() as cluster:
        await Operator(settings, cluster).run()


class Operator:
    """One replica: its parts, wired together."""

    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._stop = asyncio.Event()
        self._metrics = Metrics()
        self._state = State(settings)
        self._certificate = SharedCertificate(cluster, settings)
        self._publisher = Publisher(cluster, settings, self._state)
        self._reconciler = Reconciler(cluster, self._state)
        self._server = AdmissionServer(
            self._state, self._metrics, self._certificate, host=_listening_host(settings)
        )
        self._publishing = Periodic(self._publish, PUBLISHING_INTERVAL)
        self._reconciling = Periodic(self._reconciler.reconcile, SECRETS_INTERVAL)

    # --- What Kopf calls us for -------------------------------------------------------------------

    def _registry(self) -> kopf.OperatorRegistry:
        """No timer, daemon or deletion handler: their finalizers would outlive the operator."""
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(**asdict(await self._cluster.connection()))

        @kopf.on.event(names.API_GROUP, names.API_VERSION, names.PLURAL, registry=registry)
        async def config_event(type: str | None, body: kopf.Body, **_: object) -> None:  # noqa: A002
            self._config_event(deleted=type == "DELETED", resource=dict(body))

        @kopf.on.mutate("v1", "pods", id="inject", operations=["CREATE"], registry=registry)
        async def inject(patch: kopf.Patch, warnings: list[str], **_: object) -> None:
            admission.inject(self._state, self._metrics, patch, warnings)

        return registry

    def _kopf_settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.admission.server = self._server
        settings.admission.managed = None  # docs/adr/0001-own-webhook-configuration.md
        settings.posting.enabled = False
        settings.watching.server_timeout = WATCH_TIMEOUT
        settings.watching.client_timeout = WATCH_TIMEOUT + 10
        settings.networking.request_timeout = 30
        settings.networking.connect_timeout = 10
        settings.networking.error_backoffs = _Backoffs()
        settings.process.ultimate_exiting_timeout = None  # it would kill us after a restart of Kopf
        return settings

    # --- What is repeated -------------------------------------------------------------------------

    def _loops(self) -> tuple[Periodic, ...]:
        return (
            self._publishing,
            self._reconciling,
            Periodic(self._refresh_certificate, CERTIFICATE_INTERVAL),
            Periodic(self._relist, RELIST_INTERVAL),
            Periodic(self._check_secrets, SECRETS_INTERVAL),
            Periodic(self._read_version, VERSION_INTERVAL),
        )

    async def _refresh_certificate(self) -> None:
        if await self._certificate.refresh():
            self._publishing.wake()

    async def _publish(self) -> None:
        if self._certificate.authority is not None:
            await self._publisher.publish(self._certificate.authority)

    async def _relist(self) -> None:
        for ref in await self._state.relist(self._cluster.list_configs):
            self._reconciler.enqueue(ref)
        self._reconciling.wake()

    async def _check_secrets(self) -> None:
        self._reconciler.enqueue_all()
        self._reconciling.wake()

    async def _read_version(self) -> None:
        if self._state.version_read(await self._cluster.version()):
            await self._check_secrets()

    def _config_event(self, *, deleted: bool, resource: Json) -> None:
        if deleted:
            self._state.config_deleted(resource)
        else:
            self._reconciler.enqueue(self._state.config_changed(resource))
            self._reconciling.wake()

    # --- From start to stop -----------------------------------------------------------------------

    async def run(self) -> None:
        """Run until a signal ends it; the health port answers from the beginning."""
        self._take_signals()
        host = _listening_host(self._settings)
        port = self._settings.health_port
        async with serve_health(host, port, self._state.not_ready, self._metrics):
            if await self._reach_api_server():
                await self._serve()

    async def _reach_api_server(self) -> bool:
        """Wait for the API server; False where a signal came first."""
        while not self._stop.is_set():
            try:
                await self._read_version()
            except ClusterError as error:
                logger.warning("%s; trying again in %.0f s", error, CONNECT_INTERVAL)
            else:
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), CONNECT_INTERVAL)
        return False

    async def _serve(self) -> None:
        """Everything at once, until a signal says stop; Kopf goes first, the listener last."""
        async with asyncio.TaskGroup() as group:
            coroutines = [self._server.serve(), *(loop.run() for loop in self._loops())]
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
            await self._supervise_kopf()
            for task in tasks:
                task.cancel()

    async def _supervise_kopf(self) -> None:
        """Run Kopf, and again where it gives up: a lost permission or token must not end us.

        Meanwhile admissions are answered, and the list of configs is read once a minute.
        """
        backoff = KOPF_BACKOFF
        now = asyncio.get_running_loop().time
        while not self._stop.is_set():
            started = now()
            try:
                await self._run_kopf()
            except Exception as error:  # noqa: BLE001  # whatever it is, the next try may do
                if now() - started > LONGEST_KOPF_BACKOFF:
                    backoff = KOPF_BACKOFF
                sentence = one_line(str(error) or repr(error))
                logger.error(  # noqa: TRY400  # Kopf has logged its traceback
                    "Kopf has given up: %s; starting it again in %.0f s", sentence, backoff
                )
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), backoff)
                backoff = min(2 * backoff, LONGEST_KOPF_BACKOFF)

    async def _run_kopf(self) -> None:
        """Run Kopf until it is stopped.

        Raises:
            Exception: what made it give up.
        """
        tasks = await kopf.spawn_tasks(
            registry=self._registry(),
            settings=self._kopf_settings(),
            standalone=True,
            clusterwide=True,
            stop_flag=self._stop,
        )
        self._take_signals()  # back from Kopf, which would close everything at once
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Not `kopf.run_tasks`: that ends all other tasks of the process too, ours included.
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in done:
            task.result()

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._drain)
        loop.add_signal_handler(signal.SIGINT, self._stop.set)

    def _drain(self) -> None:
        """Tell everybody that this replica goes, serve until they know, then stop."""
        if not self._state.serving:
            self._stop.set()
            return
        logger.info("stopping: serving for %.0f s more", DRAIN)
        self._state.draining = True
        asyncio.get_running_loop().call_later(DRAIN, self._stop.set)


def _listening_host(settings: Settings) -> str | None:
    """Every interface, as a pod must; loopback only, where that is how we are called."""
    host = urlsplit(settings.webhook_url or "").hostname
    with suppress(ValueError):
        if host and ipaddress.ip_address(host).is_loopback:
            return host
    return None
