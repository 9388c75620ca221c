"""Keeping the webhook configuration in the cluster as it should be."""

import logging
import time
from collections.abc import Callable
from typing import Final

from shield_operator import names, raw
from shield_operator.certificate_source import CertificateSource
from shield_operator.cluster import Cluster, Forbidden, NotFound
from shield_operator.contention import RewriteLimit
from shield_operator.model import Json
from shield_operator.settings import Settings
from shield_operator.state import State
from shield_operator.webhook import (
    ca_bundles,
    carries,
    configuration,
    differs,
    foreign_match_conditions,
    is_whole,
    with_authorities,
)

logger = logging.getLogger(__name__)

PATIENCE: Final = 10.0
"""Seconds after which a replica that does not lead adds the authorities that it needs itself."""


class Publisher:
    """Applies our ``MutatingWebhookConfiguration`` when it is absent or not as it should be.

    Args:
        cluster: the API server.
        settings: what makes the configuration what it should be.
        state: is told when the configuration carries our authority.
        certificate: what has to be trusted; is told what the configuration carries.
        leads: whether this replica may write, asked before each write.
        now: seconds from anywhere.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        state: State,
        certificate: CertificateSource,
        leads: Callable[[], bool],
        *,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._state = state
        self._certificate = certificate
        self._leads = leads
        self._limit = RewriteLimit()
        self._now = now
        self._lacking_since: float | None = None
        self._owner_uid = ""
        self._told: frozenset[str] = frozenset()

    async def publish(self) -> None:
        """Compare the live object with ours, and write only where they differ.

        Raises:
            ClusterError: where the API server does not let us.
        """
        live = await self._live()
        self._certificate.saw(ca_bundles(live))
        authorities = self._certificate.authorities
        if authorities is None:
            return
        wanted = configuration(self._settings, authorities, self._owner_uid)
        odd = []
        if live is None or differs(live, wanted):
            self._owner_uid = await self._owner()
            wanted = configuration(self._settings, authorities, self._owner_uid)
        if (live is None or differs(live, wanted)) and self._leads():
            # Where a webhook is gone pods start bare, and nobody has written fields to fight about.
            was_whole = is_whole(live)
            if not was_whole or self._limit.allows(names.OPERATOR, wanted):
                live = await self._cluster.apply_webhook_configuration(_instead_of(live, wanted))
                self._certificate.saw(ca_bundles(live))
                if was_whole:
                    self._limit.note(names.OPERATOR, wanted)
                logger.info("applied the webhook configuration")
            else:
                odd.append(
                    "somebody else keeps changing the webhook configuration: "
                    "it is set right once a minute only"
                )
        odd += [
            f"match condition {condition} of webhook {webhook} is not the operator's: "
            "pods that it leaves out start without the shield"
            for webhook, condition in foreign_match_conditions(live, wanted)
        ]
        for sentence in odd:
            if sentence not in self._told:
                logger.warning(sentence)
        self._told = frozenset(odd)
        self._note(live)

    async def look(self) -> None:
        """See what the live object carries, whoever wrote it, and wait for what is needed.

        A leader with another source of certificates, as in a rollout, does not know what we need.
        So the one write that others than the leader do is to add trust, where nobody else has.

        Raises:
            ClusterError: where the API server does not let us.
        """
        live = await self._live()
        self._certificate.saw(ca_bundles(live))
        if self._waited_long() and (patch := with_authorities(live, self._certificate.lacking)):
            live = await self._cluster.add_trust(patch)
            self._certificate.saw(ca_bundles(live))
            self._lacking_since = None
            logger.info("added our authority to the webhook configuration, beside the leader's")
        self._note(live)

    def _waited_long(self) -> bool:
        if not self._certificate.lacking or self._leads():
            self._lacking_since = None
            return False
        if self._lacking_since is None:
            self._lacking_since = self._now()
        return self._now() - self._lacking_since >= PATIENCE

    def _note(self, live: Json) -> None:
        needs = self._certificate.needs
        if needs is not None and carries(live, needs):
            self._state.published = True

    async def _owner(self) -> str:
        """Our ClusterRole's uid: looked at before every write.

        Where the role is gone the operator is being uninstalled, and a configuration written now
        would be left behind, refusing pods for ever.
        """
        try:
            return await self._cluster.cluster_role_uid()
        except (NotFound, Forbidden) as error:
            raise type(error)(f"the webhook configuration is not written: {error}") from error

    async def _live(self) -> Json:
        try:
            return await self._cluster.read_webhook_configuration()
        except NotFound:
            return None


def _instead_of(live: Json, wanted: Json) -> Json:
    """What to apply: refused, and tried again, where the live object is another one by now.

    What another replica publishes in between must not get lost: it may serve with it already.
    https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
    """
    version = raw.mapping(live, "metadata").get("resourceVersion")
    metadata = {**wanted["metadata"], **({"resourceVersion": version} if version else {})}
    return {**wanted, "metadata": metadata}
