"""`decide`: its docstring's truth table, row by row, and what it says."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import examples
from examples import config, decided, index, plan, pod
from shield_operator import decision
from shield_operator.decision import Ignore, Inject, Skip, SkipReason, decide
from shield_operator.model import SecretState
from shield_operator.patch import apply, operations
from shield_operator.plan import ClusterVersion
from shield_operator.selection import ConfigIndex

INJECT = "llm-shield.io/inject"
MARK = {"name": "LLM_SHIELD_INJECTED", "value": "shop/shield@0123456789abcdef"}
OURS = {"name": "llm-shield-proxy", "image": "i", "env": [MARK], "restartPolicy": "Always"}
FOREIGN = {"name": "llm-shield-proxy", "image": "i"}
WEB = {"name": "web", "image": "example.com/web:1"}
PAYLOAD = {"image": examples.PAYLOAD_IMAGE, "mountPath": "/opt/connector"}
STAGE = plan(payload=PAYLOAD).stage
RULES: dict[str, Any] = {
    "mode": "None",
    "image": None,
    "secretName": None,
    "scheduling": {"nodeSelector": {"pool": "a"}},
}
OTHER_CONFIG = {"llm-shield.io/config": "elsewhere"}

NAMESPACE_LABELS: dict[str, dict[str, str] | None] = {
    "in": {INJECT: "enabled"},
    "out": {INJECT: "disabled"},
    "neither": {INJECT: "yes"},
    "excluded": {INJECT: "true"},
    "unknown": None,
}
POD_LABELS: dict[str, dict[str, str]] = {
    "in": {INJECT: "true"},
    "out": {INJECT: "false"},
    "other": {INJECT: "yes"},
    "-": {},
}
PODS: dict[str, dict[str, Any]] = {
    "-": {},
    "our sidecar": {"initContainers": [OURS]},
    "our plain sidecar": {"containers": [WEB, OURS]},
    "forged stamps": {"annotations": {"llm-shield.io/injected-config": "shop/shield"}},
    "bad annotation": {"annotations": {"llm-shield.io/keys-secret": "No Name\n"}},
    "names another config": {"annotations": OTHER_CONFIG},
    "names a container": {"annotations": {"llm-shield.io/container": "web"}},
    "names no container": {"annotations": {"llm-shield.io/container": "wbe"}},
    "names our container": {"annotations": {"llm-shield.io/container": "llm-shield-proxy"}},
    "sets command": {"containers": [{**WEB, "command": ["serve"]}]},
    "our stage": {
        "initContainers": [{"name": "llm-shield-payload-stage", "image": "old", "env": [MARK]}]
    },
    "stage, not init": {"containers": [WEB, STAGE]},
    "foreign stage": {"initContainers": [{"name": "llm-shield-payload-stage", "image": "i"}]},
    "names the config": {"annotations": {"llm-shield.io/config": "shield"}},
    "foreign container": {"containers": [WEB, FOREIGN]},
    "foreign init": {"initContainers": [FOREIGN]},
    "mark that ends early": {"initContainers": [{**FOREIGN, "env": [MARK]}]},
    "too little for a pod": {"resources": {"requests": {"memory": "100Mi"}}},
    "enough for a pod": {"resources": {"requests": {"memory": "1Gi"}, "limits": {"cpu": "1"}}},
    "forged mark": {"containers": [WEB, {**FOREIGN, "env": [{**MARK, "value": "true"}]}]},
    "foreign volume": {"volumes": [{"name": "llm-shield-tmp", "hostPath": {"path": "/"}}]},
    "our volume": {"volumes": [{"name": "llm-shield-tmp", "emptyDir": {"sizeLimit": "64Mi"}}]},
    "port taken": {"containers": [{**WEB, "ports": [{"containerPort": 8000}]}]},
    "port taken by init": {
        "initContainers": [{"name": "i", "ports": [{"containerPort": 8000, "protocol": "TCP"}]}]
    },
    "port taken, UDP": {
        "containers": [{**WEB, "ports": [{"containerPort": 8000, "protocol": "UDP"}]}]
    },
    "host network": {"hostNetwork": True},
    "windows": {"os": {"name": "windows"}},
    "windows node selector": {"nodeSelector": {"kubernetes.io/os": "windows"}},
}
CONFIGS: dict[str, list[dict[str, Any]]] = {
    "one": [config()],
    "none": [],
    "two": [config(), config("second")],
    "elsewhere": [config(namespace="other")],
    "invalid": [config(image=None)],
    "default": [config("default", "llm-shield-system")],
    "settings": [],
    "wiring": [config(application={"args": [{"name": "--seed", "value": "0"}]})],
    "no target": [config(application={"container": "chat"})],
    "payload": [config(payload=PAYLOAD)],
    "staged": [config(payload=PAYLOAD, mode="None")],
    "rules": [config(**RULES)],
}


def truth_table() -> list[tuple[str, ...]]:
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|"))
        for line in (decision.__doc__ or "").splitlines()
        if line.startswith("|")
    ]
    return rows[2:]


@pytest.mark.parametrize(
    ("namespace", "label", "shape", "configs", "outcome"),
    truth_table(),
    ids=lambda cell: cell.replace(" ", "_"),
)
def test_truth_table(namespace: str, label: str, shape: str, configs: str, outcome: str) -> None:
    a_pod = pod(labels=POD_LABELS[label], **PODS[shape])
    chosen = examples.settings(
        **({"K8S_SIDECAR_IMAGE": examples.IMAGE} if configs == "settings" else {})
    )
    found = decide(
        a_pod,
        "kube-system" if namespace == "excluded" else examples.NAMESPACE,
        NAMESPACE_LABELS[namespace],
        {},
        index(*CONFIGS[configs], with_settings=chosen),
        chosen,
    )
    match found:
        case Ignore():
            assert outcome == "ignore"
        case Inject():
            assert outcome == "inject"
        case Skip(reason):
            assert outcome == reason.value


def test_the_table_has_every_reason_in_the_order_of_the_checks() -> None:
    outcomes = [row[-1] for row in truth_table()]
    firsts = [outcome for outcome in dict.fromkeys(outcomes) if outcome in list(SkipReason)]
    assert firsts == [reason.value for reason in SkipReason]


def test_the_table_uses_every_example() -> None:
    known: list[Iterable[str]] = [NAMESPACE_LABELS, POD_LABELS, PODS, CONFIGS]
    *columns, _ = zip(*truth_table(), strict=True)
    assert [set(column) for column in columns] == [set(names) for names in known]


def test_the_operators_own_namespace_is_always_out() -> None:
    chosen = examples.settings(POD_NAMESPACE=examples.NAMESPACE)
    assert decided(pod(), with_settings=chosen) == Ignore()


# --- What it says ---------------------------------------------------------------------------------


def skip(found: object) -> Skip:
    assert isinstance(found, Skip), found
    return found


def test_a_skip_says_what_to_do_and_warns_with_the_same_words() -> None:
    found = skip(decided(pod(hostNetwork=True)))
    assert "do without hostNetwork" in found.sentence
    (warning,) = found.warnings
    assert warning == f"not injected (host-network): {found.sentence}"


def test_ambiguous_configs_are_named_in_a_stable_order() -> None:
    found = skip(decided(pod(), [config("zebra"), config("ant")]))
    assert "ant and zebra" in found.sentence


def test_an_invalid_config_is_named_with_its_problems() -> None:
    found = skip(decided(pod(), [config(image=None)]))
    assert found.sentence.startswith("ShieldSidecarConfig shop/shield is invalid: spec.image")


def test_a_sentence_is_never_too_long_for_a_pod() -> None:
    """A pod's annotations share 256 KiB, and the API server refuses one that has more."""
    many = [config(f"config-{number:04}") for number in range(1300)]
    found = skip(decided(pod(), many))
    assert "config-0000 and config-0001" in found.sentence
    assert "and 1295 more" in found.sentence
    broken = config(podSelector={"matchLabels": {f"no key {number}": "x" for number in range(30)}})
    found = skip(decided(pod(), [broken]))
    assert len(found.sentence) <= 1000


