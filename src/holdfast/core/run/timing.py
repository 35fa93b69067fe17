"""Timers come due: each does what its name says, in the order of time.

A timer is a name and a moment in the state: `retry:L002`, `question:…`, `remind:…`,
`escalate:…` and `cancel`. Time that jumps back fires nothing, for the moment stays; time
that jumps ahead fires each once, for what fires is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.core.run.builder import DecisionBuilder
from holdfast.core.run.moves import CANCEL_TIMER
from holdfast.core.run.tables import StepStatus
from holdfast.model.events import QuestionEscalated, QuestionReminded, StepWoken

D = TypeVar("D", bound=DecisionBuilder[Any, Any])


def tick(
    builder: DecisionBuilder[Any, Any], expire: Callable[[str], None], end_grace: Callable[[], None]
) -> None:
    """Fire every timer that is due; what a question's expiry means is the machine's."""
    due = sorted((at, name) for name, at in builder.state.timers.items() if at <= builder.now)
    for at, name in due:
        if builder.state.timers.get(name) != at:
            continue
        kind, _, subject = name.partition(":")
        match kind:
            case "retry":
                builder.emit(StepWoken(subject, builder.step(subject).firing))
            case "remind":
                builder.emit(QuestionReminded(subject, _reminders_due(builder, subject)))
            case "escalate":
                role = builder.state.questions[subject].request.escalate_to
                builder.emit(QuestionEscalated(subject, role))
            case "question":
                expire(subject)
            case _:
                assert name == CANCEL_TIMER
                end_grace()


def end_grace(builder: D, ask_unknown: Callable[[D, str, str], None]) -> None:
    """What has not ended by now is not waited for; whoever cancelled it is told so."""
    for step_id, step in sorted(builder.state.steps.items()):
        if step.status is StepStatus.RUNNING:
            ask_unknown(builder, step_id, "it had not ended when the grace was over")


def _reminders_due(builder: DecisionBuilder[Any, Any], question_id: str) -> int:
    """How many reminders should have gone out by now; those missed while nobody ran are one."""
    question = builder.state.questions[question_id]
    due = (question.opened_at + after for after in question.request.reminders)
    return sum(at <= builder.now for at in due)
