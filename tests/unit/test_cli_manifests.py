"""``kubectl shield inject`` and ``uninject``: files in, files out, and what they say on the way."""

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

import examples
from shield_operator.cli import kubectl_shield

SKIPPED = 3

NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels: {llm-shield.io/inject: enabled}
"""

DEPLOYMENT = """\
# The shop's window.
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      containers:
      - name: web
        image: example.com/web:1   # any
"""

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name:   c}\ndata:\n  a:   yes # odd\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, which has a config."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "/nowhere/kubeconfig")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(examples.config()))
    return tmp_path


def run(*arguments: str, given: str | bytes = "", **environment: str) -> Result:
    return CliRunner().invoke(
        kubectl_shield, arguments, input=given, env=environment, catch_exceptions=False
    )


def inject(given: str | bytes, *arguments: str, **environment: str) -> Result:
    return run("inject", "-f", "-", "-c", "config.yaml", *arguments, given=given, **environment)


def pod(given: str) -> Any:
    """The template of the one Deployment."""
    (found,) = [d for d in yaml.safe_load_all(given) if d and d["kind"] == "Deployment"]
    return found["spec"]["template"]


def has_sidecar(template: Any) -> bool:
    init = template["spec"].get("initContainers", [])
    return any(container["name"] == "llm-shield-proxy" for container in init)


def workload(kind: str, version: str, spec: Any, **metadata: Any) -> str:
    return yaml.safe_dump(
        {"apiVersion": version, "kind": kind, "metadata": {"name": "it", **metadata}, **spec}
    )


# --- What goes through ----------------------------------------------------------------------------


def test_only_what_asked_is_changed_and_all_else_stays_byte_for_byte() -> None:
    before = f"{NAMESPACE}--- # the rest\n{CONFIG_MAP}---\n{DEPLOYMENT}---\n\n# nothing\n"
    result = inject(before)
    assert result.exit_code == 0
    assert result.stderr == "1 injected, 0 untouched\n"
    head, middle, tail = result.stdout.partition("---\n# The shop's window.\n")
    assert head == f"{NAMESPACE}--- # the rest\n{CONFIG_MAP}"
    assert tail.endswith("---\n\n# nothing\n")
    assert has_sidecar(pod(middle + tail))
    assert "        image: example.com/web:1   # any\n" in tail


def test_what_did_not_ask_passes_through_in_silence() -> None:
    result = inject(DEPLOYMENT)
    assert (result.exit_code, result.stdout) == (0, DEPLOYMENT)
    assert result.stderr == "0 injected, 1 untouched\n"


def test_carriage_returns_and_a_byte_order_mark_stay() -> None:
    before = f"\ufeff{NAMESPACE}---\n{DEPLOYMENT}".replace("\n", "\r\n").rstrip().encode()
    after = inject(before).stdout_bytes
    assert after.startswith(b"\xef\xbb\xbf")
    assert after.count(b"\n") == after.count(b"\r\n") > before.count(b"\n")
    assert not after.endswith(b"\n")
    assert has_sidecar(pod(after.decode("utf-8-sig")))


def test_json_comes_out_as_json() -> None:
    value = yaml.safe_load(DEPLOYMENT)
    result = inject(json.dumps(value), "--namespace-labels", "llm-shield.io/inject=true")
    assert has_sidecar(json.loads(result.stdout)["spec"]["template"])


def test_files_and_folders_and_standard_input_come_out_as_one(folder: Path) -> None:
    (folder / "some" / "below").mkdir(parents=True)
    (folder / "some" / "b.yaml").write_text(CONFIG_MAP.rstrip())
    (folder / "some" / "a.json").write_text('{"kind": "X"}')
    (folder / "some" / "c.txt").write_text("not read")
    (folder / "some" / "below" / "d.yml").write_text("---\nkind: Y\n")
    flat = run("inject", "-f", "some", "-f", "-", given="kind: Z\n")
    assert flat.stdout == f'{{"kind": "X"}}\n---\n{CONFIG_MAP.rstrip()}\n---\nkind: Z\n'
    deep = run("inject", "-R", "-f", "some")
    assert deep.stdout == f'{{"kind": "X"}}\n---\n{CONFIG_MAP.rstrip()}\n---\nkind: Y\n'


# --- Whose pods -----------------------------------------------------------------------------------

IN = ("--namespace-labels", "llm-shield.io/inject=enabled")


def test_the_flag_beats_the_namespace_in_the_input() -> None:
    assert has_sidecar(pod(inject(NAMESPACE + "---\n" + DEPLOYMENT).stdout))
    out = inject(f"{NAMESPACE}---\n{DEPLOYMENT}", "--namespace-labels", "")
    assert not has_sidecar(pod(out.stdout))


def test_without_a_namespace_a_pod_can_ask_for_itself() -> None:
    asks = DEPLOYMENT.replace("  template:\n", "  template:\n    metadata:\n      labels:\n"
                              "        llm-shield.io/inject: 'true'\n")  # fmt: skip
    assert has_sidecar(pod(inject(asks).stdout))


def test_the_namespace_of_what_names_none() -> None:
    bare = DEPLOYMENT.replace(", namespace: shop", "")
    assert inject(bare, *IN).exit_code == SKIPPED
    assert "namespace default " in inject(bare, *IN).stderr
    assert has_sidecar(pod(inject(bare, *IN, "-n", "shop").stdout))


def test_a_config_without_a_namespace_is_for_the_namespace_of_the_command(folder: Path) -> None:
    config = examples.config()
    del config["metadata"]["namespace"]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert inject(DEPLOYMENT, *IN).exit_code == SKIPPED
    assert has_sidecar(pod(inject(DEPLOYMENT, *IN, "-n", "shop").stdout))


def test_configs_among_the_manifests_count_too() -> None:
    config = yaml.safe_dump(examples.config())
    result = run("inject", "-f", "-", *IN, given=f"{DEPLOYMENT}---\n{config}")
    assert has_sidecar(pod(result.stdout))
    assert result.stdout.endswith(f"---\n{config}")


def test_files_of_several_configs(folder: Path) -> None:
    (folder / "more.yaml").write_text(
        yaml.safe_dump_all([examples.config(name="one"), examples.config(name="two")])
    )
    result = inject(DEPLOYMENT, *IN, "-c", "more.yaml")
    assert result.exit_code == SKIPPED
    assert "one and shield and two" in result.stderr


def test_the_environment_of_the_operator_counts() -> None:
    result = run("inject", "-f", "-", *IN, given=DEPLOYMENT, K8S_SIDECAR_IMAGE=examples.IMAGE)
    template = pod(result.stdout)
    assert template["metadata"]["annotations"]["llm-shield.io/injected-config"] == "-/settings"


def test_settings_that_decide_nothing_are_not_looked_at() -> None:
    assert inject(DEPLOYMENT, *IN, LOG_LEVEL="chatty", WEBHOOK_PORT="x").exit_code == 0


def test_the_version_of_the_cluster() -> None:
    old = pod(inject(DEPLOYMENT, *IN, "--kubernetes-version", "1.30").stdout)
    assert [container["name"] for container in old["spec"]["containers"]] == [
        "web",
        "llm-shield-proxy",
    ]
    assert has_sidecar(pod(inject(DEPLOYMENT, *IN).stdout))


@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("Job", "batch/v1", {"spec": {"template": {"spec": {"containers": []}}}}),
        ("CronJob", "batch/v1", {"spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}}),
    ],
)
def test_the_warning_about_jobs_comes_though_a_template_has_no_owner(
    kind: str, version: str, spec: Any
) -> None:
    given = workload(kind, version, spec, namespace="shop")
    result = inject(given, *IN, "--kubernetes-version", "1.30")
    warning = f"{kind}/shop/it: warning: the sidecar is a plain container, so the Job will not"
    assert warning in result.stderr
    assert "warning" not in inject(given, *IN).stderr


def test_a_stale_outcome_label_of_a_template_is_replaced() -> None:
    template: Any = {
        "metadata": {
            "labels": {"llm-shield.io/injection-skipped": "port-conflict"},
            "ownerReferences": [{"kind": "ReplicaSet", "controller": True}],
        },
        "spec": {"containers": [{"name": "web"}]},
    }
    given = workload("Deployment", "apps/v1", {"spec": {"template": template}}, namespace="shop")
    found = pod(inject(given, *IN).stdout)
    assert found["metadata"]["labels"] == {"llm-shield.io/injected": "true"}
    assert found["metadata"]["ownerReferences"] == template["metadata"]["ownerReferences"]


# --- What it says ---------------------------------------------------------------------------------


def test_reasons_are_one_line_each_and_counted_at_the_end() -> None:
    taken = DEPLOYMENT.replace("# any", "\n        ports: [{containerPort: 8000}]").replace(
        "name: web, ", "name: taken, "
    )
    result = inject(f"{taken}---\n{DEPLOYMENT}", *IN)
    assert result.exit_code == SKIPPED
    assert result.stderr == (
        "Deployment/shop/taken: not injected (port-conflict): container web declares port 8000, "
        "where the sidecar listens: give ShieldSidecarConfig shop/shield another spec.port\n"
        "1 injected, 1 skipped (port-conflict), 0 untouched\n"
    )


def test_an_invalid_config_is_a_reason_to_skip(folder: Path) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(examples.config(image="tag-alone:1")))
    result = inject(DEPLOYMENT, *IN)
    assert result.exit_code == SKIPPED
    assert "(invalid-sidecar-config): ShieldSidecarConfig shop/shield is invalid: " in result.stderr


def test_pods_that_would_be_refused_are_left_as_they_are(folder: Path) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(examples.config(namespace="other")))
    result = inject(DEPLOYMENT, *IN, UNINJECTED_POD_POLICY="Deny")
    assert (result.exit_code, result.stdout) == (SKIPPED, DEPLOYMENT)
    assert result.stderr.startswith("Deployment/shop/web: refused (no-sidecar-config): ")


def test_a_difference_instead_of_the_manifests() -> None:
    asks = DEPLOYMENT.replace("web:1   # any\n", "web:1   # any\n        args: [a]\n")
    result = inject(f"{CONFIG_MAP}---\n{asks}", *IN, "--diff")
    lines = result.stdout.splitlines()
    assert lines[:3] == ["--- standard input", "+++ standard input", "@@ -15,3 +15,81 @@"]
    assert not any(line.startswith("-") for line in lines[2:])
    assert inject(CONFIG_MAP, "--diff").stdout == ""


@pytest.mark.parametrize(("no_colour", "is_coloured"), [("", True), ("1", False)])
def test_a_difference_is_coloured_on_a_terminal(
    folder: Path, no_colour: str, is_coloured: bool
) -> None:
    (folder / "web.yaml").write_text(DEPLOYMENT)
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).with_name("kubectl-shield")), "inject", "--diff"]
    subprocess.run(
        [*command, "-f", "web.yaml", "-c", "config.yaml", *IN],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "NO_COLOR": no_colour},
        check=True,
    )
    os.close(theirs)
    with io.FileIO(ours) as terminal:
        written = terminal.read(4096) or b""
    assert (b"\x1b[32m+" in written) is is_coloured
    assert b"+++ web.yaml" in written


# --- What is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        (("-f", "gone.yaml"), "", "gone.yaml cannot be read: No such file or directory"),
        (("-f", "empty"), "", "empty has no files that end in .json, .yaml, .yml; -R reads the"),
        (("-f", "-"), "a: [", "standard input: document 1, line 1: is not YAML: "),
        (("-f", "-"), "a: 1\n---\nb:\n\t- 1", "standard input: document 2, line 4: is not YAML: "),
        (("-f", "-"), "\x00\x01\x7fELF", "standard input: document 1, line 1: is not YAML: "),
        (("-f", "-"), b"\xff\xfe", "standard input: document 1, line 1: is not text in UTF-8"),
        (("-f", "-", "-c", "gone"), "", "gone cannot be read: No such file or directory"),
        (("-f", "-", "-c", "pod.yaml"), "", "pod.yaml holds no ShieldSidecarConfig, which -c"),
        (("-f", "-", "--namespace-labels", "a"), "", "--namespace-labels has 'a', which is not"),
        (("-f", "-", "--kubernetes-version", "x"), "", "--kubernetes-version: 'x' is not a Kuber"),
        (("-f", "-", "--from-cluster"), "", "no credentials for an API server: "),
        (
            ("-f", "-"),
            DEPLOYMENT.replace("web, n", "web, labels: {llm-shield.io/inject: true}, n"),
            "standard input: document 1, line 4: llm-shield.io/inject has a value that is no text",
        ),
        (
            ("-f", "-"),
            f"a: 1\n---\n{DEPLOYMENT}        image: twice\n",
            "standard input: document 2, line 13: key 'image' is there twice: remove one",
        ),
    ],
)
@pytest.mark.parametrize("command", ["inject", "uninject"])
def test_bad_input_is_one_sentence_and_nothing_comes_out(
    command: str, arguments: tuple[str, ...], given: str, message: str, folder: Path
) -> None:
    (folder / "empty").mkdir()
    (folder / "pod.yaml").write_text(yaml.safe_dump(examples.pod()))
    result = run(command, *arguments, given=given)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1


def test_bad_settings_are_all_named() -> None:
    result = inject("", K8S_SIDECAR_IMAGE="tag:1", UNINJECTED_POD_POLICY="x")
    assert result.exit_code == 1
    assert [line.partition(" is ")[0] for line in result.stderr.splitlines()] == [
        "error: K8S_SIDECAR_IMAGE",
        "error: UNINJECTED_POD_POLICY",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": [], "spec": "x"},
        {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [None, 1, {"args": 1}]}},
        {"apiVersion": "v1", "kind": "PodList", "items": [None, {}, {"metadata": {"name": 1}}]},
        {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"metadata": 1}}},
    ],
)
def test_what_is_no_proper_workload_ends_without_a_traceback(given: Any) -> None:
    for command in ("inject", "uninject"):
        result = run(command, "-f", "-", "-c", "config.yaml", "-n", "shop", *IN,
                     given=yaml.safe_dump(given))  # fmt: skip
        assert result.exit_code in (0, SKIPPED)


# --- And back -------------------------------------------------------------------------------------


def test_there_and_back_again() -> None:
    before = f"{NAMESPACE}---\n{CONFIG_MAP}---\n{DEPLOYMENT}"
    result = run("uninject", "-f", "-", "-c", "config.yaml", given=inject(before).stdout)
    assert result.exit_code == 0
    assert result.stdout == before
    assert result.stderr == "1 uninjected, 0 untouched\n"


WIRING: Any = {"application": {"env": [{"name": "A", "value": "1"}]}}


def test_without_the_config_the_wiring_stays_and_is_told_of(folder: Path) -> None:
    (folder / "config.yaml").write_text(yaml.safe_dump(examples.config(**WIRING)))
    injected = inject(f"{DEPLOYMENT}---\n{DEPLOYMENT.replace('web, ', 'other, ')}", *IN).stdout
    result = run("uninject", "-f", "-", given=injected)
    found = next(iter(yaml.safe_load_all(result.stdout)))["spec"]["template"]
    assert found["spec"]["containers"][0]["env"] == WIRING["application"]["env"]
    assert "metadata" not in found
    assert result.stderr == (
        "Deployment/shop/web and 1 more: warning: what ShieldSidecarConfig shop/shield set on the "
        "application, if anything, stays: give that config with -c\n"
        "2 uninjected, 0 untouched\n"
    )


def test_a_config_that_has_changed_since_is_told_of(folder: Path) -> None:
    injected = inject(DEPLOYMENT, *IN).stdout
    (folder / "config.yaml").write_text(yaml.safe_dump(examples.config(**WIRING)))
    result = run("uninject", "-f", "-", "-c", "config.yaml", given=injected)
    assert "warning: ShieldSidecarConfig shop/shield has changed since" in result.stderr


@pytest.mark.parametrize("command", ["inject", "uninject"])
def test_help_has_an_example(command: str) -> None:
    result = run(command, "--help")
    assert "Example: kubectl " in result.stdout