def test_a_sidecar_that_came_along_and_cannot_work_is_warned_about() -> None:
    found = decided(pod(initContainers=[OURS], hostNetwork=True))
    assert isinstance(found, Ignore)
    assert "may not work: the pod uses the node's network" in found.warnings[0]


def test_a_bad_annotation_is_never_repeated() -> None:
    nasty = "x'\n{{ evil }}"
    found = skip(decided(pod(annotations={"llm-shield.io/config": nasty})))
    assert found.reason is SkipReason.INVALID_ANNOTATION
    assert "evil" not in found.sentence


def test_an_empty_annotation_is_an_absent_one() -> None:
    empty = {"llm-shield.io/config": "", "llm-shield.io/keys-secret": ""}
    assert isinstance(decided(pod(annotations=empty)), Inject)


def test_warnings_are_one_line_of_at_most_256_characters() -> None:
    many = [config(f"config-with-a-long-name-{number}") for number in range(50)]
    (warning,) = skip(decided(pod(), many)).warnings
    assert len(warning) == 256
    assert "\n" not in warning


@pytest.mark.parametrize(
    ("state", "warned"),
    [(SecretState.ABSENT, True), (SecretState.PRESENT, False), (SecretState.UNKNOWN, False)],
)
def test_an_absent_secret_is_warned_about(state: SecretState, warned: bool) -> None:
    found = decided(pod(), secrets={"keys": state})
    assert any("Secret keys is not in namespace shop" in text for text in found.warnings) == warned


