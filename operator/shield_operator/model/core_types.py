"""Kubernetes' own types inside a config, read as strictly as our CRD reads them.

They are handed on unchanged, so most functions return their JSON. They are read nevertheless: what
the API server refuses in a pod would make it refuse every pod of a config. The CRD's side of this
is ``hack/crd/core_types.yaml``, and a test holds the two together. Here stands a little more: what
a schema cannot say of a map's keys, and how Kubernetes ties some amounts together
(pkg/apis/core/validation of Kubernetes).
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from shield_operator import names
from shield_operator.model.formats import (
    LARGEST_INTEGER,
    Json,
    is_data_key,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
    is_variable,
    quantity,
)
from shield_operator.model.reader import Check, Reader, one_of, shown, text_of
from shield_operator.model.resource import LabelSelector, Requirement, SelectorOperator

SUBDOMAIN: Final = Check("a DNS subdomain, such as 'my-name'", is_dns_subdomain, 253)
DNS_LABEL: Final = Check("a DNS label, such as 'my-name'", is_dns_label, 63)
LABEL_KEY: Final = Check("a label key, such as 'app' or 'example.com/app'", is_label_key, 317)
LABEL_VALUE: Final = Check("a label value, such as 'chat'", is_label_value, 63)
VARIABLE: Final = Check("a variable's name, such as 'LOG_LEVEL'", is_variable, 253)
VALUE: Final = text_of(32768)

# --- Variables ------------------------------------------------------------------------------------

_DATA_KEY: Final = Check("a key of its data: letters, digits, '-', '_', '.'", is_data_key, 253)
_POD_FIELD: Final = re.compile(
    r"metadata\.(name|namespace|uid|(?P<map>labels|annotations)\['(?P<key>[^']+)'\])"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
)
_CPU_DIVISOR: Final = one_of("0", "1", "1m")
_SIZE_DIVISOR: Final = one_of(
    *("0", "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
)
_RESOURCE: Final = re.compile(r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)")


def _is_pod_field(text: str) -> bool:
    found = _POD_FIELD.fullmatch(text)
    if found is None or found["map"] is None:
        return found is not None
    # An annotation's key may have capitals in its domain; Kubernetes lowers it before it looks.
    return is_label_key(found["key"] if found["map"] == "labels" else found["key"].lower())


_FIELD_PATH: Final = Check("a pod's field, such as spec.nodeName", _is_pod_field, 340)
_RESOURCE_FIELD: Final = Check(
    "a container's resource, such as limits.cpu",
    lambda text: _RESOURCE.fullmatch(text) is not None,
    253,
)


def environment(parent: Reader, field: str) -> tuple[Json, ...]:
    """A container's variables, none of them our mark."""
    variables = []
    for entry in parent.objects(field, 128, unique="name"):
        variable_name(entry)
        value = entry.string("value", VALUE)
        source = entry.object_if_given("valueFrom")
        if source is not None:
            if len(source.raw) != 1:
                entry.problem("valueFrom", f"has {len(source.raw)} sources: it must have just one")
            if value:
                entry.problem("valueFrom", "cannot stand beside value: give one of them")
            _source(source)
        entry.nothing_else()
        variables.append(entry.raw)
    return tuple(variables)


def variable_name(entry: Reader) -> str | None:
    """The ``name`` of an entry that sets a variable."""
    name = entry.string("name", VARIABLE, required=True)
    if name == names.MARK_VARIABLE:
        entry.problem("name", f"is {name}, the operator's own mark: use another name")
    return name


def _source(source: Reader) -> None:
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.object_if_given(kind)) is not None:
            reference.string("name", SUBDOMAIN, required=True)
            reference.string("key", _DATA_KEY, required=True)
            reference.boolean("optional")
            reference.nothing_else()
    if (field := source.object_if_given("fieldRef")) is not None:
        field.string("apiVersion", one_of("v1"))
        field.string("fieldPath", _FIELD_PATH, required=True)
        field.nothing_else()
    if (resource := source.object_if_given("resourceFieldRef")) is not None:
        resource.string("containerName", DNS_LABEL)
        measured = resource.string("resource", _RESOURCE_FIELD, required=True)
        is_cpu = measured is not None and measured.endswith(".cpu")
        resource.int_or_string("divisor", _CPU_DIVISOR if is_cpu else _SIZE_DIVISOR)
        resource.nothing_else()
    source.nothing_else()


# --- Resources ------------------------------------------------------------------------------------

_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE_PAGES: Final = "hugepages-"


def _amount(value: Json) -> Fraction | None:
    """The number behind a quantity that is not negative, or None; at most 32 characters."""
    if isinstance(value, str) and (len(value) > 32 or value.startswith("-")):
        return None
    try:
        amount = quantity(value)
    except ValueError:
        return None
    return amount if amount >= 0 else None


_PAGE_SIZE: Final = re.compile(r"[1-9][0-9]{0,9}([KMGT]i?)?")


