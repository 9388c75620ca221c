"""The command lines: what they say when something is wrong, and their help."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from shield_operator import __version__
from shield_operator.cli import kubectl_shield, operator


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
    assert __version__ in runner.invoke(kubectl_shield, ["version"]).output
