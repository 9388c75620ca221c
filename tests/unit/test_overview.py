"""What `status` counts, by what makes the pods, and the way out that it names."""

from typing import Any

import pytest

import examples
from shield_operator import kinds
from shield_operator.overview import Overview, as_json, overview
from shield_operator.ownership import Owners, Workload, workload_of

INJECT = "llm-shield.io/inject"
HASH, OLD = "a" * 16, "b" * 16


def controlled(kind: str, name: str) -> dict[str, Any]:
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


def a_pod(name: str, *, namespace: str = "shop", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": namespace, "name": name, **metadata}}


def injected(name: str, fingerprint: str = HASH, **metadata: Any) -> dict[str, Any]:
    annotations = {
        "llm-shield.io/injected-config": "shop/shield",
        "llm-shield.io/injection-hash": fingerprint,
    }
    labels = {"llm-shield.io/injected": "true"}
    return a_pod(name, labels=labels, annotations=annotations, **metadata)


def skipped(name: str, reason: str, **metadata: Any) -> dict[str, Any]:
    return a_pod(
        name,
        labels={"llm-shield.io/injection-skipped": reason},
        annotations={"llm-shield.io/skip-reason": "because"},
        **metadata,
    )


def config(name: str = "shield", **status: Any) -> dict[str, Any]:
    return {**examples.config(name), "status": {"observedGeneration": 1, **status}}


def condition(reason: str, message: str) -> dict[str, Any]:
    status = "True" if reason == "Accepted" else "False"
    return {
        "type": "Ready",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
    }


OWNERS: Owners = {
    ("shop", "ReplicaSet", "web-7d4b9c"): {"metadata": controlled("Deployment", "web")},
    ("shop", "Job", "nightly-1"): {"metadata": controlled("CronJob", "nightly")},
    ("shop", "Job", "once"): {"metadata": {}},
}
OF_WEB = controlled("ReplicaSet", "web-7d4b9c")


def shop() -> Overview:
    """A namespace in which everything happens."""
    accepted = condition("Accepted", "pods get the sidecar")
    absent = "Secret more-keys is not in namespace shop: create it; until then new pods wait for it"
    return overview(
        [
            config(conditions=[accepted], injectionHash=HASH),
            config("batch", conditions=[condition("SecretNotFound", absent)], injectionHash=OLD),
            examples.config("fresh"),
        ],
        [
            injected("web-7d4b9c-1", **OF_WEB),
            injected("web-7d4b9c-2", OLD, **OF_WEB),
            a_pod("web-7d4b9c-3", **OF_WEB),
            injected("nightly-1-x", OLD, **controlled("Job", "nightly-1")),
            a_pod("once-x", **controlled("Job", "once")),
            a_pod("debug"),
            skipped("agent-a", "host-network", **controlled("DaemonSet", "agent")),
            skipped("agent-b", "host-network", **controlled("DaemonSet", "agent")),
            skipped("agent-c", "port-conflict", **controlled("DaemonSet", "agent")),
            a_pod("out", labels={INJECT: "false"}),
        ],
        {"shop": {INJECT: "enabled"}},
        OWNERS,
        examples.settings(),
        everywhere=False,
    )


def counts(found: Overview, name: str) -> tuple[int, int, int, dict[str, int]]:
    (one,) = [one for one in as_json(found)["workloads"] if one["name"] == name]
    return one["injected"], one["outdated"], one["bare"], one["skipped"]


def test_pods_are_counted_by_what_makes_them() -> None:
    found = shop()
    assert counts(found, "web") == (2, 1, 1, {})
    assert counts(found, "nightly") == (1, 1, 0, {})
    assert counts(found, "once") == (0, 0, 1, {})
    assert counts(found, "debug") == (0, 0, 1, {})
    assert counts(found, "agent") == (0, 0, 0, {"host-network": 2, "port-conflict": 1})
    assert [str(one.workload) for one in found.workloads] == [
        "cronjob/nightly",
        "daemonset/agent",
        "deployment/web",
        "job/once",
        "pod/debug",
    ]


def test_a_pod_that_is_out_is_not_there() -> None:
    assert "out" not in {one.workload.name for one in shop().workloads}


def test_a_config_that_nobody_has_judged_is_unknown() -> None:
    (fresh,) = [one for one in shop().configs if one.name == "fresh"]
    assert (fresh.ready, fresh.reason) == ("Unknown", "NotLookedAt")


def test_a_verdict_about_an_older_generation_does_not_count() -> None:
    stale = {**condition("Accepted", "fine"), "observedGeneration": 0}
    found = overview(
        [config(conditions=[stale], injectionHash=HASH)],
        [],
        {},
        {},
        examples.settings(),
        everywhere=True,
    )
    assert found.configs[0].ready == "Unknown"


def test_without_a_present_plan_nothing_is_called_outdated() -> None:
    found = overview(
        [examples.config()], [injected("web")], {}, {}, examples.settings(), everywhere=True
    )
    assert (found.configs[0].injected, found.configs[0].outdated) == (1, None)
    assert as_json(found)["workloads"][0]["outdated"] == 0


def test_the_clusters_default_has_pods_elsewhere() -> None:
    default = {**examples.config("default", "llm-shield-system")}
    here = overview([default], [], {}, {}, examples.settings(), everywhere=False)
    assert here.configs[0].injected is None
    everywhere = overview([default], [], {}, {}, examples.settings(), everywhere=True)
    assert everywhere.configs[0].injected == 0


def test_pods_of_the_settings_alone() -> None:
    a = injected("web")
    a["metadata"]["annotations"]["llm-shield.io/injected-config"] = "-/settings"
    found = overview(
        [], [a], {}, {}, examples.settings(), everywhere=True, settings_fingerprint=OLD
    )
    assert counts(found, "web") == (1, 1, 0, {})


def test_a_reason_without_its_sentence_is_no_skip() -> None:
    """The label may have come along with a template; the annotation tells."""
    copied = a_pod("web", labels={"llm-shield.io/injection-skipped": "host-network"})
    settings = examples.settings()
    found = overview([], [copied], {"shop": {INJECT: "true"}}, {}, settings, everywhere=True)
    assert counts(found, "web") == (0, 0, 1, {})


# --- Whose pods, and how they are made anew -------------------------------------------------------


def test_the_chain_of_owners_is_followed_as_far_as_it_can_be_seen() -> None:
    pod = a_pod("web-7d4b9c-1", **OF_WEB)
    assert workload_of(pod, OWNERS) == Workload("shop", "Deployment", "web")
    assert workload_of(pod, {}) == Workload("shop", "ReplicaSet", "web-7d4b9c")
    assert workload_of(a_pod("debug"), OWNERS) == Workload("shop", "Pod", "debug")


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("Deployment", "kubectl rollout restart deployment/web -n shop"),
        ("StatefulSet", "kubectl rollout restart statefulset/web -n shop"),
        ("DaemonSet", "kubectl rollout restart daemonset/web -n shop"),
        ("ReplicaSet", "delete its pods, which replicaset/web makes anew"),
        ("Job", "kubectl delete job/web -n shop  # and create it again from its manifest"),
        ("Pod", "kubectl delete pod/web -n shop  # and create it again from its manifest"),
        ("CronJob", "wait: the next run of cronjob/web makes new pods"),
        ("Rollout", "restart rollout/web as its own documentation says"),
    ],
)
def test_the_remedy_for_each_kind(kind: str, remedy: str) -> None:
    assert Workload("shop", kind, "web").remedy == remedy


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("deploy", kinds.DEPLOYMENT),
        ("Deployments", kinds.DEPLOYMENT),
        ("deployments.apps", kinds.DEPLOYMENT),
        ("cj", kinds.CRON_JOB),
        ("po", kinds.POD),
        ("", None),
        ("secrets", None),
    ],
)
def test_kinds_by_kubectls_names(text: str, kind: kinds.Kind | None) -> None:
    assert kinds.named(text) == kind


def test_where_the_api_server_has_them() -> None:
    assert kinds.POD.path("shop", "web") == "/api/v1/namespaces/shop/pods/web"
    assert kinds.DEPLOYMENT.path("shop") == "/apis/apps/v1/namespaces/shop/deployments"
    assert kinds.CONFIG.path() == "/apis/llm-shield.io/v1alpha1/shieldsidecarconfigs"
