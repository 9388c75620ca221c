"""`python -m crd`: write crds/shieldsidecarconfigs.yaml, with `hack/` on PYTHONPATH.

The core types come from a local API server, started for it, or from another one's OpenAPI:

    kubectl get --raw /openapi/v3/api/v1 > core.json
    python -m crd core.json
"""

import argparse
import json
import sys
from pathlib import Path

from controlplane import ControlPlane
from crd.generate import GENERATED, UnboundedError, render
from crd.openapi import UnknownTypeError


def main() -> int:
    """Generate and write the definition; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m crd", description="Write the CustomResourceDefinition."
    )
    parser.add_argument(
        "openapi",
        nargs="*",
        type=Path,
        help="an OpenAPI v3 document as an API server serves it at /openapi/v3/api/v1; "
        "without any, that of a local API server",
    )
    parser.add_argument("-o", "--output", type=Path, default=GENERATED, help="default: %(default)s")
    arguments = parser.parse_args()
    texts = [path.read_text(encoding="utf-8") for path in arguments.openapi]
    if not texts:
        with ControlPlane.start() as control_plane:
            texts = [control_plane.kubectl("get", "--raw", "/openapi/v3/api/v1").stdout]
    documents = [json.loads(text) for text in texts]
    try:
        text = render(documents)
    except (UnboundedError, UnknownTypeError) as error:
        print(f"crd: {error}", file=sys.stderr)
        return 1
    arguments.output.write_text(text, encoding="utf-8")
    print(f"wrote {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
