"""The application's container: what is set on it, and what stays as the user has it."""

import copy
from typing import Any

import pytest

import examples
from examples import plan, pod
from shield_operator.decision import Inject
from shield_operator.patch import apply

FLAG = {"name": "--kv", "value": "shield"}
SWITCH = {"name": "--chunked"}
PAYLOAD = {"image": examples.PAYLOAD_IMAGE, "mountPath": "/opt/c", "pathEnv": "PYTHONPATH"}
FROM_ELSEWHERE = {"configMapKeyRef": {"name": "m", "key": "k"}}


def wired(application: Any = None, payload: Any = None, **container: Any) -> tuple[Any, str]:
    """The application's container afterwards, and what the pod says was kept."""
    before = pod(containers=[{"name": "web", "image": "example.com/web:1", **container}])
    found = Inject(plan(application=application, payload=payload))
    changed = copy.deepcopy(before)
    apply(changed, found)
    again = copy.deepcopy(changed)
    apply(again, found)
    assert again == changed
    kept = changed["metadata"]["annotations"].get("llm-shield.io/kept-by-user", "")
    return changed["spec"]["containers"][0], kept


# --- Arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "afterwards", "kept"),
    [
        (None, ["--kv", "shield", "--chunked"], ""),
        ([], ["--kv", "shield", "--chunked"], ""),
        (["serve"], ["serve", "--kv", "shield", "--chunked"], ""),
        (["--kv", "mine"], ["--kv", "mine", "--chunked"], "arg:--kv"),
        (["--kv=mine"], ["--kv=mine", "--chunked"], "arg:--kv"),
        (["--kv="], ["--kv=", "--chunked"], "arg:--kv"),
        (["--kv"], ["--kv", "--chunked"], "arg:--kv"),
        (["--kv", "shield"], ["--kv", "shield", "--chunked"], ""),
        (["--kv=shield"], ["--kv=shield", "--chunked"], ""),
        (["--kv=shield", "--kv=mine"], ["--kv=shield", "--kv=mine", "--chunked"], "arg:--kv"),
        (["--chunked"], ["--chunked", "--kv", "shield"], ""),
        (["--chunked=no"], ["--chunked=no", "--kv", "shield"], "arg:--chunked"),
        (["--kv-more", "x"], ["--kv-more", "x", "--kv", "shield", "--chunked"], ""),
    ],
)
def test_a_flag_that_the_user_gives_stays_the_users(
    args: Any, afterwards: list[str], kept: str
) -> None:
    container, said = wired({"args": [FLAG, SWITCH]}, args=args)
    assert container["args"] == afterwards
    assert said == kept


# --- Variables ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "kept"),
    [
        ({"name": "SEED", "value": "42"}, "env:SEED"),
        ({"name": "SEED"}, "env:SEED"),
        ({"name": "SEED", "valueFrom": FROM_ELSEWHERE}, "env:SEED"),
        ({"name": "SEED", "value": "0"}, ""),
        ({"name": "SEED", "value": "0", "valueFrom": None}, ""),
    ],
)
def test_a_variable_that_the_user_sets_stays_the_users(own: Any, kept: str) -> None:
    container, said = wired({"env": [{"name": "SEED", "value": "0"}]}, env=[own])
    assert container["env"] == [own]
    assert said == kept


def test_an_empty_variable_is_equal_to_one_without_a_value() -> None:
    _, kept = wired({"env": [{"name": "A", "value": ""}, {"name": "B"}]}, env=[{"name": "A"}])
    assert kept == ""


def test_variables_keep_their_order_so_that_references_resolve() -> None:
    """Kubernetes resolves ``$(NAME)`` only where NAME comes before."""
    application = {
        "env": [{"name": "A", "value": "$(BASE)/a"}, {"name": "B", "value": "$(A)/$(HOST)"}],
        "baseUrlEnv": [{"name": "BASE", "path": "/v1"}],
    }
    own = [{"name": "HOST", "value": "h"}, {"name": "Z", "value": "$(HOST)"}]
    container, _ = wired(application, env=own)
    assert container["env"][:2] == own
    assert [variable["name"] for variable in container["env"]] == ["HOST", "Z", "BASE", "A", "B"]
    assert container["env"][2]["value"] == "http://127.0.0.1:8000/v1"


def test_nothing_is_routed_unless_asked() -> None:
    container, kept = wired()
    assert container == {"name": "web", "image": "example.com/web:1"}
    assert kept == ""


# --- The payload ----------------------------------------------------------------------------------

MOUNT = {"name": "llm-shield-payload", "mountPath": "/opt/c", "readOnly": True}


