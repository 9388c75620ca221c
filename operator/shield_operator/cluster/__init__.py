"""Talking to the API server; the only importer of `kubernetes` (its asyncio client)."""

from shield_operator.cluster.client import Cluster
from shield_operator.cluster.credentials import Connection, in_a_pod
from shield_operator.cluster.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NoCredentials,
    NotFound,
    Refused,
    Unreachable,
)
from shield_operator.cluster.lease import Lease
from shield_operator.cluster.requests import FIELD_MANAGER
from shield_operator.cluster.viewing import Viewer

__all__ = [
    "FIELD_MANAGER",
    "Cluster",
    "ClusterError",
    "Conflict",
    "Connection",
    "Forbidden",
    "Lease",
    "NoCredentials",
    "NotFound",
    "Refused",
    "Unreachable",
    "Viewer",
    "in_a_pod",
]
