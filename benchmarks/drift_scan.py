"""What one drift scan costs: seconds, memory, and how long the event loop is kept from admissions.

``PYTHONPATH=hack .venv/bin/python benchmarks/drift_scan.py [PODS]`` starts a control plane, creates
that many pods as injection leaves them (10,000 by default), and scans them with the operator's own
parts under the operator's own account. Linux only: the peak of memory is the kernel's.
"""

import argparse
import asyncio
import http.client
import json
import os
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any

from controlplane import ControlPlane
from localoperator import NAME, NAMESPACE, install
from shield_operator.cluster import Cluster
from shield_operator.drift import PodCounts
from shield_operator.metrics import Metrics
from shield_operator.model import ConfigRef
from shield_operator.reconciler import Reconciler
from shield_operator.scanning import Scanner
from shield_operator.settings import Settings
from shield_operator.state import State

SHOPS = [f"shop-{number}" for number in range(20)]
THREADS = 8
SCANS = 3
_TICK = 0.001
IMAGE = f"example.com/llm-shield-proxy@sha256:{'0' * 64}"


def main() -> None:
    """Make the pods, scan them, print the cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pods", nargs="?", type=int, default=10_000)
    pods = parser.parse_args().pods
    with ControlPlane.start(apiserver_args=["--max-mutating-requests-inflight=1000"]) as cluster:
        install(cluster)
        begin = time.monotonic()
        with ThreadPoolExecutor(THREADS) as threads:
            parts = [range(first, pods, THREADS) for first in range(THREADS)]
            owners = prepare(cluster)
            list(threads.map(lambda part: create_pods(cluster, owners, part), parts))
        print(f"{pods} pods created in {time.monotonic() - begin:.0f} s")
        os.environ["KUBECONFIG"] = str(cluster.kubeconfig_for(NAME, NAMESPACE))
        asyncio.run(measure(pods))


def prepare(cluster: ControlPlane) -> dict[str, str]:
    """The namespaces, with a config in each, and something that owns pods: its uid."""
    owners = {}
    for shop in SHOPS:
        metadata = {"name": shop}
        create(cluster, "/api/v1/namespaces", {"metadata": metadata})
        account = f"/api/v1/namespaces/{shop}/serviceaccounts/default"
        while cluster.request("GET", account)[0] != HTTPStatus.OK:
            time.sleep(0.1)
        create(
            cluster,
            f"/apis/llm-shield.io/v1alpha1/namespaces/{shop}/shieldsidecarconfigs",
            {
                "apiVersion": "llm-shield.io/v1alpha1",
                "kind": "ShieldSidecarConfig",
                "metadata": {"name": "shield"},
                "spec": {"image": IMAGE},
            },
        )
        path = f"/api/v1/namespaces/{shop}/configmaps"
        owner = create(cluster, path, {"metadata": {"name": "web-7d9c5b8f6d"}})
        owners[shop] = owner["metadata"]["uid"]
    return owners


def create(cluster: ControlPlane, path: str, body: Any) -> Any:
    """Create an object, and return what became of it."""
    status, answer = cluster.request("POST", path, body)
    assert status == HTTPStatus.CREATED, answer
    return json.loads(answer)


def create_pods(cluster: ControlPlane, owners: dict[str, str], numbers: range) -> None:
    """Create these pods over one connection."""
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    host, _, port = cluster.url.removeprefix("https://").partition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=60)
    user = json.loads(cluster.kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]
    headers = {"Authorization": f"Bearer {user['token']}", "Content-Type": "application/json"}
    for number in numbers:
        shop = SHOPS[number % len(SHOPS)]
        connection.request(
            "POST",
            f"/api/v1/namespaces/{shop}/pods",
            json.dumps(pod(number, shop, owners[shop])),
            headers,
        )
        response = connection.getresponse()
        answer = response.read()
        assert response.status == HTTPStatus.CREATED, answer
    connection.close()


def pod(number: int, shop: str, uid: str) -> Any:
    """A pod as a ReplicaSet makes it and injection leaves it; its fingerprint is an older one.

    A ConfigMap owns it: the garbage collector takes away what nobody owns any more.
    """
    name = f"web-7d9c5b8f6d-{number:05}"
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "web-7d9c5b8f6d", "uid": uid}
    return {
        "metadata": {
            "name": name,
            "labels": {
                "app": "web",
                "pod-template-hash": "7d9c5b8f6d",
                "llm-shield.io/injected": "true",
            },
            "annotations": {
                "kubectl.kubernetes.io/default-container": "web",
                "llm-shield.io/config-generation": "1",
                "llm-shield.io/injected-config": f"{shop}/shield",
                "llm-shield.io/injection-hash": f"{number % 2:016}",
            },
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "containers": [{"name": "web", "image": "example.com/web:1"}],
            "initContainers": [
                {"name": "llm-shield-proxy", "image": IMAGE, "restartPolicy": "Always"}
            ],
        },
    }


async def measure(pods: int) -> None:
    """Scan a few times."""
    metrics, settings = Metrics(), Settings()
    async with Cluster.connect(metrics) as cluster:
        state = State(settings)
        state.version_read(await cluster.version())
        await state.relist(cluster.config_pages())
        reconciler = Reconciler(cluster, state, lambda: False)
        scanner = Scanner(cluster, state, reconciler, metrics)
        for number in range(1, SCANS + 1):
            before = forget_peak()
            cpu, begin = time.process_time(), time.monotonic()
            pauses = asyncio.create_task(longest_pause())
            await scanner.scan()
            seconds, cpu = time.monotonic() - begin, time.process_time() - cpu
            pauses.cancel()
            longest = await pauses
            assert state.plans is not None
            assert sum(sum(plans.values()) for plans in state.plans.values()) == pods
            counts = PodCounts.of(state.plans[ConfigRef(SHOPS[0], "shield")], None)
            assert counts.injected == len(range(0, pods, len(SHOPS)))
            print(
                f"scan {number}: {seconds:.2f} s, of which {cpu:.2f} s of this process; "
                f"{(peak() - before) / 2**20:.1f} MiB above the {before / 2**20:.0f} MiB before; "
                f"longest pause of the event loop {longest * 1000:.0f} ms"
            )


async def longest_pause() -> float:
    """Seconds for which the event loop did not come around, at the most; until cancelled."""
    longest = 0.0
    try:
        while True:
            begin = time.monotonic()
            await asyncio.sleep(_TICK)
            longest = max(longest, time.monotonic() - begin - _TICK)
    except asyncio.CancelledError:
        return longest


def forget_peak() -> int:
    """Begin a new peak of resident memory; returns the bytes that are resident now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return resident("VmRSS")


def peak() -> int:
    """Bytes that were resident at the most since `forget_peak`."""
    return resident("VmHWM")


def resident(field: str) -> int:
    """Bytes, as the kernel says."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
