"""Every name that users, other programs, or our own later selves rely on.

A name is spelled here and nowhere else, so that reading this file shows the whole surface of the
operator, and a rename cannot be done by halves.
"""

from typing import Final

DOMAIN: Final = "llm-shield.io"
"""The prefix of our label and annotation keys, and the API group of our resource."""

# --- The resource ---------------------------------------------------------------------------------

API_GROUP: Final = DOMAIN
API_VERSION: Final = "v1alpha1"
KIND: Final = "ShieldSidecarConfig"
PLURAL: Final = "shieldsidecarconfigs"

# --- Written by users -----------------------------------------------------------------------------

INJECT_LABEL: Final = f"{DOMAIN}/inject"
"""On a namespace or a pod: one of `IN_VALUES` asks for the sidecar, one of `OUT_VALUES` forbids."""

IN_VALUES: Final = ("true", "enabled")
OUT_VALUES: Final = ("false", "disabled")

CONFIG_ANNOTATION: Final = f"{DOMAIN}/config"
"""On a pod: the name of the config, in the pod's own namespace, to use."""

KEYS_SECRET_ANNOTATION: Final = f"{DOMAIN}/keys-secret"
"""On a pod: the name of the Secret to use in place of the config's ``secretName``."""

CONTAINER_ANNOTATION: Final = f"{DOMAIN}/container"
"""On a pod: the application container to wire."""

IMAGE_PULL_SECRETS_ANNOTATION: Final = f"{DOMAIN}/image-pull-secrets"
"""On a pod: comma-separated names that replace the config's list."""

# --- Written by the operator: the outcome, on the pod ---------------------------------------------

INJECTED_LABEL: Final = f"{DOMAIN}/injected"
INJECTED_VALUE: Final = "true"
INJECTED_CONFIG_ANNOTATION: Final = f"{DOMAIN}/injected-config"
CONFIG_GENERATION_ANNOTATION: Final = f"{DOMAIN}/config-generation"
INJECTION_HASH_ANNOTATION: Final = f"{DOMAIN}/injection-hash"
KEPT_BY_USER_ANNOTATION: Final = f"{DOMAIN}/kept-by-user"
INJECTION_SKIPPED_LABEL: Final = f"{DOMAIN}/injection-skipped"
SKIP_REASON_ANNOTATION: Final = f"{DOMAIN}/skip-reason"

INJECTED_ANNOTATIONS: Final = (
    INJECTED_CONFIG_ANNOTATION,
    CONFIG_GENERATION_ANNOTATION,
    INJECTION_HASH_ANNOTATION,
    KEPT_BY_USER_ANNOTATION,
)

# --- Added to the pod -----------------------------------------------------------------------------

SIDECAR: Final = "llm-shield-proxy"
"""The sidecar container's name."""

MARK_VARIABLE: Final = "LLM_SHIELD_INJECTED"
"""An environment variable inside the sidecar, ``<namespace>/<name>@<hash>``: how we know our own.

Annotations get lost when a pod is copied, and anybody can write them; the container itself cannot
get lost without taking the sidecar along.
"""

PORT_NAME: Final = "llm-shield"
PORT: Final = 8000
"""Where the proxy's image listens unless it is told otherwise."""

TMP_PATH: Final = "/tmp"  # noqa: S108  # in the sidecar
SECRETS_PATH: Final = "/etc/llm-shield/secrets"
"""Where a mounted Secret appears unless its config says otherwise, in a folder of its name."""

TMP_VOLUME: Final = "llm-shield-tmp"
NO_TOKEN_VOLUME: Final = "llm-shield-no-token"  # noqa: S105  # a volume's name
SECRET_VOLUME_PREFIX: Final = "llm-shield-secret-"  # noqa: S105  # a volume's name
PAYLOAD_VOLUME: Final = "llm-shield-payload"
PAYLOAD_STAGE: Final = "llm-shield-payload-stage"
"""The init container that copies the payload's files into its volume."""

SETTINGS_CONFIG: Final = "-/settings"
"""What the mark and the annotation call a config that is made of the settings alone."""


def kept_argument(flag: str) -> str:
    """What `KEPT_BY_USER_ANNOTATION` calls a flag that the application has already."""
    return f"arg:{flag}"


def kept_variable(name: str) -> str:
    """What it calls a variable that the application has already."""
    return f"env:{name}"


def kept_mount(path: str) -> str:
    """What it calls a place where the application mounts something of its own."""
    return f"mount:{path}"


def kept_rule(field: str, key: str) -> str:
    """What it calls a scheduling rule: ``nodeSelector:<label>`` or ``affinity:<kind>``."""
    return f"{field}:{key}"


KEPT_HOST_IPC: Final = "hostIPC"
"""What it calls the IPC namespace of a pod that cannot do with the node's."""

# --- Kubernetes' own ------------------------------------------------------------------------------

NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"
OS_LABEL: Final = "kubernetes.io/os"
WINDOWS: Final = "windows"
MIRROR_POD_ANNOTATION: Final = "kubernetes.io/config.mirror"
DEFAULT_CONTAINER_ANNOTATION: Final = "kubectl.kubernetes.io/default-container"
TOKEN_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  # a path
CLUSTER_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces whose pods are never ours, whatever their labels say."""

# --- The installation -----------------------------------------------------------------------------

OPERATOR: Final = "llm-shield-operator"
"""The name of our Deployment, Service, ServiceAccount, ClusterRole, Lease, webhook configuration
and field manager."""

OPERATOR_NAMESPACE: Final = "llm-shield-system"
TLS_SECRET: Final = f"{OPERATOR}-tls"
DEFAULT_CONFIG: Final = "default"
"""The config of this name in the operator's own namespace is the cluster's default."""

NAMESPACE_WEBHOOK: Final = f"namespace.inject.{DOMAIN}"
POD_WEBHOOK: Final = f"pod.inject.{DOMAIN}"
INJECT_PATH: Final = "/inject"
HANDLER: Final = "inject"
"""What Kopf calls our handler in its log."""
WEBHOOK_PORT: Final = 9443
HEALTH_PORT: Final = 8080
