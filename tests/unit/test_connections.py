"""The webhook port among slow, silent and noisy clients: good requests are answered meanwhile."""

import asyncio
import contextlib
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

import examples
from authorities import OwnAuthority
from examples import config, pod
from localoperator import free_port
from shield_operator import bodies, connections
from shield_operator.admission import AdmissionServer
from shield_operator.admission.handler import CURRENT
from shield_operator.authentication import Authentication
from shield_operator.certificate_files import CertificateFiles
from shield_operator.certificates import CertificateError
from shield_operator.metrics import Metrics
from shield_operator.state import State
from support import WebhookClient

REVIEW = WebhookClient.body("shop", pod())
AUTHORITY = OwnAuthority()
HEAD = b"POST /inject HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n%s\r\n"

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All times are shorter, and fewer connections are allowed."""
    for name, value in (("HANDSHAKE", 1.0), ("SILENCE", 2.0), ("REQUEST", 1.0), ("MOST", 20)):
        monkeypatch.setattr(connections, name, value)


class Server:
    """An admission server on loopback, with a handler in place of Kopf that allows everything."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.port = free_port()
        self.files = [directory / name for name in ("tls.crt", "tls.key", "ca.crt")]
        self.renew()
        variables = ("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE")
        settings = examples.settings(
            WEBHOOK_PORT=str(self.port),
            WEBHOOK_URL=f"https://127.0.0.1:{self.port}",
            **dict(zip(variables, map(str, self.files), strict=True)),
            **environment,
        )
        self.state = State(settings)
        self.state.listed = True
        self.state.config_changed(config())
        self.certificate = CertificateFiles(settings)
        self.authentication = Authentication(settings)
        self.server = AdmissionServer(
            self.state, Metrics(), self.certificate, self.authentication, host="127.0.0.1"
        )
        self.client_context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        self.pause = 0.0
        """Seconds that each answer takes."""
        self.answering = 0

    def renew(self, authority: OwnAuthority = AUTHORITY) -> None:
        leaf = authority.issue("IP:127.0.0.1")
        for path, content in zip(self.files, (*leaf, authority.certificate), strict=True):
            path.write_bytes(content)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async def handler(_: Any) -> Any:
            self.answering += 1
            await asyncio.sleep(self.pause)
            CURRENT.get().outcome = "ignored"
            return {"response": {"uid": "u", "allowed": True}}

        await anext(self.server(handler))
        self.certificate.saw([])
        await self.certificate.refresh()
        task = asyncio.create_task(self.server.serve())
        while not self.state.serving:  # noqa: ASYNC110  # a flag, as /readyz sees it
            await asyncio.sleep(0.01)
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def connect(self) -> Stream:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.client_context)

    async def raw(self) -> Stream:
        return await asyncio.open_connection("127.0.0.1", self.port)


async def ask(stream: Stream, content: bytes = REVIEW, headers: bytes = b"") -> int:
    """The status of an answer; the connection can be used again."""
    reader, writer = stream
    writer.write(HEAD % (len(content), headers) + content)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head.split()[1])


async def close(*streams: Stream) -> None:
    for _, writer in streams:
        writer.transport.abort()
    await asyncio.sleep(0.05)


async def ends(stream: Stream) -> bool:
    """Whether the server ends the connection within 10 s, without an answer or after it."""
    async with asyncio.timeout(10):
        with contextlib.suppress(OSError):
            while await stream[0].read(4096):
                pass
    return True


async def ask_anew(server: Server) -> int:
    stream = await server.connect()
    try:
        return await ask(stream)
    finally:
        await close(stream)


