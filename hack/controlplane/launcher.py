"""`ControlPlane`: etcd, kube-apiserver and kube-controller-manager, put together for one run.

Everything lies in one temporary folder and listens on 127.0.0.1 only; etcd, which asks nobody for
credentials, on a socket in that folder. Nothing survives `stop`.
"""

import atexit
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane import commands, credentials, processes
from controlplane.binaries import Binaries, ensure
from controlplane.commands import ADDRESS, CONTROLLERS, Layout
from controlplane.errors import KubectlError
from controlplane.processes import Program

_GRACE_SECONDS = 1.0  # graceful shutdown waits for watches; the data is thrown away anyway


class ControlPlane:
    """A running control plane, made by `start`; a context manager that stops it.

    Attributes:
        url: the API server's address, such as https://127.0.0.1:PORT; the same for the whole run.
        directory: the run's folder: data, keys, kubeconfigs, and one log file per program.
        ca_file: PEM certificate of the authority that signed the API server's.
        kubectl_path: the kubectl program.
        kubeconfig: an administrator's kubeconfig (group `system:masters`).
    """

    def __init__(
        self,
        binaries: Binaries,
        *,
        apiserver_args: Sequence[str],
        controllers: Sequence[str],
        address: str,
        timeout: float,
    ) -> None:
        # Bound here for the whole run, never listening: the API server shares it, and nobody
        # can take it between the choice and the start, nor while the API server is stopped.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._reserved.bind((address, 0))
        self._layout = layout = Layout(
            directory=Path(tempfile.mkdtemp(prefix="controlplane-")),
            address=address,
            port=self._reserved.getsockname()[1],
        )
        self.url = layout.url
        self.directory = layout.directory
        self.ca_file = layout.ca_file
        self.kubeconfig = layout.kubeconfig
        self._token = secrets.token_urlsafe(32)
        self._timeout = timeout
        self.kubectl_path = binaries.kubectl
        self._etcd, self._apiserver, self._controller_manager = (
            Program(command, directory=layout.directory)
            for command in (
                commands.etcd(binaries.etcd, layout),
                commands.apiserver(binaries.kube_apiserver, layout, apiserver_args),
                commands.controller_manager(binaries.kube_controller_manager, layout, controllers),
            )
        )
        self._programs = (self._controller_manager, self._apiserver, self._etcd)

    @classmethod
    def start(
        cls,
        *,
        apiserver_args: Sequence[str] = (),
        controllers: Sequence[str] = CONTROLLERS,
        binaries: Binaries | None = None,
        address: str = ADDRESS,
        timeout: float = 60.0,
    ) -> Self:
        """Start a control plane and return it once it is ready, after about three seconds.

        Args:
            apiserver_args: more flags for kube-apiserver; a repeated one wins over ours.
            controllers: names as of `kube-controller-manager --controllers`; readiness needs
                `serviceaccount-controller`.
            binaries: the programs; by default `ensure()`, which may build them.
            address: where the API server listens, as where pods are to reach it.
            timeout: seconds that each program has to become ready.

        Raises:
            BuildError: a program could be neither found nor built.
            ProgramError: a program did not become ready; the message has the end of its log.
        """
        control_plane = cls(
            binaries or ensure(),
            apiserver_args=apiserver_args,
            controllers=controllers,
            address=address,
            timeout=timeout,
        )
        atexit.register(control_plane.stop)
        try:
            control_plane._bring_up()
        except BaseException:
            control_plane.stop()
            raise
        return control_plane

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the programs and remove their data; a second call does nothing."""
        atexit.unregister(self.stop)
        processes.stop(self._programs, grace=_GRACE_SECONDS)
        self._reserved.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def pids(self) -> Mapping[str, int]:
        """Process numbers of the programs that are meant to run, by name, as for measuring them."""
        return {program.name: program.pid for program in self._programs if program.pid}

    def check(self) -> None:
        """Raise ProgramError if one of the programs has ended by itself."""
        for program in self._programs:
            program.check()

    def request(
        self, method: str, path: str, body: object = None, *, timeout: float = 10.0
    ) -> tuple[int, bytes]:
        """Send one request as administrator and return its HTTP status and body.

        Args:
            method: HTTP method; a PATCH is sent as a merge patch.
            path: such as `/api/v1/namespaces`.
            body: sent as JSON, if not None.
            timeout: seconds to wait for the connection, and for each read.

        Raises:
            OSError: the API server does not answer.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        connection = http.client.HTTPSConnection(
            self._layout.address,
            self._layout.port,
            timeout=timeout,
            context=ssl.create_default_context(cafile=str(self.ca_file)),
        )
        try:
            connection.request(
                method,
                path,
                body=None if body is None else json.dumps(body),
                headers={"Authorization": f"Bearer {self._token}", "Content-Type": kind},
            )
            response = connection.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{self.url} broke off its answer: {error!r}") from error
        finally:
            connection.close()

    def kubectl(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002  # the name that subprocess.run gives it
        check: bool = True,
        kubeconfig: Path | None = None,
        timeout: float = 120.0,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, by default as administrator.

        Args:
            args: its arguments.
            input: text for its standard input, as for `apply -f -`.
            check: raise if it fails.
            kubeconfig: run as the user of this kubeconfig.
            timeout: seconds that it may take.

        Raises:
            KubectlError: it failed (only if `check`), or took too long.
        """
        command = [
            str(self.kubectl_path),
            f"--kubeconfig={kubeconfig or self.kubeconfig}",
            # The default is in the user's home, where an earlier server on this port has left
            # what kinds it served.
            f"--cache-dir={self.directory / 'kubectl-cache'}",
            *args,
        ]
        try:
            result = subprocess.run(
                command,
                input=input,
                stdin=subprocess.DEVNULL if input is None else None,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
                env=os.environ | {"KUBERC": "off"},  # the user's preferences are not the test's
            )
        except subprocess.TimeoutExpired:
            raise KubectlError(f"`kubectl {' '.join(args)}` took more than {timeout} s.") from None
        if check and result.returncode != 0:
            raise KubectlError(f"`kubectl {' '.join(args)}` failed: {result.stderr.strip()}")
        return result

    def kubeconfig_for(
        self, service_account: str, namespace: str, *, duration: str = "24h"
    ) -> Path:
        """Return a kubeconfig of an existing service account, with its rights and no others.

        Args:
            service_account: its name.
            namespace: its namespace, and the kubeconfig's default one.
            duration: how long its token is valid, as of `kubectl create token`.

        Raises:
            KubectlError: there is no such service account.
        """
        token = self.kubectl(
            "create", "token", service_account, f"--namespace={namespace}", f"--duration={duration}"
        ).stdout.strip()
        path = self.directory / f"{namespace}.{service_account}.kubeconfig"
        return self._write_kubeconfig(path, service_account, token, namespace)

    def kubeconfig_as(self, user: str, *groups: str) -> Path:
        """Return a kubeconfig of a user whom no token names, such as a node: by impersonation.

        Args:
            user: such as `system:node:worker`.
            groups: such as `system:nodes`.
        """
        path = self.directory / f"{user.replace(':', '.')}.kubeconfig"
        return self._write_kubeconfig(path, user, self._token, "default", (user, *groups))

    def stop_apiserver(self) -> None:
        """Stop the API server only: from now on, connections are refused."""
        processes.stop([self._apiserver], grace=_GRACE_SECONDS)

    def start_apiserver(self) -> None:
        """Start the API server again, on its port and with its data, and wait until it is ready."""
        self._apiserver.start()
        self._wait(self._apiserver, lambda: self._answers("/readyz"), "become ready")

    def stop_etcd(self) -> None:
        """Stop etcd only: from now on, the API server answers that it cannot."""
        processes.stop([self._etcd], grace=_GRACE_SECONDS)

    def start_etcd(self) -> None:
        """Start etcd again, with its data, and wait until the API server is ready with it."""
        self._etcd.start()
        self._wait(self._etcd, lambda: self._answers("/readyz"), "serve the API server again")

    def pause(self) -> None:
        """Freeze the API server: connections are accepted by the kernel and never answered."""
        self._apiserver.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused API server go on."""
        self._apiserver.send(signal.SIGCONT)

    def _bring_up(self) -> None:
        credentials.write_private(self._layout.signing_key, credentials.signing_key())
        credentials.write_private(
            self._layout.tokens, f"{self._token},admin,admin,system:masters\n"
        )
        self._etcd.start()
        self._apiserver.start()
        # The API server makes its own certificate, and a key, which it writes last.
        bundle, key = (
            self._layout.certificates / f"apiserver.{suffix}" for suffix in ("crt", "key")
        )
        self._wait(self._apiserver, key.exists, "make its certificate")
        self.ca_file.write_text(credentials.certificate_authority(bundle.read_text()))
        self._write_kubeconfig(self.kubeconfig, "admin", self._token, "default")
        self._wait(self._apiserver, lambda: self._answers("/readyz"), "become ready")
        self._controller_manager.start()
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait(
            self._controller_manager,
            lambda: self._answers(account),
            "make the default service account",
        )

    def _wait(self, program: Program, condition: Callable[[], bool], goal: str) -> None:
        """Wait for a condition, unless one of the programs ends or the time is up."""
        program.wait_until(condition, goal, check=self.check, timeout=self._timeout)

    def _answers(self, path: str) -> bool:
        try:
            return self.request("GET", path)[0] == HTTPStatus.OK
        except OSError:
            return False

    def _write_kubeconfig(
        self,
        path: Path,
        user: str,
        token: str,
        namespace: str,
        impersonated: tuple[str, ...] = (),
    ) -> Path:
        text = credentials.kubeconfig(
            url=self.url,
            authority=self.ca_file.read_text(),
            user=user,
            token=token,
            namespace=namespace,
            impersonated=impersonated,
        )
        return credentials.write_private(path, text)
