"""What stands between a pod and its plan: every reason to skip, in the order of `SkipReason`."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from shield_operator import arguments, names, pods, raw
from shield_operator.decision import room
from shield_operator.decision.outcome import Skip, SkipReason
from shield_operator.model import Json, is_dns_label, is_dns_subdomain
from shield_operator.plan import Plan
from shield_operator.selection import AmbiguousConfigs, IndexedConfig, NoConfig, Selected
from shield_operator.text import one_line


def resolve(pod: Json, namespace: str, selected: Selected) -> Plan | Skip:
    """The plan, or the first thing that stands in the way of one."""
    if skip := next(obstacles(pod, namespace, selected), None):
        return skip
    return cast("Plan", selected)  # anything else stands in the way itself


def obstacles(pod: Json, namespace: str, selected: Selected) -> Iterator[Skip]:
    """Everything that stands in the way; the first one decides."""
    yield from _bad_annotations(pod)
    match selected:
        case NoConfig(why):
            yield _skip(SkipReason.NO_SIDECAR_CONFIG, why)
        case AmbiguousConfigs(candidates):
            rivals = _some(" and ", [entry.ref.name for entry in candidates])
            yield _skip(
                SkipReason.AMBIGUOUS_SIDECAR_CONFIG,
                f"{names.KIND}s {rivals} of namespace {namespace} are all for this pod: choose one "
                f"by annotation {names.CONFIG_ANNOTATION}, or tell them apart by podSelector",
            )
        case IndexedConfig(problems=problems):
            yield _skip(
                SkipReason.INVALID_SIDECAR_CONFIG,
                f"{names.KIND} {selected.ref} is invalid: {_some('; ', problems)}",
            )
        case Plan() as plan:
            yield from _conflicts(pod, plan)


def config_of(plan: Plan) -> str:
    """The config of a plan, for a sentence that says what to do with it."""
    if plan.source == names.SETTINGS_CONFIG:
        return f"a {names.KIND} (there is none yet: create one)"
    return f"{names.KIND} {plan.source}"


_LONGEST_SENTENCE: Final = 1000
"""Characters. All annotations of a pod share 256 KiB; a skip must never break that limit."""


def _skip(reason: SkipReason, sentence: str) -> Skip:
    sentence = one_line(sentence, _LONGEST_SENTENCE)
    return Skip(reason, sentence, (one_line(f"not injected ({reason}): {sentence}"),))


def _some(separator: str, texts: Sequence[str], most: int = 5) -> str:
    """The first few, and how many more there are."""
    more = [f"{len(texts) - most} more"] if len(texts) > most else []
    return separator.join([*texts[:most], *more])


def _bad_annotations(pod: Json) -> Iterator[Skip]:
    """Each of our annotations that cannot be a name: shown by its key, never copied."""
    annotations = pods.annotations(pod)
    checks = {
        names.CONFIG_ANNOTATION: is_dns_subdomain,
        names.KEYS_SECRET_ANNOTATION: is_dns_subdomain,
        names.CONTAINER_ANNOTATION: is_dns_label,
    }
    for key, is_name in checks.items():
        if key in annotations and not is_name(annotations[key]):
            yield _skip(
                SkipReason.INVALID_ANNOTATION,
                f"annotation {key} is no name (lower-case letters, digits, '-', '.'): correct it",
            )
    if not all(map(is_dns_subdomain, pods.image_pull_secrets(pod))):
        yield _skip(
            SkipReason.INVALID_ANNOTATION,
            f"annotation {names.IMAGE_PULL_SECRETS_ANNOTATION} is not a list of names (lower-case "
            "letters, digits, '-', '.') with commas between them: correct it",
        )


def _conflicts(pod: Json, plan: Plan) -> Iterator[Skip]:
    """Everything in the pod that the plan cannot be joined with."""
    yield from _taken_names(pod, plan)
    yield from _taken_port(pod, plan)
    yield from _unwirable(pod, plan)
    yield from _unsuitable(pod, plan)


def reasons_not_to_work(pod: Json, plan: Plan) -> Iterator[Skip]:
    """Everything that keeps a sidecar from working in this pod, whoever put it there."""
    yield from _taken_port(pod, plan)
    yield from _unsuitable(pod, plan)


def _taken_names(pod: Json, plan: Plan) -> Iterator[Skip]:
    """Names that the plan needs and the pod has; our own marked containers were seen before."""
    added = {container["name"] for container in (plan.sidecar, plan.stage) if container is not None}
    for container in pods.all_containers(pod):
        name = container.get("name")
        if isinstance(name, str) and name in added:
            yield _skip(
                SkipReason.CONTAINER_NAME_CONFLICT,
                f"the pod has a container {name} that is not the operator's, or is an earlier "
                "config's: rename it, or remove it where it came along with a copied template, or "
                f"label the pod {names.INJECT_LABEL}=false to keep it",
            )
    ours = {volume["name"]: volume for volume in plan.volumes}
    for volume in raw.items(pod, "spec", "volumes"):
        name = volume.get("name")
        if isinstance(name, str) and name in ours and not _is_same(volume, ours[name]):
            yield _skip(
                SkipReason.VOLUME_NAME_CONFLICT,
                f"the pod has a volume {name} of its own, a name that the operator needs: rename "
                "it, or remove it where it came along with a copied template",
            )


def _is_same(volume: Json, ours: Json) -> bool:
    """Whether a volume holds what ours does; an image may be pulled by a cluster's own policy."""
    image = raw.mapping(ours, "image")
    if image:
        return bool(raw.mapping(volume, "image").get("reference") == image["reference"])
    return bool(volume == ours)