def test_no_secret_at_all_is_warned_about() -> None:
    found = decided(pod(), [config(secretName=None)])
    assert isinstance(found, Inject)
    assert "401" in found.warnings[0]


def test_a_pods_own_secret_is_the_one_that_counts() -> None:
    a_pod = pod(annotations={"llm-shield.io/keys-secret": "mine"})
    found = decided(a_pod, [config(secretName=None)], secrets={"mine": SecretState.ABSENT})
    assert ["mine" in text for text in found.warnings] == [True]


@pytest.mark.parametrize(
    ("labels", "host_network", "kept"),
    [
        ({}, False, None),
        ({}, True, None),
        ({"llm-shield.io/injected": "true"}, False, None),
        ({"llm-shield.io/injected": "no"}, False, "llm-shield.io/injected"),
        ({"llm-shield.io/injected": "true"}, True, "llm-shield.io/injected"),
        ({"llm-shield.io/injection-skipped": "x"}, False, "llm-shield.io/injection-skipped"),
        ({"llm-shield.io/injection-skipped": "x"}, True, "llm-shield.io/injection-skipped"),
        ({"llm-shield.io/injection-skipped": "host-network"}, True, None),
    ],
)
def test_an_outcome_label_that_stays_wrong_is_warned_about(
    labels: dict[str, str], host_network: bool, kept: str | None
) -> None:
    owned = pod(labels=labels, owner="ReplicaSet", hostNetwork=host_network)
    warnings = [text for text in decided(owned).warnings if text.startswith("label ")]
    assert [text.split()[1] for text in warnings] == ([kept] if kept else [])
    free = pod(labels=labels, hostNetwork=host_network)
    assert not [text for text in decided(free).warnings if text.startswith("label ")]


def test_a_plan_of_the_settings_alone_does_not_send_anybody_to_a_config_that_is_not_there() -> None:
    chosen = examples.settings(K8S_SIDECAR_IMAGE=examples.IMAGE)
    (warning,) = decided(pod(), [], with_settings=chosen).warnings
    assert "there is none yet: create one" in warning


@pytest.mark.parametrize(
    ("names", "is_list"),
    [
        ("regcred", True),
        (" first , second.example ", True),
        (",", True),
        (" ", True),
        ("Regcred", False),
        ("one two", False),
        ("one,{{ evil }}", False),
    ],
)
def test_pull_secrets_are_a_list_of_names(names: str, is_list: bool) -> None:
    found = decided(pod(annotations={"llm-shield.io/image-pull-secrets": names}))
    assert isinstance(found, Inject) == is_list
    if isinstance(found, Skip):
        assert found.reason is SkipReason.INVALID_ANNOTATION
        assert "evil" not in found.sentence


def test_a_container_that_is_not_there_is_named_with_who_asks_for_it() -> None:
    by_config = skip(decided(pod(), [config(application={"container": "chat"})]))
    assert "application.container of ShieldSidecarConfig shop/shield names chat" in (
        by_config.sentence
    )
    by_pod = skip(decided(pod(annotations={"llm-shield.io/container": "chat"})))
    assert "annotation llm-shield.io/container names chat" in by_pod.sentence


def test_an_init_container_cannot_be_the_application() -> None:
    a_pod = pod(
        annotations={"llm-shield.io/container": "migrate"}, initContainers=[{"name": "migrate"}]
    )
    assert skip(decided(a_pod)).reason is SkipReason.TARGET_CONTAINER_NOT_FOUND


@pytest.mark.parametrize(("args", "warned"), [(None, True), ([], True), (["serve"], False)])
def test_an_image_that_loses_its_own_arguments_is_warned_about(
    args: list[str] | None, warned: bool
) -> None:
    wiring = config(application={"args": [{"name": "--seed", "value": "0"}]})
    found = decided(pod(containers=[{**WEB, "args": args}]), [wiring])
    assert any("CMD" in text for text in found.warnings) == warned
    assert not any("CMD" in text for text in decided(pod()).warnings)


def test_an_absent_mounted_secret_is_warned_about_too() -> None:
    mounts = [{"name": "ca", "secretName": "ca"}, {"name": "keys", "secretName": "keys"}]
    absent = dict.fromkeys(("keys", "ca"), SecretState.ABSENT)
    found = decided(pod(), [config(secretMounts=mounts)], secrets=absent)
    assert [text.split()[1] for text in found.warnings] == ["keys", "ca"]


