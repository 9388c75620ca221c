"""Each golden case through ``kubectl shield inject``, and back through ``uninject``."""

import difflib
import io
import json
from typing import Any

import pytest
import ruamel.yaml
import yaml
from click.testing import CliRunner, Result

from golden.cases import CASES, Case
from shield_operator.cli import kubectl_shield

by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

SKIPPED = 3


def run(command: str, case: Case, file: str, content: str | None = None) -> Result:
    """A command with the case's config, namespace and settings, as its user would give them."""
    metadata = case.namespace["metadata"]
    labels = ",".join(f"{key}={value}" for key, value in metadata.get("labels", {}).items())
    options = ["-f", file, "-n", metadata["name"], "--namespace-labels", labels]
    options += ["--kubernetes-version", "1.36"]
    if case.configs:
        options += ["-c", str(case.folder / "config.yaml")]
    return CliRunner().invoke(
        kubectl_shield, [command, *options], input=content, env=case.environment
    )


def read(text: str) -> Any:
    """What every reader of YAML reads."""
    found = yaml.safe_load(text)
    assert found == ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(text))
    return found


@by_case
def test_inject_gives_the_expected_pod_and_says_the_reason(case: Case) -> None:
    result = run("inject", case, str(case.folder / "pod.yaml"))
    outcome, *warnings = case.reason.splitlines()
    is_skipped = outcome not in ("ignored", "injected")
    assert result.exit_code == (SKIPPED if is_skipped else 0), result.stderr
    assert read(result.stdout) == case.expected
    *lines, _ = result.stderr.splitlines()
    metadata = case.pod["metadata"]
    name = metadata.get("name") or f"{metadata['generateName']}…"
    who = f"Pod/{metadata.get('namespace') or case.namespace['metadata']['name']}/{name}: "
    assert all(line.startswith(who) for line in lines)
    assert len(lines) == (len(warnings) or is_skipped)
    if is_skipped:
        assert f"({outcome.removeprefix('denied: ')}): " in lines[0]
    for line, warning in zip(lines[is_skipped:], warnings[is_skipped:], strict=False):
        assert line == f"{who}warning: {warning}"


def difference(before: str, after: str) -> list[str]:
    """The lines that went, and those that took their place, without what is only new."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line.startswith("- ")]


REWRITTEN = {
    "absent-and-null-fields": {"-   labels: null", "-   annotations: null"}
    | {"-   initContainers: null", "-   volumes: null"},
    "forged-annotations": {"-     llm-shield.io/injection-skipped: x"}
    | {"-     llm-shield.io/injected-config: a/b", "-     llm-shield.io/skip-reason: none"}
    | {"-     llm-shield.io/injection-hash: ffffffffffffffff"},
    "payload": {"-       value: /opt/extra"},
}
"""Lines of a pod that do not stay as they were."""


@by_case
def test_inject_leaves_every_line_alone_that_it_need_not_touch(case: Case) -> None:
    before = (case.folder / "pod.yaml").read_text(encoding="utf-8")
    after = run("inject", case, str(case.folder / "pod.yaml")).stdout
    assert {*difference(before, after)} == REWRITTEN.get(case.name, set())
    if case.expected == case.pod:
        assert after == before


@by_case
def test_a_second_injection_changes_nothing(case: Case) -> None:
    once = run("inject", case, str(case.folder / "pod.yaml")).stdout
    twice = run("inject", case, "-", once)
    assert twice.stdout == once


@by_case
def test_the_same_in_json(case: Case) -> None:
    result = run("inject", case, "-", json.dumps(case.pod, indent=4))
    assert json.loads(result.stdout) == case.expected


OWNERLESS = [case for case in CASES if "ownerReferences" not in case.pod["metadata"]]
"""A template has no owner, so what is said of owned pods does not hold for it."""


def deployment(case: Case) -> dict[str, Any]:
    template = {key: case.pod[key] for key in ("metadata", "spec")}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": template},
    }


@pytest.mark.parametrize("case", OWNERLESS, ids=lambda case: case.name)
def test_the_same_in_the_template_of_a_workload_in_a_list(case: Case) -> None:
    manifests = {"apiVersion": "v1", "kind": "List", "items": [deployment(case)]}
    result = run("inject", case, "-", yaml.safe_dump(manifests))
    template = read(result.stdout)["items"][0]["spec"]["template"]
    assert template == {key: case.expected[key] for key in ("metadata", "spec")}


# --- There and back -------------------------------------------------------------------------------

GONE = {
    "absent-and-null-fields": 4,
    "copy-from-another-namespace": 7,
    "copy-of-an-injected-pod": 7,
    "forged-annotations": 7,
    "owned-pod-with-stale-label": ["-     llm-shield.io/injection-skipped: host-network"],
    "payload-path-already-first": ["-       value: /opt/connector:/opt/extra"],
    "payload-there-already": 50,
    "pull-secrets": ["-   - name: shared"],
    "rules-beside-the-users-own": [
        "-   - key: team",
        "-     value: a",
        "-     effect: NoSchedule",
    ],
    "wired-kept-by-user": [
        "-     - --enable-chunked-prefill",
        "-     - name: ANTHROPIC_BASE_URL",
        "-       value: http://127.0.0.1:8000",
    ],
}
"""Lines of a pod, or how many, that held what the plan sets or carried our names already."""


@by_case
def test_uninject_gives_back_what_inject_got_byte_for_byte(case: Case) -> None:
    before = (case.folder / "pod.yaml").read_text(encoding="utf-8")
    injected = run("inject", case, str(case.folder / "pod.yaml")).stdout
    result = run("uninject", case, "-", injected)
    assert result.exit_code == 0
    gone = difference(before, result.stdout)
    match GONE.get(case.name):
        case None:
            assert result.stdout == before
        case int(lines):
            assert len(gone) == lines
        case lines:
            assert gone == lines
    assert run("uninject", case, "-", result.stdout).stdout == result.stdout


@by_case
def test_nothing_with_our_names_is_left_even_without_the_config(case: Case) -> None:
    """But for what users write themselves, and containers that only look like ours."""
    injected = run("inject", case, str(case.folder / "pod.yaml")).stdout
    result = CliRunner().invoke(kubectl_shield, ["uninject", "-f", "-"], input=injected)
    pod = read(result.stdout)
    keys = {**(pod["metadata"].get("labels") or {}), **(pod["metadata"].get("annotations") or {})}
    users = {f"llm-shield.io/{name}" for name in USERS}
    assert {key for key in keys if key.startswith("llm-shield.io/")} <= users
    if "LLM_SHIELD_INJECTED" not in yaml.safe_dump(case.pod):
        assert "LLM_SHIELD_INJECTED" not in result.stdout
    mounted = {m["name"] for c in containers(pod) for m in c.get("volumeMounts") or []}
    assert mounted <= {volume["name"] for volume in pod["spec"].get("volumes") or []}


USERS = ("inject", "config", "keys-secret", "container", "image-pull-secrets")


def containers(pod: Any) -> list[Any]:
    return [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
