"""``kubectl shield version``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from shield_operator import __version__, names, raw
from shield_operator.cli.connecting import cluster_options, with_cluster

if TYPE_CHECKING:
    from shield_operator.cluster import Viewer
    from shield_operator.model import Json


@click.command()
@click.option("--client", is_flag=True, help="This program's version only: no cluster is asked.")
@click.option("--operator-namespace", metavar="NAME", help="Where the operator is installed.")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to answer."
)
@cluster_options
def version(
    operator_namespace: str | None,
    output: str,
    kubeconfig: str | None,
    context: str | None,
    *,
    client: bool,
) -> None:
    """Print this program's version, the operator's, and the cluster's.

    \b
    Example:
      kubectl shield version --client
    """  # noqa: D301  # click's mark for lines to be kept
    found: dict[str, str | None] = {"client": __version__}
    if output == "text":  # at once: it needs no cluster, and there may be none
        click.echo(f"kubectl shield  {__version__}")
    if not client:

        async def work(viewer: Viewer) -> dict[str, str | None]:
            return await _of_cluster(viewer, operator_namespace or names.OPERATOR_NAMESPACE)

        found |= with_cluster(kubeconfig, context, work)
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    elif not client:
        click.echo(f"operator        {found['operator'] or found['why']}")
        click.echo(f"Kubernetes      {found['kubernetes']}")


async def _of_cluster(viewer: Viewer, namespace: str) -> dict[str, str | None]:
    from shield_operator import kinds  # noqa: PLC0415
    from shield_operator.cluster import Forbidden  # noqa: PLC0415

    server = await viewer.server_version()
    kubernetes = str(raw.mapping(server).get("gitVersion"))
    why = None
    try:
        deployment = await viewer.find(kinds.DEPLOYMENT, names.OPERATOR, namespace)
    except Forbidden as error:
        deployment, why = None, f"unknown: {error}"
    operator = operator_version(deployment)
    if operator is None and why is None:
        why = f"unknown: there is no Deployment {namespace}/{names.OPERATOR}"
    return {"operator": operator, "why": why, "kubernetes": kubernetes}


def operator_version(deployment: Json) -> str | None:
    """The version of an operator's Deployment: by its label, else by its image; None without it."""
    if deployment is None:
        return None
    label = raw.strings(deployment, "metadata", "labels").get("app.kubernetes.io/version")
    containers = raw.items(deployment, "spec", "template", "spec", "containers")
    image = str(containers[0].get("image") or "") if containers else ""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    return label or tag or image or "unknown"