def run(server: Server, test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(40), server.running():
            await test()
        await asyncio.sleep(0.1)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the operator does
        runner.run(main())


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


@pytest.mark.parametrize("start", [b"", HEAD % (1000, b"")], ids=["headers", "body"])
def test_a_client_that_sends_byte_by_byte_is_cut_off(server: Server, start: bytes) -> None:
    async def test() -> None:
        slow = await server.connect()
        good = await server.connect()

        async def drip() -> None:
            with contextlib.suppress(OSError):
                slow[1].write(start)
                while True:
                    slow[1].write(b"P")
                    await slow[1].drain()
                    await asyncio.sleep(0.2)

        dripping = asyncio.create_task(drip())
        cut = asyncio.create_task(ends(slow))
        while not cut.done():
            assert await ask(good) == 200
            await asyncio.sleep(0.05)
        assert cut.result()
        dripping.cancel()
        await close(slow, good)

    run(server, test)


def test_a_silent_client_is_cut_off_and_an_idle_one_that_has_asked_is_not(server: Server) -> None:
    async def test() -> None:
        silent, idle = await server.connect(), await server.connect()
        assert await ask(idle) == 200
        assert await ends(silent)
        await asyncio.sleep(1.5)  # longer than any request may take
        assert await ask(idle) == 200
        await close(silent, idle)

    run(server, test)


def test_strangers_make_room_for_others_and_never_displace_who_has_asked(server: Server) -> None:
    """Half-open handshakes, garbage before and after them, silence: five times what is allowed."""

    async def test() -> None:
        good = [await server.connect() for _ in range(5)]
        for stream in good:
            assert await ask(stream) == 200
        strangers = []
        for number in range(100):
            stream = await (server.connect() if number % 4 == 0 else server.raw())
            strangers.append(stream)
            with contextlib.suppress(OSError):
                if number % 4 in {0, 1}:
                    stream[1].write(b"\x16\x03\x01\xff\xff garbage\r\n\r\n")
            assert await ask(good[number % 5]) == 200
            if number % 10 == 0:
                assert await ask_anew(server) == 200
        await close(*strangers, *good)

    run(server, test)


def test_among_idle_ones_the_one_that_was_idle_for_longest_makes_room(server: Server) -> None:
    async def test() -> None:
        streams = [await server.connect() for _ in range(20)]
        for stream in streams:
            assert await ask(stream) == 200
        assert await ask(streams[0]) == 200
        assert await ask_anew(server) == 200
        assert await ends(streams[1])
        assert await ask(streams[0]) == 200
        await close(*streams)

    run(server, test)


def test_one_byte_of_another_request_holds_no_place(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more clients than there are places, each was answered once, and comes again if cut off."""
    monkeypatch.setattr(connections, "MOST", 60)
    monkeypatch.setattr(connections, "REQUEST", 30.0)
    begun = 0

    async def hold() -> None:
        nonlocal begun
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                stream = await server.connect()
                try:
                    assert await ask(stream) == 200
                    stream[1].write(b"P")
                    begun += 1
                    await stream[0].read(1)
                finally:
                    stream[1].transport.abort()
            await asyncio.sleep(0.05)

    async def test() -> None:
        good = await server.connect()
        assert await ask(good) == 200
        holding = [asyncio.create_task(hold()) for _ in range(80)]
        while begun < 100:  # noqa: ASYNC110  # all places are taken
            await asyncio.sleep(0.05)
        for _ in range(20):
            assert await ask_anew(server) == 200
            assert await ask(good) == 200
        await close(good)
        for task in holding:
            task.cancel()
        await asyncio.wait(holding)
        await asyncio.sleep(0.1)

    run(server, test)


def test_who_is_being_answered_does_not_make_room(server: Server) -> None:
    async def test() -> None:
        server.pause = 0.5
        good = [await server.connect() for _ in range(connections.MOST)]
        answers = [asyncio.create_task(ask(stream)) for stream in good]
        while server.answering < len(good):  # noqa: ASYNC110  # a counter of the handler
            await asyncio.sleep(0.01)
        for stream in good:
            stream[1].write(b"P")  # ahead
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await ask_anew(server)
        assert set(await asyncio.gather(*answers)) == {200}
        server.pause = 0.0
        assert await ask_anew(server) == 200
        await close(*good)

    run(server, test)


def test_what_goes_wrong_before_a_handshake_leaves_no_place_taken(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        assert server.server.connections is not None
        context = server.server.connections._context
        for error in (CertificateError("no certificate"), RuntimeError("a bug")):

            def broken(error: Exception = error) -> ssl.SSLContext:
                raise error

            server.server.connections._context = broken
            stream = await server.raw()
            assert await ends(stream)
            await close(stream)
        assert len(server.server.connections) == 0
        server.server.connections._context = context
        assert await ask_anew(server) == 200

    run(server, test)
    assert caplog.text.count("cannot take a connection") == 2


def test_clients_that_come_as_the_replica_stops_leave_no_trace(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """One waits to be accepted, another to begin its handshake."""
    clients: list[socket.socket] = []

    async def test() -> None:
        for pause in (0.1, 0):
            clients.append(socket.create_connection(("127.0.0.1", server.port)))
            if pause:
                await asyncio.sleep(pause)

    run(server, test)
    for client in clients:
        with client, contextlib.suppress(ConnectionError):
            client.settimeout(10)
            assert client.recv(1) == b""
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_large_bodies_that_never_end_hold_up_no_review(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a small one nor a large one, while those that began first make room."""
    monkeypatch.setattr(connections, "REQUEST", 30.0)
    monkeypatch.setattr(connections, "MOST", 60)
    whole = WebhookClient.body("shop", pod(annotations={"x": "y" * 300_000}))

    async def test() -> None:
        body = b'{"a": "' + b"x" * (10 * 2**20) + b'"}'
        large: list[Stream] = []
        ended: list[asyncio.Task[bool]] = []
        for _ in range(20):
            large.append(await server.connect())
            ended.append(asyncio.create_task(ends(large[-1])))
            large[-1][1].write(HEAD % (len(body), b"") + body[: 5 * 2**20])
            await asyncio.sleep(0.05)
            assert await ask_anew(server) == 200
            stream = await server.connect()
            assert await ask(stream, whole) == 200
            await close(stream)
        assert server.server._bodies.held <= bodies.MOST_HELD
        await asyncio.wait(ended[:5], timeout=5)
        assert [task.done() for task in ended[:5]] == [True] * 5
        stream = await server.connect()
        assert await ask(stream, body) == 400  # it is read, and no review
        await close(stream, *large)
        await asyncio.wait(ended)
        await asyncio.sleep(0.1)
        assert server.server._bodies.held == 0

    run(server, test)


def test_a_large_body_waits_for_those_that_are_complete(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST", 30.0)

    async def test() -> None:
        server.pause = 1.0
        whole = WebhookClient.body("shop", pod()).ljust(10 * 2**20)
        streams = [await server.connect() for _ in range(5)]
        answers = []
        for stream in streams:
            held = server.server._bodies.held
            answers.append(asyncio.create_task(ask(stream, whole)))
            if len(answers) < 5:
                while server.server._bodies.held < held + len(whole):  # noqa: ASYNC110  # an account
                    await asyncio.sleep(0.001)
        assert await asyncio.gather(*answers) == [200] * 5
        await close(*streams)

    run(server, test)


def test_who_goes_away_while_being_answered_leaves_no_place_taken(server: Server) -> None:
    async def test() -> None:
        server.pause = 0.3
        leaving = [await server.connect() for _ in range(connections.MOST)]
        for _, writer in leaving:
            writer.write(HEAD % (len(REVIEW), b"") + REVIEW)
        while server.answering < len(leaving):  # noqa: ASYNC110  # a counter of the handler
            await asyncio.sleep(0.01)
        await close(*leaving)
        await asyncio.sleep(2 * server.pause)
        assert server.server.connections is not None
        assert len(server.server.connections) == 0
        server.pause = 0.0
        streams = await asyncio.gather(*(server.connect() for _ in range(connections.MOST)))
        assert set(await asyncio.gather(*map(ask, streams))) == {200}
        await close(*streams)

    run(server, test)


def test_a_compressed_body_is_not_unpacked(server: Server) -> None:
    async def test() -> None:
        stream = await server.connect()
        bomb = gzip.compress(b" " * 2**26)
        assert await ask(stream, bomb, b"Content-Encoding: gzip\r\n") == 400
        await close(stream)

    run(server, test)


def test_who_asks_nonsense_is_answered_and_sent_away(server: Server) -> None:
    async def test() -> None:
        stream = await server.connect()
        assert await ask(stream, b"nonsense") == 400
        assert await ends(stream)
        await close(stream)

    run(server, test)


def test_a_new_leaf_serves_the_next_connection_and_the_open_ones_go_on(server: Server) -> None:
    async def test() -> None:
        before = await server.connect()
        assert await ask(before) == 200
        first = peer_certificate(before)
        server.renew()
        await server.certificate.refresh()
        after = await server.connect()
        assert peer_certificate(after) != first
        for stream in (before, after):
            assert await ask(stream) == 200
        await close(before, after)

    run(server, test)


def peer_certificate(stream: Stream) -> bytes:
    found: bytes = stream[1].get_extra_info("ssl_object").getpeercert(binary_form=True)
    return found


# --- Authentication -------------------------------------------------------------------------------


def test_without_the_token_nobody_is_answered(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first-token\n", encoding="ascii")
    server = Server(tmp_path, K8S_WEBHOOK_AUTH_TOKEN_FILE=str(token))

    async def status(authorization: bytes) -> int:
        stream = await server.connect()
        header = b"Authorization: " + authorization + b"\r\n" if authorization else b""
        try:
            return await ask(stream, REVIEW, header)
        finally:
            await close(stream)

    async def test() -> None:
        for wrong in (
            b"",
            b"Bearer first",
            b"Bearer first-token2",
            b"Basic first-token",
            b"Bearer",
        ):
            assert await status(wrong) == 401
        assert await status(b"Bearer first-token") == 200
        token.write_text("first-token\nsecond-token\n", encoding="ascii")
        await server.authentication.refresh()
        assert await status(b"Bearer first-token") == await status(b"bearer second-token") == 200
        token.write_text("second-token", encoding="ascii")
        await server.authentication.refresh()
        assert await status(b"Bearer first-token") == 401
        for broken in ("", "\n \n", "two words"):
            token.write_text(broken, encoding="ascii")
            await server.authentication.refresh()
            assert await status(b"Bearer second-token") == 200
        token.unlink()
        await server.authentication.refresh()
        assert await status(b"Bearer second-token") == 200

    run(server, test)


def test_without_a_certificate_of_the_right_authority_nobody_is_answered(tmp_path: Path) -> None:
    first, second = OwnAuthority("rsa", "first"), OwnAuthority("ec", "second")
    trusted = tmp_path / "clients.crt"
    trusted.write_bytes(first.certificate)
    server = Server(tmp_path, WEBHOOK_CLIENT_CA_FILE=str(trusted))

    async def status(*authorities: OwnAuthority, usage: str = "clientAuth") -> int | None:
        context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        for authority in authorities:
            certificate, key = authority.issue("apiserver", usage=usage)
            (tmp_path / "client").write_bytes(certificate + key)
            context.load_cert_chain(tmp_path / "client")
        server.client_context = context
        try:
            return await ask_anew(server)
        except (OSError, asyncio.IncompleteReadError):
            return None

    async def test() -> None:
        assert await status() is None
        assert await status(second) is None
        assert await status(first, usage="serverAuth") is None
        assert await status(first) == 200
        trusted.write_bytes(second.certificate)
        await server.authentication.refresh()
        assert await status(first) is None
        assert await status(second) == 200
        trusted.write_bytes(b"garbage")
        await server.authentication.refresh()
        assert await status(second) == 200

    run(server, test)


def test_a_port_that_is_taken_is_told(server: Server) -> None:
    async def test() -> None:
        with pytest.raises(Exception, match=f"cannot listen on port {server.port}"):
            await server.server.serve()

    with socket.create_server(("127.0.0.1", 0)) as other:
        server.state.settings = examples.settings(WEBHOOK_PORT=str(other.getsockname()[1]))
        server.port = other.getsockname()[1]

        async def main() -> None:
            server.certificate.available.set()
            await test()

        asyncio.run(main())
