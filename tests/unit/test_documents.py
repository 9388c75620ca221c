"""Manifests: read as kubectl reads them, and changed so that every reader of YAML agrees."""

import copy
import io
import json
from typing import Any

import pytest
import ruamel.yaml
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shield_operator.documents import Document, DocumentError, documents, scalars, workloads

WORDS = [
    "yes", "y", "N", "on", "Off", "true", "True", "null", "~", "Null", "", " ", "=", "<<", "0o17",
    "017", "08", "0x1F", "0b11", "1e3", "1E3", "1.5", ".5", "1.", "12:30:45", "1:2", "12:30:45.5",
    "2001-01-01", "2001-1-1 1:02:03", "1_000", "+1", "-1", "-", "--", "?", ":", "a: b", "a #b", "#",
    "- a", "[a]", "{a}", "&a", "*a", "!a", "!!str a", "%a", "@a", "`a",
    "'", '"', "\\", "a\nb", "\t",
    "\n", "---", "...", "\x85", "\u2028", "\ufeff", "\x07", "\x7f", "\U0001f600", ".inf", "-.INF",
    ".nan", "1.2.3", "10.0.0.1", "3f1c0a52-0000-4000-8000-000000000000", "12e4567890123456", "_",
    "é", "0E0_", "1e_3", "1_e+3", "_1", ".5_",
]  # fmt: skip
texts = st.one_of(
    st.sampled_from(WORDS),
    st.from_regex(r"[-+.]?[0-9]{1,4}[-0-9xobeE_.:T ]{0,8}", fullmatch=True),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
)


def both(text: str) -> Any:
    """What PyYAML (1.1) and ruamel.yaml (1.2) both read."""
    old = yaml.safe_load(text)
    new = ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(text))
    assert yaml.dump(old, sort_keys=False) == yaml.dump(new, sort_keys=False)  # 1 is not true
    return old


def one(text: str) -> Document:
    found = [d for d in documents("x.yaml", text.encode()) if d.value is not None]
    assert len(found) == 1
    return found[0]


def changed(text: str, change: Any) -> str:
    """The text after `change` on its value, which must be what all readers then read."""
    document = one(text)
    value = json.loads(json.dumps(document.value))
    change(value)
    after = document.with_value(value)
    assert both(after) == value
    assert one(after).value == value
    return after


# --- Words ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(texts)
def test_text_that_is_written_is_text_for_every_reader(text: str) -> None:
    assert both(f"a: {scalars.scalar(text)}\n") == {"a": text}
    assert both(f"[{scalars.quoted(text)}]\n") == [text]
    assert both(f"{scalars.scalar(text)}: 1\n") == {text: 1}


@settings(deadline=None)
@given(texts)
def test_what_is_called_certain_is_what_every_reader_reads(text: str) -> None:
    try:
        (found,) = yaml.compose(f"- {text}\n").value  # type: ignore[union-attr]
    except (yaml.YAMLError, AttributeError, ValueError):
        return
    is_plain = isinstance(found, yaml.ScalarNode) and found.style is None
    if is_plain and found.value == text and scalars.is_certain(text):
        (read,) = both(f"- {text}\n")
        assert read == scalars.meaning(text) or read != read  # noqa: PLR0124  # NaN


@pytest.mark.parametrize(
    ("word", "kubectl_reads"),
    [
        ("yes", True),
        ("Off", False),
        ("0644", 420),
        ("0o644", 420),
        ("0b11", 3),
        ("08", 8.0),
        ("1e3", 1000.0),
        ("12:30:45", "12:30:45"),
        ("2001-01-01", "2001-01-01"),
        ("1_000", 1000),
        ("0E0_", 0.0),
        ("1e_3", 1000.0),
        ("_1", "_1"),
        (".5_", ".5_"),
    ],
)
def test_a_word_that_readers_do_not_agree_on_is_written_as_kubectl_reads_it(
    word: str, kubectl_reads: Any
) -> None:
    after = changed(f"spec: {{}}\nfield: {word}\n", lambda value: value["spec"].update(a=1))
    assert both(after)["field"] == kubectl_reads


