"""Which pods are outdated: by their annotations, each counted once, and to no foreign config."""

from typing import Any

import pytest

import examples
from examples import IMAGE, config, index
from shield_operator.drift import SELECTORS, PodCounts, Tally
from shield_operator.model import ConfigRef
from shield_operator.selection import ConfigIndex

OLD = "0" * 16


def metadata(source: str | None, fingerprint: str | None, namespace: str = "shop") -> Any:
    annotations = {
        "llm-shield.io/injected-config": source,
        "llm-shield.io/injection-hash": fingerprint,
    }
    return {
        "metadata": {
            "namespace": namespace,
            "labels": {"llm-shield.io/injected": "true"},
            "annotations": {key: text for key, text in annotations.items() if text is not None},
        }
    }


def current(configs: ConfigIndex, name: str = "shield", namespace: str = "shop") -> str:
    entry = configs.get(ConfigRef(namespace, name))
    assert entry is not None
    assert entry.plan is not None
    return entry.plan.fingerprint


def tally(configs: ConfigIndex, *pods: Any) -> Tally:
    found = Tally(configs)
    found.add(pods)
    return found


def test_pods_are_counted_for_their_config_current_or_not() -> None:
    configs = index(config(), config("other"))
    found = tally(
        configs,
        metadata("shop/shield", current(configs)),
        metadata("shop/shield", OLD),
        metadata("shop/other", current(configs, "other")),
    )
    assert found.counts() == {"shop/shield": PodCounts(2, 1), "shop/other": PodCounts(1, 0)}


@pytest.mark.parametrize(
    "pod",
    [
        metadata(None, None),
        metadata(None, OLD),
        metadata("", OLD),
        metadata("shield", OLD),
        metadata("shop/gone", OLD),
        metadata("shop/shield", OLD, namespace="elsewhere"),
        {"metadata": {}},
        {},
    ],
)
def test_what_is_missing_or_foreign_counts_for_nobody(pod: Any) -> None:
    assert tally(index(config()), pod).counts() == {}


@pytest.mark.parametrize("fingerprint", [None, "", "x", OLD.upper() + "!", OLD + OLD])
def test_a_pod_without_a_fingerprint_is_outdated(fingerprint: str | None) -> None:
    found = tally(index(config()), metadata("shop/shield", fingerprint))
    assert found.counts() == {"shop/shield": PodCounts(1, 1)}
    assert list(found.plans[ConfigRef("shop", "shield")]) == [""]


def test_the_clusters_default_has_pods_in_every_namespace() -> None:
    own = "llm-shield-system"
    configs = index(config("default", own), config("other", own))
    fingerprint = current(configs, "default", own)
    pods = [metadata(f"{own}/default", fingerprint, namespace) for namespace in ("a", "b", own)]
    found = tally(configs, *pods, metadata(f"{own}/other", fingerprint, "a"))
    assert found.counts() == {f"{own}/default": PodCounts(3, 0)}


def test_what_the_settings_made_is_counted_too() -> None:
    configs = index(with_settings=examples.settings(K8S_SIDECAR_IMAGE=IMAGE))
    assert configs.last_resort is not None
    pods = [metadata("-/settings", hash_) for hash_ in (configs.last_resort.fingerprint, OLD)]
    assert tally(configs, *pods).counts() == {"-/settings": PodCounts(2, 1)}


def test_an_invalid_config_has_pods_and_nothing_to_compare_them_with() -> None:
    configs = index(config(port=0))
    assert tally(configs, metadata("shop/shield", OLD)).counts() == {
        "shop/shield": PodCounts(1, None)
    }


def skipped(reason: str) -> Any:
    return {
        "metadata": {
            "namespace": "shop",
            "labels": {"llm-shield.io/injection-skipped": reason},
            "annotations": {"llm-shield.io/skip-reason": "a sentence"},
        }
    }


def test_skipped_pods_are_counted_by_a_reason_that_is_ours() -> None:
    pods = [skipped("host-network"), skipped("host-network"), skipped("x" * 60)]
    assert dict(tally(index(), *pods).skipped) == {"host-network": 2, "unknown": 1}


def test_an_injected_pod_with_a_templates_skip_label_is_injected() -> None:
    """The label had to stay, since a controller may look for it; the annotations are the truth."""
    configs = index(config())
    pod = metadata("shop/shield", OLD)
    pod["metadata"]["labels"]["llm-shield.io/injection-skipped"] = "host-network"
    found = tally(configs, pod)
    assert found.counts() == {"shop/shield": PodCounts(1, 1)}
    assert not found.skipped


def test_the_selectors_go_by_presence_and_share_no_pod() -> None:
    assert SELECTORS == (
        "llm-shield.io/injected",
        "llm-shield.io/injection-skipped,!llm-shield.io/injected",
    )
