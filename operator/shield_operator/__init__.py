"""The LLM Shield Operator: puts the ``llm-shield-proxy`` sidecar into pods that ask for it.

One pod's way through this package::

    API server -> admission -> decision.decide -> plan (from the index) -> patch -> answer

``main`` lists everything that runs; the modules named in ``tests/unit/test_architecture.py`` are
pure: they import neither Kopf nor a Kubernetes client, and read no clock and no environment.
"""

from importlib.metadata import version

__version__ = version("llm-shield-operator")
