"""``ShieldSidecarConfig`` as frozen dataclasses.

Parts that are Kubernetes' own (environment variables, tolerations, affinity, …) stay raw JSON,
since they are handed on unchanged and since their fields grow with every release. Treat them as
frozen too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias

from shield_operator import names
from shield_operator.model.formats import Json

Problems: TypeAlias = tuple[str, ...]
"""Sentences, each with the path of the field it is about; empty where all is well."""


class Mode(StrEnum):
    """How the sidecar is added."""

    AUTO = "Auto"
    NATIVE = "Native"
    CONTAINER = "Container"
    NONE = "None"


class ImagePullPolicy(StrEnum):
    """Kubernetes' own three."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class SelectorOperator(StrEnum):
    """Kubernetes' own four, of a label selector's expression."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


class SecretState(StrEnum):
    """What is known of a Secret that a sidecar needs."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ConfigRef:
    """Which config: ``namespace/name``."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of a label selector."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet it, as the API server would say."""
        match self.operator:
            case SelectorOperator.IN:
                return labels.get(self.key) in self.values
            case SelectorOperator.NOT_IN:
                return self.key not in labels or labels[self.key] not in self.values
            case SelectorOperator.EXISTS:
                return self.key in labels
            case SelectorOperator.DOES_NOT_EXIST:
                return self.key not in labels


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All of its requirements must be met; without any it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        """False for the selector that matches everything."""
        return bool(self.requirements)


EVERYTHING: Final = LabelSelector()


@dataclass(frozen=True, slots=True)
class SecurityContext:
    """What a config may choose of the sidecar's security context; it can only be made stricter."""

    run_as_user: int | None = None
    run_as_group: int | None = None
    seccomp_profile: Json = None


@dataclass(frozen=True, slots=True)
class SecretMount:
    """Files of a Secret for the sidecar."""

    name: str
    secret_name: str
    mount_path: str
    items: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """A flag for the application; without a value it stands alone."""

    name: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A variable that is to hold the sidecar's URL plus `path`."""

    name: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    """How the application's own container is wired to the sidecar."""

    container: str | None = None
    args: tuple[Argument, ...] = ()
    env: tuple[Json, ...] = ()
    base_url_env: tuple[BaseUrl, ...] = ()
    host_ipc: bool = False

    @property
    def variables(self) -> frozenset[str]:
        """The names of the variables that are set, one way or the other."""
        given = [*(entry.get("name") for entry in self.env), *(u.name for u in self.base_url_env)]
        return frozenset(name for name in given if isinstance(name, str))


@dataclass(frozen=True, slots=True)
class Payload:
    """Files of an image, staged for the application's container."""

    image: str
    mount_path: str
    command: tuple[str, ...] = ()
    path_env: str | None = None


@dataclass(frozen=True, slots=True)
class Scheduling:
    """Placement rules for the pods."""

    node_selector: Mapping[str, str]
    tolerations: tuple[Json, ...] = ()
    affinity: Json = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShieldConfig:
    """A config whose every field could be read."""

    ref: ConfigRef
    generation: int | None = None
    """``metadata.generation``; None where the config is made of the settings alone."""
    image: str | None = None
    secret_name: str | None = None
    image_pull_policy: ImagePullPolicy = ImagePullPolicy.IF_NOT_PRESENT
    image_pull_secrets: tuple[str, ...] = ()
    port: int = names.PORT
    args: tuple[str, ...] = ()
    env: tuple[Json, ...] = ()
    resources: Mapping[str, Mapping[str, Json]] | None = None
    mode: Mode = Mode.AUTO
    security_context: SecurityContext = SecurityContext()
    secret_mounts: tuple[SecretMount, ...] = ()
    pod_selector: LabelSelector = EVERYTHING
    application: Application | None = None
    payload: Payload | None = None
    scheduling: Scheduling | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidConfig:
    """A config that cannot be used.

    `pod_selector` is what could be read of it: an unreadable one matches every pod, so that no pod
    slips past a broken config to another one.
    """

    ref: ConfigRef
    generation: int | None
    problems: Problems
    pod_selector: LabelSelector = EVERYTHING
