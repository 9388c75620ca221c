"""The images of these tests: the operator's, the real proxy's, and three of our own."""

from pathlib import Path

import image
from manifests import ROOT
from nodes.images import Image

OPERATOR = f"docker.io/library/{image.name()}"
PROXY = "registry.example.com/llm-shield-proxy:1.7.0"
PROVIDER, CLIENT, CONNECTOR = (
    f"registry.example.com/{name}:1" for name in ("provider", "client", "connector")
)
"""A stand-in LLM provider, a small application, and files for one."""

_CONTEXTS = Path(__file__).parent / "contexts"
ALL = (
    Image(OPERATOR, ROOT),
    Image(PROXY, _CONTEXTS / "proxy"),
    Image(PROVIDER, _CONTEXTS / "provider"),
    Image(CLIENT, _CONTEXTS / "client"),
    Image(CONNECTOR, _CONTEXTS / "connector"),
)
