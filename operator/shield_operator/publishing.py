"""Keeping the webhook configuration in the cluster as it should be."""

import logging

from shield_operator.cluster import Cluster, Forbidden, NotFound
from shield_operator.model import Json
from shield_operator.settings import Settings
from shield_operator.state import State
from shield_operator.webhook import carries, configuration, differs

logger = logging.getLogger(__name__)


class Publisher:
    """Applies our ``MutatingWebhookConfiguration`` when it is absent or not as it should be."""

    def __init__(self, cluster: Cluster, settings: Settings, state: State) -> None:
        self._cluster = cluster
        self._settings = settings
        self._state = state

    async def publish(self, authority: bytes) -> None:
        """Compare the live object with ours, and write only where they differ.

        Args:
            authority: the certificate, PEM, that the API server is to trust.

        Raises:
            ClusterError: where the API server does not let us.
        """
        wanted = configuration(self._settings, authority, await self._owner())
        live = await self._live()
        if live is None or differs(live, wanted):
            live = await self._cluster.apply_webhook_configuration(wanted)
            logger.info("applied the webhook configuration")
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
