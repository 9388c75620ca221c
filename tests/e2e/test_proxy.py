"""What the real proxy needs, against what the operator gives it: docs/proxy.md has the figures."""

import re

import pytest

from e2e import objects
from e2e.shop import Shop

MEBIBYTE = 1 << 20
MANY = """
import sys
sys.path.append("/usr/local/bin")
import client, os
from concurrent.futures import ThreadPoolExecutor
long = "An order of jane.doe@example.com, card 4111 1111 1111 1111. " * 1500
with ThreadPoolExecutor(8) as pool:
    answers = list(pool.map(lambda _: client.ask(long, os.environ["OPENAI_API_KEY"]), range(24)))
print(len([answer for answer in answers if answer.startswith("You said")]))
"""
"""24 prompts of 90 kB, eight at a time."""


@pytest.fixture(scope="module")
def used(shop: Shop) -> str:
    """A workload whose sidecar has had something to do."""
    shop.apply(objects.workload("Deployment", "busy", objects.template("busy")))
    shop.cluster.rolled_out("deployment/busy", shop.name)
    assert shop.exec("deployment/busy", "python3", "-c", MANY) == "24\n"
    return "deployment/busy"


def inside(shop: Shop, workload: str, *command: str) -> str:
    sidecar = "--container=llm-shield-proxy"
    return shop.cluster.kubectl(
        "exec", workload, sidecar, f"--namespace={shop.name}", "--", *command
    )


def test_its_memory_stays_below_its_limit(shop: Shop, used: str) -> None:
    status = inside(shop, used, "cat", "/proc/1/status")
    (peak,) = re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert int(peak) * 1024 < 200 * MEBIBYTE, "its limit is 256Mi"
    (pod,) = shop.cluster.pods(shop.name, "app=busy")
    assert [one["restartCount"] for one in pod["status"]["initContainerStatuses"]] == [0]


def test_it_misses_no_place_to_write(shop: Shop, used: str) -> None:
    """Under a read-only root; `/tmp` is there, and it leaves nothing in it."""
    logs = shop.cluster.kubectl(
        "logs", used, "--container=llm-shield-proxy", f"--namespace={shop.name}"
    )
    for complaint in ("Read-only file system", "Permission denied", "Errno"):
        assert complaint not in logs
    assert inside(shop, used, "ls", "-A", "/tmp") == ""  # noqa: S108  # in the container
