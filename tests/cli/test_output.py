"""What the commands print, word for word, against files; ``--update-golden`` writes them anew."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import examples
from golden.cases import CASES, Case
from plugin import shield
from shield_operator.cli.check import as_text as check_text
from shield_operator.cli.explain import as_text as explain_text
from shield_operator.cli.status import as_text as status_text
from shield_operator.diagnosis import (
    Answer,
    Connection,
    Facts,
    FactsBefore,
    Probe,
    Served,
    Unseen,
    check,
    check_before,
    installers_permissions,
    operators_permissions,
)
from shield_operator.explanation import (
    Cause,
    Certainty,
    Live,
    Stamps,
    Subject,
    explain,
)
from shield_operator.overview import Overview
from unit.test_diagnosis import DEFINITION, DEPLOYMENT, NOW, SETTINGS, healthy, hooks
from unit.test_overview import shop

FOLDER = Path(__file__).parent / "golden"


def compare(request: pytest.FixtureRequest, name: str, text: str) -> None:
    path = FOLDER / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
        return
    assert text == path.read_text(encoding="utf-8")


EXPLAINED = [
    case
    for case in CASES
    if case.name.startswith(("skip-", "settings-", "denied"))
    or case.name
    in (
        "cluster-default",
        "copy-from-another-namespace",
        "job-in-a-plain-container",
        "namespace-out",
        "native",
        "not-asked",
        "opted-out",
        "payload",
        "rules-for-a-host-network-pod",
        "rules-only",
        "selected-by-every-kind-of-expression",
        "wired-by-annotation",
    )
]


@pytest.mark.parametrize("case", EXPLAINED, ids=lambda case: case.name)
def test_explain(case: Case, request: pytest.FixtureRequest) -> None:
    files = [case.folder / name for name in ("pod.yaml", "namespace.yaml")]
    arguments = [argument for file in files for argument in ("-f", str(file))]
    if case.configs:
        arguments += ["-c", str(case.folder / "config.yaml")]
    namespace = case.namespace["metadata"]["name"]
    found = shield(
        "explain",
        *arguments,
        "-n",
        namespace,
        kubeconfig=Path("/nowhere"),
        columns=100,
        **case.environment,
    )
    word = case.reason.splitlines()[0]
    assert found.exit_code == (0 if word == "injected" or "sidecar already" in found.stdout else 3)
    assert word.removeprefix("denied: ") in found.stdout
    assert found.stderr == ""
    assert all(len(line) <= 100 for line in found.stdout.splitlines())
    compare(request, f"explain-{case.name}", found.stdout)


# --- A pod that runs ------------------------------------------------------------------------------


def running(**stamps: Any) -> Stamps:
    given: dict[str, Any] = dict.fromkeys(
        ("config", "generation", "fingerprint", "skipped", "sentence", "mark")
    )
    return Stamps(**{**given, "kept": (), **stamps})


def subject(stamps: Stamps, present: str | None, **live: Any) -> Subject:
    configs = examples.index(examples.config())
    mark = {"name": "LLM_SHIELD_INJECTED", "value": stamps.mark}
    ours = {"name": "llm-shield-proxy", "env": [mark], "restartPolicy": "Always"}
    explanation = explain(
        examples.pod(initContainers=[ours]) if stamps.mark else examples.pod(),
        "shop",
        {"llm-shield.io/inject": "enabled"},
        {},
        configs,
        examples.settings(),
    )
    remedy = "kubectl rollout restart deployment/web -n shop"
    story = Live(stamps, stamps.standing(present), remedy=remedy, **live)
    return Subject("pod shop/web-7d4b9c-x2x5l", explanation, story, ("something was not readable",))


MARK = f"shop/shield@{'a' * 16}"
OURS = {"config": "shop/shield", "generation": "2", "fingerprint": "a" * 16, "mark": MARK}
LIVES: dict[str, Callable[[], Subject]] = {
    "current": lambda: subject(running(**OURS), "a" * 16),
    "outdated": lambda: subject(
        running(**OURS, kept=("arg:--seed", "env:OPENAI_BASE_URL")), "b" * 16
    ),
    "of-a-config-that-is-gone": lambda: subject(running(**OURS), None),
    "skipped": lambda: subject(
        running(skipped="host-network", sentence="the pod uses the node's network"), None
    ),
    "bare": lambda: subject(
        running(),
        None,
        causes=(
            Cause(Certainty.CERTAIN, "it was created before the webhook configuration"),
            Cause(Certainty.LIKELY, "namespace shop got its label later"),
            Cause(Certainty.POSSIBLE, "no replica answered when it was created"),
        ),
    ),
    "bare-nobody-knows-why": lambda: subject(running(), None),
}


@pytest.mark.parametrize("name", LIVES)
def test_explain_a_pod_that_runs(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # who runs the tests may have a narrow terminal
    compare(request, f"explain-live-{name}", explain_text(LIVES[name]()))


# --- status ---------------------------------------------------------------------------------------

NOTHING = Overview((), (), ("namespaces cannot be listed",))


@pytest.mark.parametrize(
    ("name", "found", "width", "wide"),
    [
        ("status", shop(), None, False),
        ("status-80-columns", shop(), 80, False),
        ("status-wide", shop(), None, True),
        ("status-nothing", NOTHING, None, False),
    ],
)
def test_status(
    name: str,
    found: Overview,
    width: int | None,
    wide: bool,
    request: pytest.FixtureRequest,
) -> None:
    text = status_text(found, "namespace shop", width, wide=wide)
    if width is not None:
        assert all(len(line) <= width for line in text.splitlines())
    compare(request, name, f"{text}\n")


# --- check ----------------------------------------------------------------------------------------

UNSEEN = Unseen("cannot read it: forbidden")
CHECKED: dict[str, Facts] = {
    "healthy": healthy(),
    "nothing-installed": Facts(
        version={"gitVersion": "v1.36.3"},
        permissions=dict.fromkeys(operators_permissions(SETTINGS), False),
        probe=Probe("default", pod={"metadata": {}}),
    ),
    "broken": healthy(
        deployment={**DEPLOYMENT, "status": {"availableReplicas": 1, "observedGeneration": 3}},
        webhooks=hooks(b""),
        answers=(Answer("a", 200, "ok"), Answer("b", 503, "the listener is not up yet")),
        lease_renewed=False,
        permissions=dict.fromkeys(operators_permissions(SETTINGS), False),
        probe=Probe(
            "shop",
            refusal='failed calling webhook "namespace.inject.llm-shield.io": failed to call '
            "webhook: Post https://x: x509: certificate signed by unknown authority",
        ),
    ),
    "little-permitted": healthy(
        definition=UNSEEN,
        deployment=UNSEEN,
        webhooks=UNSEEN,
        tls_secret=UNSEEN,
        answers=UNSEEN,
        lease=UNSEEN,
        permissions=UNSEEN,
        probe=UNSEEN,
    ),
    "outside": healthy(
        deployment=None,
        tls_secret=None,
        answers=(),
        connection=Connection(Served.NOT_TRUSTED, "self-signed certificate"),
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_check(name: str, request: pytest.FixtureRequest) -> None:
    text = check_text(check(CHECKED[name], SETTINGS, NOW), 100)
    assert all(len(line) <= 100 for line in text.splitlines())
    compare(request, f"check-{name}", f"{text}\n")


def test_check_before(request: pytest.FixtureRequest) -> None:
    may = dict.fromkeys(installers_permissions(SETTINGS), True)
    facts = FactsBefore(version={"gitVersion": "v1.31.2"}, definition=DEFINITION, installer={**may})
    compare(request, "check-pre", f"{check_text(check_before(facts, SETTINGS), 100)}\n")


# --- Help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["explain", "status", "check", "version", "completion"])
def test_help_has_an_example(command: str) -> None:
    found = shield(command, "--help", kubeconfig=Path("/nowhere"))
    assert found.exit_code == 0
    assert "Example" in found.stdout
    assert f"kubectl shield {command}" in found.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    found = shield("completion", shell, kubeconfig=Path("/nowhere"))
    assert found.exit_code == 0
    assert "_KUBECTL_SHIELD_COMPLETE" in found.stdout


def test_no_golden_file_is_left_over() -> None:
    """A file that no test reads proves nothing any more."""
    expected = {f"explain-{case.name}" for case in EXPLAINED}
    expected |= {f"explain-live-{name}" for name in LIVES} | {f"check-{name}" for name in CHECKED}
    expected |= {"status", "status-80-columns", "status-wide", "status-nothing", "check-pre"}
    assert {path.stem for path in FOLDER.glob("*.txt")} == expected
