"""Whether a new connection would be trusted, all the time: an API server may open one at any."""

import base64
import socket
import ssl
import threading
from collections.abc import Sequence
from typing import Self

from controlplane import ControlPlane
from localoperator import OperatorProcess
from support import WEBHOOKS, get


class Handshakes:
    """Opens TLS connections to each replica, trusting what the webhook configuration says then.

    The prober's pods tell of it only where the API server happens to open a connection: most go
    over connections that it kept.
    """

    def __init__(self, control_plane: ControlPlane, replicas: Sequence[OperatorProcess]) -> None:
        self.tried = 0
        self.refused: list[str] = []
        self._control_plane = control_plane
        self._ports = [replica.webhook_port for replica in replicas]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(0.05):
            for port in self._ports:
                self._try(port)

    def _try(self, port: int) -> None:
        bundle = self._bundle()
        context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
        self.tried += 1
        try:
            with (
                socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1"),
            ):
                pass
        except OSError as error:
            if self._bundle() == bundle:  # else it was changed in between
                self.refused.append(f"replica at {port}: {error}")

    def _bundle(self) -> str:
        return str(get(self._control_plane, WEBHOOKS)["webhooks"][0]["clientConfig"]["caBundle"])