@pytest.mark.parametrize("word", ["yes", "0o17", "1e3", "012", "2001-01-01", "on", "12:30:45"])
def test_where_only_text_can_stand_such_a_word_is_text(word: str) -> None:
    text = f"labels: {{a: {word}}}\nargs:\n- {word}\nenv:\n- name: {word}\n  value: {word}\n"
    after = changed(text, lambda value: value.update(b="c"))
    assert both(after) == {
        "labels": {"a": word},
        "args": [word],
        "env": [{"name": word, "value": word}],
        "b": "c",
    }


def reads_back(written: str, value: Any) -> bool:
    """Whether PyYAML reads what it wrote, which is not so for some line breaks and controls."""
    try:
        return bool(yaml.safe_load(written) == value)
    except yaml.YAMLError:
        return False


@settings(deadline=None)
@given(texts, texts)
def test_text_stays_text_however_a_program_wrote_it(text: str, key: str) -> None:
    pod: Any = {"metadata": {"labels": {key: text}}, "spec": {"args": [text, "a"]}}
    wanted = copy.deepcopy(pod)
    wanted["metadata"]["annotations"] = {"x": text}
    for written in (
        yaml.safe_dump(pod),
        yaml.safe_dump(pod, default_flow_style=True, allow_unicode=True),
        json.dumps(pod),
        json.dumps(pod, indent=2, ensure_ascii=False),
    ):
        if not reads_back(written, pod):
            continue
        document = one(written)
        assert document.value == pod
        assert both(document.with_value(wanted)) == wanted


# --- Editing --------------------------------------------------------------------------------------

json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), texts),
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(st.sampled_from("abcd"), below, max_size=3)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from("abcd"), json_values, min_size=1, max_size=4)
styles = st.sampled_from([None, False, True])


@settings(max_examples=300, deadline=None)
@given(objects, objects, styles)
@example({"a": [{"name": "x"}]}, {"a": [{"name": "y"}, {"name": "x", "b": 1}]}, False)
@example({"a": [{"name": "x"}, {"name": "y"}]}, {"a": [{"name": "y"}]}, False)
def test_any_value_becomes_any_other(before: Any, after: Any, style: bool | None) -> None:
    try:
        document = one(yaml.safe_dump(before, default_flow_style=style))
    except DocumentError as error:
        assert "not YAML" in str(error)  # noqa: PT017  # what the parser itself does not take
        return
    assert one(document.with_value(after)).value == after
    assert both(document.with_value(after)) == after


COMMENTED = """\
# The shop.
kind: Pod   # a pod
metadata:
    labels: {app: web}   # who
    annotations:
        note: |
            two
            lines

        # at the end
spec:
    containers:
    # first
    -   name: web   # ours
        image:   'nginx'
        args: ["a",
          "b"]   # and b
    -   {name: log}
    tolerations:
      - operator: Exists
"""


def test_comments_order_quotes_and_indentation_stay() -> None:
    def change(pod: Any) -> None:
        pod["metadata"]["labels"]["new"] = "on"
        pod["metadata"]["annotations"]["m"] = "1"
        pod["spec"]["containers"].insert(0, {"name": "zero"})
        pod["spec"]["containers"][1]["args"].append("c")
        pod["spec"]["containers"][1]["env"] = [{"name": "A", "value": "1"}]
        pod["spec"]["containers"].append({"name": "end"})
        pod["spec"]["tolerations"].append({"key": "a"})

    assert changed(COMMENTED, change) == (
        COMMENTED.replace("{app: web}", '{app: web, new: "on"}')
        .replace("            lines\n", '            lines\n        m: "1"\n')
        .replace("    # first\n", "    - name: zero\n    # first\n")
        .replace('  "b"]   # and b\n', '  "b", c]   # and b\n        env:\n'
                 '        - name: A\n          value: "1"\n')
        .replace("    -   {name: log}\n", "    -   {name: log}\n    - name: end\n")
        + "      - key: a\n"
    )  # fmt: skip


def test_what_goes_from_brackets_leaves_the_rest_as_it_was() -> None:
    text = "a: {x: 1,  w:  '2' , z: 3}\nb: [1,  2 , 3 , 4]\nc: {x: [1]}\n"

    def change(value: Any) -> None:
        value["a"] = {"w": "2"}
        value["b"] = [2, 3]
        value["c"] = {}

    assert changed(text, change) == "a: {w:  '2'}\nb: [2 , 3]\nc: {}\n"


