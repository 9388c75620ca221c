"""What a namespace's owner does and gets, with the real proxy, a provider and an application."""

from collections.abc import Iterator
from typing import Any

import pytest

from e2e import objects
from e2e.cluster import Cluster
from e2e.objects import PROMPT, PROVIDER_KEY, SECRETS, VIRTUAL_KEY
from e2e.shop import Shop
from support import eventually

PROXY = "llm-shield-proxy"
ASK = ("python3", "/usr/local/bin/client.py")


@pytest.fixture(scope="module")
def own(shop: Shop) -> Iterator[Shop]:
    """The namespace, with what these tests make in it removed in the end."""
    yield shop
    shop.clear()


def is_shielded(shop: Shop, pod: Any) -> None:
    """The pod runs with a sidecar that is ready, and confined."""
    (sidecar,) = [one for one in pod["spec"]["initContainers"] if one["name"] == PROXY]
    security = sidecar["securityContext"]
    assert security["readOnlyRootFilesystem"]
    assert security["runAsNonRoot"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    (status,) = [one for one in pod["status"]["initContainerStatuses"] if one["name"] == PROXY]
    assert status["ready"], status
    assert status["restartCount"] == 0
    assert pod["metadata"]["annotations"]["llm-shield.io/injected-config"] == f"{shop.name}/shield"


@pytest.mark.parametrize(
    ("kind", "more"),
    [("Deployment", {}), ("StatefulSet", {"serviceName": "none"}), ("DaemonSet", {})],
)
def test_the_pods_of_a_workload_are_shielded(own: Shop, kind: str, more: Any) -> None:
    """What an application says to 127.0.0.1 reaches the provider masked, and is answered."""
    name = kind.lower()
    own.apply(objects.workload(kind, name, objects.template(name), **more))
    own.cluster.rolled_out(f"{kind}/{name}", own.name)
    (pod,) = own.cluster.pods(own.name, f"app={name}")
    is_shielded(own, pod)

    before = len(own.provider.requests())
    answer = own.exec(f"{kind}/{name}", *ASK, PROMPT)
    assert answer.startswith("You said: Write to ")
    (request,) = own.provider.requests()[before:]
    (message,) = request["body"]["messages"]
    assert message["content"].startswith("Write to ")
    assert not [secret for secret in SECRETS if secret in str(request)]
    assert request["authorization"] == f"Bearer {PROVIDER_KEY}"
    assert VIRTUAL_KEY not in str(request)
    for secret in SECRETS[:2]:
        assert secret in answer, "the application gets its own words back"


def test_a_wrong_key_is_refused(own: Shop) -> None:
    own.apply(objects.workload("Deployment", "guest", objects.template("guest")))
    own.cluster.rolled_out("deployment/guest", own.name)
    done = own.cluster.run(
        "exec", "deployment/guest", f"--namespace={own.name}", "--", *ASK, PROMPT, "wrong"
    )
    assert done.returncode != 0
    assert "HTTP 401" in done.stderr


def test_a_job_completes(own: Shop) -> None:
    own.apply(objects.job("ask", objects.template("ask", PROMPT)))
    own.cluster.wait("condition=Complete", "job/ask", own.name)
    assert own.cluster.kubectl("logs", "job/ask", f"--namespace={own.name}").startswith("You said")
    (pod,) = own.cluster.pods(own.name, "app=ask")
    assert pod["status"]["phase"] == "Succeeded"


def test_a_cron_jobs_job_completes(own: Shop) -> None:
    template = objects.job("nightly", objects.template("nightly", PROMPT))["spec"]
    own.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": template}},
        }
    )
    own.cluster.kubectl("create", "job", "now", "--from=cronjob/nightly", f"--namespace={own.name}")
    own.cluster.wait("condition=Complete", "job/now", own.name)
    assert own.cluster.kubectl("logs", "job/now", f"--namespace={own.name}").startswith("You said")