def _page_size(resource: str) -> Fraction | None:
    size = resource.removeprefix(_HUGE_PAGES)
    is_size = resource.startswith(_HUGE_PAGES) and _PAGE_SIZE.fullmatch(size)
    return _amount(size) if is_size else None


_MOST_DEVICES: Final = LARGEST_INTEGER // 1000
"""Kubernetes counts thousandths of them, in 64 bits."""


def _is_extended(resource: str) -> bool:
    return "/" in resource and "kubernetes.io/" not in resource


def _is_resource(name: str) -> bool:
    if "/" in name:
        # Kubernetes' quotas know it by this longer name, which must be one too.
        return is_label_key(f"requests.{name}") and not name.startswith("requests.")
    return name in _NATIVE or bool(_page_size(name))


def resources(reader: Reader) -> Mapping[str, Mapping[str, Json]] | None:
    """A container's requests and limits; None where there are none.

    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
    """
    requests, limits = reader.map("requests", 8), reader.map("limits", 8)
    amounts, most = _amounts(requests), _amounts(limits)
    for name, amount in amounts.items():
        value, limit = requests.raw[name], most.get(name)
        if limit is None and name in limits.raw:
            continue  # that it cannot be read is noted already
        if _is_extended(name) or name.startswith(_HUGE_PAGES):
            if amount != limit:
                requests.problem(name, f"is {value}: {name} needs a limit of the same amount")
        elif limit is not None and amount > limit:
            requests.problem(
                name,
                f"is {value}, above the limit {limits.raw[name]}: lower the one or raise the other",
            )
    reader.nothing_else()
    read = {"requests": requests.raw, "limits": limits.raw}
    return read if any(read.values()) else None


def _amounts(entries: Reader) -> dict[str, Fraction]:
    """The amounts that can be read, by resource."""
    read: dict[str, Fraction] = {}
    for name, value in entries.raw.items():
        amount = _amount(value)
        if not isinstance(name, str) or not _is_resource(name):
            entries.problem(
                name,
                "is no resource that Kubernetes knows: write cpu, memory, ephemeral-storage, "
                "hugepages-<size>, or an extended resource with its domain, such as "
                "example.com/gpu",
            )
        elif not amount:
            entries.problem(
                name,
                f"is {shown(value)}: it must be a quantity above zero of at most 32 characters, "
                "like 100m",
            )
        elif (page := _page_size(name)) and amount % page:
            size = name.removeprefix(_HUGE_PAGES)
            entries.problem(name, f"is {value}: it must be whole pages of {size}")
        elif _is_extended(name) and (amount.denominator != 1 or amount > _MOST_DEVICES):
            entries.problem(
                name,
                f"is {value}: it must be a whole number up to {_MOST_DEVICES}",
            )
        else:
            read[name] = amount
    return read


# --- Files of a Secret ----------------------------------------------------------------------------

_ITEM_PATH: Final = Check(
    "a relative path without '..'",
    lambda text: text != "" and not text.startswith(("/", "..")) and ".." not in text.split("/"),
    1024,
)


def items(parent: Reader, field: str) -> tuple[Json, ...]:
    """Which keys of a Secret become which files."""
    entries = parent.objects(field, 64, unique="path")
    for entry in entries:
        entry.string("key", _DATA_KEY, required=True)
        entry.string("path", _ITEM_PATH, required=True)
        entry.integer("mode", 0, 0o777)
        entry.nothing_else()
    return tuple(entry.raw for entry in entries)


# --- Selectors ------------------------------------------------------------------------------------


def label_selector(selector: Reader) -> LabelSelector:
    """A selector of pods, or of namespaces."""
    matched = selector.string_map("matchLabels", 32, LABEL_KEY, LABEL_VALUE)
    requirements = [
        Requirement(key, SelectorOperator.IN, (value,)) for key, value in matched.items()
    ]
    for entry in selector.objects("matchExpressions", 16):
        key = entry.string("key", LABEL_KEY, required=True)
        operator = entry.choice("operator", SelectorOperator, required=True)
        values = entry.strings("values", 64, LABEL_VALUE)
        check_values(entry, operator)
        entry.nothing_else()
        if key and operator:
            requirements.append(Requirement(key, operator, tuple(dict.fromkeys(values))))
    selector.nothing_else()
    return LabelSelector(tuple(requirements))


def check_values(entry: Reader, operator: str | None) -> None:
    """Note where an expression has another number of values than its operator wants."""
    given = entry.raw.get("values", [])
    if operator is None or not isinstance(given, list):
        return
    if operator in {"In", "NotIn"}:
        if not given:
            entry.problem("values", f"is empty: {operator} needs at least one")
    elif operator in {"Gt", "Lt"}:
        if len(given) != 1:
            entry.problem("values", f"has {len(given)} entries: {operator} needs exactly one")
    elif given:
        entry.problem("values", f"has {len(given)} entries: {operator} takes none")
