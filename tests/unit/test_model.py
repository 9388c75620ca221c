"""What a user gets who writes a config: a reading of it, or a sentence for everything amiss."""

import copy
import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.test_crd import ACCEPTED
from shield_operator.model import (
    EVERYTHING,
    ConfigRef,
    ImagePullPolicy,
    InvalidConfig,
    Json,
    LabelSelector,
    Mode,
    Requirement,
    SelectorOperator,
    ShieldConfig,
    is_dns_label,
    is_dns_subdomain,
    is_image_digest,
    parse,
    quantity,
)
from shield_operator.model.formats import is_data_key, is_label_key, is_label_value, is_variable

IMAGE = "registry.example/llm-shield-proxy:1.7.0@sha256:" + "0123456789abcdef" * 4


def config(**spec: Any) -> Json:
    return {"metadata": {"namespace": "team", "name": "chat", "generation": 3}, "spec": spec}


def valid(**spec: Any) -> ShieldConfig:
    read = parse(config(**spec))
    assert isinstance(read, ShieldConfig), read.problems
    return read


def invalid(**spec: Any) -> InvalidConfig:
    read = parse(config(**spec))
    assert isinstance(read, InvalidConfig)
    return read


# --- Valid ----------------------------------------------------------------------------------------


def test_an_empty_spec_means_the_defaults() -> None:
    assert valid() == ShieldConfig(ref=ConfigRef("team", "chat"), generation=3)
    assert str(valid().ref) == "team/chat"
    assert valid().port == 8000
    assert valid().mode is Mode.AUTO
    assert valid().image_pull_policy is ImagePullPolicy.IF_NOT_PRESENT
    assert valid().pod_selector is not None
    assert not valid().pod_selector


def test_what_is_written_is_read() -> None:
    variable = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    resources = {"requests": {"cpu": "200m"}, "limits": {"cpu": 1}}
    read = valid(
        image=IMAGE,
        secretName="keys",
        imagePullPolicy="Always",
        port=9000,
        env=[variable],
        resources=resources,
        mode="Native",
        securityContext={"runAsUser": 10001, "runAsGroup": 0},
        podSelector={"matchLabels": {"app": "chat"}},
    )
    assert (read.image, read.secret_name, read.port) == (IMAGE, "keys", 9000)
    assert read.image_pull_policy is ImagePullPolicy.ALWAYS
    assert read.mode is Mode.NATIVE
    assert read.env == (variable,)
    assert read.resources == resources
    assert (read.security_context.run_as_user, read.security_context.run_as_group) == (10001, 0)
    assert read.pod_selector.matches({"app": "chat", "tier": "web"})
    assert not read.pod_selector.matches({"app": "search"})


def test_a_null_is_as_good_as_nothing() -> None:
    nulls = {"image": None, "port": None, "env": None, "resources": {"limits": {"cpu": None}}}
    assert valid(**nulls) == valid()
    assert valid(env=[{"name": "A", "value": None}]).env == ({"name": "A"},)
    assert valid(application=None) == valid()


