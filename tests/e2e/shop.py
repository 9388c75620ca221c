"""A namespace whose owner uses the shield, and the provider that its applications talk to."""

import json
from typing import Any

from e2e import objects
from e2e.cluster import Cluster
from e2e.images import CONNECTOR, PROXY
from support import make_namespace


class Provider:
    """The stand-in provider."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        cluster.apply(*objects.provider())
        cluster.rolled_out("deployment/provider", "provider")
        service = cluster.get("service", "provider", "--namespace=provider")
        self.url = f"http://{service['spec']['clusterIP']}:8080"

    def requests(self) -> list[Any]:
        """What has reached it so far."""
        path = "/api/v1/namespaces/provider/services/provider:8080/proxy/"
        found: list[Any] = json.loads(self._cluster.kubectl("get", "--raw", path))
        return found


class Shop:
    """A labelled namespace with a Secret and a config."""

    def __init__(
        self,
        cluster: Cluster,
        provider: Provider,
        name: str,
        *,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> None:
        self.cluster = cluster
        self.provider = provider
        self.name = name
        self.connector = cluster.node.images[CONNECTOR]
        make_namespace(
            cluster.control_plane, name, {"llm-shield.io/inject": "enabled", **(labels or {})}
        )
        image = cluster.node.images[PROXY]
        self.apply(objects.keys(), objects.config(image, provider.url, **spec))
        self.cluster.wait("jsonpath={.status.observedGeneration}=1", "ssc/shield", name)

    def apply(self, *documents: Any) -> str:
        """``kubectl apply`` in it: what it prints, warnings included."""
        for document in documents:
            document["metadata"]["namespace"] = self.name
        return self.cluster.apply(*documents)

    def exec(self, what: str, *command: str) -> str:
        """``kubectl exec``: what the command prints."""
        return self.cluster.kubectl("exec", what, f"--namespace={self.name}", "--", *command)

    def clear(self) -> None:
        """Delete its workloads, without waiting for their pods."""
        kinds = "deployments,statefulsets,daemonsets,jobs,cronjobs,pods"
        self.cluster.kubectl("delete", kinds, "--all", "--wait=false", f"--namespace={self.name}")
