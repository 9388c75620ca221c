"""Who else may reach the webhook's port, and what they send. On loopback, for a bounded time."""

import asyncio
import contextlib
import os
import ssl
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import examples
from support import WebhookClient

_SLOW: Final = 40
_HALF_OPEN: Final = 40
_HOLDING: Final = 300
_GARBAGE: Final = 4
_LARGE: Final = 2
"""Connections of each sort to each replica, at any time."""
_TEN_MEBIBYTES: Final = 10 * 2**20
_HEAD: Final = b"POST /inject HTTP/1.1\r\nHost: replica\r\nContent-Type: application/json\r\n"


def molest(ports: Sequence[int], seconds: float) -> int:
    """Do all of it to all of these ports of 127.0.0.1; returns how many connections it took."""
    result: list[int] = []

    def run() -> None:
        result.append(asyncio.run(_molest(ports, seconds)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


async def _molest(ports: Sequence[int], seconds: float) -> int:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # a stranger does not care
    end = time.monotonic() + seconds
    count = 0

    async def again_and_again(visit: Callable[[int], Awaitable[None]], port: int) -> None:
        nonlocal count
        while time.monotonic() < end:
            count += 1
            with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                async with asyncio.timeout(max(0.01, end - time.monotonic())):
                    await visit(port)
            await asyncio.sleep(0.05)

    visits = {
        _slowloris(context): _SLOW,
        _half_open: _HALF_OPEN,
        _half_closed(context): _HALF_OPEN // 4,
        _garbage: _GARBAGE,
        _garbage_in_tls(context): _GARBAGE,
        _byte_of_another_request(context): _HOLDING,
        _large(context, _spaces()): _LARGE,
        _large(context, _huge_pod()): _LARGE,
        _large(context, _bomb(), b"Content-Encoding: gzip\r\n"): _LARGE,
    }
    async with asyncio.TaskGroup() as group:
        for port in ports:
            for visit, times in visits.items():
                for _ in range(times):
                    group.create_task(again_and_again(visit, port))
    return count


Visit = Callable[[int], Awaitable[None]]


async def _open(
    port: int, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


def _slowloris(context: ssl.SSLContext) -> Visit:
    """A request of which a byte comes every now and then."""

    async def visit(port: int) -> None:
        _, writer = await _open(port, context)
        try:
            for byte in _HEAD * 100:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.5)
        finally:
            writer.transport.abort()

    return visit


async def _half_open(port: int) -> None:
    """A connection on which the TLS handshake never begins."""
    reader, writer = await _open(port)
    try:
        await reader.read(1)
    finally:
        writer.transport.abort()


def _half_closed(context: ssl.SSLContext) -> Visit:
    """A body of which the half comes, and then nothing."""

    async def visit(port: int) -> None:
        reader, writer = await _open(port, context)
        try:
            writer.write(_HEAD + b"Content-Length: 10000\r\n\r\n" + b" " * 5000)
            await writer.drain()
            await reader.read(1)
        finally:
            writer.transport.abort()

    return visit


async def _garbage(port: int) -> None:
    """Random bytes in place of a handshake."""
    reader, writer = await _open(port)
    try:
        writer.write(os.urandom(2000))
        await writer.drain()
        await reader.read(1)
    finally:
        writer.transport.abort()


def _garbage_in_tls(context: ssl.SSLContext) -> Visit:
    """Random bytes in place of HTTP, then of a body."""

    async def visit(port: int) -> None:
        for content in (os.urandom(2000), _request(os.urandom(2000))):
            reader, writer = await _open(port, context)
            try:
                writer.write(content)
                await writer.drain()
                await reader.read(1)
            finally:
                writer.transport.abort()

    return visit


def _byte_of_another_request(context: ssl.SSLContext) -> Visit:
    """A review as the API server sends it, then the first byte of another."""
    request = _request(WebhookClient.body("elsewhere", examples.pod()))

    async def visit(port: int) -> None:
        reader, writer = await _open(port, context)
        try:
            writer.write(request)
            await reader.readline()
            writer.write(b"P")
            await reader.read()
        finally:
            writer.transport.abort()

    return visit


def _large(context: ssl.SSLContext, body: bytes, header: bytes = b"") -> Visit:
    """A large body, sent as fast as it is taken."""
    request = _request(body, header)

    async def visit(port: int) -> None:
        reader, writer = await _open(port, context)
        try:
            for begin in range(0, len(request), 65536):
                writer.write(request[begin : begin + 65536])
                await writer.drain()
            await reader.readline()
            await asyncio.sleep(0.5)  # what a client has to do with the answer
        finally:
            writer.transport.abort()

    return visit


def _request(body: bytes, header: bytes = b"") -> bytes:
    return b"%s%sContent-Length: %d\r\n\r\n%s" % (_HEAD, header, len(body), body)


def _spaces() -> bytes:
    return b" " * _TEN_MEBIBYTES


def _huge_pod() -> bytes:
    """A review that can be read, of a pod with many long labels."""
    pod = examples.pod(annotations={f"a{number}": "x" * 1000 for number in range(10_000)})
    return WebhookClient.body("shop", pod).ljust(_TEN_MEBIBYTES)


def _bomb() -> bytes:
    """One mebibyte that unpacks to one gibibyte."""
    packer = zlib.compressobj(wbits=31)
    mebibyte = b" " * 2**20
    return b"".join(packer.compress(mebibyte) for _ in range(1024)) + packer.flush()
