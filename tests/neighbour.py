"""Another team's mutating webhook: it changes every pod of a namespace."""

import base64
import copy
import http.server
import json
import ssl
import tempfile
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Self

import jsonpatch

from controlplane import ControlPlane
from shield_operator.certificates import issue_bundle
from support import create

_HOST = "127.0.0.1"


class Neighbour:
    """Serves and registers the webhook while the block runs.

    The API server calls webhook configurations in the order of their names, so that the name
    decides whether this one comes before ours or after.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        name: str,
        namespace: str,
        change: Callable[[Any], None] | None = None,
    ) -> None:
        """Args: `change` does something to a pod, in place; by default it adds a container."""
        self._control_plane = control_plane
        self._name = name
        self._namespace = namespace
        self._change = change or self._add_container

    def _add_container(self, pod: Any) -> None:
        containers = pod["spec"]["containers"]
        if all(container["name"] != self._name for container in containers):
            containers.append({"name": self._name, "image": "example.com/neighbour:1"})

    def __enter__(self) -> Self:
        bundle = issue_bundle([_HOST], datetime.now(UTC))
        self._server = http.server.ThreadingHTTPServer((_HOST, 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(bundle.leaf.certificate + b"\n" + bundle.leaf.key)
            file.flush()
            context.load_cert_chain(file.name)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        create(self._control_plane, self._path, self._configuration(bundle.signer))
        return self

    def __exit__(self, *_: object) -> None:
        self._control_plane.request("DELETE", f"{self._path}/{self._name}.{self._namespace}")
        self._server.shutdown()
        self._server.server_close()

    _path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

    def _configuration(self, authority: bytes) -> Any:
        webhook = {
            "name": f"{self._name}.neighbour.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "reinvocationPolicy": "IfNeeded",
            "clientConfig": {
                "url": f"https://{_HOST}:{self._server.server_address[1]}/",
                "caBundle": base64.b64encode(authority).decode(),
            },
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}},
        }
        metadata = {"name": f"{self._name}.{self._namespace}"}
        return {"metadata": metadata, "webhooks": [webhook]}

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        change = self._change

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                pod = review["request"]["object"]
                changed = copy.deepcopy(pod)
                change(changed)
                patch = jsonpatch.make_patch(pod, changed).to_string().encode()
                review["response"] = {
                    "uid": review["request"]["uid"],
                    "allowed": True,
                    "patchType": "JSONPatch",
                    "patch": base64.b64encode(patch).decode(),
                }
                del review["request"]
                answer = json.dumps(review).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Nothing on the terminal."""

        return Handler
