"""Everything that runs: Kopf's registrations, and the loops beside them. A table of contents."""

import asyncio
import gc
import logging
import math
import signal
import time
from contextlib import suppress
from dataclasses import asdict
from typing import Final

import kopf

from shield_operator import admission, names
from shield_operator.admission import AdmissionServer
from shield_operator.authentication import Authentication
from shield_operator.certificate_files import CertificateFiles
from shield_operator.certificate_source import CertificateSource
from shield_operator.cluster import Cluster, ClusterError, in_a_pod
from shield_operator.health import serve_health
from shield_operator.hearing import Hearing
from shield_operator.kopf_runner import KopfRunner
from shield_operator.leader import Leader, identity
from shield_operator.listening import listening_host
from shield_operator.lookup import SecretLookup
from shield_operator.metrics import Metrics
from shield_operator.model import ConfigRef, Json
from shield_operator.outcomes import Outcomes
from shield_operator.periodic import Periodic
from shield_operator.publishing import Publisher
from shield_operator.reconciler import Reconciler
from shield_operator.recording import Recorder
from shield_operator.rotation import SharedCertificate
from shield_operator.scanning import Scanner
from shield_operator.settings import Settings, SettingsError
from shield_operator.state import State, config_ref

logger = logging.getLogger(__name__)

# Seconds between two looks:
CERTIFICATE_INTERVAL: Final = 5.0  # at the shared Secret, or the files
PUBLISHING_INTERVAL: Final = 2.0  # at the webhook configuration
RELIST_INTERVAL: Final = 60.0  # at all configs; Kopf misses deletions while a watch reconnects
RELIST_QUIET: Final = 1.0  # after what Kopf has listed, which comes config by config
SECRETS_INTERVAL: Final = 60.0  # at the Secrets that they name
VERSION_INTERVAL: Final = 600.0  # at the cluster's version
CONNECT_INTERVAL: Final = 5.0  # for the API server, at the start

DRAIN: Final = 10.0
"""Seconds to go on serving after SIGTERM, until no API server sends anything here any more."""


