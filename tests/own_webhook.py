"""LLM-Shield-Proxy's own webhook: the real one, of its package, registered as its chart does it."""

import base64
import os
import shutil
import ssl
import subprocess
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self
from urllib.error import URLError
from urllib.request import urlopen

from controlplane import ControlPlane
from controlplane.processes import tied_to_this_process
from environments import environment
from localoperator import free_port
from shield_operator.certificates import issue_bundle
from support import apply

NAME: Final = "llm-shield-proxy"
"""Of its webhook configuration: the chart's, where that is the name of the release."""
_HOST: Final = "127.0.0.1"
_REQUIREMENTS: Final = Path(__file__).parent / "e2e" / "contexts" / "proxy" / "requirements.txt"


class OwnWebhook:
    """Serves and registers the webhook while the block runs."""

    def __init__(self, control_plane: ControlPlane, *, image: str, secret_name: str) -> None:
        """Args: what its settings say of the sidecar."""
        self._control_plane = control_plane
        self._port = free_port()
        self._environment = {
            "PATH": os.environ["PATH"],
            "ENABLE_K8S_WEBHOOK": "true",
            "ENABLE_EXT_PROC": "false",
            "ANONYMOUS_USAGE_TRACKING": "false",
            "K8S_SIDECAR_IMAGE": image,
            "K8S_SIDECAR_SECRET_NAME": secret_name,
        }

    def __enter__(self) -> Self:
        bundle = issue_bundle([_HOST], datetime.now(UTC))
        self._folder = Path(tempfile.mkdtemp(prefix="own-webhook-"))
        certificate, key = self._folder / "tls.crt", self._folder / "tls.key"
        certificate.write_bytes(bundle.leaf.certificate)
        key.touch(mode=0o600)
        key.write_bytes(bundle.leaf.key)
        uvicorn = [
            str(environment(_REQUIREMENTS) / "bin" / "uvicorn"),
            "llm_shield_proxy.api.main:app",
            "--host",
            _HOST,
        ]
        tls = ["--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*tied_to_this_process(), *uvicorn, "--port", str(self._port), *tls],
                cwd=self._folder,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait(bundle.signer)
            apply(self._control_plane, self._configuration(bundle.signer))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)

    def _wait(self, authority: bytes) -> None:
        context = ssl.create_default_context(cadata=authority.decode())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            with suppress(URLError, OSError):
                urlopen(f"https://{_HOST}:{self._port}/livez", context=context).close()
                return
            time.sleep(0.2)
        raise AssertionError((self._folder / "log").read_text(encoding="utf-8")[-4000:])

    def _configuration(self, authority: bytes) -> Any:
        """As deploy/helm/llm-shield-proxy has it, but for the address."""
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": [
                {
                    "name": "inject.llm-shield.io",
                    "clientConfig": {
                        "url": f"https://{_HOST}:{self._port}/v1/k8s/mutate",
                        "caBundle": base64.b64encode(authority).decode(),
                    },
                    "rules": [
                        {
                            "operations": ["CREATE"],
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["pods"],
                        }
                    ],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "timeoutSeconds": 10,
                    "admissionReviewVersions": ["v1"],
                    "objectSelector": {"matchLabels": {"llm-shield.io/inject": "true"}},
                }
            ],
        }
