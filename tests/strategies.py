"""Generated pods, for properties that must hold of any pod: hostile ones, and valid ones."""

from typing import Any

from hypothesis import strategies as st

import examples
from examples import config

Strategy = st.SearchStrategy[Any]

# --- Configs --------------------------------------------------------------------------------------

_TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
EVERYTHING: dict[str, Any] = {
    "port": 8100,
    "args": ["-v"],
    "imagePullSecrets": [{"name": "regcred"}],
    "secretMounts": [{"name": "ca", "secretName": "corporate-ca"}],
    "application": {
        "args": [{"name": "--kv", "value": "shield"}, {"name": "--chunked"}],
        "env": [{"name": "SEED", "value": "0"}, {"name": "HOME", "value": "$(SEED)"}],
        "baseUrlEnv": [{"name": "OPENAI_BASE_URL", "path": "/v1"}],
        "hostIPC": True,
    },
    "payload": {
        "image": examples.PAYLOAD_IMAGE,
        "mountPath": "/opt/connector",
        "pathEnv": "PYTHONPATH",
    },
    "scheduling": {
        "nodeSelector": {"pool": "a", "disk": "ssd"},
        "tolerations": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
        "affinity": {"podAntiAffinity": {_REQUIRED: [_TERM]}},
    },
}
CONFIGS: dict[str, dict[str, Any]] = {
    "native": config(),
    "plain": config(mode="Container"),
    "everything": config(**EVERYTHING),
    "everything-plain": config(**EVERYTHING, mode="Container"),
    "everything-but-the-sidecar": config(
        **EVERYTHING, mode="None", image=None, secretName=None, resources={"limits": {"cpu": "1"}}
    ),
    "no-secret": config(secretName=None, securityContext={"runAsUser": 10001}),
}
"""One config of each kind that makes another plan."""

# --- Pods of any kind -----------------------------------------------------------------------------

TEXT = st.text(st.sampled_from("ab/~-.\"'{}\n☃$()="), min_size=1, max_size=6)
_FLAGS = st.sampled_from(
    ["serve", "--kv", "--kv=shield", "--kv=mine", "shield", "--chunked", "--chunked=no", "--"]
)
_VARIABLES = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["SEED", "HOME", "PYTHONPATH", "OPENAI_BASE_URL", "OTHER"])},
        optional={
            "value": TEXT | st.sampled_from(["0", "/opt/connector:/x", "/x", ""]),
            "valueFrom": st.none() | st.just({"fieldRef": {"fieldPath": "metadata.name"}}),
            "unknownField": TEXT,
        },
    ),
    max_size=4,
)
_MOUNTS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["data", "llm-shield-payload"]),
            "mountPath": st.sampled_from(["/data", "/opt/connector", "/opt/connector/", "/opt"]),
        }
    ),
    max_size=2,
)
_NAMES = st.sampled_from(
    ["web", "app", "db", "llm-shield-extra", "llm-shield-proxy-2", "llm-shield-payload-stage"]
)
_CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": _NAMES},
        optional={
            "args": st.none() | st.lists(_FLAGS, max_size=4),
            "command": st.none() | st.just([]) | st.just(["serve"]),
            "env": st.none() | _VARIABLES,
            "volumeMounts": st.none() | _MOUNTS,
            "ports": st.none() | st.just([{"containerPort": 9000}]),
            "unknownField": TEXT,
        },
    ),
    unique_by=lambda container: str(container["name"]),
    min_size=1,
    max_size=3,
)
_KEYS = st.sampled_from(
    [
        "llm-shield.io/injected",
        "llm-shield.io/injection-skipped",
        "llm-shield.io/skip-reason",
        "llm-shield.io/kept-by-user",
        "llm-shield.io/container",
        "llm-shield.io/keys-secret",
        "llm-shield.io/image-pull-secrets",
        "kubectl.kubernetes.io/default-container",
    ]
)
_VALUES = TEXT | st.sampled_from(["web", "app", "true", "one, two,,one", ""])
_MAP = st.none() | st.dictionaries(TEXT | _KEYS, _VALUES)
_TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {"key": st.sampled_from(["team", "spot"])},
        optional={
            "operator": st.sampled_from(["Equal", "Exists"]),
            "value": st.sampled_from(["a", ""]),
            "effect": st.sampled_from(["NoSchedule", "NoExecute"]),
        },
    ),
    max_size=2,
)
PODS: Strategy = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": _MAP,
                "annotations": _MAP,
                "generateName": TEXT,
                "ownerReferences": st.just([{"kind": "ReplicaSet", "controller": True}]),
                "unknownField": TEXT,
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": _CONTAINERS},
            optional={
                "initContainers": st.none() | _CONTAINERS,
                "volumes": st.none() | st.just([{"name": "data", "emptyDir": {}}]),
                "imagePullSecrets": st.none()
                | st.lists(
                    st.sampled_from([{"name": "regcred"}, {"name": "mine"}, {}]), max_size=2
                ),
                "securityContext": st.none() | st.just({"runAsUser": 0}),
                "nodeSelector": st.none()
                | st.dictionaries(st.sampled_from(["pool", "disk", "x"]), st.just("a")),
                "tolerations": st.none() | _TOLERATIONS,
                "affinity": st.none() | st.just({"podAntiAffinity": {}}) | st.just({}),
                "hostIPC": st.booleans(),
                "somethingNew": st.lists(TEXT),
            },
        ),
    }
)
"""Pods as the API server would not take them all: nulls, unknown fields, keys to be escaped."""

