"""An injector on Kopf as it comes: its own server, and a handler that fills in the patch.

kopf run --standalone --all-namespaces webhook.py
"""

import json
import os
from pathlib import Path
from typing import Any

import kopf

injection = json.loads(Path(os.environ["INJECTION"]).read_text(encoding="utf-8"))


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Serve with a certificate that the API server is told of by others."""
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        port=int(os.environ["PORT"]),
        certfile=os.environ["TLS_CERT"],
        pkeyfile=os.environ["TLS_KEY"],
    )


@kopf.on.mutate("v1", "pods", id="mutate", operations=["CREATE"])
async def mutate(spec: kopf.Spec, meta: kopf.Meta, patch: kopf.Patch, **_: Any) -> None:
    """Answer one review."""
    present = spec.get("initContainers", [])
    if any(container["name"] == "llm-shield-proxy" for container in present):
        return
    for field in ("labels", "annotations"):
        patch.metadata[field] = {**meta.get(field, {}), **injection[field]}
    for field in ("initContainers", "volumes"):
        patch.spec[field] = [*injection[field], *spec.get(field, [])]
