"""When each alert must fire: the series that provoke it, in promtool's notation.

https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/#series
"""

from typing import Final

Series = dict[str, str]

_UP: Final = 'up{job="llm-shield-operator",instance="%s"}'
_HOOK: Final = 'name="pod.inject.llm-shield.io",operation="CREATE",type="admit"'

HEALTHY: Final[Series] = {
    _UP % "a": "1x3000",
    _UP % "b": "1x3000",
    f'apiserver_admission_webhook_rejection_count{{{_HOOK},error_type="calling_webhook_error"}}': (
        "3x3000"
    ),
    f'apiserver_admission_webhook_rejection_count{{{_HOOK},error_type="no_error"}}': "0+1x3000",
    f"apiserver_admission_webhook_fail_open_count{{{_HOOK}}}": "2x3000",
    'llm_shield_admissions_total{outcome="injected",reason=""}': "0+10x3000",
    'llm_shield_admissions_total{outcome="skipped",reason="port-conflict"}': "0+10x3000",
    'llm_shield_admissions_total{outcome="failed",reason=""}': "7x3000",
    'llm_shield_admissions_total{outcome="unreadable",reason=""}': "7x3000",
    'llm_shield_admissions_total{outcome="unauthorized",reason=""}': "7x3000",
    'llm_shield_admission_duration_seconds_bucket{le="0.001"}': "0+60x3000",
    'llm_shield_admission_duration_seconds_bucket{le="1.0"}': "0+60x3000",
    'llm_shield_admission_duration_seconds_bucket{le="+Inf"}': "0+60x3000",
    "llm_shield_certificate_not_after_seconds": "7776000x3000",
    'llm_shield_leading{instance="a"}': "1x3000",
    'llm_shield_leading{instance="b"}': "0x3000",
    'llm_shield_watch_age_seconds{instance="a"}': "59x3000",
    'llm_shield_loop_failures_total{loop="publishing"}': "0x100 5x2900",
    'llm_shield_skipped_pods{reason="port-conflict"}': "0x3000",
    'llm_shield_configs{status="True",reason="Accepted"}': "4x3000",
    'llm_shield_configs{status="False",reason="Invalid"}': "0x3000",
    'llm_shield_configs{status="Unknown",reason="Unknown"}': "1x3000",
    'llm_shield_pods{config="shop/shield",state="injected"}': "9x3000",
    'llm_shield_pods{config="shop/shield",state="outdated"}': "0x3000",
}
"""A minute a value, for two days: nothing may fire."""

PROVOKED: Final[dict[str, Series]] = {
    "LLMShieldOperatorDown": {_UP % "a": "0x3000", _UP % "b": "0x3000"},
    "LLMShieldOperatorNotRedundant": {_UP % "a": "0x3000"},
    "LLMShieldWebhookUnreachable": {
        f"apiserver_admission_webhook_rejection_count{{{_HOOK},"
        'error_type="calling_webhook_error"}': "3+1x3000",
    },
    "LLMShieldPodsStartBare": {
        f"apiserver_admission_webhook_fail_open_count{{{_HOOK}}}": "2+1x3000"
    },
    "LLMShieldAdmissionsFail": {
        'llm_shield_admissions_total{outcome="failed",reason=""}': "7+1x3000"
    },
    "LLMShieldUnauthorized": {
        'llm_shield_admissions_total{outcome="unauthorized",reason=""}': "7+1x3000"
    },
    "LLMShieldAdmissionsSlow": {
        'llm_shield_admission_duration_seconds_bucket{le="0.001"}': "0+50x3000",
        'llm_shield_admission_duration_seconds_bucket{le="1.0"}': "0+50x3000",
        'llm_shield_admission_duration_seconds_bucket{le="2.5"}': "0+60x3000",
    },
    "LLMShieldCertificateEnds": {"llm_shield_certificate_not_after_seconds": "1200000x3000"},
    "LLMShieldNoLeader": {'llm_shield_leading{instance="a"}': "0x3000"},
    "LLMShieldWatchDeaf": {'llm_shield_watch_age_seconds{instance="a"}': "0+60x3000"},
    "LLMShieldLoopFails": {'llm_shield_loop_failures_total{loop="publishing"}': "0+1x3000"},
    "LLMShieldPodsWithoutSidecar": {'llm_shield_skipped_pods{reason="port-conflict"}': "2x3000"},
    "LLMShieldConfigNotReady": {'llm_shield_configs{status="False",reason="Invalid"}': "1x3000"},
    "LLMShieldPodsOutdated": {'llm_shield_pods{config="shop/shield",state="outdated"}': "9x3000"},
}
"""What is otherwise than in `HEALTHY`, for each alert to fire, and no other."""
