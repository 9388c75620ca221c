"""What each rule looks at, in words. No verdict is made here."""

from collections.abc import Callable, Mapping
from typing import Final

from shield_operator import names, pods, raw
from shield_operator.decision import SkipReason
from shield_operator.model import Json, LabelSelector, SelectorOperator
from shield_operator.plan import Plan
from shield_operator.selection import ConfigIndex, Found, IndexedConfig, OptIn, Rule, Selected

_MOST: Final = 5
"""Names in a row; more are counted."""


def listed(texts: list[str], *, none: str = "none") -> str:
    """The first few, and how many more there are."""
    more = [f"{len(texts) - _MOST} more"] if len(texts) > _MOST else []
    return ", ".join([*texts[:_MOST], *more]) or none


# --- In or out ------------------------------------------------------------------------------------


def saw_labels(
    why: OptIn,
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    pod_labels: Mapping[str, str],
) -> str:
    """Which labels the webhooks' selectors see."""
    key = names.INJECT_LABEL
    of_pod = f"the pod has {_label(pod_labels)}"
    of_namespace = f"namespace {namespace} has {_label(namespace_labels or {})}"
    match why:
        case OptIn.EXCLUDED_NAMESPACE:
            saw = f"namespace {namespace} is always left out, whatever is labelled"
        case OptIn.POD_OUT:
            saw = f"{of_pod}, which says no"
        case OptIn.NAMESPACE_OUT:
            saw = f"{of_namespace}, which says no for every pod in it"
        case OptIn.NOBODY_ASKED:
            wanted = f"{key}={names.IN_VALUES[1]}"
            saw = f"{of_namespace}, and {of_pod}: label one of them {wanted} to get the sidecar"
        case OptIn.SELECTORS_ASKED:
            saw = f"{of_pod}, which does not say no"
        case OptIn.NAMESPACE_IN:
            saw = f"{of_namespace}, and {of_pod}"
        case OptIn.POD_IN:
            saw = f"{of_pod}, and {of_namespace}"
    return saw


def _label(labels: Mapping[str, str]) -> str:
    key = names.INJECT_LABEL
    return f"{key}={labels[key]}" if key in labels else f"no label {key}"


# --- Which config ---------------------------------------------------------------------------------


def saw_candidates(
    found: Found,
    selected: Selected,
    namespace: str,
    labels: Mapping[str, str],
    configs: ConfigIndex,
) -> str:
    """Which config it is, by what rule, and why others are not it."""
    own = configs.namespaces.get(namespace, {}).values()
    others = [entry for entry in own if entry not in found.entries]
    rest = "".join(f"; {_why_not(entry, labels)}" for entry in others[:_MOST])
    ref = found.entries[0].ref if found.entries else None
    match found.rule:
        case Rule.NAMED:
            return f"{ref}, which annotation {names.CONFIG_ANNOTATION} names"
        case Rule.SELECTOR:
            selector = described_selector(found.entries[0].selector)
            return f"{ref}, whose podSelector ({selector}) matches the pod's labels{rest}"
        case Rule.NAMESPACE:
            return f"{ref}, which is for every pod of the namespace{rest}"
        case Rule.CLUSTER_DEFAULT:
            return (
                f"{ref}, the cluster's default: namespace {namespace} has none for this pod{rest}"
            )
        case Rule.SETTINGS if isinstance(selected, Plan):
            return f"none; the operator's own settings name an image{rest}"
        case Rule.SETTINGS:
            return f"none{rest}"


def _why_not(entry: IndexedConfig, labels: Mapping[str, str]) -> str:
    if entry.selector.matches(labels):
        return f"{entry.ref} has no podSelector, and one that matches beats it"
    return f"{entry.ref} is for other pods ({described_selector(entry.selector)})"


def described_selector(selector: LabelSelector) -> str:
    """A selector as ``kubectl -l`` takes it."""
    parts = []
    for requirement in selector.requirements:
        values = sorted(requirement.values)
        match requirement.operator:
            case SelectorOperator.IN if len(values) == 1:
                parts.append(f"{requirement.key}={values[0]}")
            case SelectorOperator.IN:
                parts.append(f"{requirement.key} in ({','.join(values)})")
            case SelectorOperator.NOT_IN:
                parts.append(f"{requirement.key} notin ({','.join(values)})")
            case SelectorOperator.EXISTS:
                parts.append(requirement.key)
            case SelectorOperator.DOES_NOT_EXIST:
                parts.append(f"!{requirement.key}")
    return ",".join(parts) or "every pod"