# --- Pods that the API server takes ---------------------------------------------------------------

_RESOURCES = st.sampled_from(
    [{}, {"requests": {"cpu": "10m"}}, {"requests": {"memory": "1Mi"}, "limits": {"cpu": "2"}}]
)


def _valid_containers(stem: str, most: int) -> Strategy:
    one = st.fixed_dictionaries(
        {"image": st.just("example.com/web:1")},
        optional={
            "args": st.lists(_FLAGS, max_size=4),
            "env": st.lists(
                st.sampled_from(
                    [
                        {"name": "SEED", "value": "42"},
                        {"name": "PYTHONPATH", "value": "/x"},
                        {"name": "OPENAI_BASE_URL", "value": "$(SEED)"},
                        {
                            "name": "HOME",
                            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
                        },
                        {"name": "a.b-c"},
                    ]
                ),
                max_size=4,
            ),
            "volumeMounts": st.sampled_from(
                [
                    [{"name": "data", "mountPath": "/data"}],
                    [{"name": "data", "mountPath": "/opt/connector"}],
                    [{"name": "data", "mountPath": "/opt/connector/"}],
                    [
                        {"name": "data", "mountPath": "/opt"},
                        {"name": "data", "mountPath": "/var/run/secrets"},
                    ],
                ]
            ),
            "ports": st.sampled_from(
                [[{"containerPort": 9000}], [{"containerPort": 8000, "protocol": "UDP"}]]
            ),
            "resources": _RESOURCES,
        },
    )
    return st.lists(one, min_size=0 if stem == "init" else 1, max_size=most).map(
        lambda found: [{"name": f"{stem}-{i}", **entry} for i, entry in enumerate(found)]
    )


_LABELS = st.dictionaries(
    st.sampled_from(["app", "example.com/a_b.c", "llm-shield.io/injected"]),
    st.sampled_from(["web", "true", ""]),
)
_ANNOTATIONS = st.dictionaries(
    st.sampled_from(["a.example/b", "llm-shield.io/skip-reason", "llm-shield.io/kept-by-user"]),
    st.text(max_size=20).filter(lambda text: text.isprintable() or "\n" in text),
)
VALID_PODS: Strategy = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"generateName": st.just("pod-")},
            optional={"labels": _LABELS, "annotations": _ANNOTATIONS},
        ),
        "spec": st.fixed_dictionaries(
            {
                "containers": _valid_containers("app", 3),
                "volumes": st.just([{"name": "data", "emptyDir": {}}]),
            },
            optional={
                "initContainers": _valid_containers("init", 2),
                "imagePullSecrets": st.just([{"name": "regcred"}, {"name": "mine"}]),
                "securityContext": st.sampled_from(
                    [
                        {"runAsUser": 0, "seccompProfile": {"type": "Unconfined"}},
                        {"runAsNonRoot": True, "fsGroup": 2000},
                    ]
                ),
                "automountServiceAccountToken": st.booleans(),
                "shareProcessNamespace": st.booleans(),
                "terminationGracePeriodSeconds": st.integers(0, 60),
                "nodeSelector": st.just({"disk": "hdd"}),
                "tolerations": st.just([{"key": "team", "operator": "Exists"}]),
                "affinity": st.just({"podAntiAffinity": {_REQUIRED: [_TERM]}}),
                "restartPolicy": st.sampled_from(["Always", "Never", "OnFailure"]),
                "resources": st.just({"requests": {"cpu": "8", "memory": "8Gi"}}),
            },
        ),
    }
)
"""Pods that the API server takes as they are, which must still be so when something was added."""
