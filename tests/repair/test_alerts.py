"""What an operator is told of, in words."""

from __future__ import annotations

import pytest

from holdfast.i18n.message import Message
from holdfast.repair import alerts
from holdfast.repair.alerts import Alert, AlertKind

NOW = 1_800_000_000.0
RUN = "inst_000001"


@pytest.mark.parametrize(
    ("alert", "kind", "about", "text"),
    [
        (
            alerts.outage("grant_access", 5, RUN, NOW),
            AlertKind.OUTAGE,
            "grant_access",
            "grant_access is out: 5 runs have failed alike within a minute; one goes on trying",
        ),
        (
            alerts.budget_spent("grant_access", RUN, NOW),
            AlertKind.BUDGET_SPENT,
            "grant_access",
            "the retries of grant_access are used up: others are put off, one a minute",
        ),
        (
            alerts.lesson_retired("l9", "onboarding", RUN, NOW),
            AlertKind.LESSON_RETIRED,
            "l9",
            "a lesson of plan onboarding did not help any more, and is retired: l9",
        ),
        (
            alerts.thinking_failed("case_1", "no answer", RUN, NOW),
            AlertKind.THINKING_FAILED,
            "case_1",
            "nothing came of asking about case_1 of inst_000001: no answer",
        ),
        (
            alerts.slow_call("grant_access", 91.4, 0.512, RUN, NOW),
            AlertKind.SLOW_CALL,
            "grant_access",
            "a call of grant_access took 91 s; nineteen of twenty take less than 0.512 s",
        ),
    ],
)
def test_an_alert_says_what_it_is_about(
    alert: Alert, kind: AlertKind, about: str, text: str
) -> None:
    assert (alert.kind, alert.about, alert.message) == (kind, about, text)
    assert (alert.at, alert.run_id) == (NOW, RUN)
    assert isinstance(alert.message, Message)