@pytest.mark.parametrize(
    ("env", "afterwards", "kept"),
    [
        (None, {"value": "/opt/c"}, ""),
        ([{"name": "PYTHONPATH", "value": "/x"}], {"value": "/opt/c:/x"}, ""),
        ([{"name": "PYTHONPATH", "value": ""}], {"value": "/opt/c"}, ""),
        ([{"name": "PYTHONPATH"}], {"value": "/opt/c"}, ""),
        ([{"name": "PYTHONPATH", "value": "/opt/c:/x"}], {"value": "/opt/c:/x"}, ""),
        ([{"name": "PYTHONPATH", "value": "/opt/cc"}], {"value": "/opt/c:/opt/cc"}, ""),
        ([{"name": "PYTHONPATH", "value": "/x:/opt/c"}], {"value": "/opt/c:/x:/opt/c"}, ""),
        (
            [{"name": "PYTHONPATH", "valueFrom": FROM_ELSEWHERE}],
            {"valueFrom": FROM_ELSEWHERE},
            "env:PYTHONPATH",
        ),
    ],
)
def test_the_path_is_put_in_front(env: Any, afterwards: dict[str, Any], kept: str) -> None:
    container, said = wired(payload=PAYLOAD, env=env)
    assert container["env"] == [{"name": "PYTHONPATH", **afterwards}]
    assert said == kept


@pytest.mark.parametrize(
    ("own", "kept"),
    [
        ({"volumeMounts": [{"name": "mine", "mountPath": "/opt/c"}]}, "mount:/opt/c"),
        ({"volumeMounts": [{"name": "mine", "mountPath": "/opt/c/"}]}, "mount:/opt/c"),
        ({"volumeDevices": [{"name": "mine", "devicePath": "/opt/c"}]}, "mount:/opt/c"),
        ({"volumeMounts": [{"name": "mine", "mountPath": "/opt"}]}, ""),
        ({"volumeMounts": [{"name": "llm-shield-payload", "mountPath": "/opt/c"}]}, ""),
        ({"volumeMounts": None}, ""),
    ],
)
def test_a_place_that_the_user_mounts_stays_the_users(own: dict[str, Any], kept: str) -> None:
    """Two mounts in one place would make the API server refuse the pod."""
    container, said = wired(payload=PAYLOAD, **own)
    places = [mount["mountPath"].rstrip("/") for mount in container.get("volumeMounts") or []]
    places += [device["devicePath"] for device in container.get("volumeDevices", [])]
    assert places.count("/opt/c") == 1
    assert ("env" in container) == (kept == "")  # the user's folder is not put on the path
    assert said == kept


def test_without_a_path_variable_none_is_set() -> None:
    container, _ = wired(payload={key: PAYLOAD[key] for key in ("image", "mountPath")})
    assert container["volumeMounts"] == [MOUNT]
    assert "env" not in container


# --- Which container ------------------------------------------------------------------------------

DEFAULT = "kubectl.kubernetes.io/default-container"
OWN = "llm-shield.io/container"


@pytest.mark.parametrize(
    ("annotations", "configured", "target"),
    [
        ({}, None, "first"),
        ({}, "second", "second"),
        ({DEFAULT: "third"}, None, "third"),
        ({DEFAULT: "third"}, "second", "second"),
        ({DEFAULT: "nobody"}, None, "first"),
        ({OWN: "third"}, "second", "third"),
        ({OWN: "third", DEFAULT: "first"}, None, "third"),
    ],
)
def test_the_container_by_annotation_config_default_and_order(
    annotations: dict[str, str], configured: str | None, target: str
) -> None:
    application = {"env": [{"name": "SEED", "value": "0"}], "container": configured}
    names = ("first", "second", "third")
    a_pod = pod(annotations=annotations, containers=[{"name": name} for name in names])
    for mode in ("Native", "Container", "None"):
        changed = copy.deepcopy(a_pod)
        apply(changed, Inject(plan(application=application, mode=mode)))
        wired_ones = [c["name"] for c in changed["spec"]["containers"][:3] if "env" in c]
        assert wired_ones == [target]
        default = changed["metadata"]["annotations"][DEFAULT]
        assert default == annotations.get(DEFAULT, target)


SHARED_MEMORY = {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}
OTHER = {"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}


@pytest.mark.parametrize(
    ("own", "afterwards", "kept"),
    [
        ({}, True, False),
        ({"hostIPC": True}, True, False),
        ({"hostIPC": False}, True, False),
        ({"hostUsers": False}, None, True),
        ({"hostUsers": True}, True, False),
        ({"securityContext": SHARED_MEMORY}, None, True),
        ({"securityContext": OTHER}, True, False),
        ({"os": {"name": "windows"}}, None, True),
    ],
)
def test_host_ipc_where_the_pod_says_nothing(
    own: dict[str, Any], afterwards: bool | None, kept: bool
) -> None:
    """Where the API server would refuse the pod otherwise, the pod stays as it is."""
    changed = pod(**own)
    apply(changed, Inject(plan(application={"hostIPC": True})))
    assert changed["spec"].get("hostIPC") is afterwards
    said = changed["metadata"]["annotations"].get("llm-shield.io/kept-by-user")
    assert said == ("hostIPC" if kept else None)
