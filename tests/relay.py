"""A TCP relay on loopback: to two replicas what a Service is in a cluster."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Sequence
from typing import Self


class Relay:
    """Passes each connection on to one of the backends in turn; one that refuses is left out.

    Attributes:
        port: where it listens, on 127.0.0.1.
    """

    def __init__(self) -> None:
        self.port = 0
        self._backends: Sequence[int] = ()
        self._turn = itertools.count()
        self._number = itertools.count(1)
        self._stalled_up_to = 0
        self._never = asyncio.Event()  # kept here: a task that waits for it is not collected
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._relay, "127.0.0.1", 0), self._loop
        ).result(5)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def set_backends(self, *ports: int) -> None:
        """Pass connections on to these ports of 127.0.0.1 from now on."""
        self._backends = ports

    def stall(self) -> None:
        """Pass nothing on any more over the connections that there are; new ones work."""
        self._stalled_up_to = next(self._number)

    async def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # the aborted transports close in the loop's next round

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        first = next(self._turn)
        for offset in range(len(self._backends)):
            port = self._backends[(first + offset) % len(self._backends)]
            with contextlib.suppress(OSError):
                return await asyncio.open_connection("127.0.0.1", port)
        raise ConnectionRefusedError

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self._number)
        transports = [writer.transport]

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65536):
                if number <= self._stalled_up_to:
                    await self._never.wait()
                writer.write(data)
                await writer.drain()
            writer.write_eof()

        try:
            backend_reader, backend_writer = await self._connect()
            transports.append(backend_writer.transport)
            await asyncio.gather(pump(reader, backend_writer), pump(backend_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass  # `_stop` cancels; asyncio's own callback would log that with a traceback
        finally:
            for transport in transports:
                transport.abort()
