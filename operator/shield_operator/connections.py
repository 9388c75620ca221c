"""The connections to the webhook port: taken, timed, and limited, so that nobody holds it up.

Whoever reaches the port may be slow, silent or send garbage. Each connection has a time to shake
hands, and one to send a whole request in. There is a limit to their number; where it is reached,
one makes room for the next, in this order:

1. of those that never had an answer, the oldest, while they are more than a third of all;
2. of those whose next request is coming in, the one that began it first, while they are many;
3. of those that had an answer, the one that has been idle for longest;
4. of those whose next request is coming in, and then of those that never had an answer, the oldest.

One whose request is in and being answered never does: that is soon done, so that nobody keeps such
a place for long. The third is for newcomers: where others fill the rest, one of the API server's
still has the time to shake hands and ask. An idle one of its is not closed before those that only
began to ask: it could be asking just then, and would lose the request.
"""

import asyncio
import itertools
import logging
import socket
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, cast

logger = logging.getLogger(__name__)

MOST: Final = 384
"""Connections at a time; each costs some 300 KiB."""
HANDSHAKE: Final = 5.0
"""Seconds that a TLS handshake may take."""
SILENCE: Final = 30.0
"""Seconds before the first byte; the API server opens some connections ahead of need."""
REQUEST: Final = 5.0
"""Seconds from a request's first byte to its last."""
KEEP_ALIVE: Final = 150.0
"""Seconds between two requests. The API server itself gives up idle connections after 90: were we
first, a request of its could meet a connection that is being closed."""
_SHUTDOWN: Final = 1.0
"""Seconds for the other side's part in closing a TLS connection."""
_PAUSE: Final = 0.1
"""Seconds before trying again to accept a connection, where the system did not let us."""


class Connections:
    """Accepts connections, and keeps the account of them.

    Args:
        protocol: makes the HTTP protocol of one connection.
        context: the TLS context for the next one.
    """

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        context: Callable[[], ssl.SSLContext],
    ) -> None:
        self._protocol = protocol
        self._context = context
        # Each in the order in which they are to go.
        self._strangers: dict[Connection, None] = {}
        self._idle: dict[Connection, None] = {}
        self._asking: dict[Connection, None] = {}
        self._answered: dict[Connection, None] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        self._closed = False
        self._trouble: int | None = None

    def __len__(self) -> int:
        """How many there are."""
        return sum(map(len, self._books()))

    def _books(self) -> "tuple[dict[Connection, None], ...]":
        return self._strangers, self._idle, self._asking, self._answered

    async def serve(self, listeners: Iterable[socket.socket]) -> None:
        """Accept on all of these sockets until cancelled; they are closed in the end."""
        loop = asyncio.get_running_loop()
        listeners = tuple(listeners)
        try:
            for listener in listeners:
                loop.add_reader(listener, self._accept, listener)
            await asyncio.Event().wait()
        finally:
            self._closed = True
            for listener in listeners:
                loop.remove_reader(listener)
                listener.close()
            for connection in tuple(self._strangers):
                if not connection.is_open:
                    connection.abort()
            if self._handshakes:
                await asyncio.wait(self._handshakes)

    def _accept(self, listener: socket.socket) -> None:
        """Take one of those that wait; the loop calls again for the next, after other work."""
        loop = asyncio.get_running_loop()
        try:
            client, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # it did not wait for us
            return
        except OSError as error:
            if error.errno != self._trouble:
                logger.warning("cannot accept a connection: %s", error.strerror)
                self._trouble = error.errno
            loop.remove_reader(listener)
            loop.call_later(_PAUSE, self._accept_again, listener)
            return
        self._trouble = None
        if not self._has_room():
            client.close()
            return
        connection = Connection(self._protocol(), self, client)
        self._strangers[connection] = None
        handshake = loop.create_task(self._shake_hands(connection, client))
        self._handshakes.add(handshake)
        handshake.add_done_callback(self._handshakes.discard)

    def _accept_again(self, listener: socket.socket) -> None:
        if not self._closed:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _has_room(self) -> bool:
        """Whether another one may come, after somebody made room for it where that was needed."""
        if len(self) < MOST:
            return True
        many_strangers = self._strangers if len(self._strangers) * 3 > MOST else ()
        many_asking = self._asking if len(self._asking) * 12 > MOST else ()
        order = (many_strangers, many_asking, self._idle, self._asking, self._strangers)
        connection = next(itertools.chain(*order), None)
        if connection is None:
            return False
        self.forget(connection)
        connection.abort()
        return True

    async def _shake_hands(self, connection: "Connection", client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                client,
                ssl=self._context(),
                ssl_handshake_timeout=HANDSHAKE,
                ssl_shutdown_timeout=_SHUTDOWN,
            )
        except OSError:  # it went away, sent garbage, or was too slow
            pass
        except Exception:  # above all, where the certificate is no use
            logger.exception("cannot take a connection")
            client.close()
        finally:
            if not connection.is_open:
                self.forget(connection)

    # --- What connections tell --------------------------------------------------------------------

    def forget(self, connection: "Connection") -> None:
        """It is gone."""
        for connections in self._books():
            connections.pop(connection, None)

    def asks(self, connection: "Connection") -> None:
        """The first byte of another request has come."""
        self._move(connection, self._asking)

    def is_answered(self, connection: "Connection") -> None:
        """All of its request has come."""
        self._move(connection, self._answered)

    def is_idle(self, connection: "Connection") -> None:
        """It has been answered, and may ask again."""
        self._move(connection, self._idle)

    def _move(self, connection: "Connection", where: "dict[Connection, None]") -> None:
        self.forget(connection)
        where[connection] = None


