"""The control plane with namespaces, certificates and webhook configurations.

Every webhook is for a namespace of its own, so that the API server asks exactly one about a pod,
and whose turn it is, is only a matter of where the pod is created. Nothing is configured anew
between turns; what the API server does to pass over the other configurations is the same for all,
and part of a creation without any webhook too.
"""

import base64
import http.client
import json
import ssl
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import examples
from controlplane import ControlPlane
from localoperator import OperatorError, OperatorProcess, install
from shield_operator import patch
from shield_operator.certificates import issue_bundle
from shield_operator.decision import decide
from support import CONFIGS, INJECT, WEBHOOKS, eventually, get, make_namespace, wait_reason

HOOKS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_ALL_CONFIGS: Final = "/apis/llm-shield.io/v1alpha1/shieldsidecarconfigs"
_ACCOUNTS: Final = "/api/v1/serviceaccounts?fieldSelector=metadata.name%3Ddefault"
_SECRETS: Final = "/api/v1/namespaces/{}/secrets"
_OUT: Final = {"llm-shield.io/inject": "disabled"}
_SECRET: Final = {"metadata": {"name": "keys"}, "stringData": {"VALID_VIRTUAL_KEYS": "bench"}}
_THREADS: Final = 8
_ANNOUNCED: Final = 180.0
"""Seconds until a new leader has to have put its own address into the webhook configuration."""


class Stage:
    """Where everything happens.

    Attributes:
        control_plane: the real one.
        folder: of the files that the programs read.
        now: when it began; certificates are valid from then on.
    """

    def __init__(self, control_plane: ControlPlane, now: datetime) -> None:
        self.control_plane = control_plane
        self.folder = control_plane.directory / "bench"
        self.folder.mkdir()
        for name, content in issue_bundle({"127.0.0.1"}, now).as_secret_data().items():
            path = self.folder / name
            path.touch(mode=0o600)
            path.write_bytes(content)
        user = json.loads(control_plane.kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]
        self.token = self.folder / "token"
        self.token.touch(mode=0o600)
        self.token.write_text(user["token"], encoding="ascii")
        install(control_plane)

    def file(self, name: str, content: Any) -> Path:
        """Write a file of JSON."""
        path = self.folder / name
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def injection(self) -> Path:
        """What this operator adds to a bare pod, for the peers to add the same."""
        pod = examples.pod(labels={"app": "web"})
        index = examples.index(_config("shield", "shop"))
        patch.apply(pod, decide(pod, "shop", INJECT, {}, index, index.settings))
        spec, metadata = pod["spec"], pod["metadata"]
        return self.file(
            "injection.json",
            {
                "initContainers": spec["initContainers"],
                "volumes": spec["volumes"],
                "labels": metadata["labels"],
                "annotations": metadata["annotations"],
            },
        )

    def namespace(self, name: str, *, labels: dict[str, str] = _OUT, config: bool = False) -> None:
        """A namespace for a webhook's pods; with a config, for this operator's.

        A peer's is labelled out: the pods carry the label that the proxy's own webhook wants, and
        by that alone this operator would be asked about every peer's pods too.
        """
        make_namespace(self.control_plane, name, labels)
        if config:
            self._create([(_SECRETS.format(name), _SECRET)])
            status, answer = self.control_plane.request(
                "POST", CONFIGS.format(name), _config("shield", name)
            )
            assert status == HTTPStatus.CREATED, answer

    def configure(
        self, name: str, namespace: str, url: str, authority_file: Path | None = None
    ) -> None:
        """Have the API server ask this webhook about the pods of that namespace."""
        authority = (authority_file or self.folder / "ca.crt").read_bytes()
        webhook = {
            "name": f"{name}.bench.invalid",
            "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                }
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1"],
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": f"bench-{name}"},
            "webhooks": [webhook],
        }
        status, answer = self.control_plane.request("POST", HOOKS, body)
        assert status == HTTPStatus.CREATED, answer

    def wait_for_operator(self, replica: OperatorProcess) -> tuple[str, Path]:
        """Until the API server asks this replica; returns its URL and its authority's file."""

        def announced() -> Any:
            hooks = get(self.control_plane, WEBHOOKS)
            client = hooks and hooks["webhooks"][0]["clientConfig"]
            return client if client and str(replica.webhook_port) in client["url"] else None

        replica.wait_ready(timeout=120)
        deadline = time.monotonic() + _ANNOUNCED
        while not (client := announced()):
            if time.monotonic() > deadline:
                raise OperatorError(
                    f"{WEBHOOKS} does not have this operator's URL after {_ANNOUNCED:.0f} s:\n"
                    f"{replica.log_tail()}"
                )
            time.sleep(0.1)
        path = self.folder / "operator-ca.crt"
        path.write_bytes(base64.b64decode(client["caBundle"]))
        return client["url"], path

    def wait_accepted(self, namespace: str) -> None:
        """Until the config of `namespace(…, config=True)` is in use."""
        wait_reason(self.control_plane, namespace, "shield", "Accepted")

    def teams(self, count: int) -> list[str]:
        """Names of as many namespaces, each with a config for all its pods; made where missing."""
        names = [f"team-{number}" for number in range(count)]
        bodies = [{"metadata": {"name": name, "labels": INJECT}} for name in names]
        self._create(("/api/v1/namespaces", body) for body in bodies)
        eventually(partial(self._have_accounts, frozenset(names)), timeout=300)
        self._create((_SECRETS.format(name), _SECRET) for name in names)
        self._create((CONFIGS.format(name), _config("shield", name)) for name in names)
        return names

    def _have_accounts(self, names: frozenset[str]) -> bool:
        """Whether pods can be created in these namespaces; looks once a second."""
        time.sleep(1)
        found = get(self.control_plane, _ACCOUNTS)["items"]
        return names <= {account["metadata"]["namespace"] for account in found}

    def configs(self, names: Sequence[str], numbers: range) -> None:
        """More configs, spread over these namespaces, each for pods of a tier of its own."""
        self._create(
            (
                CONFIGS.format(names[number % len(names)]),
                _config(
                    f"tier-{number}",
                    names[number % len(names)],
                    podSelector={"matchLabels": {"tier": f"tier-{number}"}},
                    env=[{"name": "TIER", "value": f"tier-{number}"}],
                ),
            )
            for number in numbers
        )

    def without_status(self) -> int:
        """How many configs have no conditions yet."""
        found = get(self.control_plane, _ALL_CONFIGS)["items"]
        return sum(not config.get("status", {}).get("conditions") for config in found)

    def _create(self, objects: Iterable[tuple[str, Any]]) -> None:
        """Create objects, many at once; those that are there stay."""
        parts: list[list[tuple[str, Any]]] = [[] for _ in range(_THREADS)]
        for number, one in enumerate(objects):
            parts[number % _THREADS].append(one)
        with ThreadPoolExecutor(_THREADS) as threads:
            list(threads.map(self._create_part, parts))

    def _create_part(self, objects: list[tuple[str, Any]]) -> None:
        host, _, port = self.control_plane.url.removeprefix("https://").partition(":")
        context = ssl.create_default_context(cafile=str(self.control_plane.ca_file))
        connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=60)
        token = self.token.read_text(encoding="ascii")
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for path, body in objects:
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            answer = response.read()
            assert response.status in (HTTPStatus.CREATED, HTTPStatus.CONFLICT), answer
        connection.close()


def _config(name: str, namespace: str, **spec: Any) -> Any:
    return examples.config(name, namespace, **spec)
