"""Renders ``manifests/install.yaml`` from ``manifests/install`` (kustomize), comments included.

``kustomize build`` drops comments, and with them the reason beside each RBAC rule, which whoever
installs the operator should read. ``manifests/install`` and below only list files, so putting these
files one after the other says the same; a test compares the two.
"""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
KUSTOMIZATION = ROOT / "manifests" / "install"
INSTALL = ROOT / "manifests" / "install.yaml"

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


if __name__ == "__main__":
    INSTALL.write_text(render(), encoding="utf-8")
    print(f"wrote {INSTALL.relative_to(ROOT)}")
