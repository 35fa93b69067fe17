"""Timers come due: each does what its name says, in the order of time.

A timer is a name and a moment in the state: `retry:L002`, `question:…`, `remind:…`,
`escalate:…` and `cancel`. Time that jumps back fires nothing, for the moment stays; time
that jumps ahead fires each once, for what fires is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.core.run.builder import RunDraft
from holdfast.core.run.moves import CANCEL_TIMER
from holdfast.core.run.tables import StepStatus
from holdfast.model.events import QuestionEscalated, QuestionReminded, StepWoken

D = TypeVar("D", bound=RunDraft[Any, Any])


def tick(
    draft: RunDraft[Any, Any], expire: Callable[[str], None], end_grace: Callable[[], None]
) -> None:
    """Fire every timer that is due; what a question's expiry means is the machine's."""
    due = sorted((at, name) for name, at in draft.state.timers.items() if at <= draft.now)
    for at, name in due:
        if draft.state.timers.get(name) != at:
            continue
        kind, _, subject = name.partition(":")
        match kind:
            case "retry":
                draft.emit(StepWoken(subject, draft.step(subject).firing))
            case "remind":
                draft.emit(QuestionReminded(subject, _reminders_due(draft, subject)))
            case "escalate":
                role = draft.state.questions[subject].request.escalate_to
                draft.emit(QuestionEscalated(subject, role))
            case "question":
                expire(subject)
            case _:
                assert name == CANCEL_TIMER
                end_grace()


def end_grace(draft: D, ask_unknown: Callable[[D, str, str], None]) -> None:
    """What has not ended by now is not waited for; whoever cancelled it is told so."""
    for step_id, step in sorted(draft.state.steps.items()):
        if step.status is StepStatus.RUNNING:
            ask_unknown(draft, step_id, "it had not ended when the grace was over")


def _reminders_due(draft: RunDraft[Any, Any], question_id: str) -> int:
    """How many reminders should have gone out by now; those missed while nobody ran are one."""
    question = draft.state.questions[question_id]
    due = (question.opened_at + after for after in question.request.reminders)
    return sum(at <= draft.now for at in due)
