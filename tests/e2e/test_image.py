"""The operator's image: what is in it, and what is not."""

import json
import tarfile
from datetime import datetime
from typing import Any

from e2e.cluster import NAMESPACE, OPERATOR, Cluster
from e2e.images import OPERATOR as IMAGE
from nodes import Node
from nodes.images import BASE

MEBIBYTE = 1 << 20


def configuration(node: Node) -> Any:
    def read(archive: tarfile.TarFile, name: str) -> Any:
        file = archive.extractfile(name)
        assert file is not None
        return json.load(file)

    with tarfile.open(node.archives[IMAGE]) as archive:
        (manifest,) = read(archive, "manifest.json")
        return read(archive, manifest["Config"])


def inside(cluster: Cluster, *command: str) -> str:
    return cluster.kubectl(f"--namespace={NAMESPACE}", "exec", OPERATOR, "--", *command)


def test_its_user_is_a_number_and_not_root(node: Node) -> None:
    assert configuration(node)["config"]["User"] == "65532:65532"


def test_it_is_little_more_than_python(node: Node) -> None:
    """What a node has to fetch, unpacked; the most of it is the base, which others share."""
    with tarfile.open(node.archives[IMAGE]) as archive:
        layers = [member.size for member in archive.getmembers() if member.name.endswith(".tar")]
    base, *ours = sorted(layers, reverse=True)
    assert base < 200 * MEBIBYTE, f"{BASE}: {base / MEBIBYTE:.0f} MiB"
    assert sum(ours) < 130 * MEBIBYTE, f"{[size / MEBIBYTE for size in ours]} MiB"


def test_it_has_no_build_tools(cluster: Cluster) -> None:
    tools = ("pip", "pip3", "cc", "gcc", "make")
    program = f"import shutil; print([name for name in {tools} if shutil.which(name)])"
    assert inside(cluster, "python3", "-c", program).strip() == "[]"
    shield_operator = "/opt/shield-operator/bin/python"
    program = "import importlib.util as u; print(u.find_spec('pip'), u.find_spec('setuptools'))"
    assert inside(cluster, shield_operator, "-c", program).strip() == "None None"


def test_it_runs_with_a_read_only_root(cluster: Cluster) -> None:
    mounts = inside(cluster, "cat", "/proc/1/mounts").splitlines()
    (root,) = [line.split() for line in mounts if line.split()[1] == "/"]
    assert "ro" in root[3].split(",")
    assert inside(cluster, "id", "-u").strip() == "65532"


def test_it_serves_soon_after_its_start(cluster: Cluster) -> None:
    for pod in cluster.pods(NAMESPACE):
        (status,) = pod["status"]["containerStatuses"]
        (ready,) = [one for one in pod["status"]["conditions"] if one["type"] == "Ready"]
        begin = datetime.fromisoformat(status["state"]["running"]["startedAt"])
        seconds = (datetime.fromisoformat(ready["lastTransitionTime"]) - begin).total_seconds()
        assert seconds < 20
