"""What the API server takes and refuses under the CustomResourceDefinition.

The fixtures are manifests as a user writes them, several to a file, a file for each field.
`crd/accepted` must be taken; a document of `crd/refused` must be refused with an error that
contains what its first line says. Limits of length and size are tried at the limit and one above
it, by the table `LIMITS`, since a list of 129 variables is nothing to read.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import ControlPlane
from crd import GENERATED, kubernetes_version, render

FIXTURES = Path(__file__).parent / "crd"
NAME = "shieldsidecarconfigs.llm-shield.io"
DIGEST = "@sha256:" + "0123456789abcdef" * 4


@dataclass(frozen=True, slots=True)
class Fixture:
    name: str
    manifest: str
    error: str

    @classmethod
    def all(cls, folder: str) -> Iterator["Fixture"]:
        for path in sorted((FIXTURES / folder).glob("*.yaml")):
            for manifest in path.read_text(encoding="utf-8").split("---\n"):
                expected = re.match(r"# refused: (.+)\n", manifest)
                yield cls(
                    name=yaml.safe_load(manifest)["metadata"]["name"],
                    manifest=manifest,
                    error=expected[1] if expected else "",
                )


ACCEPTED = list(Fixture.all("accepted"))
REFUSED = list(Fixture.all("refused"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane where no operator writes statuses."""
    with ControlPlane.start() as running:
        assert running.kubectl("apply", "-f", str(GENERATED)).stderr == ""  # no warnings
        running.kubectl("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=30s")
        yield running


def create(
    cluster: ControlPlane, manifest: str, *, validate: str = "strict"
) -> subprocess.CompletedProcess[str]:
    return cluster.kubectl(
        "create",
        "--dry-run=server",
        f"--validate={validate}",
        "--output=json",
        "--filename=-",
        input=manifest,
        check=False,
    )


def config(spec: dict[str, Any]) -> str:
    return json.dumps(
        {
            "apiVersion": "llm-shield.io/v1alpha1",
            "kind": "ShieldSidecarConfig",
            "metadata": {"name": "some"},
            "spec": spec,
        }
    )


@pytest.mark.parametrize("fixture", ACCEPTED, ids=lambda fixture: fixture.name)
def test_accepted_and_kept_as_written(cluster: ControlPlane, fixture: Fixture) -> None:
    answer = create(cluster, fixture.manifest)
    assert (answer.returncode, answer.stderr) == (0, "")
    # Nothing was pruned, and no default was written in.
    assert json.loads(answer.stdout)["spec"] == yaml.safe_load(fixture.manifest)["spec"]


@pytest.mark.parametrize("fixture", REFUSED, ids=lambda fixture: fixture.name)
def test_refused_with_a_reason(cluster: ControlPlane, fixture: Fixture) -> None:
    answer = create(cluster, fixture.manifest)
    assert answer.returncode == 1, answer.stdout
    assert fixture.error
    assert fixture.error in answer.stderr


def named(count: int) -> list[dict[str, str]]:
    return [{"name": f"n{number}"} for number in range(count)]


def labels(count: int) -> dict[str, str]:
    return {f"l{number}": "v" for number in range(count)}


def texts(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


def subdomain(length: int) -> str:
    return ("a" * 63 + ".") * (length // 64) + "a" * (length % 64)


def application(field: str, value: Any) -> dict[str, Any]:
    return {"application": {field: value}}


def scheduling(field: str, value: Any) -> dict[str, Any]:
    return {"scheduling": {field: value}}


def secret_mount(**fields: Any) -> dict[str, Any]:
    return {"secretMounts": [{"name": "ca", "secretName": "corporate-ca"} | fields]}


def payload(**fields: Any) -> dict[str, Any]:
    return {"payload": {"image": "connector" + DIGEST, "mountPath": "/opt/connector"} | fields}


def selector(**fields: Any) -> dict[str, Any]:
    return {
        "podSelector": {
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]} | fields]
        }
    }


