"""What to do with a pod: `decide` is the one place where that is settled.

The webhook and the command line call it with the same arguments and cannot disagree. Its truth
table, from which its tests are generated (``tests/unit/test_decision.py``); "-" stands for nothing
special, the first column that is not "-" decides:

| namespace | pod label | in the pod            | configs   | outcome                    |
|-----------|-----------|-----------------------|-----------|----------------------------|
| in        | -         | -                     | one       | inject                     |
| in        | in        | -                     | one       | inject                     |
| in        | other     | -                     | one       | inject                     |
| in        | out       | -                     | one       | ignore                     |
| neither   | in        | -                     | one       | inject                     |
| neither   | -         | -                     | one       | ignore                     |
| neither   | other     | -                     | one       | ignore                     |
| neither   | out       | -                     | one       | ignore                     |
| out       | in        | -                     | one       | ignore                     |
| out       | -         | -                     | one       | ignore                     |
| excluded  | in        | -                     | one       | ignore                     |
| unknown   | -         | -                     | one       | inject                     |
| unknown   | in        | -                     | one       | inject                     |
| unknown   | out       | -                     | one       | ignore                     |
| in        | -         | our sidecar           | one       | ignore                     |
| in        | -         | our plain sidecar     | one       | ignore                     |
| in        | -         | our sidecar           | none      | ignore                     |
| in        | -         | forged stamps         | one       | inject                     |
| in        | -         | bad annotation        | one       | invalid-annotation         |
| in        | -         | bad annotation        | none      | invalid-annotation         |
| in        | -         | -                     | none      | no-sidecar-config          |
| in        | -         | -                     | elsewhere | no-sidecar-config          |
| in        | -         | names another config  | one       | no-sidecar-config          |
| in        | -         | names the config      | two       | inject                     |
| in        | -         | -                     | two       | ambiguous-sidecar-config   |
| in        | -         | -                     | invalid   | invalid-sidecar-config     |
| in        | -         | -                     | default   | inject                     |
| in        | -         | -                     | settings  | inject                     |
| in        | -         | foreign container     | one       | container-name-conflict    |
| in        | -         | foreign init          | one       | container-name-conflict    |
| in        | -         | forged mark           | one       | container-name-conflict    |
| in        | -         | mark that ends early  | one       | container-name-conflict    |
| in        | -         | foreign container     | none      | no-sidecar-config          |
| in        | -         | foreign volume        | one       | volume-name-conflict       |
| in        | -         | our volume            | one       | inject                     |
| in        | -         | port taken            | one       | port-conflict              |
| in        | -         | port taken by init    | one       | port-conflict              |
| in        | -         | port taken, UDP       | one       | inject                     |
| in        | -         | too little for a pod  | one       | pod-resources              |
| in        | -         | enough for a pod      | one       | inject                     |
| in        | -         | host network          | one       | host-network               |
| in        | -         | windows               | one       | unsupported-os             |
| in        | -         | windows node selector | one       | unsupported-os             |
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, TypeAlias, cast

from shield_operator import names, pods, raw, resources
from shield_operator.model import Json, SecretState, is_dns_label, is_dns_subdomain
from shield_operator.plan import Plan
from shield_operator.selection import (
    AmbiguousConfigs,
    ConfigIndex,
    IndexedConfig,
    NoConfig,
    Selected,
    is_opted_in,
    select,
)
from shield_operator.settings import Settings
from shield_operator.text import one_line


class SkipReason(StrEnum):
    """Why a pod that asked for the sidecar does not get it, in the order of the checks.

    The word is the label's value, the metric's label and the command line's code.
    """

    INVALID_ANNOTATION = "invalid-annotation"
    NO_SIDECAR_CONFIG = "no-sidecar-config"
    AMBIGUOUS_SIDECAR_CONFIG = "ambiguous-sidecar-config"
    INVALID_SIDECAR_CONFIG = "invalid-sidecar-config"
    CONTAINER_NAME_CONFLICT = "container-name-conflict"
    VOLUME_NAME_CONFLICT = "volume-name-conflict"
    PORT_CONFLICT = "port-conflict"
    POD_RESOURCES = "pod-resources"
    HOST_NETWORK = "host-network"
    UNSUPPORTED_OS = "unsupported-os"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Leave the pod as it is: it did not ask, or has what it asked for."""

    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inject:
    """Apply the plan."""

    plan: Plan
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """The pod asked and cannot have it; `sentence` says why and what to do."""

    reason: SkipReason
    sentence: str
    warnings: tuple[str, ...] = ()


Decision: TypeAlias = Ignore | Inject | Skip


