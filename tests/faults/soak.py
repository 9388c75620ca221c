"""``make soak``: does a replica's memory grow with the admissions that it answers?

One replica as a process, and a fixed corpus of reviews (the golden cases' pods, skipped and hostile
ones among them, and a large one) replayed over TLS and a few connections that are kept.
"""

import argparse
import asyncio
import base64
import os
import ssl
import time
import uuid
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import aiohttp

import examples
from controlplane import ControlPlane
from faults import document
from golden.cases import CASES
from localoperator import OperatorProcess, install
from support import INJECT, UID, WEBHOOKS, WebhookClient, apply, get, make_namespace, wait_reason

_CONNECTIONS: Final = 4
_WARM_UP: Final = 0.1
"""The share of the replays after which memory counts: allocators and caches have filled up."""
_SAMPLES: Final = 50


@dataclass(frozen=True)
class Sample:
    """The resident memory, in MiB, after so many admissions."""

    admissions: int
    resident: float


def slope(samples: list[Sample]) -> float:
    """MiB for each 100,000 admissions, by least squares."""
    xs = [sample.admissions / 100_000 for sample in samples]
    ys = [sample.resident for sample in samples]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)


def corpus() -> list[bytes]:
    """The reviews: a body each, as the API server would send it."""
    pods = [(case.namespace["metadata"]["name"], case.pod) for case in CASES]
    large = examples.pod(annotations={"note": "x" * 200_000})
    pods += [("shop", examples.pod()), ("shop", large), ("nowhere", examples.pod())]
    return [WebhookClient.body(namespace, pod) for namespace, pod in pods]


async def replay(
    replica: OperatorProcess, control_plane: ControlPlane, total: int
) -> tuple[list[Sample], dict[str, int]]:
    """Send the corpus over and over, `total` reviews in all; returns samples and the answers."""
    hook = get(control_plane, WEBHOOKS)["webhooks"][0]["clientConfig"]
    authority = base64.b64decode(hook["caBundle"]).decode()
    context = ssl.create_default_context(cadata=authority)
    bodies = corpus()
    samples: list[Sample] = []
    answers: dict[str, int] = {}
    sent = 0

    async def send(session: aiohttp.ClientSession) -> None:
        nonlocal sent
        while sent < total:
            number, sent = sent, sent + 1
            # As the API server does: no two reviews have one uid.
            body = bodies[number % len(bodies)].replace(UID.encode(), str(uuid.uuid4()).encode())
            async with session.post(hook["url"], data=body) as response:
                found = await response.json()
                assert response.status == HTTPStatus.OK, found
            kind = "patched" if "patch" in found["response"] else "left alone"
            answers[kind] = answers.get(kind, 0) + 1
            if number % (total // _SAMPLES) == 0:
                samples.append(Sample(number, replica.resident_memory() / 2**20))

    connector = aiohttp.TCPConnector(ssl=context, limit=_CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        for _ in range(_CONNECTIONS):
            group.create_task(send(session))
    samples.append(Sample(total, replica.resident_memory() / 2**20))
    return samples, answers


def soak(total: int) -> str:
    """Do it, and say what was found, as Markdown."""
    load = os.getloadavg()[0]
    with ControlPlane.start() as control_plane:
        install(control_plane)
        prepare(control_plane)
        with OperatorProcess(control_plane) as replica:
            replica.wait_ready()
            wait_reason(control_plane, "shop", "shield", "Accepted")
            begin = time.monotonic()
            samples, answers = asyncio.run(replay(replica, control_plane, total))
            took = time.monotonic() - begin
    warm = [sample for sample in samples if sample.admissions >= total * _WARM_UP]
    lines = [
        "| admissions | resident memory |",
        "| ---: | ---: |",
        *(f"| {s.admissions:,} | {s.resident:.1f} MiB |" for s in (samples[0], *_some(warm))),
    ]
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(answers.items()))
    growth = warm[-1].resident - warm[0].resident
    verdict = (
        f"{total:,} admissions ({counts}) of {len(corpus())} different pods in {took:.0f} s, over "
        f"{_CONNECTIONS} connections. After the first {warm[0].admissions:,} the resident memory "
        f"changed by {growth:+.1f} MiB; the slope over {len(warm)} samples is "
        f"{slope(warm):+.2f} MiB for each 100,000 admissions. The machine has "
        f"{os.cpu_count()} cores; its load average was {load:.1f} when it began."
    )
    return "\n".join((verdict, "", *lines))


def prepare(control_plane: ControlPlane) -> None:
    """The golden cases' namespaces and configs, and one more of each."""
    make_namespace(control_plane, "shop", INJECT)
    configs: list[Any] = [examples.config(namespace="shop", secretName=None)]
    for case in CASES:
        metadata = case.namespace["metadata"]
        make_namespace(control_plane, metadata["name"], metadata.get("labels"))
        configs += case.configs
    apply(control_plane, *configs)


def _some(samples: list[Sample], count: int = 10) -> list[Sample]:
    """The first, the last, and some between."""
    step = (len(samples) - 1) / (count - 1)
    return [samples[round(number * step)] for number in range(count)]


def main() -> None:
    """Soak, print, and write the document."""
    parser = argparse.ArgumentParser(description="Replay admissions to one replica.")
    parser.add_argument("--admissions", type=int, default=100_000)
    parser.add_argument("--no-document", action="store_true", help="do not write docs/")
    arguments = parser.parse_args()
    found = soak(arguments.admissions)
    print(found)
    if not arguments.no_document:
        document.write(document.SOAK_SECTION, found)


if __name__ == "__main__":
    main()
