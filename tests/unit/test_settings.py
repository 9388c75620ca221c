"""Settings: read once, checked as a whole, every problem named at once."""

from dataclasses import fields

import pytest

from shield_operator.settings import (
    FailurePolicy,
    FeatureGate,
    LogFormat,
    Settings,
    SettingsError,
    UninjectedPodPolicy,
)

IMAGE = f"example.com/proxy@sha256:{'a' * 64}"


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = Settings.from_env({})
    assert settings == Settings()
    assert settings.namespace == "llm-shield-system"
    assert settings.failure_policy is FailurePolicy.FAIL
    assert settings.uninjected_pod_policy is UninjectedPodPolicy.ADMIT
    assert (settings.webhook_port, settings.health_port) == (9443, 8080)
    assert settings.webhook_timeout == 5
    assert settings.tls_secret_name == "llm-shield-operator-tls"


def test_empty_and_blank_values_count_as_unset() -> None:
    assert Settings.from_env({"WEBHOOK_PORT": "", "LOG_LEVEL": "  "}) == Settings()


def test_every_setting_is_read() -> None:
    environment = {
        "POD_NAMESPACE": "ops",
        "K8S_SIDECAR_IMAGE": IMAGE,
        "K8S_SIDECAR_SECRET_NAME": "keys",
        "K8S_FEATURE_GATES": "SidecarContainers=false, ImageVolume=true",
        "UNINJECTED_POD_POLICY": "Deny",
        "FAILURE_POLICY": "Ignore",
        "WEBHOOK_TIMEOUT_SECONDS": "10",
        "WEBHOOK_PORT": "9000",
        "HEALTH_PORT": "9001",
        "WEBHOOK_SERVICE": "hook",
        "TLS_SECRET_NAME": "tls",
        "DRIFT_SCAN_SECONDS": "5",
        "TLS_CERT_FILE": "/tls/tls.crt",
        "TLS_KEY_FILE": "/tls/tls.key",
        "TLS_CA_FILE": "/tls/ca.crt",
        "K8S_WEBHOOK_AUTH_TOKEN_FILE": "/auth/token",
        "WEBHOOK_CLIENT_CA_FILE": "/auth/ca.crt",
        "LOG_LEVEL": "DEBUG",
        "LOG_FORMAT": "text",
    }
    settings = Settings.from_env(environment)
    defaults = Settings()
    unread = {
        field.name
        for field in fields(Settings)
        if getattr(settings, field.name) == getattr(defaults, field.name)
    }
    assert unread == {"webhook_url", "webhook_auth_token"}
    assert settings.feature_gates == {
        FeatureGate.SIDECAR_CONTAINERS: False,
        FeatureGate.IMAGE_VOLUME: True,
    }
    assert settings.log_format is LogFormat.TEXT
    assert Settings.from_env({"WEBHOOK_URL": "https://127.0.0.1:9443/"}).webhook_url == (
        "https://127.0.0.1:9443"
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("POD_NAMESPACE", "Not_A_Name"),
        ("K8S_SIDECAR_IMAGE", "proxy:latest"),
        ("K8S_SIDECAR_SECRET_NAME", "a b"),
        ("K8S_FEATURE_GATES", "SidecarContainers"),
        ("K8S_FEATURE_GATES", "SidecarContainers=yes"),
        ("K8S_FEATURE_GATES", "Unheard=true"),
        ("UNINJECTED_POD_POLICY", "deny"),
        ("FAILURE_POLICY", "fail"),
        ("WEBHOOK_TIMEOUT_SECONDS", "31"),
        ("WEBHOOK_PORT", "0"),
        ("WEBHOOK_PORT", "65536"),
        ("HEALTH_PORT", "8080.5"),
        ("WEBHOOK_SERVICE", "a.b"),
        ("WEBHOOK_URL", "http://127.0.0.1:9443"),
        ("WEBHOOK_URL", "https://127.0.0.1:9443/hook"),
        ("WEBHOOK_URL", "https://user@host"),
        ("WEBHOOK_URL", "https://[::1"),
        ("WEBHOOK_URL", "https://[fe80::1%25eth0]:9443"),
        ("WEBHOOK_URL", "https://a..b"),
        ("WEBHOOK_URL", "https://ex ample"),
        ("WEBHOOK_URL", "https://*.example.com"),
        ("WEBHOOK_URL", "https://127.1:9443"),
        ("WEBHOOK_URL", "https://bücher.example"),
        ("WEBHOOK_URL", "https://host:99999"),
        ("TLS_SECRET_NAME", "-x"),
        ("LOG_LEVEL", "LOUD"),
        ("LOG_FORMAT", "xml"),
    ],
)
def test_a_bad_value_is_named_with_what_would_do(variable: str, value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({variable: value})
    (problem,) = caught.value.problems
    assert problem.startswith(f"{variable} is {value!r}: it must be ")


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("https://127.0.0.1:9443/", "https://127.0.0.1:9443"),
        ("https://[0:0:0:0:0:0:0:1]:9443", "https://[::1]:9443"),
        ("https://Shield.Example.com", "https://shield.example.com"),
        ("https://xn--bcher-kva.example:9443", "https://xn--bcher-kva.example:9443"),
    ],
)
def test_a_url_is_put_as_certificates_spell_it(given: str, canonical: str) -> None:
    assert Settings.from_env({"WEBHOOK_URL": given}).webhook_url == canonical


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"WEBHOOK_PORT": "x", "LOG_LEVEL": "y", "FAILURE_POLICY": "z"})
    assert len(caught.value.problems) == 3


def test_a_token_is_never_shown() -> None:
    settings = Settings.from_env({"K8S_WEBHOOK_AUTH_TOKEN": "very-secret"})
    assert settings.webhook_auth_token == "very-secret"
    assert "very-secret" not in repr(settings)
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"K8S_WEBHOOK_AUTH_TOKEN": "very secret"})
    (problem,) = caught.value.problems
    assert problem.startswith("K8S_WEBHOOK_AUTH_TOKEN is not usable: it must be a bearer token")
    assert "very secret" not in problem


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SettingsError, match="both 9000"):
        Settings.from_env({"WEBHOOK_PORT": "9000", "HEALTH_PORT": "9000"})
    assert Settings.from_env({"WEBHOOK_URL": "https://h", "WEBHOOK_SERVICE": " "})
    for one, other in (
        ({"WEBHOOK_URL": "https://h"}, {"WEBHOOK_SERVICE": "s"}),
        ({"K8S_WEBHOOK_AUTH_TOKEN": "t"}, {"K8S_WEBHOOK_AUTH_TOKEN_FILE": "/t"}),
    ):
        with pytest.raises(SettingsError, match="set only one"):
            Settings.from_env({**one, **other})


def test_the_files_of_a_certificate_go_together() -> None:
    with pytest.raises(SettingsError, match="set TLS_KEY_FILE and TLS_CA_FILE too"):
        Settings.from_env({"TLS_CERT_FILE": "/c", "TLS_CA_FILE": " "})
    files = {"TLS_CERT_FILE": "/c", "TLS_KEY_FILE": "/k", "TLS_CA_FILE": "/a"}
    assert Settings.from_env(files).tls_ca_file == "/a"
