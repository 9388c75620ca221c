"""The local control plane itself: what the other tests of this folder, and `make demo`, rely on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import controlplane
from controlplane import BuildError, ControlPlane, KubectlError, ProgramError, ensure, pins

HACK = Path(controlplane.__file__).parents[1]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: registry.example/web:1}]
"""


class TestControlPlane:
    def test_a_deployments_replica_set_makes_its_pods(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        control_plane.kubectl("apply", f"--namespace={namespace}", "-f", "-", input=DEPLOYMENT)
        control_plane.kubectl(
            "wait",
            f"--namespace={namespace}",
            "--for=jsonpath={.status.replicas}=2",
            "--timeout=30s",
            "deployment/web",
        )
        found = control_plane.kubectl("get", "pods", f"--namespace={namespace}", "--output=json")
        pods = json.loads(found.stdout)["items"]
        assert [pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods] == ["ReplicaSet"] * 2
        assert {pod["spec"]["serviceAccountName"] for pod in pods} == {"default"}

    def test_the_server_says_its_real_version(self, control_plane: ControlPlane) -> None:
        version = json.loads(control_plane.request("GET", "/version")[1])
        wanted = pins.version(pins.KUBERNETES, pins.source("kube-apiserver"))
        assert version["gitVersion"] == f"v{wanted}"

    def test_a_service_accounts_kubeconfig_has_its_rights_and_no_others(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        here = f"--namespace={namespace}"
        control_plane.kubectl("create", "serviceaccount", "reader", here)
        control_plane.kubectl(
            "create", "role", "reader", "--verb=list", "--resource=configmaps", here
        )
        control_plane.kubectl(
            "create",
            "rolebinding",
            "reader",
            "--role=reader",
            f"--serviceaccount={namespace}:reader",
            here,
        )
        reader = control_plane.kubeconfig_for("reader", namespace)

        allowed = control_plane.kubectl("get", "configmaps", "--output=name", kubeconfig=reader)
        assert allowed.stdout == "configmap/kube-root-ca.crt\n"
        with pytest.raises(KubectlError, match=r"Forbidden.*cannot list resource .secrets."):
            control_plane.kubectl("get", "secrets", kubeconfig=reader)

    def test_restricted_pod_security_is_enforced(
        self, control_plane: ControlPlane, namespace: str
    ) -> None:
        control_plane.kubectl(
            "label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted"
        )
        with pytest.raises(KubectlError, match="violates PodSecurity"):
            control_plane.kubectl(
                "run", "web", "--image=registry.example/web:1", f"--namespace={namespace}"
            )

    def test_credentials_are_their_owners_only(self, control_plane: ControlPlane) -> None:
        assert control_plane.directory.stat().st_mode & 0o077 == 0
        for name in ("admin.kubeconfig", "tokens.csv", "service-accounts.key"):
            assert (control_plane.directory / name).stat().st_mode & 0o077 == 0

    def test_faults_are_survived_and_stop_leaves_nothing(self) -> None:
        with ControlPlane.start() as own:
            own.kubectl("create", "namespace", "kept")

            own.pause()
            with pytest.raises(TimeoutError):
                own.request("GET", "/readyz", timeout=0.3)
            own.resume()
            assert own.request("GET", "/readyz") == (200, b"ok")

            own.stop_apiserver()
            with pytest.raises(ConnectionRefusedError):
                own.request("GET", "/readyz")
            own.start_apiserver()
            assert own.request("GET", "/api/v1/namespaces/kept")[0] == 200

            own.pause()  # stop copes with a frozen program
            pids, begin = set(own.pids.values()), time.monotonic()
        assert time.monotonic() - begin < 5
        assert len(pids) == 3
        assert not any(is_running(pid) for pid in pids)
        assert not own.directory.exists()
        own.stop()

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux has PR_SET_PDEATHSIG")
    def test_a_killed_parent_leaves_no_process(self, tmp_path: Path) -> None:
        script = (
            "import time; from controlplane import ControlPlane; cp = ControlPlane.start();"
            "print(*cp.pids.values(), flush=True); time.sleep(600)"
        )
        environment = os.environ | {"PYTHONPATH": str(HACK), "TMPDIR": str(tmp_path)}
        with subprocess.Popen(
            [sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True
        ) as parent:
            assert parent.stdout
            pids = [int(pid) for pid in parent.stdout.readline().split()]
            parent.kill()
        assert len(pids) == 3
        wait_until(lambda: not any(is_running(pid) for pid in pids))

    def test_a_refused_flag_is_reported_with_the_log(self) -> None:
        with pytest.raises(ProgramError, match=r"(?s)^kube-apiserver ended .*unknown flag: --no"):
            ControlPlane.start(apiserver_args=["--no-such-flag"])

    def test_sigterm_ends_the_command_like_ctrl_c(self, tmp_path: Path) -> None:
        environment = os.environ | {"PYTHONPATH": str(HACK), "TMPDIR": str(tmp_path)}
        with subprocess.Popen(
            [sys.executable, "-m", "controlplane"],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        ) as command:
            assert command.stdout
            assert command.stdout.readline().startswith(f"export KUBECONFIG={tmp_path}/")
            command.send_signal(signal.SIGTERM)
            command.communicate(timeout=10)
        assert command.returncode == 0
        assert list(tmp_path.iterdir()) == []


class TestEnsure:
    @pytest.fixture(autouse=True)
    def no_assets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
        monkeypatch.delenv("KUBERNETES_VERSION", raising=False)

    def test_a_second_call_is_instantaneous_and_needs_no_go(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = ensure()
        monkeypatch.setenv("PATH", "")
        begin = time.monotonic()
        assert ensure() == first
        assert time.monotonic() - begin < 0.1

    def test_what_kubebuilder_assets_has_is_used(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        built = ensure()
        for path in (built.etcd, built.kube_apiserver, built.kubectl):
            (tmp_path / path.name).symlink_to(path)
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
        programs = ensure()
        assert programs.etcd == tmp_path / "etcd"
        assert programs.kube_apiserver == tmp_path / "kube-apiserver"
        assert programs.kubectl == tmp_path / "kubectl"
        assert programs.kube_controller_manager == built.kube_controller_manager

    def test_a_mistaken_kubebuilder_assets_is_one_sentence(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "absent"))
        with pytest.raises(BuildError, match="absent, which is no folder: unset it"):
            ensure()

    def test_a_missing_go_is_one_sentence(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", "")
        with pytest.raises(BuildError, match=r"^`go` is not on PATH, and etcd, .*: install Go"):
            ensure()
        assert list(tmp_path.iterdir()) == []

    def test_a_failed_build_shows_what_go_said(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        fake_go(tmp_path, "echo 'disk full' >&2; exit 1", monkeypatch)
        with pytest.raises(BuildError, match=r"(?s)etcd 3.* failed; Go's output ends:.*disk full"):
            ensure()

    def test_two_concurrent_callers_build_once(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        build = """
            [ "$1" = list ] && exit
            echo "$@" >> "$XDG_CACHE_HOME/builds"
            sleep 0.1
            while [ "$1" != -o ]; do shift; done
            echo > "$2"
        """
        fake_go(tmp_path, build, monkeypatch)
        lines: list[str] = []
        with ThreadPoolExecutor() as threads:
            results = list(threads.map(lambda _: ensure(lines.append), range(2)))
        assert results[0] == results[1]
        assert len((tmp_path / "builds").read_text().splitlines()) == 4
        assert lines.count("waiting for another build of the control plane, 0 s") == 1


def fake_go(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a `go` first on PATH, and the cache into the same, new folder."""
    go = folder / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # an orphan that no init has reaped yet has ended, too
    return not (stat.exists() and ") Z " in stat.read_text())


def wait_until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