def test_the_applications_own_init_container_reaches_the_proxy(own: Shop) -> None:
    """A migration that asks the model at the start; the proxy answers before it begins."""
    first = objects.container(PROMPT, name="migrate")
    first["env"].append({"name": "OPENAI_BASE_URL", "value": "http://127.0.0.1:8000/v1"})
    template = objects.template("migrating", initContainers=[first])
    own.apply(objects.workload("Deployment", "migrating", template))
    own.cluster.rolled_out("deployment/migrating", own.name)
    (pod,) = own.cluster.pods(own.name, "app=migrating")
    assert [one["name"] for one in pod["spec"]["initContainers"]] == [PROXY, "migrate"]
    logs = own.cluster.kubectl(
        "logs", pod["metadata"]["name"], "--container=migrate", f"--namespace={own.name}"
    )
    assert logs.startswith("You said")
    (status,) = [one for one in pod["status"]["initContainerStatuses"] if one["name"] == "migrate"]
    assert status["restartCount"] == 0


def test_the_config_is_ready_and_counts_its_pods(own: Shop) -> None:
    own.apply(objects.workload("Deployment", "counted", objects.template("counted")))
    own.cluster.rolled_out("deployment/counted", own.name)

    def shown() -> list[str] | None:
        _, line = own.cluster.kubectl("get", "ssc", f"--namespace={own.name}").splitlines()
        words = line.split()
        return words if words[4] != "0" else None

    name, ready, reason, secret, _, outdated, _ = eventually(shown, timeout=90)
    assert (name, ready, reason, secret) == ("shield", "True", "Accepted", "shield-keys")
    assert outdated == "0"


def test_without_a_secret_one_is_warned_and_gets_401(cluster: Cluster, shop: Shop) -> None:
    keyless = Shop(cluster, shop.provider, "keyless", secretName=None)
    pod = objects.template("bare") | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = "bare"
    printed = keyless.apply(pod)
    assert "Warning: " in printed
    assert "it will answer every request with 401" in printed
    cluster.wait("condition=Ready", "pod/bare", keyless.name)
    done = cluster.run("exec", "bare", f"--namespace={keyless.name}", "--", *ASK, PROMPT)
    assert "HTTP 401" in done.stderr


def test_a_pod_whose_secret_is_missing_waits_for_it(cluster: Cluster, shop: Shop) -> None:
    late = Shop(cluster, shop.provider, "late", secretName="late-keys")
    late.apply(objects.workload("Deployment", "patient", objects.template("patient")))

    def waiting() -> bool:
        text = cluster.kubectl("get", "pods", f"--namespace={late.name}")
        return "CreateContainerConfigError" in text

    eventually(waiting, timeout=60)
    late.apply(objects.keys("late-keys"))
    cluster.rolled_out("deployment/patient", late.name)
    assert late.exec("deployment/patient", *ASK, PROMPT).startswith("You said")


def test_a_restricted_namespace_takes_the_pods(cluster: Cluster, shop: Shop) -> None:
    """Pod Security admits the sidecar and the stage, and a payload's files are there, read-only."""
    payload = {
        "image": shop.connector,
        "command": ["cp", "-r", "/files/.", "/opt/connector"],
        "mountPath": "/opt/connector",
        "pathEnv": "PYTHONPATH",
    }
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    strict = Shop(cluster, shop.provider, "strict", labels=labels, payload=payload)
    strict.apply(objects.workload("Deployment", "web", objects.template("web")))
    cluster.rolled_out("deployment/web", strict.name)
    (pod,) = cluster.pods(strict.name, "app=web")
    is_shielded(strict, pod)
    read = ("python3", "-c", "import connector; print(connector.GREETING)")
    assert strict.exec("deployment/web", *read).strip() == "staged from an image"
    done = cluster.run(
        "exec", "deployment/web", f"--namespace={strict.name}", "--", "touch", "/opt/connector/x"
    )
    assert "Read-only file system" in done.stderr
    assert strict.exec("deployment/web", *ASK, PROMPT).startswith("You said")