def _taken_port(pod: Json, plan: Plan) -> Iterator[Skip]:
    if plan.sidecar is None:
        return
    for container in pods.all_containers(pod):
        if container.get("name") == names.SIDECAR:
            continue
        for port in raw.items(container, "ports"):
            is_tcp = port.get("protocol") is None or port.get("protocol") == "TCP"
            if port.get("containerPort") == plan.port and is_tcp:
                yield _skip(
                    SkipReason.PORT_CONFLICT,
                    f"container {container.get('name')} declares port {plan.port}, where the "
                    f"sidecar listens: give {config_of(plan)} another spec.port",
                )


def _unwirable(pod: Json, plan: Plan) -> Iterator[Skip]:
    """What keeps the application's container from being wired."""
    container = pods.application_container(pod, plan.wiring.container)
    if container is None:
        if annotated := pods.annotations(pod).get(names.CONTAINER_ANNOTATION):
            who, name = f"annotation {names.CONTAINER_ANNOTATION}", annotated
        else:
            who, name = f"application.container of {config_of(plan)}", str(plan.wiring.container)
        if annotated or plan.wiring.container:
            yield _skip(
                SkipReason.TARGET_CONTAINER_NOT_FOUND,
                f"{who} names {name}, and the pod has no such application container: correct it",
            )
        return
    args = raw.texts(container, "args")
    is_wired = all(arguments.values_of(flag, args) for flag in plan.wiring.args)
    if container.get("command") and not is_wired:
        yield _skip(
            SkipReason.COMMAND_OVERRIDE,
            f"container {container.get('name')} sets command, so that appended args may not reach "
            f"its program: remove command, name another container by {names.CONTAINER_ANNOTATION}, "
            f"or drop application.args of {config_of(plan)}",
        )


def _unsuitable(pod: Json, plan: Plan) -> Iterator[Skip]:
    """What is wrong about the pod as a whole."""
    if shortage := room.shortage(pod, plan):
        yield _skip(SkipReason.POD_RESOURCES, shortage)
    spec = raw.mapping(pod, "spec")
    if plan.sidecar is not None and spec.get("hostNetwork") is True:
        yield _skip(
            SkipReason.HOST_NETWORK,
            "the pod uses the node's network, where the sidecar would listen for everybody: "
            f"do without hostNetwork, or label the pod {names.INJECT_LABEL}=false",
        )
    if pods.is_for_windows(pod) and (plan.sidecar is not None or plan.wiring.mount is not None):
        yield _skip(
            SkipReason.UNSUPPORTED_OS,
            "the pod is for Windows, and what would be added to it is for Linux: "
            f"label the pod {names.INJECT_LABEL}=false",
        )
