"""Explaining a decision: the same outcome as the webhook's, with what each rule saw."""

from typing import Any

import pytest

import examples
from examples import config, index, pod
from golden.cases import CASES, Case, is_denied
from shield_operator.decision import Ignore, Inject, Skip, SkipReason, decide
from shield_operator.explanation import (
    Certainty,
    Explanation,
    Stamps,
    Standing,
    Step,
    Verdict,
    explain,
    present_fingerprint,
    why_bare,
)
from shield_operator.model import SecretState
from unit.test_decision import (
    CONFIGS,
    NAMESPACE_LABELS,
    POD_LABELS,
    PODS,
    truth_table,
)

INJECT = "llm-shield.io/inject"


def explained(
    a_pod: dict[str, Any],
    configs: list[dict[str, Any]] | None = None,
    *,
    namespace_labels: dict[str, str] | None = None,
    secrets: dict[str, SecretState] | None = None,
) -> Explanation:
    labels = {INJECT: "enabled"} if namespace_labels is None else namespace_labels
    found = index(*([config()] if configs is None else configs))
    chosen = examples.settings()
    return explain(a_pod, examples.NAMESPACE, labels, secrets or {}, found, chosen)


def step(explanation: Explanation, rule: str) -> Step:
    (found,) = [one for one in explanation.steps if one.rule == rule]
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_golden_case_is_explained_with_the_webhooks_own_word(case: Case) -> None:
    metadata = case.namespace["metadata"]
    labels = metadata.get("labels", {})
    found = explain(case.pod, metadata["name"], labels, {}, case.index(), case.settings)
    word, *warnings = case.reason.splitlines()
    assert word == f"denied: {found.word}" if found.denied else found.word
    assert list(found.decision.warnings) == warnings
    assert found.denied == is_denied(case, found.decision)


@pytest.mark.parametrize(
    ("namespace", "label", "shape", "configs", "outcome"),
    truth_table(),
    ids=lambda cell: cell.replace(" ", "_"),
)
def test_the_first_rule_that_failed_is_the_one_that_decided(
    namespace: str, label: str, shape: str, configs: str, outcome: str
) -> None:
    """The steps are told beside the decision; here they are held to it, row by row."""
    environment = {"K8S_SIDECAR_IMAGE": examples.IMAGE} if configs == "settings" else {}
    chosen = examples.settings(**environment)
    where = "kube-system" if namespace == "excluded" else examples.NAMESPACE
    found = explain(
        pod(labels=POD_LABELS[label], **PODS[shape]),
        where,
        NAMESPACE_LABELS[namespace],
        {"keys": SecretState.PRESENT},
        index(*CONFIGS[configs], with_settings=chosen),
        chosen,
    )
    failed = [one for one in found.steps if one.verdict is Verdict.FAILED]
    assert found.word == {"inject": "injected", "ignore": "ignored"}.get(outcome, outcome)
    match found.decision:
        case Inject():
            assert failed == []
        case Skip(reason, sentence):
            assert (failed[0].reason, failed[0].saw) == (reason, sentence)
        case Ignore():
            assert [one.rule for one in failed] == ([] if found.has_sidecar else ["label"])


def test_every_reason_belongs_to_a_rule() -> None:
    """A reason that no rule knows would be a skip that nobody can explain."""
    reached = set()
    for case in CASES:
        metadata = case.namespace["metadata"]
        labels = metadata.get("labels", {})
        found = explain(case.pod, metadata["name"], labels, {}, case.index(), case.settings)
        reached |= {one.reason for one in found.steps if one.reason}
    assert reached == set(SkipReason)


def test_all_that_stands_in_the_way_is_told_at_once() -> None:
    web = {"name": "web", "image": "i", "ports": [{"containerPort": 8000}]}
    found = explained(pod(containers=[web], hostNetwork=True))
    failed = [one.reason for one in found.steps if one.verdict is Verdict.FAILED]
    assert failed == [SkipReason.PORT_CONFLICT, SkipReason.HOST_NETWORK]


