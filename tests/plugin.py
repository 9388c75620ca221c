"""``kubectl shield`` in tests: as a person with a kubeconfig, in this process."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from shield_operator.cli import kubectl_shield


def shield(
    *arguments: str, kubeconfig: Path, columns: int | None = None, **environment: str
) -> Result:
    """Run a command; what it raises, but for its exit, is raised here too."""
    variables = {"KUBECONFIG": str(kubeconfig), "COLUMNS": str(columns) if columns else None}
    return CliRunner().invoke(
        kubectl_shield, arguments, env={**variables, **environment}, catch_exceptions=False
    )


def shield_json(*arguments: str, kubeconfig: Path) -> Any:
    """What a command says with ``-o json``, whatever its exit status is."""
    return json.loads(shield(*arguments, "-o", "json", kubeconfig=kubeconfig).stdout)