def test_without_a_sidecar_no_secret_is_missed_and_no_job_warned() -> None:
    rules = config(**{**RULES, "secretMounts": [{"name": "ca", "secretName": "ca"}]})
    found = decided(pod(owner="Job"), [rules], secrets={"ca": SecretState.ABSENT})
    assert isinstance(found, Inject)
    assert found.warnings == ()


def test_a_job_is_warned_of_a_plain_sidecar_only() -> None:
    job = pod(owner="Job")
    assert decided(job).warnings == ()
    (warning,) = decided(job, [config(mode="Container")]).warnings
    assert "the Job will not complete" in warning


def test_what_others_do_to_a_wired_pod_is_no_obstacle_the_second_time() -> None:
    """Without a sidecar nothing in the pod is ours for sure, and another webhook may come after."""
    wiring = [config(mode="None", application={"args": [{"name": "--seed", "value": "0"}]})]
    before = pod()
    found = decided(before, wiring)
    apply(before, found)
    before["spec"]["containers"][0]["command"] = ["wrapper"]
    again = decided(before, wiring)
    assert isinstance(again, Inject)
    assert operations(before, again) == []
    before["spec"]["containers"][0]["args"] = []
    assert skip(decided(before, wiring)).reason is SkipReason.COMMAND_OVERRIDE


def test_an_image_volume_that_a_cluster_pulls_by_its_own_policy_is_ours_all_the_same() -> None:
    gate = examples.settings(K8S_FEATURE_GATES="ImageVolume=true")
    configs = [config(payload=PAYLOAD, mode="None")]
    before = pod()
    apply(before, decided(before, configs, with_settings=gate))
    before["spec"]["volumes"][0]["image"]["pullPolicy"] = "Always"
    assert operations(before, decided(before, configs, with_settings=gate)) == []
    before["spec"]["volumes"][0]["image"]["reference"] = "example.com/other:1"
    found = skip(decided(before, configs, with_settings=gate))
    assert found.reason is SkipReason.VOLUME_NAME_CONFLICT


def test_a_stage_of_another_config_stays_and_is_warned_about() -> None:
    copied = {"name": "llm-shield-payload-stage", "env": [{**MARK, "value": f"a/b@{'0' * 16}"}]}
    found = decided(pod(initContainers=[copied]), [config(payload=PAYLOAD, mode="None")])
    assert isinstance(found, Ignore)
    assert "remove the payload from the template" in found.warnings[0]


def test_a_sidecar_of_another_config_stays_and_is_warned_about() -> None:
    copied = {**OURS, "env": [{**MARK, "value": "other/shield@0123456789abcdef"}]}
    found = decided(pod(initContainers=[copied]))
    assert isinstance(found, Ignore)
    assert "remove the sidecar from the template" in found.warnings[0]


def test_an_outdated_sidecar_of_the_same_config_is_not_warned_about() -> None:
    assert decided(pod(initContainers=[OURS])) == Ignore()


# --- Hostile input --------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = ("metadata", "labels", "annotations", "spec", "containers", "initContainers", "volumes")


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "metadata": JSON
            | st.fixed_dictionaries(
                {}, optional={"labels": JSON, "annotations": JSON, "ownerReferences": JSON}
            ),
            "spec": JSON
            | st.fixed_dictionaries(
                {},
                optional={
                    "containers": JSON
                    | st.lists(JSON)
                    | st.lists(
                        st.fixed_dictionaries(
                            {
                                "ports": st.lists(
                                    st.fixed_dictionaries(
                                        {"containerPort": st.just(8000), "protocol": JSON}
                                    )
                                )
                            }
                        )
                    ),
                    "initContainers": JSON,
                    "volumes": JSON,
                    "securityContext": JSON,
                    "os": JSON | st.fixed_dictionaries({"name": JSON}),
                    "nodeSelector": JSON | st.fixed_dictionaries({"kubernetes.io/os": JSON}),
                    "resources": JSON | st.fixed_dictionaries({"requests": JSON, "limits": JSON}),
                },
            ),
        },
    )
)
@hypothesis_settings(max_examples=300, deadline=None)
def test_decide_never_raises(anything: dict[str, object]) -> None:
    found = decided(anything)
    assert isinstance(found, Ignore | Inject | Skip)
    assert all(re.fullmatch(r"[^\n]{1,256}", warning) for warning in found.warnings)


def test_without_native_sidecars_the_index_says_so() -> None:
    old = ConfigIndex.of(examples.settings(), ClusterVersion(1, 30), [config()])
    found = decide(pod(), examples.NAMESPACE, None, {}, old, examples.settings())
    assert isinstance(found, Inject)
    assert not found.plan.native
