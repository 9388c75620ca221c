"""The plan: what a config makes of the sidecar, and when it is native."""

import json
from typing import Any

import pytest

import examples
from examples import config, index, plan
from shield_operator.model import ShieldConfig, parse
from shield_operator.plan import ClusterVersion, Plan, compile_plan
from shield_operator.settings import Settings

KEY = {"key": "tls.crt", "path": "client.crt"}
PAYLOAD = {"image": examples.PAYLOAD_IMAGE, "mountPath": "/opt/connector", "command": ["cp"]}


def problems(version: str = "1.36", with_settings: Settings | None = None, **spec: Any) -> str:
    parsed = parse(config(**spec))
    assert isinstance(parsed, ShieldConfig), parsed
    found = compile_plan(
        parsed, with_settings or examples.settings(), ClusterVersion.parse(version)
    )
    assert not isinstance(found, Plan)
    return "; ".join(found)


# --- Native or not --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "version", "gate", "native"),
    [
        ("Auto", "1.36", None, True),
        ("Auto", "1.32", None, True),
        ("Auto", "1.31", None, False),  # a kubelet of 1.28 may still be there
        ("Auto", "1.29", None, False),
        ("Auto", "1.29", "true", True),
        ("Auto", "1.28", "true", False),
        ("Auto", "1.36", "false", False),
        ("Native", "1.29", None, True),
        ("Native", "1.36", None, True),
        ("Container", "1.36", None, False),
        ("Container", "1.36", "true", False),
    ],
)
def test_native_sidecars(mode: str, version: str, gate: str | None, native: bool) -> None:
    gates = {"K8S_FEATURE_GATES": f"SidecarContainers={gate}"} if gate else {}
    made = plan(ClusterVersion.parse(version), examples.settings(**gates), mode=mode)
    assert made.native is native
    assert (made.sidecar.get("restartPolicy") == "Always") is native


def test_native_where_the_cluster_has_none_is_invalid() -> None:
    assert "no native sidecars" in problems("1.28", mode="Native")
    gate_off = examples.settings(K8S_FEATURE_GATES="SidecarContainers=false")
    assert "no native sidecars" in problems("1.36", gate_off, mode="Native")


@pytest.mark.parametrize("text", ["v1.36.3", "1.36", "v1.36.0-alpha.1+abc", "1.36+"])
def test_versions(text: str) -> None:
    assert ClusterVersion.parse(text) == ClusterVersion(1, 36)


@pytest.mark.parametrize("text", ["", "None", "v1", "1.x", "1.36361111"])
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes version"):
        ClusterVersion.parse(text)


# --- The container --------------------------------------------------------------------------------


def test_the_sidecar_is_as_strict_as_pod_security_restricted_asks() -> None:
    context = plan().sidecar["securityContext"]
    assert context == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_a_config_chooses_users_and_profile_only() -> None:
    chosen = {
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/x.json"},
    }
    context = plan(securityContext=chosen).sidecar["securityContext"]
    assert chosen.items() <= context.items()
    assert context["runAsNonRoot"] is True


def test_a_config_needs_an_image_from_somewhere() -> None:
    assert "spec.image is missing" in problems(image=None)
    default = examples.settings(K8S_SIDECAR_IMAGE=examples.IMAGE)
    assert plan(with_settings=default, image=None).sidecar["image"] == examples.IMAGE


def test_the_settings_secret_is_the_default() -> None:
    default = examples.settings(K8S_SIDECAR_SECRET_NAME="fallback")
    assert plan(with_settings=default, secretName=None).secret_name == "fallback"
    assert plan(with_settings=default).secret_name == "keys"


def test_another_port_is_told_to_the_image() -> None:
    made = plan(port=8100)
    assert made.sidecar["args"] == ["--port", "8100"]
    assert made.sidecar["ports"][0]["containerPort"] == 8100
    assert "args" not in plan().sidecar


def test_the_configs_arguments_come_after_the_port() -> None:
    assert plan(args=["--log-level", "debug"]).sidecar["args"] == ["--log-level", "debug"]
    assert plan(args=["-v"], port=8100).sidecar["args"] == ["--port", "8100", "-v"]


@pytest.mark.parametrize("args", [["--port", "8100"], ["-v", "--port=8100"]])
def test_a_port_among_the_arguments_must_be_the_configs(args: list[str]) -> None:
    assert plan(args=args, port=8100).sidecar["args"] == args
    assert "spec.args sends the sidecar to port '8100', and spec.port is 8000" in (
        problems(args=args)
    )
    assert "spec.args sends the sidecar to no port" in problems(args=["--port"])