def pod_affinity(**fields: Any) -> dict[str, Any]:
    terms = [{"topologyKey": "zone", "labelSelector": {}} | fields]
    return scheduling(
        "affinity", {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    )


def node_affinity(terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": terms}
    return scheduling(
        "affinity", {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    )


def preferred_nodes(count: int) -> dict[str, Any]:
    preferred = [{"weight": 1, "preference": {}}] * count
    return scheduling(
        "affinity", {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    )


def env(**fields: Any) -> dict[str, Any]:
    return {"env": [{"name": "A"} | fields]}


IN: dict[str, Any] = {"key": "a", "operator": "In", "values": ["b"]}

LIMITS: list[tuple[str, int, Callable[[int], dict[str, Any]]]] = [
    ("image", 512, lambda n: {"image": "a" * (n - len(DIGEST)) + DIGEST}),
    ("imagePullSecrets", 16, lambda n: {"imagePullSecrets": named(n)}),
    ("imagePullSecrets[].name", 253, lambda n: {"imagePullSecrets": [{"name": subdomain(n)}]}),
    ("secretName", 253, lambda n: {"secretName": subdomain(n)}),
    ("args", 64, lambda n: {"args": texts(n)}),
    ("args[]", 4096, lambda n: {"args": ["a" * n]}),
    ("env", 128, lambda n: {"env": named(n)}),
    ("env[].name", 253, lambda n: env(name="A" * n)),
    ("env[].value", 32768, lambda n: env(value="a" * n)),
    (
        "env[].valueFrom.secretKeyRef.key",
        253,
        lambda n: env(valueFrom={"secretKeyRef": {"name": "keys", "key": "a" * n}}),
    ),
    (
        "env[].valueFrom.configMapKeyRef.name",
        253,
        lambda n: env(valueFrom={"configMapKeyRef": {"name": subdomain(n), "key": "a"}}),
    ),
    (
        "resources.limits",
        8,
        lambda n: {"resources": {"limits": {f"example.com/r{i}": 1 for i in range(n)}}},
    ),
    (
        "resources.requests",
        8,
        lambda n: {"resources": {"requests": {f"example.com/r{i}": 1 for i in range(n)}}},
    ),
    ("resources.limits.cpu", 32, lambda n: {"resources": {"limits": {"cpu": "0" * (n - 1) + "1"}}}),
    (
        "securityContext.seccompProfile.localhostProfile",
        1024,
        lambda n: {
            "securityContext": {
                "seccompProfile": {"type": "Localhost", "localhostProfile": "a" * n}
            }
        },
    ),
    (
        "secretMounts",
        16,
        lambda n: {"secretMounts": [entry | {"secretName": "keys"} for entry in named(n)]},
    ),
    ("secretMounts[].name", 45, lambda n: secret_mount(name="a" * n)),
    ("secretMounts[].secretName", 253, lambda n: secret_mount(secretName=subdomain(n))),
    ("secretMounts[].mountPath", 1024, lambda n: secret_mount(mountPath="/" + "a" * (n - 1))),
    (
        "secretMounts[].items",
        64,
        lambda n: secret_mount(items=[{"key": text, "path": text} for text in texts(n)]),
    ),
    (
        "secretMounts[].items[].key",
        253,
        lambda n: secret_mount(items=[{"key": "a" * n, "path": "a"}]),
    ),
    (
        "secretMounts[].items[].path",
        1024,
        lambda n: secret_mount(items=[{"key": "a", "path": "a" * n}]),
    ),
    ("podSelector.matchLabels", 32, lambda n: {"podSelector": {"matchLabels": labels(n)}}),
    (
        "podSelector.matchLabels.app",
        63,
        lambda n: {"podSelector": {"matchLabels": {"app": "a" * n}}},
    ),
    (
        "podSelector.matchExpressions",
        16,
        lambda n: {"podSelector": {"matchExpressions": [IN] * n}},
    ),
    (
        "podSelector.matchExpressions[].key",
        317,
        lambda n: selector(key=f"{'a' * (n - 64)}/{'a' * 63}"),
    ),
    ("podSelector.matchExpressions[].values", 64, lambda n: selector(values=texts(n))),
    ("podSelector.matchExpressions[].values[]", 63, lambda n: selector(values=["a" * n])),
    ("application.container", 63, lambda n: application("container", "a" * n)),
    (
        "application.args",
        64,
        lambda n: application("args", [{"name": f"--{text}"} for text in texts(n)]),
    ),
    (
        "application.args[].name",
        253,
        lambda n: application("args", [{"name": "-" + "a" * (n - 1)}]),
    ),
    (
        "application.args[].value",
        32768,
        lambda n: application("args", [{"name": "-a", "value": "a" * n}]),
    ),
    ("application.env", 128, lambda n: application("env", named(n))),
    ("application.env[].name", 253, lambda n: application("env", [{"name": "A" * n}])),
    (
        "application.env[].value",
        32768,
        lambda n: application("env", [{"name": "A", "value": "a" * n}]),
    ),
    ("application.baseUrlEnv", 16, lambda n: application("baseUrlEnv", named(n))),
    (
        "application.baseUrlEnv[].name",
        253,
        lambda n: application("baseUrlEnv", [{"name": "A" * n}]),
    ),
    (
        "application.baseUrlEnv[].path",
        1024,
        lambda n: application("baseUrlEnv", [{"name": "A", "path": "/" + "a" * (n - 1)}]),
    ),
    ("payload.image", 512, lambda n: payload(image="a" * (n - len(DIGEST)) + DIGEST)),
    ("payload.command", 64, lambda n: payload(command=texts(n))),
    ("payload.command[]", 4096, lambda n: payload(command=["a" * n])),
    ("payload.mountPath", 1024, lambda n: payload(mountPath="/" + "a" * (n - 1))),
    ("payload.pathEnv", 253, lambda n: payload(pathEnv="A" * n)),
    ("scheduling.nodeSelector", 32, lambda n: scheduling("nodeSelector", labels(n))),
    ("scheduling.nodeSelector.arch", 63, lambda n: scheduling("nodeSelector", {"arch": "a" * n})),
    (
        "scheduling.tolerations",
        32,
        lambda n: scheduling("tolerations", [{"operator": "Exists"}] * n),
    ),
    (
        "scheduling.tolerations[].key",
        317,
        lambda n: scheduling(
            "tolerations", [{"key": f"{'a' * (n - 64)}/{'a' * 63}", "operator": "Exists"}]
        ),
    ),
    (
        "scheduling.tolerations[].value",
        63,
        lambda n: scheduling("tolerations", [{"key": "a", "value": "a" * n}]),
    ),
    ("nodeSelectorTerms", 16, lambda n: node_affinity([{}] * n)),
    (
        "nodeSelectorTerms[].matchExpressions",
        16,
        lambda n: node_affinity([{"matchExpressions": [IN] * n}]),
    ),
    (
        "nodeSelectorTerms[].matchExpressions[].values",
        64,
        lambda n: node_affinity([{"matchExpressions": [IN | {"values": texts(n)}]}]),
    ),
    (
        "nodeSelectorTerms[].matchFields[].values[]",
        253,
        lambda n: node_affinity([{"matchFields": [IN | {"values": ["a" * n]}]}]),
    ),
    ("nodeAffinity.preferred", 16, preferred_nodes),
    (
        "podAffinity.topologyKey",
        317,
        lambda n: pod_affinity(topologyKey=f"{'a' * (n - 64)}/{'a' * 63}"),
    ),
    ("podAffinity.namespaces", 64, lambda n: pod_affinity(namespaces=texts(n))),
    ("podAffinity.namespaces[]", 63, lambda n: pod_affinity(namespaces=["a" * n])),
    ("podAffinity.matchLabelKeys", 16, lambda n: pod_affinity(matchLabelKeys=texts(n))),
]


@pytest.mark.parametrize(
    ("limit", "spec"), [limit[1:] for limit in LIMITS], ids=[limit[0] for limit in LIMITS]
)
def test_accepted_at_the_limit_and_refused_above_it(
    cluster: ControlPlane, limit: int, spec: Callable[[int], dict[str, Any]]
) -> None:
    assert create(cluster, config(spec(limit))).stderr == ""
    above = create(cluster, config(spec(limit + 1)))
    assert re.search(rf"Too (long|many).* {limit}\b", above.stderr), above.stderr


def test_a_key_of_the_node_selector_has_a_limit_too(cluster: ControlPlane) -> None:
    assert create(cluster, config(scheduling("nodeSelector", {"a" * 317: "b"}))).stderr == ""
    above = create(cluster, config(scheduling("nodeSelector", {"a" * 318: "b"})))
    assert "a key of nodeSelector is empty or longer than 317 characters" in above.stderr


def test_a_typo_is_pruned_where_validation_is_not_strict(cluster: ControlPlane) -> None:
    typo = config({"port": 8000, "tolerationss": []})
    answer = create(cluster, typo, validate="ignore")
    assert json.loads(answer.stdout)["spec"] == {"port": 8000}
    assert 'unknown field "spec.tolerationss"' in create(cluster, typo, validate="warn").stderr


def test_the_api_server_has_nothing_against_the_definition(cluster: ControlPlane) -> None:
    again = cluster.kubectl("replace", "--dry-run=server", "-f", str(GENERATED))
    assert again.stderr == ""
    found = json.loads(cluster.kubectl("get", "crd", NAME, "--output=json").stdout)
    conditions = {entry["type"]: entry["status"] for entry in found["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}  # no NonStructuralSchema


def test_the_committed_definition_is_what_the_generator_makes(control_plane: ControlPlane) -> None:
    document = json.loads(control_plane.kubectl("get", "--raw", "/openapi/v3/api/v1").stdout)
    committed = GENERATED.read_text(encoding="utf-8")
    rendered, served = render([document]), document["info"]["version"]
    assert kubernetes_version(rendered) == served
    if served == kubernetes_version(committed):
        assert rendered == committed, "stale: run `python -m crd`"
    else:  # another version's schemas of core types; the fields of ours are the same
        assert fields(rendered) == fields(committed)


def fields(definition: str) -> set[str]:
    """The fields of a config's spec, as far as they are ours to define."""
    (version,) = yaml.safe_load(definition)["spec"]["versions"]
    return set(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("ssc.spec.image", "pinned by digest"),
        ("ssc.spec.secretMounts.mountPath", "Default: /etc/llm-shield/secrets/<name>"),
        ("ssc.spec.scheduling.tolerations.effect", "ENUM: NoExecute NoSchedule PreferNoSchedule"),
        ("ssc.status.pods", "outdated"),
    ],
)
def test_explain_is_the_manual(cluster: ControlPlane, path: str, said: str) -> None:
    explained = " ".join(cluster.kubectl("explain", path).stdout.split())
    assert said in explained


STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "injectionHash": "0123456789abcdef",
    "missingSecrets": ["keys"],
    "pods": {"injected": 3, "outdated": 1},
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "SecretNotFound",
            "message": "Secret keys is not in namespace crd-status: create it.",
        },
        {
            "type": "UpToDate",
            "status": "False",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "OutdatedPods",
            "message": "",
        },
    ],
}


@pytest.fixture(scope="module")
def stored(cluster: ControlPlane) -> Iterator[str]:
    """A namespace with a config `some` that has a status."""
    cluster.kubectl("create", "namespace", "crd-status")
    spec = {"image": "proxy" + DIGEST, "secretName": "keys"}
    cluster.kubectl("create", "--namespace=crd-status", "-f", "-", input=config(spec))
    assert patch_status(cluster, "crd-status", STATUS, dry_run="none").stderr == ""
    yield "crd-status"
    cluster.kubectl("delete", "namespace", "crd-status", "--wait=false")


def patch_status(
    cluster: ControlPlane, namespace: str, status: dict[str, Any], *, dry_run: str = "server"
) -> subprocess.CompletedProcess[str]:
    return cluster.kubectl(
        "patch",
        "ssc/some",
        f"--namespace={namespace}",
        "--subresource=status",
        "--type=merge",
        f"--dry-run={dry_run}",
        f"--patch={json.dumps({'status': status})}",
        check=False,
    )


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"observedGeneration": -1}, "greater than or equal to 0"),
        ({"injectionHash": "0123"}, "injectionHash"),
        ({"pods": {"injected": -1}}, "greater than or equal to 0"),
        ({"pods": {"outdated": -1}}, "greater than or equal to 0"),
        ({"missingSecrets": ["keys", "keys"]}, "Duplicate value"),
        ({"missingSecrets": [f"keys-{n}" for n in range(18)]}, "Too many"),
        ({"missingSecrets": ["Keys"]}, "missingSecrets[0]"),
        ({"missingSecrets": ["a" * 254]}, "Too long"),
        ({"conditions": STATUS["conditions"][:1] * 2}, "Duplicate value"),
        ({"conditions": [{"type": "Ready"}]}, "conditions[0].reason: Required value"),
        ({"conditions": [STATUS["conditions"][0] | {"status": "Maybe"}]}, 'value: "Maybe"'),
        ({"conditions": [STATUS["conditions"][0] | {"reason": ""}]}, "at least 1 chars long"),
        (
            {"conditions": [STATUS["conditions"][0] | {"reason": "two words"}]},
            "conditions[0].reason",
        ),
        ({"conditions": [STATUS["conditions"][0] | {"type": "not a type"}]}, "conditions[0].type"),
        ({"conditions": [STATUS["conditions"][0] | {"message": "a" * 32769}]}, "Too long"),
        (
            {"conditions": [STATUS["conditions"][0] | {"type": f"T{n}"} for n in range(9)]},
            "Too many",
        ),
        ({"conditions": [STATUS["conditions"][0] | {"lastTransitionTime": "now"}]}, "date-time"),
    ],
)
def test_a_status_that_is_none_is_refused(
    cluster: ControlPlane, stored: str, change: dict[str, Any], error: str
) -> None:
    assert error in patch_status(cluster, stored, change).stderr


def test_the_status_is_no_part_of_what_a_user_writes(cluster: ControlPlane, stored: str) -> None:
    change = json.dumps({"status": {"injectionHash": "f" * 16}})
    cluster.kubectl(
        "patch", "ssc/some", f"--namespace={stored}", "--type=merge", f"--patch={change}"
    )
    kept = cluster.kubectl("get", "ssc/some", f"--namespace={stored}", "--output=json").stdout
    assert json.loads(kept)["status"] == STATUS


def test_get_shows_the_columns_that_answer_why_not(cluster: ControlPlane, stored: str) -> None:
    plain = cluster.kubectl("get", "ssc", f"--namespace={stored}").stdout.splitlines()
    assert plain[0].split() == ["NAME", "READY", "REASON", "SECRET", "INJECTED", "OUTDATED", "AGE"]
    assert plain[1].split()[:-1] == ["some", "False", "SecretNotFound", "keys", "3", "1"]
    wide = cluster.kubectl(
        "get", "ssc", f"--namespace={stored}", "--output=wide"
    ).stdout.splitlines()
    assert wide[0].split()[-1] == "IMAGE"
    assert wide[1].split()[-1] == "proxy" + DIGEST
