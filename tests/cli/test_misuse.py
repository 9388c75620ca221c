"""What the plugin says when it is not used, or cannot answer, as it is meant to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import examples
from shield_operator.cli import style

PROGRAM = Path(sys.executable).with_name("kubectl-shield")
POD = yaml.safe_dump({**examples.pod(), "metadata": {"name": "web"}})


def run(
    *arguments: str, stdin: str | None = "", **options: object
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [PROGRAM, *arguments],
        input=stdin,
        text=True,
        check=False,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ["PATH"]},
        **({"stdout": subprocess.PIPE} | options),
    )


@pytest.mark.parametrize(
    "arguments",
    [("inject",), ("inject", "web.yaml"), ("nothing",), ("--nothing",), ("status", "--nothing")],
)
def test_a_misuse_ends_with_one_as_kubectls_does(arguments: tuple[str, ...]) -> None:
    ended = run(*arguments)
    assert ended.returncode == 1
    assert "Error: " in ended.stderr


@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        (">/dev/full", "cannot write the answer: No space left on device"),
        (">&-", "standard output is closed"),
        ("<&-", "standard input is closed"),
    ],
)
def test_an_answer_that_cannot_be_given_is_one_sentence(redirection: str, said: str) -> None:
    command = f"{PROGRAM} inject -f {'/dev/stdin' if '>' in redirection else '-'} {redirection}"
    ended = subprocess.run(  # noqa: S602  # a shell's redirections
        command, shell=True, input=POD, text=True, check=False, stderr=subprocess.PIPE
    )
    assert ended.returncode == 1
    assert f"error: {said}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("a b=c", "is not KEY=VALUE"),
        ("a=c d!", "is not KEY=VALUE"),
        ("llm-shield.io/inject = enabled", "is not KEY=VALUE"),
        ("a=b,a=c", "has a twice"),
    ],
)
def test_labels_that_no_namespace_could_have_are_refused(labels: str, said: str) -> None:
    ended = run("inject", "-f", "-", "--namespace-labels", labels, stdin=POD)
    assert ended.returncode == 1
    assert said in ended.stderr


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"apiVersion": "llm-shield.io/v9"}, "of another version than llm-shield.io/v1alpha1"),
        ({"metadata": {}}, "without a valid metadata.name"),
        ({"metadata": {"name": "Not A Name"}}, "without a valid metadata.name"),
    ],
)
def test_a_config_that_no_api_server_would_have_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**examples.config(), **change}))
    ended = run("inject", "-f", "-", "-c", str(file), stdin=POD)
    assert ended.returncode == 1
    assert f"{file}: document 1, line 1: " in ended.stderr
    assert said in ended.stderr


def test_comments_that_are_lost_are_told_of() -> None:
    pod = yaml.safe_load(POD)
    config = yaml.safe_dump(
        examples.config(namespace="default", application={"args": [{"name": "--seed"}]})
    )
    labels = ["--namespace-labels", "llm-shield.io/inject=true"]
    text = f"{POD}    args: ['a', 'b',]  # kept?\n---\n{config}"
    assert pod["spec"]["containers"][0]["name"] == "web"
    ended = run("inject", "-f", "-", *labels, stdin=text)
    assert ended.returncode == 0, ended.stderr
    lost = "# kept?" not in ended.stdout
    assert ("comments are lost" in ended.stderr) == lost


def test_colours_take_no_room_in_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "is_coloured", lambda: True)
    coloured = style.padded(f"  {style.mark('✓')} label", 17)
    assert coloured.endswith("label" + " " * 8)
