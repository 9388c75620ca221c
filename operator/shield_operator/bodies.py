"""The bodies of requests: how much of the large ones is held in memory at a time.

Anybody may begin to send a large body and never end it. So it is not the number of them that is
limited, but their bytes, and where there is no room for more, the sender that is the longest at it
goes. One that is complete stays until it was answered; others then wait.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

LARGE: Final = 256 * 2**10
"""Bytes. Smaller bodies never wait; there are no more of them than connections."""
MOST_HELD: Final = 48 * 2**20
"""Bytes of all large bodies: two of the largest that are taken at all, and some beside them."""


class CutOffError(Exception):
    """The body had to make room."""

    def __init__(self) -> None:
        super().__init__("too much of other large bodies is coming in")


class Bodies:
    """The account of all bodies of which something is held."""

    def __init__(self) -> None:
        self.held = 0
        """Bytes of all large ones."""
        # In the order in which they became large.
        self._incomplete: dict[Body, None] = {}
        self._released = asyncio.Event()

    @contextmanager
    def receiving(self, abort: Callable[[], None]) -> Iterator["Body"]:
        """A body, for as long as it is needed.

        Args:
            abort: ends the connection that it comes by.
        """
        body = Body(self, abort)
        try:
            yield body
        finally:
            self._release(body)

    async def take(self, body: "Body", size: int) -> None:
        """Account for so many bytes more of this body, as soon as there is room for them.

        Raises:
            CutOffError: where the body itself had to go.
        """
        self._incomplete.setdefault(body)
        body.waits = True
        while self.held + size > MOST_HELD:
            # Who waits for us is not to blame, unless all do.
            sending = (other for other in self._incomplete if not other.waits)
            oldest = next(sending, None)
            if oldest is None and self.held == sum(other.held for other in self._incomplete):
                oldest = next(iter(self._incomplete))
            if oldest is None:
                await self._released.wait()
            else:
                oldest.cut_off()
                self._release(oldest)
            if body.is_cut_off:
                raise CutOffError
        body.waits = False
        body.held += size
        self.held += size

    def complete(self, body: "Body") -> None:
        """All of this body is there; it stays until it is released."""
        self._incomplete.pop(body, None)

    def _release(self, body: "Body") -> None:
        self._incomplete.pop(body, None)
        self.held -= body.held
        body.held = 0
        self._released.set()
        self._released = asyncio.Event()


class Body:
    """One body, as much of it as has come."""

    def __init__(self, bodies: Bodies, abort: Callable[[], None]) -> None:
        self.content = bytearray()
        self.held = 0
        """Bytes accounted for."""
        self.waits = False
        """Whether there is no room for what came last."""
        self.is_cut_off = False
        self._bodies = bodies
        self._abort = abort

    @property
    def is_large(self) -> bool:
        """Whether it is one of those that are limited."""
        return len(self.content) > LARGE

    async def add(self, chunk: bytes) -> None:
        """Append what came.

        Raises:
            CutOffError: where the body had to make room.
        """
        size = len(self.content) + len(chunk)
        if size > LARGE:
            await self._bodies.take(self, size - self.held)
        if self.is_cut_off:
            raise CutOffError
        self.content += chunk

    def complete(self) -> None:
        """All of it is there."""
        self._bodies.complete(self)

    def cut_off(self) -> None:
        """Drop what there is, and whoever sends it."""
        self.is_cut_off = True
        self.content.clear()
        self._abort()