# --- What the pod holds ---------------------------------------------------------------------------


def _saw_containers(pod: Json, plan: Plan) -> str:
    found = listed([str(one.get("name")) for one in pods.all_containers(pod)])
    wanted = [names.SIDECAR] if plan.sidecar is not None else []
    wanted += [names.PAYLOAD_STAGE] if plan.stage is not None else []
    if not wanted:
        return f"{found}; no container is added"
    return f"{found}; {' and '.join(wanted)} can be added"


def _saw_volumes(pod: Json, plan: Plan) -> str:
    found = listed([str(one.get("name")) for one in raw.items(pod, "spec", "volumes")])
    added = listed([str(one["name"]) for one in plan.volumes])
    return f"{found}; added: {added}"


def _saw_ports(pod: Json, plan: Plan) -> str:
    if plan.sidecar is None:
        return "no sidecar is added, so that any port may be used"
    found = [
        f"{port.get('containerPort')} ({container.get('name')})"
        for container in pods.all_containers(pod)
        for port in raw.items(container, "ports")
    ]
    return f"declared: {listed(found)}; the sidecar's is {plan.port}"


def _saw_application(pod: Json, plan: Plan) -> str:
    container = pods.application_container(pod, plan.wiring.container)
    if container is None:
        return "the pod has no container"
    annotations = pods.annotations(pod)
    if names.CONTAINER_ANNOTATION in annotations:
        why = f"annotation {names.CONTAINER_ANNOTATION} names it"
    elif plan.wiring.container is not None:
        why = "the config's application.container"
    elif annotations.get(names.DEFAULT_CONTAINER_ANNOTATION) == container.get("name"):
        why = f"annotation {names.DEFAULT_CONTAINER_ANNOTATION} names it"
    else:
        why = "the first"
    return f"{container.get('name')} ({why})"


def _saw_command(pod: Json, plan: Plan) -> str:
    if not plan.wiring.args:
        return "the config adds no arguments, so that the container may set its command"
    container = pods.application_container(pod, plan.wiring.container) or {}
    return f"container {container.get('name')} sets none, so that arguments reach its image's own"


def _saw_resources(pod: Json, plan: Plan) -> str:
    del plan
    own = raw.mapping(pod, "spec", "resources")
    if not own.get("requests") and not own.get("limits"):
        return "the pod as a whole (spec.resources) sets none"
    return "the pod's own spec.resources leave enough for what is added"


def _saw_network(pod: Json, plan: Plan) -> str:
    del plan
    is_host = raw.mapping(pod, "spec").get("hostNetwork") is True
    return "the node's, and no sidecar is added" if is_host else "the pod's own"


def _saw_system(pod: Json, plan: Plan) -> str:
    del plan
    spec = raw.mapping(pod, "spec")
    said = raw.mapping(spec, "os").get("name")
    said = said or raw.mapping(spec, "nodeSelector").get("kubernetes.io/os")
    return str(said) if said else "the pod does not say, which means linux"


SAW: Final[Mapping[SkipReason, tuple[str, Callable[[Json, Plan], str]]]] = {
    SkipReason.CONTAINER_NAME_CONFLICT: ("containers", _saw_containers),
    SkipReason.VOLUME_NAME_CONFLICT: ("volumes", _saw_volumes),
    SkipReason.PORT_CONFLICT: ("ports", _saw_ports),
    SkipReason.TARGET_CONTAINER_NOT_FOUND: ("application", _saw_application),
    SkipReason.COMMAND_OVERRIDE: ("command", _saw_command),
    SkipReason.POD_RESOURCES: ("resources", _saw_resources),
    SkipReason.HOST_NETWORK: ("network", _saw_network),
    SkipReason.UNSUPPORTED_OS: ("system", _saw_system),
}
"""The rules that need a plan, in the order of `SkipReason`: what each is called, and looks at."""
