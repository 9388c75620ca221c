"""`kubectl shield inject` of a large file: the whole command, without Python's own start.

    python benchmarks/manifests.py

The peer of each row is the first one: what matters is that a document costs the same among many.
"""

import statistics
import time
from typing import Final

import examples
from shield_operator.documents import documents, unified
from shield_operator.rehearsal import Scene, injected

SIZES: Final = (1, 50, 500)
"""Deployments in the file."""
ROUNDS: Final = 3
DEPLOYMENT: Final = """\
---
# number {0}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{0}
  namespace: shop
spec:
  selector:
    matchLabels: {{app: web-{0}}}
  template:
    metadata:
      labels:
        app: web-{0}
    spec:
      containers:
      - name: web
        image: example.com/web:{0}   # the application
        args: ["--port", "8080"]
        env:
        - name: MODE
          value: "yes"
"""


def main() -> None:
    """Print the table."""
    labels = {"llm-shield.io/inject": "enabled"}
    scene = Scene(examples.index(examples.config()), labels_of_all=labels)
    print(f"{'documents':>9} {'seconds':>8} {'ms each':>8} {'with --diff':>12}")
    for size in SIZES:
        text = "".join(DEPLOYMENT.format(number) for number in range(size))
        plain, with_difference = [], []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            found = [injected(document, scene) for document in documents("-", text.encode())]
            after = "".join(text for text, _ in found)
            plain.append(time.perf_counter() - started)
            assert after.count("llm-shield.io/injected-config") == size
            assert sum(1 for _ in unified("-", text, after)) > size
            with_difference.append(time.perf_counter() - started)
        spent = statistics.median(plain)
        row = (size, spent, spent / size * 1000, statistics.median(with_difference))
        print("{:9} {:8.2f} {:8.2f} {:12.2f}".format(*row))


if __name__ == "__main__":
    main()