class Connection(asyncio.Protocol):
    """One connection: passes everything on to the HTTP protocol, and keeps the time."""

    def __init__(
        self, http: asyncio.Protocol, all_of_them: Connections, client: socket.socket
    ) -> None:
        self._client = client
        self._http = http
        self._all = all_of_them
        self._transport: asyncio.Transport | None = None
        self._over = False
        """Whether it is lost, or was ended here."""
        self._deadline: asyncio.TimerHandle | None = None
        self._idle = True
        """Whether no request has begun."""
        self._known = False
        """Whether a request was answered."""
        self._answering = False
        self._ahead = False
        """Whether more came while a request was being answered."""

    @classmethod
    def of(cls, transport: asyncio.BaseTransport | None) -> "Connection | None":
        """The connection that a request came by; None where it is gone."""
        # One that is closing may have no protocol any more, and then says so with AttributeError.
        is_there = transport is not None and not transport.is_closing()
        protocol = transport.get_protocol() if transport and is_there else None
        return protocol if isinstance(protocol, cls) else None

    # --- What the handler tells -------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the client is still there; its request is answered to the end even if not."""
        return self._transport is not None and not self._over

    def received(self) -> None:
        """The whole request is there."""
        if not self.is_open:
            return
        self._set_deadline(None)
        self._answering = True
        self._all.is_answered(self)

    def answered(self) -> None:
        """The request was a real one, and it has its answer."""
        if not self.is_open:
            return
        self._answering, self._idle, self._known = False, True, True
        self._all.is_idle(self)
        if self._ahead:
            self._ahead = False
            self._begin()

    # --- What the event loop tells ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is done."""
        if self._over:
            cast("asyncio.Transport", transport).abort()
            return
        self._transport = cast("asyncio.Transport", transport)
        self._set_deadline(SILENCE)
        self._http.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request."""
        if self._answering:
            self._ahead = True
        elif self._idle:
            self._begin()
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        """The client sends no more."""
        return self._http.eof_received()

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._over = True
        self._set_deadline(None)
        self._all.forget(self)
        if self._transport is not None:
            self._http.connection_lost(exc)

    def abort(self) -> None:
        """End it at once, whatever it is doing."""
        self._over = True
        if self._transport is not None:
            self._transport.abort()
            return
        # To cancel the handshake would leave the socket open where the event loop was not yet, or
        # was just, done with setting it up. This way it sees that the client is gone.
        with suppress(OSError):
            self._client.shutdown(socket.SHUT_RDWR)

    def _begin(self) -> None:
        self._idle = False
        self._set_deadline(REQUEST)
        if self._known:
            self._all.asks(self)

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        self._deadline = None if seconds is None else loop.call_later(seconds, self.abort)
