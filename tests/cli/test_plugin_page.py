"""The plugin page's transcript of commands about manifests is what they print."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "plugin_page"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "plugin.md"


def test_the_transcript_is_real(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path, dirs_exist_ok=True)
    section = PAGE.read_text(encoding="utf-8").partition("## Manifests before")[2]
    found = re.search(r"```console\n(.+?)```", section, re.DOTALL)
    assert found
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    steps = found[1].removeprefix("$ ").split("\n$ ")
    assert len(steps) == 3
    for step in steps:
        command, *expected = step.splitlines()
        result = subprocess.run(
            [
                shutil.which("bash") or "sh",
                "-c",
                command.replace("kubectl shield", "kubectl-shield"),
            ],
            cwd=tmp_path,
            env={"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert [*result.stderr.splitlines(), *result.stdout.splitlines()] == expected