def test_a_pod_that_did_not_ask_is_told_which_label_would_ask() -> None:
    found = explained(pod(), namespace_labels={})
    assert [(one.rule, one.verdict) for one in found.steps] == [("label", Verdict.FAILED)]
    assert found.steps[0].saw == (
        f"namespace shop has no label {INJECT}, and the pod has no label {INJECT}: label one of "
        f"them {INJECT}=enabled to get the sidecar"
    )


def test_the_config_is_told_with_why_others_are_not_it() -> None:
    for_web = config("for-web", podSelector={"matchLabels": {"app": "web"}})
    for_chat = config(
        "for-chat",
        podSelector={"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
    )
    found = explained(pod(labels={"app": "web"}), [config("for-all"), for_web, for_chat])
    assert step(found, "config").saw == (
        "shop/for-web, whose podSelector (app=web) matches the pod's labels; shop/for-all has no "
        "podSelector, and one that matches beats it; shop/for-chat is for other pods (app notin "
        "(web))"
    )


def test_a_secret_that_is_not_there_does_not_change_the_decision() -> None:
    absent = explained(pod(), secrets={"keys": SecretState.ABSENT})
    assert absent.word == "injected"
    assert step(absent, "Secret").verdict is Verdict.FAILED
    unknown = explained(pod())
    assert step(unknown, "Secret").verdict is Verdict.NOT_CHECKED


def test_what_a_stranger_wrote_does_not_reach_the_terminal_as_it_is() -> None:
    found = explained(pod(containers=[{"name": "\x1b[31mweb\n", "image": "i"}]))
    assert all(one.saw.isprintable() for one in found.steps)


# --- A pod that runs ------------------------------------------------------------------------------


def injected(a_pod: dict[str, Any], configs: list[dict[str, Any]]) -> dict[str, Any]:
    from shield_operator import patch  # noqa: PLC0415

    chosen = examples.settings()
    decision = decide(a_pod, examples.NAMESPACE, None, {}, index(*configs), chosen)
    patch.apply(a_pod, decision)
    return a_pod


def test_a_pods_stamps_are_those_that_admission_left() -> None:
    found = Stamps.of(injected(pod(), [config()]))
    plan = examples.plan()
    assert (found.config, found.generation, found.fingerprint) == (
        "shop/shield",
        "1",
        plan.fingerprint,
    )
    assert found.standing(plan.fingerprint) is Standing.CURRENT
    assert found.standing("0" * 16) is Standing.OUTDATED
    assert found.standing(None) is Standing.UNKNOWN


def test_a_copy_without_annotations_is_known_by_its_mark() -> None:
    a_pod = injected(pod(), [config()])
    del a_pod["metadata"]["annotations"]
    assert Stamps.of(a_pod).config == "shop/shield"
    assert Stamps.of(a_pod).standing(examples.plan().fingerprint) is Standing.CURRENT


def test_a_skipped_pod_and_a_bare_one() -> None:
    skipped = Stamps.of(injected(pod(), []))
    assert (skipped.standing(None), skipped.skipped) == (Standing.SKIPPED, "no-sidecar-config")
    assert Stamps.of(pod()).standing(None) is Standing.BARE


def test_the_present_fingerprint_is_that_of_the_present_spec() -> None:
    written = {"observedGeneration": 1, "injectionHash": "f" * 16}
    assert present_fingerprint({**config(), "status": written}) == "f" * 16
    stale = {"observedGeneration": 0, "injectionHash": "f" * 16}
    assert present_fingerprint({**config(), "status": stale}) is None


# --- Why it is bare -------------------------------------------------------------------------------

BEFORE, CREATED, AFTER = "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z"


def owned(time: str, **more: Any) -> dict[str, Any]:
    labels: dict[str, Any] = {f"f:{INJECT}": {}}
    return {"manager": "m", "time": time, "fieldsV1": {"f:metadata": {"f:labels": labels, **more}}}


def namespace(*entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "shop", "labels": {INJECT: "enabled"}, "managedFields": [*entries]}
    }


