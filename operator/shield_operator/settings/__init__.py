"""The operator's settings: read once from the environment, checked as a whole, then frozen.

Each setting is one field of `Settings`; its metadata names the environment variable and describes
it, and the command line makes its flags from the same table. Nothing else reads the environment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Final

from shield_operator import names
from shield_operator.settings import parsers
from shield_operator.settings.parsers import FeatureGate, is_token

__all__ = [
    "FailurePolicy",
    "FeatureGate",
    "LogFormat",
    "LogLevel",
    "Settings",
    "SettingsError",
    "UninjectedPodPolicy",
    "is_token",
]


class SettingsError(Exception):
    """The environment holds values that cannot be used; `problems` names every one of them."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class FailurePolicy(StrEnum):
    """What the API server does with a pod when the webhook cannot be asked.

    https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#failure-policy
    """

    FAIL = "Fail"
    IGNORE = "Ignore"


class UninjectedPodPolicy(StrEnum):
    """What happens to a pod that asked for the sidecar and cannot have it."""

    ADMIT = "Admit"
    DENY = "Deny"


class LogFormat(StrEnum):
    """How a log line looks."""

    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """The least severe kind of message that is logged."""

    DEBUG = "DEBUG"
    INFO = "INFO"
    WARNING = "WARNING"
    ERROR = "ERROR"


