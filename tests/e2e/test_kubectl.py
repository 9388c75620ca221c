"""What a user does with the pods of an application, sidecar or not."""

import json

from e2e import objects
from e2e.cluster import Cluster
from e2e.shop import Shop
from support import eventually

PROXY = "llm-shield-proxy"


def test_logs_and_exec_take_the_applications_container(shop: Shop) -> None:
    shop.apply(objects.workload("Deployment", "usual", objects.template("usual")))
    shop.cluster.rolled_out("deployment/usual", shop.name)

    def logged() -> bool:
        done = shop.cluster.run("logs", "deployment/usual", f"--namespace={shop.name}")
        assert "Defaulted container" not in done.stderr, "kubectl need not guess"
        return done.stdout == "waiting\n"

    eventually(logged)
    assert shop.exec("deployment/usual", "printenv", "OPENAI_API_KEY") == f"{objects.VIRTUAL_KEY}\n"
    sidecars = shop.cluster.kubectl(
        "logs", "deployment/usual", f"--container={PROXY}", f"--namespace={shop.name}"
    )
    assert "LLM-Shield Proxy" in sidecars


def test_the_sidecar_holds_no_token_and_the_application_no_provider_key(shop: Shop) -> None:
    shop.apply(objects.workload("Deployment", "apart", objects.template("apart")))
    shop.cluster.rolled_out("deployment/apart", shop.name)
    token = "/var/run/secrets/kubernetes.io/serviceaccount"
    assert shop.exec("deployment/apart", "ls", token).split() == ["ca.crt", "namespace", "token"]
    inside = ("deployment/apart", f"--container={PROXY}")
    listed = shop.cluster.kubectl(
        "exec", *inside, f"--namespace={shop.name}", "--", "ls", "-A", token
    )
    assert listed == ""
    assert objects.PROVIDER_KEY not in shop.exec("deployment/apart", "env")


def test_a_copy_for_debugging_has_one_sidecar_and_starts(shop: Shop) -> None:
    """``kubectl debug --copy-to``, with another command for the application."""
    shop.apply(objects.workload("Deployment", "broken", objects.template("broken")))
    shop.cluster.rolled_out("deployment/broken", shop.name)
    (pod,) = shop.cluster.pods(shop.name, "app=broken")
    shop.cluster.kubectl(
        "debug", pod["metadata"]["name"], "--copy-to=copy", "--container=app",
        f"--namespace={shop.name}", "--", "sleep", "600",
    )  # fmt: skip
    # kubectl's copies have no readiness probes, and so not the sidecar's: running is what counts.
    shop.cluster.wait("jsonpath={.status.phase}=Running", "pod/copy", shop.name)
    copy = shop.cluster.get("pod", "copy", f"--namespace={shop.name}")
    containers = [*copy["spec"]["initContainers"], *copy["spec"]["containers"]]
    assert [one["name"] for one in containers] == [PROXY, "app"]

    def answered() -> bool:
        done = shop.cluster.run(
            "exec", "copy", f"--namespace={shop.name}", "--",
            "python3", "/usr/local/bin/client.py", objects.PROMPT,
        )  # fmt: skip
        return done.stdout.startswith("You said")

    eventually(answered, timeout=60)


def test_a_debugging_container_comes_beside_the_sidecar(cluster: Cluster, shop: Shop) -> None:
    """``kubectl debug`` adds an ephemeral container, which no webhook of ours hears of."""
    shop.apply(objects.workload("Deployment", "looked-at", objects.template("looked-at")))
    cluster.rolled_out("deployment/looked-at", shop.name)
    (pod,) = cluster.pods(shop.name, "app=looked-at")
    name = pod["metadata"]["name"]
    image = pod["spec"]["containers"][0]["image"]
    cluster.kubectl(
        "debug", name, f"--image={image}", "--container=look", "--profile=restricted",
        f"--namespace={shop.name}",
    )  # fmt: skip

    def runs() -> bool:
        found = cluster.get("pod", name, f"--namespace={shop.name}")
        statuses = found["status"].get("ephemeralContainerStatuses", [])
        assert len(found["spec"]["initContainers"]) == 1, json.dumps(found["spec"])
        return any("running" in one["state"] for one in statuses)

    eventually(runs, timeout=60)
