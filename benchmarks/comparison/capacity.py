"""What the figures mean for a large cluster: all of docs/capacity.md."""

import math
from typing import Any, Final

from benchmarks.comparison.bars import MB
from benchmarks.comparison.figures import figure
from benchmarks.comparison.peers import OURS
from benchmarks.comparison.report import table

NODES: Final = 5_000
PODS: Final = 150_000
"""The largest cluster that Kubernetes is made for: https://kubernetes.io/docs/setup/best-practices/cluster-large/"""

RATES: Final = (20, 100, 300, 1000)
"""Pods a second, as the writers of pods are limited: see the page."""
_SHARE: Final = 0.5
"""Of a process's throughput that is planned with: the rest is for bursts and slower machines."""
_REPLICAS: Final = 2
"""At the least, so that one may be away."""
_STEP: Final = 32


def replicas(rate: float, throughput: float) -> int:
    """How many are needed for this many pods a second, with one more that may be away."""
    return max(math.ceil(rate / (throughput * _SHARE)) + 1, _REPLICAS)


def minutes(rate: float) -> float:
    """How long a restart of all pods takes at this rate."""
    return PODS / rate / 60


def step(size: float) -> int:
    """Bytes as MiB, rounded up in steps of 32, as a manifest would have them."""
    return math.ceil(size / 2**20 / _STEP) * _STEP


def page(results: Any) -> str:
    """The whole page."""
    many = results["direct"][OURS]["plain/16"]
    throughput, cpu = figure(many["per_second"]).median, figure(many["cpu_ms"]).median
    counts = sorted(results["configs"], key=int)
    few, most = results["configs"][counts[0]], results["configs"][counts[-1]]
    config_size = (most["resident"] - few["resident"]) / (int(counts[-1]) - int(counts[0]))
    request = step(most["after_reviews"] * 1.25)
    limit = step(max(most["peak"], results["memory"][OURS]["peak"]) * 1.25)
    rows = [
        [
            f"{rate:,}",
            f"{minutes(rate):,.1f} min",
            f"{rate * cpu / 1000:.2f}",
            str(replicas(rate, throughput)),
        ]
        for rate in RATES
    ]
    configs = int(counts[-1])
    return f"""\
# Capacity

How many replicas, and how large, for a cluster of {NODES:,} nodes and {PODS:,} pods that are all
created anew at once, as after a restart of everything. `make bench` writes this page from
[what it measured](benchmarks.md), on {results["machine"]["cores"]} cores
({results["machine"]["cpu"]}).

## In short

- **Replicas**: the two of `manifests/install.yaml`, of which one may be away, are planned to answer
  {throughput * _SHARE:,.0f} pods a second: half of the {throughput:,.0f} that one process answers
  here with 16 clients.
- **CPU**: {cpu:.2f} ms for each pod, so {PODS * cpu / 1000 / 60:.1f} minutes of one core for all
  {PODS:,}. A replica uses one core at the most; request what the table below says, and set no limit
  of CPU, which would make bursts wait.
- **Memory**: {few["resident"] / MB:.0f} MB, and {config_size / 1024:.1f} KiB for each config: with
  {configs:,} configs {most["resident"] / MB:.0f} MB. Request {request}Mi, and limit
  {max(limit, 512)}Mi: a review of a pod of 1 MiB takes many times that for a moment, one at a time.
  The number of nodes and of pods does not matter, nor how many were answered before.

## How fast pods come

Who makes the pods sets the pace, not the webhook. Each controller of `kube-controller-manager`
writes with `--kube-api-qps` (20 a second by default; large clusters set 100 and more), the
scheduler binds some hundreds a second, and an API server takes 200 writing requests at a time by
default (`--max-mutating-requests-inflight`), of which each waits for its webhooks.

{table(("pods a second", f"all {PODS:,} take", "cores for admissions", "replicas"), rows)}

That is as many replicas as the rate needs with half of each one's throughput, and one more. A
Service spreads connections, not reviews: an API server keeps few of them, and with a single API
server more replicas help less than evenly.

In a burst above all that, reviews wait in line. From `WEBHOOK_TIMEOUT_SECONDS` on (5 s by default)
they fail: the pod is refused under `FAILURE_POLICY=Fail`, and its controller tries again, ever
less often. At {throughput:,.0f} a second one replica answers {throughput * 5:,.0f} that come at
once within that time, where one API server sends 200.

## What else grows

- **Statuses**: one write by the leader for each config when that changes; with the first start
  beside {configs:,} configs, {configs:,} of them.
- **Secrets**: one `get` of metadata by the leader for each Secret that a config names, once a
  minute: with {configs:,} configs up to {configs / 60:.0f} a second.
- **Configs**: each replica lists all of them once a minute.
- **Drift scan**: once in `DRIFT_SCAN_SECONDS` (60 by default) the leader reads all pods that carry
  our labels, page by page. With {PODS:,} of them set it to 600 or more; `benchmarks/drift_scan.py`
  measures one.

## Tried

{_tried(results)}
"""


def _tried(results: Any) -> str:
    found = results["simulation"]
    failed = sum(found["failures"].values())
    change = (found["resident_after"] - found["resident_before"]) / MB
    outcome = (
        "none failed, and each had its sidecar"
        if not failed
        else f"{failed:,} failed ({max(found['failures'], key=found['failures'].get)[:120]})"
    )
    return (
        f"{found['configs']:,} configs in {found['namespaces']:,} namespaces, pods created in all "
        f"of them in turn by 16 clients as fast as this machine creates: {found['requests']:,} "
        f"pods in {found['seconds']:.0f} s, {found['per_second']:,.0f} a second through the API "
        f"server (p50 {found['p50_ms']:.0f} ms, p99 {found['p99_ms']:.0f} ms); {outcome}. One "
        f"replica answered them all with {found['cpu_ms']:.2f} ms of CPU for each pod (its loops "
        "included, the drift scan and the statuses among them), and its resident memory changed "
        f"by {change:+.1f} MB, to {found['resident_after'] / MB:.0f} MB. The API server, its etcd "
        "and the load generator shared the machine with it, and took the larger part: at this "
        f"pace all {PODS:,} pods would take {PODS / found['per_second'] / 60:.0f} minutes."
    )
