"""`make demo`: a pod gets its sidecar, on a real API server, in front of your eyes.

Every step that is printed is checked; the exit status says whether all of it was so.
"""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from controlplane import ControlPlane, ControlPlaneError
from localoperator import OperatorError, OperatorProcess, install

NAMESPACE = "shield-demo"
MANIFEST = """\
apiVersion: v1
kind: Namespace
metadata:
  name: shield-demo
  labels:
    llm-shield.io/inject: enabled
---
apiVersion: v1
kind: Secret
metadata:
  name: shield-keys
  namespace: shield-demo
stringData:
  VALID_VIRTUAL_KEYS: demo-key
---
apiVersion: llm-shield.io/v1alpha1
kind: ShieldSidecarConfig
metadata:
  name: shield
  namespace: shield-demo
spec:
  image: example.com/llm-shield-proxy:1.7.0@sha256:{digest}
  secretName: shield-keys
""".replace("{digest}", "4f" * 32)

DEPLOYMENTS = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: assistant
  namespace: shield-demo
spec:
  selector:
    matchLabels: {app: assistant}
  template:
    metadata:
      labels: {app: assistant}
    spec:
      containers:
        - name: web
          image: example.com/assistant:1
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: legacy
  namespace: shield-demo
spec:
  selector:
    matchLabels: {app: legacy}
  template:
    metadata:
      labels: {app: legacy}
    spec:
      hostNetwork: true
      containers:
        - name: web
          image: example.com/legacy:1
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: batch
  namespace: shield-demo
spec:
  selector:
    matchLabels: {app: batch}
  template:
    metadata:
      labels: {app: batch, llm-shield.io/inject: disabled}
    spec:
      containers:
        - name: worker
          image: example.com/batch:1
"""


class DemoError(Exception):
    """Something was not as it should be; the message says what."""


def main() -> int:
    """Run it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave everything running")
    keep = parser.parse_args().keep
    for number in (signal.SIGTERM, signal.SIGINT):  # SIGINT is ignored in a script's background
        signal.signal(number, signal.default_int_handler)
    try:
        with ControlPlane.start() as control_plane:
            show(control_plane, keep=keep)
    except (ControlPlaneError, OperatorError, DemoError) as error:
        print(f"\ndemo failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped before all was shown", file=sys.stderr)
        return 130
    return 0


def show(control_plane: ControlPlane, *, keep: bool) -> None:
    """All steps, from an empty cluster on.

    Raises:
        DemoError: one of them did not give what it should.
    """
    started = time.monotonic()
    step(f"a real control plane runs at {control_plane.url}")
    install(control_plane)
    step("manifests/install.yaml is applied: definition, service account, permissions")
    with OperatorProcess(control_plane) as operator:
        operator.wait_ready()
        step("the operator runs under its own service account, and made its webhook")
        control_plane.kubectl("apply", "-f", "-", input=MANIFEST)
        step(f"namespace {NAMESPACE} asks for the shield (a label), and has a Secret and a config:")
        show_config(control_plane)
        control_plane.kubectl("apply", "-f", "-", input=DEPLOYMENTS)
        step("three Deployments are applied; their ReplicaSets make the pods")
        show_injected(pod_of(control_plane, "assistant"))
        show_skipped(pod_of(control_plane, "legacy"))
        show_opted_out(pod_of(control_plane, "batch"))
        print(f"\nAll of it took {time.monotonic() - started:.1f} s.")
        if keep:
            wait_for_ctrl_c(control_plane, operator)
        if operator.interrupt() != 0:
            raise DemoError(f"the operator did not stop in order:\n{operator.log_tail()}")


def show_config(control_plane: ControlPlane) -> None:
    """The config, once it is ready."""
    config = "shieldsidecarconfig/shield"
    control_plane.kubectl(
        "wait", "--for=condition=Ready", config, f"--namespace={NAMESPACE}", "--timeout=30s"
    )
    table = control_plane.kubectl("get", "ssc", f"--namespace={NAMESPACE}", "--output=wide")
    print(indented(table.stdout))


