"""`Node`: containerd, kubelet, kube-proxy and kube-scheduler beside a control plane."""

import http.client
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane import ControlPlane, ProgramError, processes
from controlplane.processes import Program
from nodes import files, machine
from nodes.errors import NodeError
from nodes.files import NODE, Layout

_GRACE_SECONDS = 3.0


class Node:
    """A running node; a context manager that stops it. Only within the machine (`nodes.machine`).

    Attributes:
        control_plane: the control plane that it belongs to.
        archives: the files that its images came in, by name.
        images: references by digest of the images that it has, by name.
    """

    def __init__(
        self, control_plane: ControlPlane, programs: Mapping[str, Path], timeout: float = 60.0
    ) -> None:
        folder = machine.directory()
        if folder is None:
            raise NodeError("A node runs in namespaces of its own: say `make e2e`.")
        self.control_plane = control_plane
        self.archives: Mapping[str, Path] = {}
        self.images: dict[str, str] = {}
        self._timeout = timeout
        self._layout = layout = Layout(directory=folder / "node", cgroup=folder.name)
        layout.directory.mkdir()
        as_user = control_plane.kubeconfig_as
        files.write(layout, proxy_kubeconfig=as_user("system:kube-proxy"))
        self._containerd, self._kubelet, self._proxy, self._scheduler = (
            Program(command, directory=layout.directory)
            for command in (
                files.containerd(Path(str(shutil.which("containerd"))), layout),
                files.kubelet(
                    programs["kubelet"],
                    layout,
                    as_user(f"system:node:{NODE}", "system:nodes", "system:authenticated"),
                ),
                files.proxy(programs["kube-proxy"], layout),
                files.scheduler(programs["kube-scheduler"], as_user("system:kube-scheduler")),
            )
        )
        self._programs = (self._kubelet, self._proxy, self._scheduler, self._containerd)

    def start(self, archives: Mapping[str, Path]) -> Self:
        """Start everything, and return when the node is ready and has the images.

        Args:
            archives: images by name.

        Raises:
            ProgramError: a program did not become ready; the message has the end of its log.
        """
        try:
            self._containerd.start()
            self._wait(self._containerd, self._containerd_answers, "answer")
            self.archives = archives
            for name, archive in archives.items():
                self.images[name] = self._import(name, archive)
            self._proxy.start()
            self._scheduler.start()
            self._start_kubelet()
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

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
        """Stop the programs; the pods' processes end with the machine."""
        processes.stop(self._programs, grace=_GRACE_SECONDS)

    def stop_kubelet(self) -> None:
        """Stop the kubelet and containerd, as for an update of the node; containers go on."""
        processes.stop([self._kubelet, self._containerd], grace=_GRACE_SECONDS)

    def start_kubelet(self) -> None:
        """Start containerd and the kubelet again."""
        self._containerd.start()
        self._wait(self._containerd, self._containerd_answers, "answer")
        self._start_kubelet()

    def check(self) -> None:
        """Raise ProgramError if one of the programs has ended by itself."""
        for program in self._programs:
            program.check()

    def log_tail(self, program: str = "kubelet", lines: int = 20) -> str:
        """The last lines of a program's log."""
        text = (self._layout.directory / f"{program}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def wait_ready(self) -> None:
        """Wait until the node is Ready and takes pods."""
        self._wait(self._kubelet, self._is_ready, "make its node ready")

    def ctr(self, *arguments: str) -> str:
        """Run containerd's own client in the namespace of the kubelet's containers."""
        command = ["ctr", "--address", str(self._layout.containerd_socket), "--namespace", "k8s.io"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NodeError(f"`ctr {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done.stdout

    def _import(self, name: str, archive: Path) -> str:
        """Bring an image in, under its tag and under its digest; return the latter."""
        self.ctr("images", "import", "--digests=false", str(archive))
        listed = self.ctr("images", "list", f"name=={name}").splitlines()[1:]
        if not listed:
            raise NodeError(f"{archive} holds no image {name}.")
        digest = next(word for word in listed[0].split() if word.startswith("sha256:"))
        repository = name.rpartition(":")[0]
        self.ctr("images", "tag", "--force", name, f"{name}@{digest}")
        self.ctr("images", "tag", "--force", name, f"{repository}@{digest}")
        return f"{name}@{digest}"

    def _start_kubelet(self) -> None:
        """Start the kubelet, and again where it ends, as systemd does.

        A containerd that answers may not be ready for it yet, and then it ends.
        """
        deadline = time.monotonic() + self._timeout
        self._kubelet.start()
        while not self._kubelet_is_healthy():
            try:
                self._kubelet.check()
            except ProgramError:
                if time.monotonic() > deadline:
                    raise
                processes.stop([self._kubelet], grace=0)
                self._kubelet.start()
            time.sleep(processes.POLL_SECONDS)

    def _kubelet_is_healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", files.KUBELET_HEALTH_PORT, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _containerd_answers(self) -> bool:
        try:
            self.ctr("version")
        except NodeError:
            return False
        return True

    def _is_ready(self) -> bool:
        status, content = self.control_plane.request("GET", f"/api/v1/nodes/{NODE}")
        if status != HTTPStatus.OK:
            return False
        node = json.loads(content)
        conditions = {one["type"]: one["status"] for one in node["status"].get("conditions", [])}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")

    def _wait(self, program: Program, condition: Callable[[], bool], goal: str) -> None:
        program.wait_until(condition, goal, check=self.check, timeout=self._timeout)