async def run(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Raises:
        NoCredentials: where there is no way to reach an API server.
        SettingsError: where the API server could not reach us, or a file of the settings is no use.
        CannotListenError: where one of the ports is taken.
    """
    if settings.webhook_url is None and not in_a_pod():
        problem = (
            "WEBHOOK_URL is not set, and outside of a pod no Service leads here: set it to "
            "https://ADDRESS:9443, with an address of this machine that the API server reaches"
        )
        raise SettingsError((problem,))
    metrics = Metrics()
    async with Cluster.connect(metrics) as cluster:
        await Operator(settings, cluster, metrics).run()


def _certificate_source(cluster: Cluster, settings: Settings) -> CertificateSource:
    """Files, where the settings name them; else the Secret that all replicas share."""
    if settings.tls_cert_file is not None:
        return CertificateFiles(settings)
    return SharedCertificate(cluster, settings)


class Operator:
    """One replica: its parts, wired together."""

    def __init__(self, settings: Settings, cluster: Cluster, metrics: Metrics) -> None:
        self._cluster = cluster
        self._host = listening_host(settings)
        self._health_port = settings.health_port
        self._stop = asyncio.Event()
        self._metrics = metrics
        self._state = State(settings, Hearing(time.monotonic, patience=6 * RELIST_INTERVAL))
        self._certificate = _certificate_source(cluster, settings)
        metrics.certificate_not_after.set_function(self._certificate_not_after)
        metrics.show_configs(self._state.number_of)
        metrics.watch_age.set_function(self._state.watch.age)
        self._lookup = SecretLookup(cluster.secret_exists)
        itself = identity()
        lease = cluster.lease(settings.namespace, names.OPERATOR, itself)
        self._leader = Leader(lease, metrics)
        self._publisher = Publisher(
            cluster, settings, self._state, self._certificate, self._leader.leads
        )
        # Two, so that pods, which anybody may make, leave the configs theirs. A config may be told
        # the same again: between the two its status has said something else.
        self._pod_events = Recorder("pod", cluster.create_event, metrics, itself)
        self._config_events = Recorder(
            "config", cluster.create_event, metrics, itself, repeated_after=0.0
        )
        self._reconciler = Reconciler(
            cluster, self._state, self._leader.leads, record=self._config_events.record
        )
        self._scanner = Scanner(cluster, self._state, self._reconciler, metrics)
        self._authentication = Authentication(settings)
        self._server = AdmissionServer(
            self._state,
            self._metrics,
            self._certificate,
            self._authentication,
            host=self._host,
            told=Outcomes(self._pod_events.record).note,
        )
        self._kopf = KopfRunner(self._registry, self._server, started=self._kopf_started)
        self._relisting = Periodic(
            "configs", self._relist, RELIST_INTERVAL, metrics, needed=lambda: not self._state.listed
        )
        self._refreshing = Periodic(
            "certificate",
            self._refresh_certificate,
            CERTIFICATE_INTERVAL,
            metrics,
            recovered=self._relisting.wake,
            needed=lambda: not self._state.serving,
        )
        self._publishing = Periodic("publishing", self._publish, PUBLISHING_INTERVAL, metrics)
        self._reconciling = Periodic(
            "statuses", self._reconciler.reconcile, SECRETS_INTERVAL, metrics
        )
        self._looking = Periodic(
            "looking", self._look_whether_published, PUBLISHING_INTERVAL, metrics
        )
        self._scanning = Periodic("pods", self._scan, settings.drift_scan_interval, metrics)

    # --- What Kopf calls us for -------------------------------------------------------------------

    def _registry(self) -> kopf.OperatorRegistry:
        """No timer, daemon or deletion handler: their finalizers would outlive the operator."""
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def login(**_: object) -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(**asdict(await self._cluster.connection()))

        @kopf.on.event(names.API_GROUP, names.API_VERSION, names.PLURAL, registry=registry)
        async def config_event(type: str | None, body: kopf.Body, **_: object) -> None:  # noqa: A002
            if type is None:  # Kopf has listed, maybe not for the first time: see `_relist`
                self._relisting.wake_after(RELIST_QUIET)
            self._config_event(deleted=type == "DELETED", resource=dict(body))

        @kopf.on.mutate("v1", "pods", id=names.HANDLER, operations=["CREATE"], registry=registry)
        async def inject(warnings: list[str], **_: object) -> None:
            await admission.inject(self._state, self._lookup, warnings)

        return registry

    # --- What is repeated -------------------------------------------------------------------------

    def _loops(self) -> tuple[Periodic, ...]:
        """What every replica does. The certificate's writes, to the Secret; looking adds trust."""
        return (
            self._refreshing,
            Periodic(
                "authentication",
                self._authentication.refresh,
                CERTIFICATE_INTERVAL,
                self._metrics,
            ),
            self._relisting,
            Periodic("version", self._read_version, VERSION_INTERVAL, self._metrics),
            self._looking,
        )

    def _leaders_loops(self) -> tuple[Periodic, ...]:
        """What the leader does besides: the webhook configuration, statuses, counting pods."""
        return (
            self._publishing,
            self._reconciling,
            Periodic("secrets", self._check_secrets, SECRETS_INTERVAL, self._metrics),
            self._scanning,
        )

    async def _lead(self) -> None:
        """Do the leader's part, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for loop in self._leaders_loops():
                    group.create_task(loop.run())
        finally:
            self._scanner.forget()

    async def _refresh_certificate(self) -> None:
        if await self._certificate.refresh():
            self._publishing.wake()
            self._looking.wake()

    def _certificate_not_after(self) -> float:
        good = self._certificate.validity
        return good.not_after.timestamp() if good else math.nan

    async def _publish(self) -> None:
        await self._publisher.publish()

    async def _look_whether_published(self) -> None:
        await self._publisher.look()

    async def _relist(self) -> None:
        """List all configs: once a minute, after an outage, and whenever Kopf does.

        Kopf, when it lost its place in the watch, does not ask what was deleted meanwhile.
        """
        is_first = not self._state.listed
        for ref in await self._state.relist(self._cluster.config_pages()):
            self._enqueue(ref)
        if is_first:
            self._scanning.wake()
            # What is there by now stays: a collection that goes through all configs would hold up
            # the admissions of its time.
            gc.collect()
            gc.freeze()

    async def _check_secrets(self) -> None:
        self._reconciler.enqueue_all()
        self._reconciling.wake()

    async def _scan(self) -> None:
        await self._scanner.scan()
        self._reconciling.wake()

    async def _read_version(self) -> None:
        if self._state.version_read(await self._cluster.version()):
            await self._check_secrets()

    def _config_event(self, *, deleted: bool, resource: Json) -> None:
        if deleted:
            self._state.config_deleted(resource)
        elif not self._state.config_changed(resource):
            return
        self._enqueue(config_ref(resource))

    def _enqueue(self, ref: ConfigRef) -> None:
        """Have a status looked at. Who does not lead will look at all of them once it does."""
        if self._leader.leads():
            self._reconciler.enqueue(ref)
            self._reconciling.wake()

    # --- From start to stop -----------------------------------------------------------------------

    async def run(self) -> None:
        """Run until a signal ends it; the health port answers from the beginning."""
        self._take_signals()
        async with serve_health(
            self._host,
            self._health_port,
            self._metrics,
            not_alive=self._state.not_alive,
            not_ready=self._state.not_ready,
        ):
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
                async with asyncio.timeout(CONNECT_INTERVAL):
                    await self._stop.wait()
        return False

    async def _serve(self) -> None:
        """Everything at once, until a signal says stop; Kopf goes first, the listener last."""
        async with asyncio.TaskGroup() as group:
            coroutines = [self._server.serve(), self._leader.run(self._lead)]
            coroutines += [loop.run() for loop in self._loops()]
            coroutines += [self._pod_events.run(), self._config_events.run()]
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
            await self._kopf.run(self._stop)
            for task in tasks:
                task.cancel()

    def _kopf_started(self) -> None:
        self._state.watch.begin()
        self._take_signals()

    def _take_signals(self) -> None:
        """Make the signals ours; Kopf, which takes them, would close everything at once."""
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
        self._leader.resign()
        asyncio.get_running_loop().call_later(DRAIN, self._stop.set)