def test_an_empty_value_may_stand_beside_its_source() -> None:
    valid(
        env=[{"name": "A", "value": "", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
    )


def test_a_file_needs_no_metadata() -> None:
    assert parse({"spec": {}}) == ShieldConfig(ref=ConfigRef("", ""))
    assert parse({"metadata": [], "spec": {}}) == ShieldConfig(ref=ConfigRef("", ""))


# --- Invalid --------------------------------------------------------------------------------------

SENTENCES = yaml.safe_load(r"""
- spec: {image: 'llm-shield-proxy:1.7.0'}
  says: >-
    spec.image is 'llm-shield-proxy:1.7.0': it must be an image with its digest (…@sha256:<64 hex
    digits>); a tag alone can move
- spec: {imagge: x}
  says: >-
    spec.imagge is unknown: check its spelling, or remove it
- spec: {imagge: null}
  says: >-
    spec.imagge is unknown: check its spelling, or remove it
- spec: {secretName: My_Keys}
  says: >-
    spec.secretName is 'My_Keys': it must be a DNS subdomain, such as 'my-name'
- spec: {port: 0}
  says: >-
    spec.port is 0: it must be a whole number from 1 to 65535
- spec: {port: http}
  says: >-
    spec.port is 'http': it must be a whole number from 1 to 65535
- spec: {port: true}
  says: >-
    spec.port is true: it must be a whole number from 1 to 65535
- spec: {mode: Sidecar}
  says: >-
    spec.mode is 'Sidecar': it must be Auto or Native or Container or None
- spec: {args: --debug}
  says: >-
    spec.args is '--debug': it must be a list of strings
- spec: {args: [8000]}
  says: >-
    spec.args[0] is 8000: it must be a string
- spec: {env: {A: b}}
  says: >-
    spec.env is an object: it must be a list of objects
- spec: {env: [null]}
  says: >-
    spec.env[0] is null: it must be an object
- spec: {env: [{name: A}, {value: b}]}
  says: >-
    spec.env[1].name is missing: give a variable's name, such as 'LOG_LEVEL'
- spec: {env: [{name: A}, {name: A}]}
  says: >-
    spec.env[1].name is 'A' a second time: each must have its own
- spec: {env: [{name: LLM_SHIELD_INJECTED}]}
  says: >-
    spec.env[0].name is LLM_SHIELD_INJECTED, the operator's own mark: use another name
- spec: {env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}
  says: >-
    spec.env[0].valueFrom cannot stand beside value: give one of them
- spec: {env: [{name: A, valueFrom: {fieldRef: {fieldPath: 'metadata.labels[''a b'']'}}}]}
  says: >-
    spec.env[0].valueFrom.fieldRef.fieldPath is "metadata.labels['a b']": it must be a pod's
    field, such as spec.nodeName
- spec: {env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 5}}}]}
  says: >-
    spec.env[0].valueFrom.resourceFieldRef.divisor is '5': it must be 0 or 1 or 1m
- spec: {resources: {requests: {memory: 1Gi}, limits: {memory: 512Mi}}}
  says: >-
    spec.resources.requests.memory is 1Gi, above the limit 512Mi: lower the one or raise the other
- spec: {resources: {limits: {cpu: 0}}}
  says: >-
    spec.resources.limits.cpu is 0: it must be a quantity above zero of at most 32 characters,
    like 100m
- spec: {resources: {limits: {memroy: 1Gi}}}
  says: >-
    spec.resources.limits.memroy is no resource that Kubernetes knows: write cpu, memory,
    ephemeral-storage, hugepages-<size>, or an extended resource with its domain, such as
    example.com/gpu
- spec: {resources: {requests: {example.com/gpu: 1}}}
  says: >-
    spec.resources.requests.example.com/gpu is 1: example.com/gpu needs a limit of the same amount
- spec: {resources: {limits: {example.com/gpu: 1500m}}}
  says: >-
    spec.resources.limits.example.com/gpu is 1500m: it must be a whole number up to
    9223372036854775
- spec: {application: {args: [{name: --mode, value: --fast}, {name: --fast}]}}
  says: >-
    spec.application.args[0].value is '--fast', another argument's name: nobody could tell
- spec: {resources: {limits: {hugepages-2Mi: 3Mi}}}
  says: >-
    spec.resources.limits.hugepages-2Mi is 3Mi: it must be whole pages of 2Mi
- spec: {securityContext: {runAsUser: 0}}
  says: >-
    spec.securityContext.runAsUser is 0: it must be a whole number from 1 to 2147483647
- spec: {securityContext: {seccompProfile: {type: Localhost}}}
  says: >-
    spec.securityContext.seccompProfile.localhostProfile goes with type Localhost, and only with
    it: set both or neither
- spec: {secretMounts: [{name: ca, secretName: ca, mountPath: /tmp}]}
  says: >-
    spec.secretMounts[0].mountPath is /tmp, which containers write to: use another path
- spec:
    {secretMounts: [{name: one, secretName: keys, mountPath: /etc/llm-shield/secrets/two/in},
    {name: two, secretName: keys}]}
  says: >-
    spec.secretMounts[1].mountPath is '/etc/llm-shield/secrets/two', and secretMount one is at
    '/etc/llm-shield/secrets/two/in': give each a folder of its own
- spec: {payload: {mountPath: /var/run}}
  says: >-
    spec.payload.mountPath is '/var/run', which meets the service account token's folder
    /var/run/secrets/kubernetes.io/serviceaccount: use another path
- spec: {podSelector: {matchLabels: {not a key: a}}}
  says: >-
    spec.podSelector.matchLabels.not a key cannot be a key: it must be a label key, such as 'app'
    or 'example.com/app'
- spec: {podSelector: {matchExpressions: [{key: app, operator: In}]}}
  says: >-
    spec.podSelector.matchExpressions[0].values is empty: In needs at least one
- spec: {application: {args: [{name: --seed=1}]}}
  says: >-
    spec.application.args[0].name is '--seed=1': it must be a flag like --seed; what follows it
    goes into value
- spec: {application: {env: [{name: URL}], baseUrlEnv: [{name: URL}]}}
  says: >-
    spec.application.baseUrlEnv[0].name is 'URL', as in application.env: keep one
- spec: {scheduling: {tolerations: [{effect: NoSchedule}]}}
  says: >-
    spec.scheduling.tolerations[0].key is missing: name one, or set operator to Exists, for all
    taints
- spec:
    payload:
      image: i@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      mountPath: /opt/x
      pathEnv: URL
    application: {baseUrlEnv: [{name: URL}]}
  says: >-
    spec.payload.pathEnv is 'URL', which application sets: give it there or here
""")


@pytest.mark.parametrize(
    "resources",
    [
        {"example.com/gpu": "1Ei"},
        {f"{'a' * 63}.{'b' * 63}.{'c' * 63}.{'d' * 53}/gpu": "1"},
        {"hugepages-+2Mi": "4Mi"},
        {"hugepages-1e+6": "1000000000"},
        {"hugepages-0.5": "1"},
        {"hugepages-1m": "1"},
        {"hugepages-1Ei": "1Ei"},
    ],
    ids=str,
)
def test_a_resource_that_no_pod_may_have_is_a_problem(resources: dict[str, str]) -> None:
    assert len(invalid(resources={"limits": resources}).problems) == 1


@pytest.mark.parametrize("space", ["\u00a0", "\u0085", "\u2028", "\u3000", " "])
def test_an_image_with_a_space_of_any_kind_is_a_problem(space: str) -> None:
    """Some come along with what is copied from a web page."""
    image = f"{space}example.com/x@sha256:{'0' * 64}"
    assert "spec.image" in invalid(image=image).problems[0]


@pytest.mark.parametrize("case", SENTENCES, ids=lambda case: case["says"].split()[0])
def test_a_problem_says_what_is_wrong_where_and_what_to_do(case: dict[str, Any]) -> None:
    assert case["says"] in invalid(**case["spec"]).problems


def test_all_problems_are_reported_at_once() -> None:
    read = invalid(image="x", port=0, env=[{"name": "A", "valeu": "b"}, {}])
    assert [problem.split()[0] for problem in read.problems] == [
        "spec.image",
        "spec.port",
        "spec.env[0].valeu",
        "spec.env[1].name",
    ]


def test_an_invalid_config_still_has_a_name() -> None:
    read = invalid(port=0)
    assert (read.ref, read.generation) == (ConfigRef("team", "chat"), 3)


@pytest.mark.parametrize(
    ("resource", "sentence"),
    [
        ({}, "spec is missing: give at least its image"),
        ({"spec": []}, "spec is a list: it must be an object"),
        ({"spec": {}, "specs": {}}, "specs is unknown: check its spelling, or remove it"),
        ([], "the ShieldSidecarConfig is a list: it must be an object"),
        (None, "the ShieldSidecarConfig is null: it must be an object"),
    ],
)
def test_what_is_hardly_a_config_says_so(resource: Json, sentence: str) -> None:
    read = parse(resource)
    assert isinstance(read, InvalidConfig)
    assert sentence in read.problems
    assert read.pod_selector == EVERYTHING


def test_a_long_value_is_not_repeated_in_full_nor_on_several_lines() -> None:
    (problem,) = invalid(secretName="a b\n" * 50).problems
    assert len(problem) < 160
    assert "\n" not in problem


# --- The selector of an invalid config ------------------------------------------------------------


def test_a_readable_selector_holds_although_the_rest_is_invalid() -> None:
    read = invalid(port=0, podSelector={"matchLabels": {"app": "chat"}})
    assert read.pod_selector.matches({"app": "chat"})
    assert not read.pod_selector.matches({"app": "search"})


@pytest.mark.parametrize(
    "selector",
    [
        "app=chat",
        {"matchLabel": {"app": "chat"}},
        {"matchLabels": {"app": "chat"}, "matchExpressions": [{"key": "app"}]},
        {"matchLabels": {"app": ["chat"]}},
    ],
)
def test_an_unreadable_selector_matches_every_pod(selector: Json) -> None:
    read = invalid(podSelector=selector)
    assert read.pod_selector == EVERYTHING
    assert read.pod_selector.matches({})


@pytest.mark.parametrize(
    ("operator", "values", "matching"),
    [
        (SelectorOperator.IN, {"chat", "search"}, [{"app": "chat"}, {"app": "search"}]),
        (SelectorOperator.NOT_IN, {"chat", "search"}, [{"app": "mail"}, {}]),
        (SelectorOperator.EXISTS, set(), [{"app": "chat"}, {"app": "search"}, {"app": "mail"}]),
        (SelectorOperator.DOES_NOT_EXIST, set(), [{}]),
    ],
)
def test_the_four_operators(
    operator: SelectorOperator, values: set[str], matching: list[dict[str, str]]
) -> None:
    requirement = Requirement("app", operator, tuple(values))
    pods: list[dict[str, str]] = [{"app": "chat"}, {"app": "search"}, {"app": "mail"}, {}]
    found = [pod for pod in pods if LabelSelector((requirement,)).matches(pod)]
    assert sorted(found, key=str) == sorted(matching, key=str)


def test_every_requirement_must_be_met() -> None:
    read = valid(
        podSelector={
            "matchLabels": {"app": "chat"},
            "matchExpressions": [{"key": "legacy", "operator": "DoesNotExist"}],
        }
    )
    assert read.pod_selector.matches({"app": "chat"})
    assert not read.pod_selector.matches({"app": "chat", "legacy": ""})
    assert not read.pod_selector.matches({})


# --- Formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (2, Fraction(2)),
        (0, Fraction(0)),
        (-1, Fraction(-1)),
        ("2", Fraction(2)),
        ("+2", Fraction(2)),
        ("-100m", Fraction(-1, 10)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1n", Fraction(1, 10**9)),
        ("1u", Fraction(1, 10**6)),
        ("100m", Fraction(1, 10)),
        ("1k", Fraction(1000)),
        ("1M", Fraction(10**6)),
        ("1G", Fraction(10**9)),
        ("1T", Fraction(10**12)),
        ("1P", Fraction(10**15)),
        ("1E", Fraction(10**18)),
        ("1Ki", Fraction(2**10)),
        ("1.5Mi", Fraction(3 * 2**19)),
        ("1Gi", Fraction(2**30)),
        ("1Ti", Fraction(2**40)),
        ("1Pi", Fraction(2**50)),
        ("1Ei", Fraction(2**60)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("25e-1", Fraction(5, 2)),
        ("1e+3", Fraction(1000)),
    ],
)
def test_quantities(text: str | int, number: Fraction) -> None:
    assert quantity(text) == number


@pytest.mark.parametrize(
    "garbage",
    [
        *("", " 1", "1 ", "1\n", "one", "1K", "1ki", "1mi", "128MB", "1e", "1e1.5", ".", "--1"),
        *("1,5", "\u0661", "1_000", "nan", "inf", "9" * 5000),
        *(10**400, 1.5, True, None, [], {}),
    ],
)
def test_what_is_no_quantity(garbage: Json) -> None:
    with pytest.raises(ValueError, match=r"quantit|neither|digits"):
        quantity(garbage)


@pytest.mark.parametrize(
    ("accepts", "good", "bad"),
    [
        (is_dns_label, ["a", "a-1", "1", "a" * 63], ["", "A", "-a", "a-", "a.b", "a" * 64, "a\n"]),
        (
            is_dns_subdomain,
            ["a", "a.b-c", "a" * 253],
            ["", ".", "a.", "a..b", "A", "a_b", "a" * 254],
        ),
        (
            is_label_key,
            ["app", "A_b.c", "example.com/app", "a" * 63],
            ["", "/", "/app", "example.com/", "a/b/c", "A.com/app", "-a", "a" * 64],
        ),
        (is_label_value, ["", "chat", "A_b.c", "a" * 63], ["a b", "-a", "a.", "a" * 64, "a\n"]),
        (is_variable, ["A", "_a", ".a", "a.b-c"], ["", "1A", ".", "..", "..a", "A=B", "A B", "Ä"]),
        (is_data_key, ["a", ".a", "1", "A_b-c.d"], ["", ".", "..", "..a", "a/b", "a" * 254]),
        (
            is_image_digest,
            [IMAGE, "a@sha256:" + "0" * 64],
            ["a", "a:1", "@sha256:" + "0" * 64, IMAGE + "0", IMAGE.upper(), "a b" + IMAGE],
        ),
    ],
)
def test_formats(accepts: Any, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if not accepts(text)] == []
    assert [text for text in bad if accepts(text)] == []


# --- Anything at all ------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
    max_leaves=10,
)
VALID = [yaml.safe_load(fixture.manifest) for fixture in ACCEPTED]


def places(node: Json) -> Iterator[tuple[Json, Any]]:
    """Every container below `node` with each of its keys or indices."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    for key, below in pairs:
        yield node, key
        if isinstance(below, dict | list):
            yield from places(below)


def check(resource: Json) -> None:
    match parse(resource):
        case InvalidConfig(problems=found):
            assert found
            assert all(problem.splitlines() == [problem] for problem in found)
        case ShieldConfig():
            pass


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_any_json_can_be_parsed(resource: Json) -> None:
    check(resource)
    check({"spec": resource})


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_valid_config_with_anything_anywhere_can_be_parsed(data: st.DataObject) -> None:
    resource = copy.deepcopy(data.draw(st.sampled_from(VALID)))
    container, key = data.draw(st.sampled_from(list(places(resource))))
    container[key] = data.draw(JSON)
    check(resource)


def test_keys_that_only_yaml_has_can_be_parsed() -> None:
    keys = (5, None, True, 1.5, (1, 2), "two\nlines", "", "a" * 1000, 10**5000)
    for key, value in itertools.product(keys, ("x", {})):
        check({"spec": {key: value}})
        check({"spec": {"resources": {"limits": {key: value}}}})
        check({"spec": {"scheduling": {"nodeSelector": {key: value}}}})


def test_depth_and_size_do_not_matter() -> None:
    deep: Json = []
    for _ in range(100_000):
        deep = [deep]
    value: Json
    for value in (deep, 10**5000, "a" * 10**6):
        check(value)
        for field in ("image", "port", "env", "podSelector", "scheduling"):
            check({"spec": {field: value}})
        check({"spec": {"resources": {"limits": {"cpu": value}}}})
        check({"metadata": {"name": value}, "spec": {}})
