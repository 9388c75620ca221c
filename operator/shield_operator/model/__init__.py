"""The ``ShieldSidecarConfig`` resource: its formats, its dataclasses, and how they are read.

The API server's schema (``crds/``) refuses most mistakes before they get here. `parse` refuses the
same ones again, because configs also come from files, from older schemas, and from API servers
that were told not to validate. Where a schema cannot say what would make the API server refuse
every pod of a config, `parse` says it alone.

The modules, each importing only those above it:

    formats     names, labels, images, quantities
    sharing     equal parts, kept once
    reader      JSON that may be anything, and what is wrong with it
    resource    the dataclasses
    core_types  Kubernetes' own types inside a config
    scheduling  more of them: tolerations and affinity
    parsing     our own fields: `parse`
"""

from shield_operator.model.formats import (
    Json,
    is_dns_label,
    is_dns_subdomain,
    is_image_digest,
    is_label_key,
    is_label_value,
    quantity,
)
from shield_operator.model.parsing import parse
from shield_operator.model.resource import (
    EVERYTHING,
    Application,
    Argument,
    BaseUrl,
    ConfigRef,
    ImagePullPolicy,
    InvalidConfig,
    LabelSelector,
    Mode,
    Payload,
    Problems,
    Requirement,
    Scheduling,
    SecretMount,
    SecretState,
    SecurityContext,
    SelectorOperator,
    ShieldConfig,
)
from shield_operator.model.sharing import frugal, shared

__all__ = [
    "EVERYTHING",
    "Application",
    "Argument",
    "BaseUrl",
    "ConfigRef",
    "ImagePullPolicy",
    "InvalidConfig",
    "Json",
    "LabelSelector",
    "Mode",
    "Payload",
    "Problems",
    "Requirement",
    "Scheduling",
    "SecretMount",
    "SecretState",
    "SecurityContext",
    "SelectorOperator",
    "ShieldConfig",
    "frugal",
    "is_dns_label",
    "is_dns_subdomain",
    "is_image_digest",
    "is_label_key",
    "is_label_value",
    "parse",
    "quantity",
    "shared",
]
