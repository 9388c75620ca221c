"""What whoever makes a pod should know, although nothing stands in the way."""

from collections.abc import Iterator, Mapping

from shield_operator import names, pods
from shield_operator.decision.obstacles import config_of, reasons_not_to_work
from shield_operator.model import Json, SecretState
from shield_operator.plan import Plan
from shield_operator.selection import Selected
from shield_operator.text import one_line


def needed_secrets(pod: Json, plan: Plan) -> tuple[str, ...]:
    """The Secrets that this pod's sidecar waits for."""
    return plan.secrets(pods.keys_secret(pod, plan.secret_name)) if plan.sidecar else ()


def injection_warnings(
    pod: Json,
    namespace: str,
    plan: Plan,
    secrets: Mapping[str, SecretState],
    made_by: str | None = None,
) -> Iterator[str]:
    """What may go wrong with the pod once it has the sidecar."""
    if plan.sidecar is not None and pods.keys_secret(pod, plan.secret_name) is None:
        yield one_line(
            "no Secret is named for the sidecar, so it will answer every request with 401: "
            f"set spec.secretName of {config_of(plan)}"
        )
    for secret in needed_secrets(pod, plan):
        if secrets.get(secret) is SecretState.ABSENT:
            yield one_line(
                f"Secret {secret} is not in namespace {namespace}: the pod will wait until it is"
            )
    application = pods.application_container(pod, plan.wiring.container)
    if application is not None and plan.wiring.args and not application.get("args"):
        yield one_line(
            f"container {application.get('name')} sets no args, so those of {config_of(plan)} take "
            "the place of its image's CMD: repeat the image's CMD in the container's args"
        )
    maker = made_by or (pods.controller(pod) or {}).get("kind")
    is_plain = plan.sidecar is not None and not plan.native
    if is_plain and maker == "Job":
        yield one_line(
            "the sidecar is a plain container, so the Job will not complete: "
            f"label its pods {names.INJECT_LABEL}=false, or use a cluster with native sidecars"
        )


def doubts(pod: Json, mark: str, selected: Selected) -> Iterator[str]:
    """What is odd about a sidecar that came along with a template: another config's, or no use."""
    if not isinstance(selected, Plan):
        return
    what = "sidecar" if selected.sidecar is not None else "payload"
    config = mark.partition("@")[0]
    if selected.source != config:
        yield one_line(
            f"the pod brings a {what} of {names.KIND} {config} along, not of {selected.source}: "
            f"remove the {what} from the template"
        )
    for skip in reasons_not_to_work(pod, selected):
        yield one_line(f"the {what} that the pod brings along may not work: {skip.sentence}")


def kept_labels(pod: Json, wanted: Mapping[str, str | None]) -> Iterator[str]:
    """Outcome labels that came with the pod and will stay wrong; None means unwanted."""
    if not pods.outcome_labels_are_frozen(pod):
        return
    found = pods.labels(pod)
    for label, value in wanted.items():
        if label in found and found[label] != value:
            yield one_line(
                f"label {label} is the operator's to write, and stays as it is because the pod's "
                "controller may look for it: remove it from the template"
            )
