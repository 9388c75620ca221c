"""One cluster with one node for all tests of this folder, and the operator in it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import ControlPlane
from e2e.cluster import Cluster
from e2e.shop import Provider, Shop
from nodes import APISERVER_ARGS, CONTROLLERS, Node, machine, programs


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane that pods reach."""
    if machine.directory() is None:
        pytest.fail("These tests need a node: run them by `make e2e`, as root.", pytrace=False)
    with ControlPlane.start(
        address=machine.ADDRESS, apiserver_args=APISERVER_ARGS, controllers=CONTROLLERS
    ) as running:
        yield running


@pytest.fixture(scope="session")
def node(control_plane: ControlPlane) -> Iterator[Node]:
    """A node that has the images."""
    archives = {name: Path(path) for name, path in json.loads(os.environ["NODE_IMAGES"]).items()}
    with Node(control_plane, programs()) as running:
        yield running.start(archives)


@pytest.fixture(scope="session")
def cluster(node: Node) -> Cluster:
    """The cluster, after `kubectl apply -f manifests/install.yaml` and nothing else."""
    found = Cluster(node)
    found.install()
    return found


@pytest.fixture(scope="session")
def shop(cluster: Cluster) -> Shop:
    """A namespace whose owner uses the shield."""
    return Shop(cluster, Provider(cluster), "shop")


@pytest.fixture(autouse=True)
def _all_run(node: Node) -> None:
    """Where a program has ended by itself, say so at once, rather than wait for pods."""
    node.check()
    node.control_plane.check()
