"""Slow, silent and noisy clients on the webhook port, while the API server asks about pods."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import examples
from controlplane import ControlPlane
from localoperator import OperatorProcess
from support import (
    INJECT,
    WebhookClient,
    apply,
    create_pod,
    has_sidecar,
    make_namespace,
    wait_reason,
)

MEMORY = 512 * 2**20
"""Bytes: the limit that the Deployment sets."""


@pytest.fixture(scope="module")
def shop(control_plane: ControlPlane, operator: OperatorProcess) -> Iterator[str]:
    del operator  # it is up
    name = "hostile-clients"
    make_namespace(control_plane, name, INJECT)
    apply(control_plane, examples.config(namespace=name, secretName=None))
    wait_reason(control_plane, name, "shield", "Accepted")
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


def plain(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def encrypted(port: int) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    client = plain(port)
    try:
        return context.wrap_socket(client)
    except BaseException:
        client.close()
        raise


def half_open(port: int) -> None:
    with plain(port) as client:
        client.sendall(b"\x16\x03\x01\x02\x00")  # the beginning of a hello
        client.recv(1)


def garbage(port: int) -> None:
    with plain(port) as client:
        client.sendall(b"\xff" * 65536)
        client.recv(1)


def garbage_inside(port: int) -> None:
    with encrypted(port) as client:
        client.sendall(b"\r\n\0 garbage" * 5000)
        client.recv(1)


def byte_by_byte(port: int) -> None:
    with encrypted(port) as client:
        for byte in b"POST /inject HTTP/1.1\r\nHost: x\r\n" * 10:
            client.sendall(bytes([byte]))
            time.sleep(0.5)


def large_body(port: int) -> None:
    with encrypted(port) as client:
        size = 10 * 2**20
        client.sendall(b"POST /inject HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
        client.sendall(b" " * size)
        client.recv(1)


def large_and_slow(port: int) -> None:
    with encrypted(port) as client:
        client.sendall(b"POST /inject HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n")
        client.sendall(b" " * 300_000)
        client.recv(1)


def one_request_and_a_byte(port: int) -> None:
    body = WebhookClient.body("elsewhere", examples.pod())
    with encrypted(port) as client:
        head = b"POST /inject HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        client.sendall(head + body)
        client.recv(65536)
        client.sendall(b"P")
        client.recv(1)


@pytest.mark.parametrize(
    ("client", "number"),
    [
        (half_open, 100),
        (garbage, 8),
        (garbage_inside, 8),
        (byte_by_byte, 60),
        (large_body, 8),
        (large_and_slow, 20),
        (one_request_and_a_byte, 400),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_pods_are_injected_all_the_while(
    control_plane: ControlPlane,
    operator: OperatorProcess,
    shop: str,
    client: Callable[[int], None],
    number: int,
) -> None:
    """As many clients at a time, each of which begins anew when it is cut off."""
    lines = len(operator.log_tail(100_000).splitlines())
    over = threading.Event()
    sent = []

    def keep_on() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError):
                client(operator.webhook_port)
            sent.append(1)
            time.sleep(0.05)

    threads = [threading.Thread(target=keep_on, daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 8
    tried = 0
    while time.monotonic() < end:
        status, pod = create_pod(control_plane, shop, examples.pod())
        assert status == 201, pod
        assert has_sidecar(pod)
        tried += 1
    over.set()
    for thread in threads:
        thread.join(15)
        assert not thread.is_alive()  # nobody was held for longer
    assert tried >= 10
    assert len(sent) >= number
    assert operator.peak_memory() < MEMORY
    assert "Traceback" not in operator.log_tail(1000)
    assert len(operator.log_tail(100_000).splitlines()) - lines < 50
