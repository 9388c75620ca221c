"""Renders ``manifests/install.yaml`` from ``manifests/install`` (kustomize), comments included.

And copies into the Helm chart the manifests that it installs as they are.

``kustomize build`` drops comments, and with them the reason beside each RBAC rule, which whoever
installs the operator should read. ``manifests/install`` and below only list files, so putting these
files one after the other says the same; a test compares the two.
"""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
KUSTOMIZATION = ROOT / "manifests" / "install"
INSTALL = ROOT / "manifests" / "install.yaml"

CHART = ROOT / "manifests" / "chart"

_IN_THE_CHART = (
    "crds/shieldsidecarconfigs.yaml",
    "manifests/base/aggregatedroles.yaml",
    "manifests/base/poddisruptionbudget.yaml",
    "manifests/base/rbac.yaml",
    "manifests/base/resourcequota.yaml",
    "manifests/base/service.yaml",
    "manifests/components/enforce/binding.yaml",
    "manifests/components/enforce/digests.yaml",
    "manifests/components/enforce/policy.yaml",
    "manifests/components/monitoring/llm-shield-operator.json",
    "manifests/components/monitoring/prometheusrule.yaml",
    "manifests/components/monitoring/service.yaml",
    "manifests/components/monitoring/servicemonitor.yaml",
    "manifests/components/network-policy/networkpolicy.yaml",
)
"""A chart sees its own folder alone. The Deployment, which values change, is a template there."""

_HEADER = """\
# The LLM Shield Operator, whole: kubectl apply -f install.yaml
# Rendered from manifests/base and crds by `make manifests`: edit those.
"""


def listed_files(kustomization: Path) -> list[Path]:
    """The files that a kustomization lists, and those of the kustomizations that it lists."""
    content = yaml.safe_load((kustomization / "kustomization.yaml").read_text(encoding="utf-8"))
    files: list[Path] = []
    for resource in content["resources"]:
        path = (kustomization / resource).resolve()
        files += listed_files(path) if path.is_dir() else [path]
    return files


def render() -> str:
    """What ``manifests/install.yaml`` must hold."""
    texts = [path.read_text(encoding="utf-8").strip() for path in listed_files(KUSTOMIZATION)]
    return _HEADER + "\n---\n".join(texts) + "\n"


def chart_files() -> dict[Path, str]:
    """What the chart's folder ``files`` must hold: each file's text, by its path."""
    return {
        CHART / "files" / name.removeprefix("manifests/"): (ROOT / name).read_text(encoding="utf-8")
        for name in _IN_THE_CHART
    }


if __name__ == "__main__":
    for path, text in {INSTALL: render(), **chart_files()}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
