"""The command lines: what they say when something is wrong, and their help."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

import examples
from shield_operator import __version__
from shield_operator.cli import kubectl_shield, operator, style

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "cases" / "pod-label"


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", "/nowhere/kubeconfig")


def run(*arguments: str, **environment: str) -> Result:
    settings = {"WEBHOOK_URL": "https://127.0.0.1:9443", **environment}
    return CliRunner().invoke(operator, ["run", *arguments], env=settings)


def test_bad_settings_are_all_named_and_nothing_starts() -> None:
    found = run(WEBHOOK_PORT="x", FAILURE_POLICY="y")
    assert found.exit_code == 1
    assert found.output.splitlines() == [
        "error: FAILURE_POLICY is 'y': it must be Fail or Ignore",
        "error: WEBHOOK_PORT is 'x': it must be a whole number from 1 to 65535",
    ]


def test_a_flag_beats_the_environment() -> None:
    found = run("--webhook-port", "z", WEBHOOK_PORT="1")
    assert "WEBHOOK_PORT is 'z'" in found.output


def test_a_token_is_no_flag() -> None:
    """Every process of the machine can read another's command line."""
    flags = CliRunner().invoke(operator, ["run", "--help"]).output
    assert "--k8s-webhook-auth-token-file" in flags
    assert "--k8s-webhook-auth-token " not in flags
    assert run("--k8s-webhook-auth-token", "secret").exit_code == 2


def test_without_credentials_it_says_where_it_looked() -> None:
    found = run()
    assert found.exit_code == 1
    assert found.output == (
        "error: no credentials for an API server: this is no pod, and /nowhere/kubeconfig is no "
        "file; set KUBECONFIG to a kubeconfig\n"
    )


def test_outside_of_a_pod_it_must_know_its_own_address() -> None:
    """Or it would publish a webhook that leads nowhere, and block every pod that asks."""
    found = CliRunner().invoke(operator, ["run"], env={"WEBHOOK_URL": ""})
    assert found.exit_code == 1
    assert found.output.startswith("error: WEBHOOK_URL is not set, and outside of a pod ")


@pytest.mark.parametrize("content", ["", "{", "a: b", "[]"])
def test_a_broken_kubeconfig_is_one_sentence(content: str, tmp_path: Path) -> None:
    broken = tmp_path / "kubeconfig"
    broken.write_text(content)
    found = run(KUBECONFIG=str(broken))
    assert found.exit_code == 1
    assert found.output.startswith("error: no credentials for an API server: ")
    assert "Traceback" not in found.output


def test_help_has_every_setting_with_its_variable() -> None:
    found = run("--help")
    assert found.exit_code == 0
    for variable in ("POD_NAMESPACE", "K8S_SIDECAR_IMAGE", "WEBHOOK_URL", "LOG_FORMAT"):
        assert f"[env: {variable}" in " ".join(found.output.split())
    assert "[env: WEBHOOK_PORT; default: 9443]" in " ".join(found.output.split())


def test_versions() -> None:
    runner = CliRunner()
    assert __version__ in runner.invoke(operator, ["--version"]).output
    assert __version__ in runner.invoke(kubectl_shield, ["version", "--client"]).output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["version", "--client"],
        ["completion", "bash"],
        ["explain", "-f", str(GOLDEN / "pod.yaml"), "-c", str(GOLDEN / "config.yaml")],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_that_need_no_cluster_load_no_client(arguments: list[str]) -> None:
    """They answer at once: Kopf and the Kubernetes client take a second to load."""
    code = (
        "import sys; from shield_operator.cli import kubectl_shield\n"
        f"kubectl_shield({arguments!r}, standalone_mode=False)\n"
    )
    check = "print(sorted({'kopf', 'kubernetes', 'aiohttp'} & set(sys.modules)))"
    code = f"import atexit, sys; atexit.register(lambda: {check}); {code}"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.stdout.splitlines()[-1] == "[]", found


def test_a_cluster_that_is_not_there_is_one_sentence() -> None:
    for arguments in (["explain", "web"], ["status"], ["check"], ["check", "--pre"], ["version"]):
        found = CliRunner().invoke(kubectl_shield, arguments)
        assert found.exit_code == 1
        assert found.stderr == (
            "error: no credentials for an API server: this is no pod, and /nowhere/kubeconfig is "
            "no file; set KUBECONFIG to a kubeconfig\n"
        )


def test_marks_are_coloured_at_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert style.mark("✓") == "✓"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert style.mark("✓") == "\x1b[32m✓\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert style.mark("✓") == "✓"


def test_explain_wants_a_pod_or_files_not_both() -> None:
    for arguments in (["explain"], ["explain", "web", "-f", "-"]):
        found = CliRunner().invoke(kubectl_shield, arguments)
        assert found.exit_code == 1
        assert "one of them only" in found.stderr


def test_explain_of_files(tmp_path: Path) -> None:
    """Every workload of every document, each with its own outcome; the worst one is the status."""
    good = {"containers": [{"name": "web", "image": "i"}]}
    label = {"llm-shield.io/inject": "true"}
    template = {"metadata": {"labels": label}, "spec": good}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": template},
    }
    bad = examples.pod(labels=label, hostNetwork=True)
    manifests = tmp_path / "all.yaml"
    manifests.write_text(
        yaml.safe_dump_all([deployment, {"kind": "Service"}, examples.config(namespace="shop")])
    )
    arguments = ["explain", "-n", "shop", "-f", str(manifests), "-o", "json"]
    found = CliRunner().invoke(kubectl_shield, arguments)
    (web,) = json.loads(found.stdout)
    assert (found.exit_code, web["subject"]) == (0, "template of deployment shop/web")
    both = CliRunner().invoke(kubectl_shield, [*arguments, "-f", "-"], input=yaml.safe_dump(bad))
    assert both.exit_code == 3
    assert [one["outcome"] for one in json.loads(both.stdout)] == ["injected", "skipped"]
    nothing = CliRunner().invoke(kubectl_shield, ["explain", "-f", "-"], input="kind: Service\n")
    assert (nothing.exit_code, nothing.stderr) == (
        1,
        "error: - holds neither pods nor workloads\n",
    )
    broken = CliRunner().invoke(kubectl_shield, ["explain", "-f", "-"], input="a: [\n")
    assert (broken.exit_code, len(broken.stderr.splitlines())) == (1, 1)