def show_injected(pod: dict[str, Any]) -> None:
    """The pod that got the sidecar."""
    print(f"\n  pod {pod['metadata']['name']} has the sidecar:")
    spec = pod["spec"]
    for container in spec.get("initContainers", []):
        native = " (native sidecar: starts first, runs on)" * (
            container.get("restartPolicy") == "Always"
        )
        print(f"    init container  {container['name']}{native}")
        print(f"                    {container['image']}")
    for container in spec["containers"]:
        print(f"    container       {container['name']}")
    print_outcome(pod)
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    sidecars = [c for c in containers if c["name"] == "llm-shield-proxy"]
    check(len(sidecars) == 1, "the pod has exactly one sidecar")
    check(labels(pod).get("llm-shield.io/injected") == "true", "the pod is labelled as injected")
    check(
        annotations(pod).get("llm-shield.io/injected-config") == f"{NAMESPACE}/shield",
        "the pod names the config that was used",
    )


def show_skipped(pod: dict[str, Any]) -> None:
    """The pod that asked for it and cannot have it."""
    print(f"\n  pod {pod['metadata']['name']} asked for it, and could not have it:")
    print_outcome(pod)
    check(len(pod["spec"]["containers"]) == 1, "the skipped pod has no sidecar")
    check("initContainers" not in pod["spec"], "the skipped pod has no native sidecar either")
    check(
        labels(pod).get("llm-shield.io/injection-skipped") == "host-network",
        "the skipped pod says why",
    )


def show_opted_out(pod: dict[str, Any]) -> None:
    """The pod that did not want it."""
    print(f"\n  pod {pod['metadata']['name']} is labelled llm-shield.io/inject=disabled: untouched")
    check("initContainers" not in pod["spec"], "the opted-out pod has no sidecar")
    check(not annotations(pod), "the opted-out pod is untouched")


def print_outcome(pod: dict[str, Any]) -> None:
    """What the operator wrote on the pod."""
    for kind, values in (("label", labels(pod)), ("annotation", annotations(pod))):
        for key, value in sorted(values.items()):
            if key.startswith("llm-shield.io/"):
                print(f"    {kind:15} {key}: {value}")


def pod_of(control_plane: ControlPlane, app: str) -> dict[str, Any]:
    """The pod that a Deployment's ReplicaSet made."""

    def find() -> dict[str, Any] | None:
        answer = control_plane.kubectl(
            "get", "pods", f"--namespace={NAMESPACE}", f"--selector=app={app}", "--output=json"
        )
        found: list[dict[str, Any]] = json.loads(answer.stdout)["items"]
        return found[0] if found else None

    return wait_for(find, f"Deployment {app} made a pod")


def wait_for(
    look: Callable[[], dict[str, Any] | None], what: str, timeout: float = 30.0
) -> dict[str, Any]:
    """What `look` finds, once it finds something.

    Raises:
        DemoError: it found nothing within `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.1)
    raise DemoError(f"not so within {timeout:.0f} s: {what}")


def wait_for_ctrl_c(control_plane: ControlPlane, operator: OperatorProcess) -> None:
    """Leave the reader alone with it."""
    plugin = Path(sys.executable).parent
    print(
        f"\nEverything keeps running. In another terminal:\n\n"
        f"  export KUBECONFIG={control_plane.kubeconfig}\n"
        f"  export PATH={control_plane.kubectl_path.parent}:{plugin}:$PATH\n"
        f"  kubectl get ssc,pods --all-namespaces\n"
        f"  kubectl shield status --all-namespaces\n\n"
        f"The operator is installed and runs as a process of this machine; there are no nodes, so "
        f"pods stay Pending.\n"
        f"The operator logs to {operator.log}, and serves "
        f"http://127.0.0.1:{operator.health_port}/metrics. Ctrl-C stops and removes everything."
    )
    with suppress(KeyboardInterrupt):
        signal.pause()


def labels(pod: dict[str, Any]) -> dict[str, str]:
    """The pod's labels."""
    return pod["metadata"].get("labels") or {}


def annotations(pod: dict[str, Any]) -> dict[str, str]:
    """The pod's annotations."""
    return pod["metadata"].get("annotations") or {}


def check(holds: bool, what: str) -> None:
    """Raise DemoError unless it holds."""
    if not holds:
        raise DemoError(f"not so: {what}")


def step(text: str) -> None:
    """Say what was done."""
    print(f"* {text}", flush=True)


def indented(text: str) -> str:
    """Set off from the steps."""
    return "".join(f"    {line}\n" for line in text.splitlines()).rstrip()


if __name__ == "__main__":
    sys.exit(main())
