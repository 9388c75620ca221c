"""Where the replica listens."""

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from shield_operator.settings import Settings


class CannotListenError(Exception):
    """A port cannot be listened on; the message says which, and why."""


@contextmanager
def binding(port: int) -> Iterator[None]:
    """Tell a port that cannot be had from all else that may go wrong with the system.

    Raises:
        CannotListenError: where the block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        raise CannotListenError(f"cannot listen on port {port}: {error.strerror}") from error


def listening_host(settings: Settings) -> str | None:
    """Every interface (None), as a pod must; loopback only, where that is how we are called."""
    host = urlsplit(settings.webhook_url or "").hostname
    if host == "localhost":
        return host
    with suppress(ValueError):
        if host and ipaddress.ip_address(host).is_loopback:
            return host
    return None