def _about(
    variable: str, parse: Callable[[str], object], help_text: str, *, secret: bool = False
) -> Mapping[str, object]:
    """What the environment and the command line need to know of a field of `Settings`.

    One that is `secret` comes by the environment only, never by flag, and is never shown.
    """
    return {"variable": variable, "parse": parse, "help": help_text, "secret": secret}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator was told at its start; an unset setting has the default shown here."""

    namespace: str = field(
        default=names.OPERATOR_NAMESPACE,
        metadata=_about(
            "POD_NAMESPACE",
            parsers.namespace,
            "The operator's own namespace: its Secret, its Service, the cluster's default config.",
        ),
    )
    sidecar_image: str | None = field(
        default=None,
        metadata=_about(
            "K8S_SIDECAR_IMAGE",
            parsers.image,
            "The sidecar's image, by digest, where a config names none (and where there is none).",
        ),
    )
    sidecar_secret_name: str | None = field(
        default=None,
        metadata=_about(
            "K8S_SIDECAR_SECRET_NAME",
            parsers.name,
            "The sidecar's Secret, in the pod's namespace, where a config names none.",
        ),
    )
    feature_gates: Mapping[FeatureGate, bool] = field(
        default_factory=dict,
        metadata=_about(
            "K8S_FEATURE_GATES",
            parsers.gates,
            "Cluster features whose state the version does not tell: SidecarContainers=true|false, "
            "ImageVolume=true|false.",
        ),
    )
    uninjected_pod_policy: UninjectedPodPolicy = field(
        default=UninjectedPodPolicy.ADMIT,
        metadata=_about(
            "UNINJECTED_POD_POLICY",
            parsers.one_of(UninjectedPodPolicy),
            "A pod that asked for the sidecar and cannot have it: Admit (marked) or Deny (403).",
        ),
    )
    failure_policy: FailurePolicy = field(
        default=FailurePolicy.FAIL,
        metadata=_about(
            "FAILURE_POLICY",
            parsers.one_of(FailurePolicy),
            "A pod that asked for the sidecar while no replica answers: Fail (refused) or Ignore.",
        ),
    )
    webhook_timeout: int = field(
        default=5,
        metadata=_about(
            "WEBHOOK_TIMEOUT_SECONDS",
            parsers.timeout,
            "Seconds that the API server waits for an answer, 1 to 30.",
        ),
    )
    webhook_port: int = field(
        default=names.WEBHOOK_PORT,
        metadata=_about(
            "WEBHOOK_PORT", parsers.port, "The port on which admissions are served (TLS)."
        ),
    )
    health_port: int = field(
        default=names.HEALTH_PORT,
        metadata=_about(
            "HEALTH_PORT", parsers.port, "The plain HTTP port of /livez, /readyz, /metrics."
        ),
    )
    webhook_service: str = field(
        default=names.OPERATOR,
        metadata=_about(
            "WEBHOOK_SERVICE",
            parsers.service,
            "The Service, in the operator's namespace, that leads the API server to the webhook.",
        ),
    )
    webhook_url: str | None = field(
        default=None,
        metadata=_about(
            "WEBHOOK_URL",
            parsers.url,
            "Where the API server reaches an operator that runs outside the cluster.",
        ),
    )
    tls_secret_name: str = field(
        default=names.TLS_SECRET,
        metadata=_about(
            "TLS_SECRET_NAME",
            parsers.name,
            "The Secret, in the operator's namespace, with the certificate of all replicas.",
        ),
    )
    drift_scan_interval: int = field(
        default=60,
        metadata=_about(
            "DRIFT_SCAN_SECONDS",
            parsers.interval,
            "Seconds between two counts of the injected pods, 1 to 86400.",
        ),
    )
    tls_cert_file: str | None = field(
        default=None,
        metadata=_about(
            "TLS_CERT_FILE",
            parsers.file,
            "A certificate of your own instead of the Secret: PEM, with its chain if it has one.",
        ),
    )
    tls_key_file: str | None = field(
        default=None,
        metadata=_about(
            "TLS_KEY_FILE", parsers.file, "Its private key: PEM, without a passphrase."
        ),
    )
    tls_ca_file: str | None = field(
        default=None,
        metadata=_about(
            "TLS_CA_FILE",
            parsers.file,
            "The authorities, PEM, that the API server is to trust for it.",
        ),
    )
    webhook_auth_token: str | None = field(
        default=None,
        repr=False,
        metadata=_about(
            "K8S_WEBHOOK_AUTH_TOKEN",
            parsers.token,
            "The bearer token that the API server must present.",
            secret=True,
        ),
    )
    webhook_auth_token_file: str | None = field(
        default=None,
        metadata=_about(
            "K8S_WEBHOOK_AUTH_TOKEN_FILE",
            parsers.file,
            "A file with that token, or with several, one a line; read again when it changes.",
        ),
    )
    webhook_client_ca_file: str | None = field(
        default=None,
        metadata=_about(
            "WEBHOOK_CLIENT_CA_FILE",
            parsers.file,
            "Authorities, PEM: the API server must present a certificate of one of them.",
        ),
    )
    log_level: LogLevel = field(
        default=LogLevel.INFO,
        metadata=_about("LOG_LEVEL", parsers.one_of(LogLevel), "DEBUG, INFO, WARNING or ERROR."),
    )
    log_format: LogFormat = field(
        default=LogFormat.JSON,
        metadata=_about("LOG_FORMAT", parsers.one_of(LogFormat), "json or text."),
    )

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> "Settings":
        """Read every setting from `environment`; an empty value counts as unset.

        Raises:
            SettingsError: with every value that cannot be used, not only the first.
        """
        values: dict[str, Any] = {}
        problems: list[str] = []
        for setting in fields(cls):
            variable = setting.metadata["variable"]
            text = environment.get(variable, "").strip()
            if not text:
                continue
            try:
                values[setting.name] = setting.metadata["parse"](text)
            except ValueError as expected:
                shown = "not usable" if setting.metadata["secret"] else repr(text)
                problems.append(f"{variable} is {shown}: it must be {expected}")
        problems += _contradictions(environment)
        if problems:
            raise SettingsError(tuple(problems))
        settings = cls(**values)
        if settings.webhook_port == settings.health_port:
            raise SettingsError(
                (f"WEBHOOK_PORT and HEALTH_PORT are both {settings.health_port}: they must differ",)
            )
        return settings


_ONLY_ONE_OF: Final = (
    ("WEBHOOK_URL", "WEBHOOK_SERVICE"),
    ("K8S_WEBHOOK_AUTH_TOKEN", "K8S_WEBHOOK_AUTH_TOKEN_FILE"),
)
_TLS_FILES: Final = ("TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE")


def _contradictions(environment: Mapping[str, str]) -> list[str]:
    """What is wrong with settings that are good each by itself."""

    def is_set(variable: str) -> bool:
        return bool(environment.get(variable, "").strip())

    found = [
        f"{one} and {other} are both set: set only one of them"
        for one, other in _ONLY_ONE_OF
        if is_set(one) and is_set(other)
    ]
    missing = [variable for variable in _TLS_FILES if not is_set(variable)]
    if missing and len(missing) < len(_TLS_FILES):
        found.append(f"{', '.join(_TLS_FILES)} go together: set {' and '.join(missing)} too")
    return found