def test_mounted_secrets_are_for_the_sidecar_alone_and_read_only() -> None:
    made = plan(
        secretMounts=[
            {"name": "ca", "secretName": "corporate-ca"},
            {"name": "c", "secretName": "corporate-ca", "mountPath": "/c", "items": [KEY]},
        ]
    )
    assert made.sidecar["volumeMounts"][2:] == [
        {
            "name": "llm-shield-secret-ca",
            "mountPath": "/etc/llm-shield/secrets/ca",
            "readOnly": True,
        },
        {"name": "llm-shield-secret-c", "mountPath": "/c", "readOnly": True},
    ]
    source = {"secretName": "corporate-ca", "defaultMode": 0o644}
    assert made.volumes[2:] == (
        {"name": "llm-shield-secret-ca", "secret": source},
        {"name": "llm-shield-secret-c", "secret": {**source, "items": [KEY]}},
    )


# --- The payload ----------------------------------------------------------------------------------


def test_a_stage_is_as_strict_as_the_sidecar_and_states_what_it_needs() -> None:
    user = {"runAsUser": 10001}
    made = plan(payload=PAYLOAD, securityContext=user)
    assert made.stage["command"] == ["cp"]
    assert made.stage["securityContext"] == made.sidecar["securityContext"]
    assert made.stage["resources"] == plan().sidecar["resources"]
    mounts = {mount["mountPath"]: mount for mount in made.stage["volumeMounts"]}
    assert "readOnly" not in mounts["/opt/connector"]
    assert mounts["/var/run/secrets/kubernetes.io/serviceaccount"]["readOnly"] is True
    assert made.wiring.mount["readOnly"] is True


@pytest.mark.parametrize(
    ("gates", "version", "as_image"),
    [
        ("", "1.36", False),
        ("ImageVolume=false", "1.36", False),
        ("ImageVolume=true", "1.36", True),
        ("ImageVolume=true", "1.31", True),
        ("ImageVolume=true", "1.30", False),  # its API server would drop the field
    ],
)
def test_an_image_is_mounted_as_it_is_only_where_the_gate_says_so(
    gates: str, version: str, as_image: bool
) -> None:
    chosen = examples.settings(**({"K8S_FEATURE_GATES": gates} if gates else {}))
    made = plan(ClusterVersion.parse(version), chosen, payload=PAYLOAD)
    assert (made.stage is None) == as_image
    source = {"reference": examples.PAYLOAD_IMAGE, "pullPolicy": "IfNotPresent"}
    assert (made.volumes[-1].get("image") == source) == as_image


# --- Without a sidecar ----------------------------------------------------------------------------

RULES: dict[str, Any] = {"mode": "None", "image": None, "secretName": None}


def test_mode_none_needs_no_image_and_no_secret() -> None:
    made = plan(**RULES)
    assert made.sidecar is None
    assert made.volumes == ()
    with_defaults = examples.settings(
        K8S_SIDECAR_IMAGE=examples.IMAGE, K8S_SIDECAR_SECRET_NAME="fallback"
    )
    assert plan(with_settings=with_defaults, **RULES).sidecar is None
    assert plan(with_settings=with_defaults, **RULES).secret_name is None


def test_mode_none_does_not_mind_a_port_that_nobody_listens_on() -> None:
    assert plan(**RULES, args=["--port", "9"]).sidecar is None


@pytest.mark.parametrize(
    ("spec", "fits"),
    [({}, False), ({**RULES, "payload": PAYLOAD}, False), (RULES, True)],
)
def test_what_is_for_linux_is_not_sent_to_windows(spec: dict[str, Any], fits: bool) -> None:
    windows = {"nodeSelector": {"kubernetes.io/os": "windows"}}
    if fits:
        assert plan(**spec, scheduling=windows)
    else:
        assert "sends the pods to Windows" in problems(**spec, scheduling=windows)


def test_mode_none_has_no_use_for_what_only_the_sidecar_mounts() -> None:
    mounts = [{"name": "ca", "secretName": "corporate-ca"}]
    made = plan(**RULES, secretMounts=mounts, payload=PAYLOAD)
    assert made.mounted_secrets == ()
    assert [volume["name"] for volume in made.volumes] == [
        "llm-shield-no-token",
        "llm-shield-payload",
    ]