def bare(**metadata: Any) -> dict[str, Any]:
    a_pod = pod()
    a_pod["metadata"].update({"creationTimestamp": CREATED, **metadata})
    return a_pod


HOOKS: dict[str, Any] = {"metadata": {"creationTimestamp": BEFORE}, "webhooks": []}


def causes(a_pod: Any, a_namespace: Any, webhooks: Any = HOOKS) -> list[tuple[Certainty, str]]:
    found = why_bare(a_pod, a_namespace, webhooks, examples.settings(), webhooks_known=True)
    return [(cause.certainty, cause.sentence) for cause in found]


def test_labelled_too_late() -> None:
    ((certainty, sentence),) = causes(bare(), namespace(owned(AFTER)))
    assert certainty is Certainty.LIKELY
    assert sentence == (
        "the pod was created at 2026-03-01 11:00:00 UTC, and namespace shop got its label "
        f"{INJECT} at 2026-03-01 12:00:00 UTC"
    )


def test_labelled_by_a_manager_of_more_may_have_been_earlier() -> None:
    entry = owned(AFTER, **{"f:annotations": {"f:team": {}}})
    ((_, sentence),) = causes(bare(), namespace(entry))
    assert sentence.endswith("or before: whoever set it changed something then")


def test_labelled_in_time_is_no_cause() -> None:
    assert causes(bare(), namespace(owned(BEFORE))) == []
    assert causes(bare(), namespace(owned(AFTER), owned(BEFORE))) == []


def test_a_label_whose_time_is_not_recorded_is_only_possible() -> None:
    ((certainty, _),) = causes(bare(), namespace())
    assert certainty is Certainty.POSSIBLE


def test_a_pods_own_label_set_later() -> None:
    labels = {INJECT: "true"}
    a_pod = bare(labels=labels, managedFields=[owned(AFTER)])
    ((certainty, sentence),) = causes(a_pod, {"metadata": {"name": "shop"}})
    assert certainty is Certainty.LIKELY
    assert "and the pod got its label" in sentence


def test_installed_later_is_certain_and_comes_first() -> None:
    hooks = {**HOOKS, "metadata": {"creationTimestamp": AFTER}}
    (certainty, sentence), *_ = causes(bare(), namespace(owned(AFTER)), hooks)
    assert certainty is Certainty.CERTAIN
    assert "before the webhook configuration" in sentence


def test_under_ignore_nobody_may_have_answered() -> None:
    hooks = {
        **HOOKS,
        "webhooks": [
            {
                "name": "namespace.inject.llm-shield.io",
                "failurePolicy": "Ignore",
                "matchConditions": [{"name": "theirs", "expression": "false"}],
            }
        ],
    }
    found = causes(bare(), namespace(owned(BEFORE)), hooks)
    assert [certainty for certainty, _ in found] == [Certainty.POSSIBLE, Certainty.POSSIBLE]
    assert "failurePolicy" in found[0][1]
    assert "match condition theirs" in found[1][1]


def test_without_any_webhook_configuration() -> None:
    found = causes(bare(), namespace(owned(BEFORE)), None)
    assert found == [
        (Certainty.CERTAIN, "there is no webhook configuration now: no pod is asked about")
    ]


def test_a_mirror_pod() -> None:
    a_pod = bare(
        annotations={"kubernetes.io/config.mirror": "x"},
        ownerReferences=[{"kind": "Node", "name": "n", "controller": True}],
    )
    ((certainty, sentence),) = causes(a_pod, namespace(owned(AFTER)))
    assert (certainty, "mirror" in sentence) == (Certainty.CERTAIN, True)
