"""What an operator is told of at once: each is raised once, when it comes true."""

from __future__ import annotations

from holdfast.i18n.message import msg
from holdfast.model.record import TextEnum, record


class AlertKind(TextEnum):
    """What has come true."""

    OUTAGE = "outage"
    BUDGET_SPENT = "budget_spent"
    LESSON_RETIRED = "lesson_retired"
    THINKING_FAILED = "thinking_failed"
    SLOW_CALL = "slow_call"


@record
class Alert:
    """What an operator should know of at once. `about` is the tool, the lesson or the case,
    `run_id` the run in which it came true."""

    kind: AlertKind
    message: str
    about: str
    at: float
    run_id: str = ""


def outage(tool: str, runs: int, run_id: str, at: float) -> Alert:
    text = msg(
        "{tool} is out: {n} runs have failed alike within a minute; one goes on trying",
        tool=tool,
        n=runs,
    )
    return Alert(AlertKind.OUTAGE, text, tool, at, run_id)


def budget_spent(tool: str, run_id: str, at: float) -> Alert:
    text = msg("the retries of {tool} are used up: others are put off, one a minute", tool=tool)
    return Alert(AlertKind.BUDGET_SPENT, text, tool, at, run_id)


def lesson_retired(lesson_id: str, plan_id: str, run_id: str, at: float) -> Alert:
    text = msg(
        "a lesson of plan {plan} did not help any more, and is retired: {id}",
        plan=plan_id,
        id=lesson_id,
    )
    return Alert(AlertKind.LESSON_RETIRED, text, lesson_id, at, run_id)


def thinking_failed(case_id: str, reason: str, run_id: str, at: float) -> Alert:
    text = msg(
        "nothing came of asking about {case} of {run}: {reason}",
        case=case_id,
        run=run_id,
        reason=reason,
    )
    return Alert(AlertKind.THINKING_FAILED, text, case_id, at, run_id)


def slow_call(tool: str, seconds: float, usual: float, run_id: str, at: float) -> Alert:
    text = msg(
        "a call of {tool} took {seconds:.0f} s; nineteen of twenty take less than {usual:.3g} s",
        tool=tool,
        seconds=seconds,
        usual=usual,
    )
    return Alert(AlertKind.SLOW_CALL, text, tool, at, run_id)