def test_the_configs_variables_come_after_the_operators_and_replace_them() -> None:
    own = [
        {"name": "A", "value": "$(SHIELD_FAILURE_MODE)"},
        {"name": "ENABLE_EXT_PROC", "value": "true"},
    ]
    variables = plan(env=own).sidecar["env"]
    assert [variable["name"] for variable in variables] == [
        "SHIELD_FAILURE_MODE",
        "ENABLE_TIER3_ONNX_NER",
        "A",
        "ENABLE_EXT_PROC",
    ]
    assert variables[-1]["value"] == "true"


# --- Resources ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "requests", "limits"),
    [
        (None, ("100m", "128Mi"), ("500m", "256Mi")),
        ({"requests": {"cpu": "200m"}}, ("200m", "128Mi"), (None, "256Mi")),
        ({"requests": {"memory": "1Gi"}}, ("100m", "1Gi"), ("500m", None)),
        ({"limits": {"cpu": "2"}}, ("100m", "128Mi"), ("2", "256Mi")),
        ({"limits": {"cpu": "50m"}}, ("50m", "128Mi"), ("50m", "256Mi")),
        ({"limits": {"cpu": 1}, "requests": {"cpu": 1}}, ("1", "128Mi"), ("1", "256Mi")),
    ],
)
def test_resources_are_completed_one_by_one(
    given: Any, requests: tuple[str, str], limits: tuple[str | None, str | None]
) -> None:
    resources = plan(resources=given).sidecar["resources"]
    assert (resources["requests"]["cpu"], resources["requests"]["memory"]) == requests
    assert (resources["limits"].get("cpu"), resources["limits"].get("memory")) == limits


# --- The fingerprint ------------------------------------------------------------------------------


def test_the_fingerprint_of_a_known_config_is_pinned() -> None:
    """A change here makes every running pod "outdated": it belongs into the release notes."""
    assert plan().fingerprint == "7a9a2365bd701f10"


def test_the_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    spec: dict[str, Any] = {
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1"}},
        "env": [{"name": "A", "value": "1"}],
    }
    reversed_spec = json.loads(json.dumps(spec), object_pairs_hook=lambda kv: dict(reversed(kv)))
    assert plan(**spec).fingerprint == plan(**reversed_spec).fingerprint


@pytest.mark.parametrize("empty", [{}, {"application": {}}, {"scheduling": {}}, {"args": []}])
def test_what_says_nothing_plays_no_part_in_the_fingerprint(empty: dict[str, Any]) -> None:
    assert plan(**empty).fingerprint == plan().fingerprint


def test_the_fingerprint_is_that_of_the_content_not_of_the_name() -> None:
    here, there = config("a"), config("b", "elsewhere")
    there["metadata"]["generation"] = 7
    there["spec"]["podSelector"] = {"matchLabels": {"app": "x"}}
    hashes = {entry.plan.fingerprint for entry in index(here, there) if entry.plan is not None}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"image": examples.IMAGE.replace("1.7.0", "1.8.0")},
        {"secretName": "other"},
        {"secretName": None},
        {"imagePullPolicy": "Always"},
        {"port": 8001},
        {"env": [{"name": "A", "value": "b"}]},
        {"resources": {"limits": {"cpu": "1"}}},
        {"mode": "Container"},
        {"securityContext": {"runAsUser": 1}},
        {"securityContext": {"runAsGroup": 1}},
        {"args": ["-v"]},
        {"imagePullSecrets": [{"name": "regcred"}]},
        {"secretMounts": [{"name": "a", "secretName": "b"}]},
        {"application": {"container": "chat"}},
        {"application": {"args": [{"name": "-v"}]}},
        {"application": {"env": [{"name": "A"}]}},
        {"application": {"baseUrlEnv": [{"name": "A"}]}},
        {"application": {"hostIPC": True}},
        {"payload": PAYLOAD},
        {"scheduling": {"nodeSelector": {"a": "b"}}},
        {"scheduling": {"tolerations": [{"operator": "Exists"}]}},
        {"scheduling": {"affinity": {"podAffinity": {}}}},
    ],
    ids=str,
)
def test_another_content_is_another_fingerprint(change: dict[str, Any]) -> None:
    assert plan(**change).fingerprint != plan().fingerprint
