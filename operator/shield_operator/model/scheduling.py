"""``spec.scheduling``: node labels, tolerations and affinity, as a pod has them.

The same words as for `core_types` hold here: read strictly, handed on unchanged.
"""

from shield_operator.model.core_types import (
    DNS_LABEL,
    LABEL_KEY,
    LABEL_VALUE,
    SUBDOMAIN,
    check_values,
    label_selector,
)
from shield_operator.model.formats import Json
from shield_operator.model.reader import Reader, one_of
from shield_operator.model.resource import Scheduling

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def scheduling(reader: Reader) -> Scheduling:
    """Read it all."""
    affinity = reader.object_if_given("affinity")
    read = Scheduling(
        node_selector=reader.string_map("nodeSelector", 32, LABEL_KEY, LABEL_VALUE),
        tolerations=_tolerations(reader),
        affinity=_affinity(affinity) if affinity is not None else None,
    )
    reader.nothing_else()
    return read


def _tolerations(reader: Reader) -> tuple[Json, ...]:
    """https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/."""
    entries = reader.objects("tolerations", 32)
    for entry in entries:
        entry.string("key", LABEL_KEY)
        operator = entry.string("operator", one_of("Equal", "Exists"))
        value = entry.string("value", LABEL_VALUE)
        effect = entry.string("effect", one_of("NoExecute", "NoSchedule", "PreferNoSchedule"))
        seconds = entry.integer("tolerationSeconds", -(2**63), 2**63 - 1)
        if "key" not in entry and operator != "Exists":
            entry.problem("key", "is missing: name one, or set operator to Exists, for all taints")
        if operator == "Exists" and value:
            entry.problem("value", "cannot stand beside Exists: remove it, or use Equal")
        if seconds is not None and effect != "NoExecute":
            entry.problem("tolerationSeconds", "is only for effect NoExecute: set it, or remove it")
        entry.nothing_else()
    return tuple(entry.raw for entry in entries)


def _affinity(affinity: Reader) -> Json:
    """https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/."""
    nodes = affinity.object("nodeAffinity")
    if (required := nodes.object_if_given(_REQUIRED)) is not None:
        terms = required.objects("nodeSelectorTerms", 16, required=True)
        if required.raw.get("nodeSelectorTerms") == []:
            required.problem("nodeSelectorTerms", "is empty: give at least one term")
        for term in terms:
            _node_term(term)
        required.nothing_else()
    for preferred in nodes.objects(_PREFERRED, 16):
        _weight(preferred)
        if (preference := preferred.object_if_given("preference", required=True)) is not None:
            _node_term(preference)
        preferred.nothing_else()
    nodes.nothing_else()

    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.object(kind)
        for term in pods.objects(_REQUIRED, 16):
            _pod_term(term)
        for preferred in pods.objects(_PREFERRED, 16):
            _weight(preferred)
            if (
                preference := preferred.object_if_given("podAffinityTerm", required=True)
            ) is not None:
                _pod_term(preference)
            preferred.nothing_else()
        pods.nothing_else()
    affinity.nothing_else()
    return affinity.raw or None


def _weight(preferred: Reader) -> None:
    preferred.integer("weight", 1, 100, required=True)


def _node_term(term: Reader) -> None:
    for entry in term.objects("matchExpressions", 16):
        entry.string("key", LABEL_KEY, required=True)
        operators = one_of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
        operator = entry.string("operator", operators, required=True)
        entry.strings("values", 64, LABEL_VALUE)
        check_values(entry, operator)
        entry.nothing_else()
    for entry in term.objects("matchFields", 16):
        # The only field that Kubernetes knows here, and one name only.
        entry.string("key", one_of("metadata.name"), required=True)
        entry.string("operator", one_of("In", "NotIn"), required=True)
        names = entry.strings("values", 1, SUBDOMAIN)
        if not names and not entry.raw.get("values"):
            entry.problem("values", "is empty: give the node's name")
        entry.nothing_else()
    term.nothing_else()


def _pod_term(term: Reader) -> None:
    term.string("topologyKey", LABEL_KEY, required=True)
    term.strings("namespaces", 64, DNS_LABEL)
    for selector in ("labelSelector", "namespaceSelector"):
        label_selector(term.object(selector))
    keys = {
        field: term.strings(field, 16, LABEL_KEY)
        for field in ("matchLabelKeys", "mismatchLabelKeys")
    }
    for field, given in keys.items():
        if given and "labelSelector" not in term:
            term.problem(field, "has no labelSelector to go with: add one, {} for every pod")
    if both := set(keys["matchLabelKeys"]) & set(keys["mismatchLabelKeys"]):
        term.problem(
            "mismatchLabelKeys", f"has {min(both)}, as matchLabelKeys does: keep one of them"
        )
    term.nothing_else()
