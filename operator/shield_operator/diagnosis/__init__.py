"""Whether an installation is healthy, or will go well: facts in, findings out.

permissions  what the operator, and whoever installs it, must be allowed
facts        what was found in a cluster
finding      one result
trust        certificates, compared
reaching     whether the webhook can be reached
checks       all of it: `check`
preflight    before an installation: `check_before`
"""

from shield_operator.diagnosis.checks import check, is_called_by_url
from shield_operator.diagnosis.facts import (
    Answer,
    Connection,
    Facts,
    FactsBefore,
    Probe,
    Served,
    Unseen,
)
from shield_operator.diagnosis.finding import Finding, Mark, as_json
from shield_operator.diagnosis.permissions import (
    GRANT,
    Permission,
    installers_permissions,
    operators_permissions,
)
from shield_operator.diagnosis.preflight import check_before

__all__ = [
    "GRANT",
    "Answer",
    "Connection",
    "Facts",
    "FactsBefore",
    "Finding",
    "Mark",
    "Permission",
    "Probe",
    "Served",
    "Unseen",
    "as_json",
    "check",
    "check_before",
    "installers_permissions",
    "is_called_by_url",
    "operators_permissions",
]
