"""What a conversation's consumer sees of its records: the seed's events, with the seed's data."""

from __future__ import annotations

from typing import Any

from holdfast.core.conversation.briefing import summary
from holdfast.core.conversation.state import ConversationState
from holdfast.core.interactions.wire import request_to_wire
from holdfast.journal.port import QuestionRow
from holdfast.model import conversation_events as v
from holdfast.model import events as e
from holdfast.model.conversation import EngineEvent, EngineState
from holdfast.model.conversation import EngineEventType as T
from holdfast.model.rows import request_of
from holdfast.model.values import Json

Told = tuple[T, dict[str, Json]] | None


def narrate(state: ConversationState, seq: int, at: float, event: Any) -> EngineEvent | None:
    """The event that a record is for the consumer, if any; `state` is the one after it."""
    told = _tell(state, event)
    return None if told is None else EngineEvent(told[0], told[1], seq, at)


def asked(row: QuestionRow) -> EngineEvent:
    """A question that is open, told once more or of a run below: it has no record here."""
    return EngineEvent(T.INTERACTION, request_to_wire(request_of(row)), at=row.opened_at)


def _tell(state: ConversationState, event: Any) -> Told:
    match event:
        case v.PhaseChanged(before=before, after=after):
            return T.STATE_CHANGED, {"from": before.value, "to": after.value}
        case v.ContextReceived(rules=rules, knowledge=knowledge, tools=tools):
            return T.CONTEXT_RECEIVED, {
                "rules_count": len(rules),
                "tools_count": len(tools),
                "knowledge_count": len(knowledge),
            }
        case v.GoalDecomposed(tasks=tasks):
            listed = [{"id": one.id, "description": one.description} for one in tasks]
            return T.TASK_DECOMPOSED, {"task_count": len(tasks), "tasks": listed}
        case v.EnginePaused():
            return T.ENGINE_PAUSED, {"progress": state.progress}
        case v.EngineResumed():
            return T.ENGINE_RESUMED, {"progress": state.progress}
        case v.EngineCompleted():
            counts = {"total_tasks": state.total, "completed_tasks": state.completed}
            skipped = {"skipped_tasks": state.skipped} if state.skipped else {}
            return T.ENGINE_COMPLETED, {**counts, **skipped}
        case v.AnswerWritten(text=text):
            return T.ANSWER, {"answer": text or summary(state)}
        case v.EngineFailed():
            return T.ENGINE_ERROR, _error(state, event)
        case e.CancelRequested():
            return _cancelled(state)
        case e.QuestionOpened(request=request):
            return T.INTERACTION, request_to_wire(request)
        case _:
            return _tell_task(state, event)


def _tell_task(state: ConversationState, event: Any) -> Told:
    match event:
        case v.TaskScheduled(step_id=step_id):
            task = state.tasks[step_id]
            return T.TASK_SCHEDULED, {"task_id": task.id, "priority": task.priority}
        case v.TaskStarted(step_id=step_id, attempt=1):
            return T.TASK_STARTED, {"task_id": state.tasks[step_id].id}
        case v.TaskCompleted(step_id=step_id):
            task = state.tasks[step_id]
            data = {"task_id": task.id, "result": task.result, "progress": state.progress}
            skipped = {"skipped": True, "reason": task.skipped} if task.skipped else {}
            return T.TASK_COMPLETED, {**data, **skipped}
        case v.TaskFailed(step_id=step_id, error=error):
            return T.TASK_FAILED, {"task_id": state.tasks[step_id].id, "error": error}
        case e.AttemptFailed(step_id=step_id) if step_id in state.tasks:
            data = {
                "task_id": state.tasks[step_id].id,
                "error": event.failure.message,
                "retry_at": event.retry_at,
            }
            return T.TASK_RETRYING, data
        case _:
            return None


def _cancelled(state: ConversationState) -> Told:
    """The whole run was cancelled from outside: for the turn under way, an error like any."""
    phase = state.left if state.phase is EngineState.PAUSED else state.phase
    if phase in (EngineState.COMPLETED, EngineState.ERROR, EngineState.IDLE):
        return None
    return T.ENGINE_ERROR, {"error": "cancelled", "phase": phase.value}


def _error(state: ConversationState, event: v.EngineFailed) -> dict[str, Json]:
    told: dict[str, Json] = {"error": event.error, "phase": event.phase.value}
    task = state.tasks.get(event.step_id)
    return told if task is None else {**told, "task_id": task.id}