def decide(
    pod: Json,
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    secrets: Mapping[str, SecretState],
    configs: ConfigIndex,
    settings: Settings,
) -> Decision:
    """Decide about one pod; see the table above. Never raises, whatever the pod's JSON holds.

    The warnings of what comes back are lines for whoever makes the pod.

    Args:
        pod: the pod as JSON, or a workload's template.
        namespace: the pod's namespace, which a pod under admission does not name itself.
        namespace_labels: None where the webhooks' selectors have looked at them.
        secrets: what is known of Secrets in that namespace, by name; the rest is unknown.
        configs: every config of the cluster.
        settings: the operator's.
    """
    if not is_opted_in(pods.labels(pod), namespace, namespace_labels, settings):
        return Ignore()
    selected = select(pods.annotations(pod), pods.labels(pod), namespace, configs)
    mark = pods.mark(pod)
    if mark is not None:
        return Ignore(tuple(_doubts(pod, mark, selected)))
    if skip := _why_skip(pod, namespace, selected):
        kept = {names.INJECTION_SKIPPED_LABEL: skip.reason.value, names.INJECTED_LABEL: None}
        return replace(skip, warnings=(*skip.warnings, *_kept_labels(pod, kept)))
    plan = cast("Plan", selected)
    kept = {names.INJECTED_LABEL: names.INJECTED_VALUE, names.INJECTION_SKIPPED_LABEL: None}
    return Inject(plan, (*_warnings(pod, namespace, plan, secrets), *_kept_labels(pod, kept)))


def needed_secrets(pod: Json, plan: Plan) -> tuple[str, ...]:
    """The Secrets, of the pod's own namespace, that the pod waits for once this plan is applied."""
    secret = _keys_secret(pod, plan)
    return () if secret is None else (secret,)


def _keys_secret(pod: Json, plan: Plan) -> str | None:
    """The pod's own choice, else the config's."""
    return pods.annotations(pod).get(names.KEYS_SECRET_ANNOTATION) or plan.secret_name


# --- What stands in the way -----------------------------------------------------------------------


def _why_skip(pod: Json, namespace: str, selected: Selected) -> Skip | None:
    """The first thing that stands in the way, in the order of `SkipReason`."""
    if skip := _bad_annotation(pod):
        return skip
    match selected:
        case NoConfig(why):
            return _skip(SkipReason.NO_SIDECAR_CONFIG, why)
        case AmbiguousConfigs(candidates):
            rivals = _some(" and ", [entry.ref.name for entry in candidates])
            return _skip(
                SkipReason.AMBIGUOUS_SIDECAR_CONFIG,
                f"{names.KIND}s {rivals} of namespace {namespace} are all for this pod: choose one "
                f"by annotation {names.CONFIG_ANNOTATION}, or tell them apart by podSelector",
            )
        case IndexedConfig(problems=problems):
            return _skip(
                SkipReason.INVALID_SIDECAR_CONFIG,
                f"{names.KIND} {selected.ref} is invalid: {_some('; ', problems)}",
            )
        case Plan() as plan:
            return next(_conflicts(pod, plan), None)


_LONGEST_SENTENCE: Final = 1000
"""Characters. All annotations of a pod share 256 KiB; a skip must never break that limit."""


def _skip(reason: SkipReason, sentence: str) -> Skip:
    sentence = one_line(sentence, _LONGEST_SENTENCE)
    return Skip(reason, sentence, (one_line(f"not injected ({reason}): {sentence}"),))


def _some(separator: str, texts: Sequence[str], most: int = 5) -> str:
    """The first few, and how many more there are."""
    more = [f"{len(texts) - most} more"] if len(texts) > most else []
    return separator.join([*texts[:most], *more])


def _bad_annotation(pod: Json) -> Skip | None:
    """The first of our annotations that cannot be a name: shown by its key, never copied."""
    annotations = pods.annotations(pod)
    checks = {
        names.CONFIG_ANNOTATION: is_dns_subdomain,
        names.KEYS_SECRET_ANNOTATION: is_dns_subdomain,
        names.CONTAINER_ANNOTATION: is_dns_label,
    }
    for key, is_name in checks.items():
        if key in annotations and not is_name(annotations[key]):
            return _skip(
                SkipReason.INVALID_ANNOTATION,
                f"annotation {key} is not a name (lower-case letters, digits, '-'): correct it",
            )
    return None


