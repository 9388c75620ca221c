"""Keeping the webhook configuration in the cluster as it should be."""

import logging
from collections.abc import Callable

from shield_operator import names
from shield_operator.cluster import Cluster, Forbidden, NotFound
from shield_operator.contention import RewriteLimit
from shield_operator.model import Json
from shield_operator.settings import Settings
from shield_operator.state import State
from shield_operator.webhook import carries, configuration, differs, foreign_match_conditions

logger = logging.getLogger(__name__)


class Publisher:
    """Applies our ``MutatingWebhookConfiguration`` when it is absent or not as it should be.

    Args:
        cluster: the API server.
        settings: what makes the configuration what it should be.
        state: is told when the configuration carries our authority.
        leads: whether this replica may write, asked before each write.
    """

    def __init__(
        self, cluster: Cluster, settings: Settings, state: State, leads: Callable[[], bool]
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._state = state
        self._leads = leads
        self._limit = RewriteLimit()
        self._owner_uid = ""
        self._told: frozenset[str] = frozenset()

    async def publish(self, authority: bytes) -> None:
        """Compare the live object with ours, and write only where they differ.

        Args:
            authority: the certificate, PEM, that the API server is to trust.

        Raises:
            ClusterError: where the API server does not let us.
        """
        live = await self._live()
        wanted = configuration(self._settings, authority, self._owner_uid)
        odd = []
        if live is None or differs(live, wanted):
            self._owner_uid = await self._owner()
            wanted = configuration(self._settings, authority, self._owner_uid)
        if (live is None or differs(live, wanted)) and self._leads():
            if self._limit.allows(names.OPERATOR, wanted):
                live = await self._cluster.apply_webhook_configuration(wanted)
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
        self._note(live, authority)

    async def look(self, authority: bytes) -> None:
        """See whether the live object carries this authority, whoever wrote it.

        Raises:
            ClusterError: where the API server does not let us.
        """
        self._note(await self._live(), authority)

    def _note(self, live: Json, authority: bytes) -> None:
        if carries(live, authority):
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
