"""Why a pod gets the sidecar, or does not: for a file, a template, or a pod that runs.

saw        what each rule looks at, in words
steps      the decision, rule by rule: `explain`
stamps     what a pod tells of its own admission
hindsight  why a pod is bare although it asks
telling    all of it as text, and for programs
"""

from shield_operator.explanation.hindsight import Cause, Certainty, why_bare
from shield_operator.explanation.stamps import Stamps, Standing, present_fingerprint
from shield_operator.explanation.steps import Explanation, Step, Verdict, explain
from shield_operator.explanation.telling import MARKS, Live, Subject, lines, subject_json

__all__ = [
    "MARKS",
    "Cause",
    "Certainty",
    "Explanation",
    "Live",
    "Stamps",
    "Standing",
    "Step",
    "Subject",
    "Verdict",
    "explain",
    "lines",
    "present_fingerprint",
    "subject_json",
    "why_bare",
]
