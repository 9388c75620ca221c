"""What an operator was told at its start, read from its Deployment.

A person at a terminal has none of the operator's environment; what `kubectl shield` says would be
wrong without it where the operator has, say, an image of its own for namespaces without a config.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from shield_operator import names, raw
from shield_operator.model import Json
from shield_operator.settings import Settings, SettingsError

_DECIDING: Final = frozenset(
    ("sidecar_image", "sidecar_secret_name", "feature_gates", "uninjected_pod_policy")
)


def deciding(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of a person's environment that decides about pods.

    The rest is none of our business: a LOG_LEVEL may be another program's, and POD_NAMESPACE is
    that of whatever pod this runs in.
    """
    variables = [each.metadata["variable"] for each in fields(Settings) if each.name in _DECIDING]
    return {name: environment[name] for name in variables if name in environment}


@dataclass(frozen=True, slots=True)
class Installation:
    """The operator's settings, as far as they can be seen."""

    settings: Settings
    unknown: tuple[str, ...] = ()
    """Variables that come from somewhere else (a ConfigMap, say), and could not be taken in."""


def environment_of(deployment: Json) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables of the operator's container, and those whose value is not in the Deployment.

    A flag counts as the variable that it stands for.
    """
    given: dict[str, str] = {}
    unknown: list[str] = []
    containers = raw.items(deployment, "spec", "template", "spec", "containers")
    container = next((c for c in containers if c.get("name") == "operator"), None)
    if container is None and containers:
        container = containers[0]
    known = {setting.metadata["variable"] for setting in fields(Settings)}
    for variable in raw.items(container, "env"):
        name = str(variable.get("name"))
        if name not in known:
            continue
        path = raw.mapping(variable, "valueFrom", "fieldRef").get("fieldPath")
        if path == "metadata.namespace":
            given[name] = str(raw.mapping(deployment, "metadata").get("namespace"))
        elif "valueFrom" in variable:
            unknown.append(name)
        else:
            given[name] = str(variable.get("value") or "")
    given.update(_flags([*raw.texts(container, "command"), *raw.texts(container, "args")], known))
    return given, tuple(unknown)


def _flags(arguments: list[str], known: set[str]) -> dict[str, str]:
    given = {}
    for argument, following in itertools.pairwise([*arguments, ""]):
        flag, equals, value = argument.partition("=")
        variable = flag.removeprefix("--").replace("-", "_").upper()
        if flag.startswith("--") and variable in known:
            given[variable] = value if equals else following
    return given


def installation_of(
    deployment: Json, environment: Mapping[str, str], namespace: str | None = None
) -> Installation:
    """The settings of a running operator; what the caller's environment says wins.

    Args:
        deployment: the operator's, or None where there is none that can be read.
        environment: the caller's.
        namespace: the operator's, where the caller knows it.

    Raises:
        SettingsError: where the caller's environment holds what cannot be used.
    """
    given, unknown = environment_of(deployment)
    try:
        Settings.from_env(given)
    except SettingsError as error:  # of a version that knows more than this plugin does
        given, unknown = {}, (*unknown, *error.problems)
    where = namespace or given.get(_NAMESPACE) or names.OPERATOR_NAMESPACE
    return Installation(
        Settings.from_env({**given, **deciding(environment), _NAMESPACE: where}), unknown
    )


_NAMESPACE: Final = "POD_NAMESPACE"
