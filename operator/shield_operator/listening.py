"""Where the replica listens."""

import errno
import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
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
        why = error.strerror or str(error)
        sentence = f"cannot listen on port {port}: {why[:1].lower()}{why[1:]}"
        raise CannotListenError(sentence) from error


def listen(host: str | None, port: int, *, backlog: int) -> list[socket.socket]:
    """Sockets that listen on every address of the host, or on every interface (None).

    Raises:
        CannotListenError: where the port is taken, or the host has no address here.
    """
    found: list[socket.socket] = []
    with ExitStack() as undo, binding(port):
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with suppress(_NoSuchFamilyError):
                found.append(undo.enter_context(_listener(family, kind, protocol, address)))
                found[-1].listen(backlog)
        if not found:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        undo.pop_all()
    return found


class _NoSuchFamilyError(Exception):
    """The system has no IPv6, or no IPv4."""


def _listener(family: int, kind: int, protocol: int, address: Any) -> socket.socket:  # noqa: ANN401  # as socket's
    try:
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _NoSuchFamilyError from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _NoSuchFamilyError from error
        raise
    return listener


def listening_host(settings: Settings) -> str | None:
    """Every interface (None), as a pod must; loopback only, where that is how we are called."""
    host = urlsplit(settings.webhook_url or "").hostname
    if host == "localhost":
        return host
    with suppress(ValueError):
        if host and ipaddress.ip_address(host).is_loopback:
            return host
    return None
