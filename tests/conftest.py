"""Fixtures for every test that needs a real API server; nothing starts for those that do not."""

import uuid
from collections.abc import Iterator

import pytest

from controlplane import ControlPlane
from localoperator import OperatorProcess, install
from support import make_namespace


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One control plane for the whole session: a test keeps to a namespace of its own.

    A test that stops, pauses or reconfigures the API server starts one for itself.
    """
    with ControlPlane.start() as running:
        yield running


@pytest.fixture
def own_control_plane() -> Iterator[ControlPlane]:
    """A control plane of the test's own, with everything installed and no operator running."""
    with ControlPlane.start() as running:
        install(running)
        yield running


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """Name of a new namespace that is ready for pods; deleted at the end without waiting."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    make_namespace(control_plane, name)
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def operator(control_plane: ControlPlane) -> Iterator[OperatorProcess]:
    """One replica for the whole session, installed by the manifest, under its own account.

    A test that stops it, or breaks what it needs, starts a control plane of its own.
    """
    install(control_plane)
    with OperatorProcess(control_plane) as replica:
        yield replica.wait_ready()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden`: write what the golden cases give, instead of comparing."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")
    parser.addoption(
        "--write-reliability", action="store_true", help="write the faults' table into docs/"
    )
