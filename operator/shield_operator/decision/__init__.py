"""What to do with a pod: `decide` is the one place where that is settled.

The webhook and the command line call it with the same arguments and cannot disagree. Its truth
table, from which its tests are generated (``tests/unit/test_decision.py``); "-" stands for nothing
special, the first column that is not "-" decides:

| namespace | pod label | in the pod            | configs   | outcome                    |
|-----------|-----------|-----------------------|-----------|----------------------------|
| in        | -         | -                     | one       | inject                     |
| in        | in        | -                     | one       | inject                     |
| in        | other     | -                     | one       | inject                     |
| in        | out       | -                     | one       | ignore                     |
| neither   | in        | -                     | one       | inject                     |
| neither   | -         | -                     | one       | ignore                     |
| neither   | other     | -                     | one       | ignore                     |
| neither   | out       | -                     | one       | ignore                     |
| out       | in        | -                     | one       | ignore                     |
| out       | -         | -                     | one       | ignore                     |
| excluded  | in        | -                     | one       | ignore                     |
| unknown   | -         | -                     | one       | inject                     |
| unknown   | in        | -                     | one       | inject                     |
| unknown   | out       | -                     | one       | ignore                     |
| in        | -         | our sidecar           | one       | ignore                     |
| in        | -         | our plain sidecar     | one       | ignore                     |
| in        | -         | our sidecar           | none      | ignore                     |
| in        | -         | our stage             | staged    | ignore                     |
| in        | -         | forged stamps         | one       | inject                     |
| in        | -         | bad annotation        | one       | invalid-annotation         |
| in        | -         | bad annotation        | none      | invalid-annotation         |
| in        | -         | -                     | none      | no-sidecar-config          |
| in        | -         | -                     | elsewhere | no-sidecar-config          |
| in        | -         | names another config  | one       | no-sidecar-config          |
| in        | -         | names the config      | two       | inject                     |
| in        | -         | -                     | two       | ambiguous-sidecar-config   |
| in        | -         | -                     | invalid   | invalid-sidecar-config     |
| in        | -         | -                     | default   | inject                     |
| in        | -         | -                     | settings  | inject                     |
| in        | -         | foreign container     | one       | container-name-conflict    |
| in        | -         | foreign init          | one       | container-name-conflict    |
| in        | -         | forged mark           | one       | container-name-conflict    |
| in        | -         | mark that ends early  | one       | container-name-conflict    |
| in        | -         | foreign container     | none      | no-sidecar-config          |
| in        | -         | foreign stage         | payload   | container-name-conflict    |
| in        | -         | foreign stage         | staged    | container-name-conflict    |
| in        | -         | our stage             | payload   | container-name-conflict    |
| in        | -         | stage, not init       | payload   | container-name-conflict    |
| in        | -         | foreign stage         | one       | inject                     |
| in        | -         | foreign container     | rules     | inject                     |
| in        | -         | foreign volume        | one       | volume-name-conflict       |
| in        | -         | foreign volume        | rules     | inject                     |
| in        | -         | our volume            | one       | inject                     |
| in        | -         | port taken            | one       | port-conflict              |
| in        | -         | port taken by init    | one       | port-conflict              |
| in        | -         | port taken, UDP       | one       | inject                     |
| in        | -         | port taken            | rules     | inject                     |
| in        | -         | names no container    | one       | target-container-not-found |
| in        | -         | names our container   | one       | target-container-not-found |
| in        | -         | -                     | no target | target-container-not-found |
| in        | -         | names a container     | no target | inject                     |
| in        | -         | -                     | wiring    | inject                     |
| in        | -         | our sidecar           | wiring    | ignore                     |
| in        | -         | sets command          | wiring    | command-override           |
| in        | -         | sets command          | one       | inject                     |
| in        | -         | too little for a pod  | one       | pod-resources              |
| in        | -         | too little for a pod  | payload   | pod-resources              |
| in        | -         | too little for a pod  | rules     | inject                     |
| in        | -         | enough for a pod      | one       | inject                     |
| in        | -         | host network          | one       | host-network               |
| in        | -         | host network          | rules     | inject                     |
| in        | -         | windows               | one       | unsupported-os             |
| in        | -         | windows               | payload   | unsupported-os             |
| in        | -         | windows               | rules     | inject                     |
| in        | -         | windows node selector | one       | unsupported-os             |

("payload" is a config with a payload, "staged" the same under ``mode: None``, and "rules" one of
``mode: None`` with scheduling rules alone; "wiring" has ``application.args``, and "no target" names
a container that is not there.)
"""

from collections.abc import Mapping
from dataclasses import replace

from shield_operator import names, pods
from shield_operator.decision.obstacles import resolve
from shield_operator.decision.outcome import Decision, Ignore, Inject, Skip, SkipReason
from shield_operator.decision.warnings import (
    doubts,
    injection_warnings,
    kept_labels,
    needed_secrets,
)
from shield_operator.model import Json, SecretState
from shield_operator.plan import Plan
from shield_operator.selection import ConfigIndex, Selected, is_opted_in, select
from shield_operator.settings import Settings

__all__ = [
    "Decision",
    "Ignore",
    "Inject",
    "Skip",
    "SkipReason",
    "decide",
    "mark_of",
    "needed_secrets",
]


def decide(
    pod: Json,
    namespace: str,
    namespace_labels: Mapping[str, str] | None,
    secrets: Mapping[str, SecretState],
    configs: ConfigIndex,
    settings: Settings,
    *,
    made_by: str | None = None,
) -> Decision:
    """Decide about one pod; see the table above. Never raises, whatever the pod's JSON holds.

    The warnings of what comes back are lines for whoever makes the pod.

    Args:
        pod: the pod as JSON, or a workload's template.
        namespace: the pod's namespace, which a pod under admission does not name itself.
        namespace_labels: None where the webhooks' selectors have looked at them.
        secrets: what is known of Secrets in that namespace, by name; the rest is unknown.
        configs: every config of the cluster.
        settings: the operator's.
        made_by: the kind of the controller that will make pods of this template, such as ``Job``;
            a pod itself names its own.
    """
    if not is_opted_in(pods.labels(pod), namespace, namespace_labels, settings):
        return Ignore()
    selected = select(pods.annotations(pod), pods.labels(pod), namespace, configs)
    mark = mark_of(pod, selected)
    if mark is not None:
        return Ignore(tuple(doubts(pod, mark, selected)))
    match resolve(pod, namespace, selected):
        case Skip() as skip:
            kept = {names.INJECTION_SKIPPED_LABEL: skip.reason.value, names.INJECTED_LABEL: None}
            return replace(skip, warnings=(*skip.warnings, *kept_labels(pod, kept)))
        case Plan() as plan:
            kept = {names.INJECTED_LABEL: names.INJECTED_VALUE, names.INJECTION_SKIPPED_LABEL: None}
            warnings = injection_warnings(pod, namespace, plan, secrets, made_by)
            return Inject(plan, (*warnings, *kept_labels(pod, kept)))


def mark_of(pod: Json, selected: Selected) -> str | None:
    """What tells that the pod has what this would give it, and of which origin; None where not."""
    mark = pods.mark(pod)
    if mark is None and isinstance(selected, Plan) and selected.sidecar is None:
        return pods.stage_mark(pod)
    return mark
