"""An injector on Flask, as the tutorials write one: the patch by hand, in base64.

gunicorn --certfile tls.crt --keyfile tls.key --bind 127.0.0.1:8443 webhook:app
"""

import base64
import json
import os
from pathlib import Path
from typing import Any

from flask import Flask, Response, jsonify, request

app = Flask(__name__)
injection = json.loads(Path(os.environ["INJECTION"]).read_text(encoding="utf-8"))


@app.route("/mutate", methods=["POST"])  # type: ignore[untyped-decorator]  # not installed here
def mutate() -> Response:
    """Answer one review."""
    review = request.get_json()
    pod = review["request"]["object"]
    answer: dict[str, Any] = {"uid": review["request"]["uid"], "allowed": True}
    if patch := operations(pod):
        answer["patchType"] = "JSONPatch"
        answer["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    return jsonify(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
    )


def operations(pod: dict[str, Any]) -> list[Any]:
    """The JSON Patch that adds the sidecar."""
    spec, metadata = pod["spec"], pod["metadata"]
    present = spec.get("initContainers", [])
    if any(container["name"] == "llm-shield-proxy" for container in present):
        return []
    patch = []
    for field in ("labels", "annotations"):
        merged = {**metadata.get(field, {}), **injection[field]}
        patch.append({"op": "add", "path": f"/metadata/{field}", "value": merged})
    for field in ("initContainers", "volumes"):
        merged_list = [*injection[field], *spec.get(field, [])]
        patch.append({"op": "add", "path": f"/spec/{field}", "value": merged_list})
    return patch