def test_carriage_returns_a_byte_order_mark_and_a_missing_last_newline_stay() -> None:
    mark, document = documents("x", "\ufeffa:\r\n- b\r\nc:\r\n  d: e".encode())
    after = document.with_value({"a": ["b", "x"], "c": {"d": "e", "f": "g"}})
    assert mark.text + after == "\ufeffa:\r\n- b\r\n- x\r\nc:\r\n  d: e\r\n  f: g"


def test_an_alias_is_written_out_where_what_it_stands_for_changes() -> None:
    text = "selector: &labels {app: web}\nlabels: *labels\n"
    after = changed(text, lambda value: value["labels"].update(new="1"))
    assert after.startswith("selector: &labels {app: web}\nlabels:\n  app: web\n")


def test_an_anchor_may_change_without_what_refers_to_it() -> None:
    text = "a: &all\n  x: 1\nb: *all\nc:\n  <<: *all\n  y: 2\nd: 1 # stays\n"
    after = changed(text, lambda value: value["a"].update(z=3))
    assert both(after)["b"] == {"x": 1}
    assert both(after)["c"] == {"x": 1, "y": 2}
    assert after.endswith("d: 1 # stays\n")


@pytest.mark.parametrize(
    "text",
    [
        "? a\n: {}\nb: c\n",
        "--- !!map\na: {}\n",
        "  a: {}\n  b: c\n",
        "a: {} # c\nb: &x !!str 1\nc: *x\n",
        "%YAML 1.1\n---\na:\n...\n",
        "a:\n# c\nb: {x: [\n1, # c\n2,]}\n",
        "a: ~\nb: >+\n x\n\n\n",
        "a: !!null ''\nb:\n  -\n  - - q\n",
    ],
)
def test_unusual_ways_of_writing_are_changed_too(text: str) -> None:
    def change(value: Any) -> None:
        value["a"] = {"list": [{"x": "yes"}, []]}
        value["e"] = [[1, 2], "z"]

    changed(text, change)


def test_json_keeps_its_shape() -> None:
    compact = '{"a":{"b":"é"},"c":[1.0,true,null]}'
    assert one(compact).with_value({"a": {}}) == '{"a":{}}'
    pretty = '{\n    "a": "\\ud83d\\ude00"\n}\n'
    assert one(pretty).with_value({"a": "b"}) == '{\n    "a": "b"\n}\n'


# --- Files ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "a: 1\n",
                "# c\n",
                "---\n",
                "--- # x\n",
                "...\n",
                "%YAML 1.1\n---\n",
                "\n",
                "---\r\n",
                "b: |\n  ---x\n  #\n",
                '{"c": 1}\n',
                '{"c": 1} {"d": 2}\n',
                "---\na: '\n  b'\n",
            ]
        ),
        max_size=6,
    )
)
def test_the_documents_of_a_file_are_all_of_it(parts: list[str]) -> None:
    text = "".join(parts)
    try:
        found = documents("x", text.encode())
    except DocumentError:
        return
    assert "".join(document.text for document in found) == text
    lines = [document.line for document in found]
    assert lines == sorted(lines)


def test_several_json_objects_in_a_row_are_documents() -> None:
    found = documents("x", b'{"a": 1}\n{"a": 2} {"a": 3}\n')
    assert [document.value for document in found] == [{"a": 1}, {"a": 2}, {"a": 3}]