def _conflicts(pod: Json, plan: Plan) -> Iterator[Skip]:
    """Everything in the pod that the plan cannot be joined with."""
    for container in pods.all_containers(pod):
        if container.get("name") == names.SIDECAR:
            yield _skip(
                SkipReason.CONTAINER_NAME_CONFLICT,
                f"the pod has a container {names.SIDECAR} that is not the operator's: rename it, "
                f"or label the pod {names.INJECT_LABEL}=false to keep it",
            )
    ours = {volume["name"]: volume for volume in plan.volumes}
    for volume in raw.items(pod, "spec", "volumes"):
        name = volume.get("name")
        if isinstance(name, str) and name in ours and volume != ours[name]:
            yield _skip(
                SkipReason.VOLUME_NAME_CONFLICT,
                f"the pod has a volume {name} of its own, a name that the sidecar needs: rename it",
            )
    yield from _unsuitable(pod, plan)


def _unsuitable(pod: Json, plan: Plan) -> Iterator[Skip]:
    """Everything that keeps a sidecar from working in this pod, whoever put it there."""
    for container in pods.all_containers(pod):
        if container.get("name") == names.SIDECAR:
            continue
        for port in raw.items(container, "ports"):
            is_tcp = port.get("protocol") is None or port.get("protocol") == "TCP"
            if port.get("containerPort") == plan.port and is_tcp:
                yield _skip(
                    SkipReason.PORT_CONFLICT,
                    f"container {container.get('name')} declares port {plan.port}, where the "
                    f"sidecar listens: give {_described(plan)} another spec.port",
                )
    if shortage := resources.shortage(pod, plan):
        yield _skip(SkipReason.POD_RESOURCES, shortage)
    spec = raw.mapping(pod, "spec")
    if spec.get("hostNetwork") is True:
        yield _skip(
            SkipReason.HOST_NETWORK,
            "the pod uses the node's network, where the sidecar would listen for everybody: "
            f"do without hostNetwork, or label the pod {names.INJECT_LABEL}=false",
        )
    by_selector = raw.mapping(spec, "nodeSelector").get("kubernetes.io/os")
    if "windows" in (raw.mapping(spec, "os").get("name"), by_selector):
        yield _skip(
            SkipReason.UNSUPPORTED_OS,
            "the pod is for Windows, and the sidecar is for Linux: "
            f"label the pod {names.INJECT_LABEL}=false",
        )


# --- Warnings -------------------------------------------------------------------------------------


def _doubts(pod: Json, mark: str, selected: Selected) -> Iterator[str]:
    """What is odd about a sidecar that came along with a template: another config's, or no use."""
    if not isinstance(selected, Plan):
        return
    config = mark.partition("@")[0]
    if selected.source != config:
        yield one_line(
            f"the pod brings a sidecar of {names.KIND} {config} along, not of {selected.source}: "
            "remove the sidecar from the template"
        )
    for skip in _unsuitable(pod, selected):
        yield one_line(f"the sidecar that the pod brings along may not work: {skip.sentence}")


def _kept_labels(pod: Json, wanted: Mapping[str, str | None]) -> Iterator[str]:
    """Outcome labels that came with the pod and will stay wrong; None means unwanted."""
    if not pods.outcome_labels_are_frozen(pod):
        return
    found = pods.labels(pod)
    for label, value in wanted.items():
        if label in found and found[label] != value:
            yield one_line(
                f"label {label} is the operator's to write, and stays as it is because the pod's "
                "controller may look for it: remove it from the template"
            )


def _described(plan: Plan) -> str:
    """The config of a plan, for a sentence that says what to do with it."""
    if plan.source == names.SETTINGS_CONFIG:
        return f"a {names.KIND} (there is none yet: create one)"
    return f"{names.KIND} {plan.source}"


def _warnings(
    pod: Json, namespace: str, plan: Plan, secrets: Mapping[str, SecretState]
) -> Iterator[str]:
    if _keys_secret(pod, plan) is None:
        yield one_line(
            "no Secret is named for the sidecar, so it will answer every request with 401: "
            f"set spec.secretName of {_described(plan)}"
        )
    for secret in needed_secrets(pod, plan):
        if secrets.get(secret) is SecretState.ABSENT:
            yield one_line(
                f"Secret {secret} is not in namespace {namespace}: the pod will wait until it is"
            )
    for key in (names.CONTAINER_ANNOTATION, names.IMAGE_PULL_SECRETS_ANNOTATION):
        if key in pods.annotations(pod):
            yield one_line(
                f"annotation {key} is not read by this version of the operator yet: remove it"
            )
    owner = pods.controller(pod)
    if not plan.native and owner is not None and owner.get("kind") == "Job":
        yield one_line(
            "the sidecar is a plain container, so the Job will not complete: "
            f"label its pods {names.INJECT_LABEL}=false, or use a cluster with native sidecars"
        )
