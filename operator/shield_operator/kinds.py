"""The kinds of objects that the operator and its command line meet, as kubectl calls them."""

from dataclasses import dataclass
from typing import Final

from shield_operator import names


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object, and where the API server has it."""

    kind: str
    plural: str
    group: str = ""
    short: str = ""
    version: str = "v1"

    @property
    def singular(self) -> str:
        """As kubectl prints it in ``deployment/web``."""
        return self.kind.lower()

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Where an object is, or the list of them."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if namespace else ""
        return f"{root}{within}/{self.plural}{f'/{name}' if name else ''}"


POD: Final = Kind("Pod", "pods", short="po")
NAMESPACE: Final = Kind("Namespace", "namespaces", short="ns")
SECRET: Final = Kind("Secret", "secrets")
DEPLOYMENT: Final = Kind("Deployment", "deployments", "apps", "deploy")
REPLICA_SET: Final = Kind("ReplicaSet", "replicasets", "apps", "rs")
STATEFUL_SET: Final = Kind("StatefulSet", "statefulsets", "apps", "sts")
DAEMON_SET: Final = Kind("DaemonSet", "daemonsets", "apps", "ds")
REPLICATION_CONTROLLER: Final = Kind("ReplicationController", "replicationcontrollers", short="rc")
JOB: Final = Kind("Job", "jobs", "batch")
CRON_JOB: Final = Kind("CronJob", "cronjobs", "batch", "cj")
CONFIG: Final = Kind(names.KIND, names.PLURAL, names.API_GROUP, "ssc", names.API_VERSION)
EVENT: Final = Kind("Event", "events", "events.k8s.io", "ev")
LEASE: Final = Kind("Lease", "leases", "coordination.k8s.io")
DEFINITION: Final = Kind(
    "CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io", "crd"
)
WEBHOOK_CONFIGURATION: Final = Kind(
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    "admissionregistration.k8s.io",
)

WORKLOADS: Final = (
    DEPLOYMENT,
    REPLICA_SET,
    STATEFUL_SET,
    DAEMON_SET,
    REPLICATION_CONTROLLER,
    JOB,
    CRON_JOB,
)
"""The built-in kinds that make pods of a template."""


def named(text: str) -> Kind | None:
    """The kind of pods or workloads that kubectl would take for this name, such as ``deploy``."""
    wanted = text.lower().partition(".")[0]
    for kind in (POD, *WORKLOADS):
        if wanted and wanted in (kind.singular, kind.plural, kind.short):
            return kind
    return None