@pytest.mark.parametrize("text", ["", "\n", "# only\n", "---\n---\n", "--- # c\n...\n", "\ufeff"])
def test_an_empty_document_says_nothing(text: str) -> None:
    assert all(document.value is None for document in documents("x", text.encode()))


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(9)
)


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("a: 1\n---\n\tb: 1\n", "document 2, line 3", "is not YAML: found character that cannot"),
        ("a: [1\n", "document 1, line 1", "is not YAML: "),
        ("a: b: c\n", "document 1, line 1", "is not YAML: mapping values are not allowed"),
        ("# c\n---\na: *x\n", "document 1, line 3", "is not YAML: there is no anchor 'x'"),
        ("a: &x [*x]\n", "document 1, line 1", "has an alias 'x' inside of itself"),
        ("- a\n", "document 1, line 1", "is no Kubernetes object"),
        ("just words\n", "document 1, line 1", "is no Kubernetes object"),
        ("[a]: b\n", "document 1, line 1", "has a key that is no text"),
        ("a: " + "[" * 300 + "]" * 300, "document 1, line 1", "is more than 200 deep"),
        ('{"a":' * 20000 + "1" + "}" * 20000, "document 1, line 1", "is "),
        (BOMB, "document 1, line 5", "has aliases that stand for too much"),
        ("a: \x00\n", "document 1, line 1", "is not YAML: "),
        ('{"a": 1, "a" 2}\n', "document 1, line 1", "is not YAML: "),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(text: str, where: str, what: str) -> None:
    with pytest.raises(DocumentError) as caught:
        documents("dir/x.yaml", text.encode())
    assert str(caught.value).startswith(f"dir/x.yaml: {where}: {what}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x7fELF\x02\x01\x80", b"a: \xe9\n"])
def test_what_is_no_text_says_so(content: bytes) -> None:
    with pytest.raises(DocumentError, match="x: document 1, line 1: is not text in UTF-8"):
        documents("x", content)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_garbage_is_read_or_refused(content: bytes) -> None:
    try:
        found = documents("x", content)
    except DocumentError:
        return
    assert "".join(document.text for document in found).encode() == content


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Pod\na: 1\nspec: {}\nb: {c: 1, c: 2}\n", "line 4: key 'c' is there twice"),
        ("labels:\n  llm-shield.io/inject: true\n", "line 2: llm-shield.io/inject has a value"),
        ('{"labels": {"llm-shield.io/inject": true}}', "line 1: llm-shield.io/inject has a value"),
    ],
)
def test_what_the_api_server_would_not_take_is_refused(text: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem):
        one(text).check()


# --- Workloads ------------------------------------------------------------------------------------

TEMPLATE: Any = {"spec": {"containers": []}}
IN_TEMPLATE: Any = {"spec": {"template": TEMPLATE}}


@pytest.mark.parametrize(
    ("version", "kind", "content", "maker"),
    [
        ("v1", "Pod", TEMPLATE, None),
        ("v1", "PodTemplate", {"template": TEMPLATE}, None),
        ("v1", "ReplicationController", IN_TEMPLATE, "ReplicationController"),
        ("apps/v1", "Deployment", IN_TEMPLATE, "ReplicaSet"),
        ("apps/v1", "ReplicaSet", IN_TEMPLATE, "ReplicaSet"),
        ("apps/v1", "StatefulSet", IN_TEMPLATE, "StatefulSet"),
        ("apps/v1", "DaemonSet", IN_TEMPLATE, "DaemonSet"),
        ("batch/v1", "Job", IN_TEMPLATE, "Job"),
        ("batch/v1", "CronJob", {"spec": {"jobTemplate": IN_TEMPLATE}}, "Job"),
    ],
)
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_every_workload_of_kubernetes_is_found_in_lists_too(
    version: str, kind: str, content: Any, maker: str | None, depth: int
) -> None:
    bare = {"metadata": {"name": "a", "namespace": "b"}, **content}
    value: Any = {"apiVersion": version, "kind": kind, **bare}
    if depth == 1:  # as the API server answers: what the items are, the list says
        value = {"apiVersion": version, "kind": f"{kind}List", "items": [bare]}
    elif depth > 1:
        value = {"apiVersion": "v1", "kind": "List", "items": [None, value]}
    if depth == 3:
        value = {"apiVersion": "v1", "kind": "List", "items": [value]}
    (found,) = workloads(value)
    assert (found.kind, found.namespace, found.name, found.maker) == (kind, "b", "a", maker)
    assert found.pod["spec"] is TEMPLATE["spec"]


@pytest.mark.parametrize(
    "value",
    [
        {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **IN_TEMPLATE},
        {"apiVersion": "v1", "kind": "Deployment", **IN_TEMPLATE},
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": None}},
        {"apiVersion": ["v1"], "kind": ["Pod"]},
        {"kind": "Pod", "apiVersion": 1},
        {},
        None,
    ],
)
def test_what_only_looks_like_a_workload_is_left_alone(value: Any) -> None:
    found = [*workloads(value)]
    assert found == [] or found[0].kind == "Pod"
