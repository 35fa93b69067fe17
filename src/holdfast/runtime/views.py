"""What the projections say of a run: its row for lists, its questions for inboxes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pydantic import TypeAdapter

from holdfast.core.plan.follow_up import goes_on_by_itself
from holdfast.core.plan.planner import error_info
from holdfast.core.plan.state import PlanState, QuestionState
from holdfast.journal.port import Notice, QuestionRow, RunRow
from holdfast.model import events as e
from holdfast.model.interaction import InteractionRequest
from holdfast.model.plan import PlanInstanceStatus

_REQUEST = TypeAdapter(InteractionRequest)

Standing = tuple[PlanInstanceStatus, bool, float | None]

_TOLD = frozenset(
    {
        PlanInstanceStatus.RUNNING,
        PlanInstanceStatus.PAUSE,
        PlanInstanceStatus.ERROR,
        PlanInstanceStatus.DONE,
        PlanInstanceStatus.CANCELLED,
    }
)


def run_row(state: PlanState) -> RunRow:
    return RunRow(
        run_id=state.run_id,
        kind="plan",
        name=state.plan_id,
        definition=state.plan.digest,
        status=state.status.value,
        active=goes_on_by_itself(state),
        wake_at=min(state.timers.values(), default=None),
        root_id=state.root_id,
        parent_id=state.parent.run_id if state.parent else None,
        created_at=state.created_at,
        updated_at=state.updated_at,
        title=state.plan.plan.name,
        summary=_summary(state),
    )


def standing(state: PlanState) -> Standing:
    """What must be in the row at once; all else of it may lag behind a little."""
    timers = state.timers
    wake_at = min(timers.values()) if len(timers) else None
    return state.status, goes_on_by_itself(state), wake_at


def _summary(state: PlanState) -> str:
    return json.dumps(
        {
            "done": state.done_tasks,
            "tasks": len(state.plan.plan.tasks),
            "waiting": len(state.open_questions) + state.paused_children,
            "failed": list(state.failed),
        }
    )


def question_rows(
    state: PlanState, timed: Sequence[tuple[float, e.Event]]
) -> Sequence[QuestionRow]:
    """The rows of the questions that these events opened or closed."""
    touched = [event for _, event in timed if isinstance(event, _QUESTIONS)]
    if not touched:
        return ()
    ids = dict.fromkeys(one for event in touched for one in _question_ids(event))
    return [_question_row(state, state.questions[one]) for one in ids]


_QUESTIONS = (e.QuestionOpened, e.QuestionAnswered, e.QuestionExpired, e.QuestionWithdrawn)


def _question_ids(event: e.Event) -> Iterator[str]:
    match event:
        case e.QuestionOpened(request=request):
            yield request.request_id
        case e.QuestionAnswered() | e.QuestionExpired() | e.QuestionWithdrawn():
            yield event.question_id
        case _:
            return


def _question_row(state: PlanState, question: QuestionState) -> QuestionRow:
    return QuestionRow(
        question_id=question.request.request_id,
        run_id=state.run_id,
        root_id=state.root_id,
        status=question.status.value,
        type=question.request.type.value,
        title=question.request.title,
        role=question.request.role,
        opened_at=question.opened_at,
        deadline=question.deadline,
        closed_at=question.closed_at,
        body=_REQUEST.dump_json(question.request, exclude_defaults=True).decode(),
    )


def request_of(row: QuestionRow) -> InteractionRequest:
    return _REQUEST.validate_json(row.body)


def notices(before: PlanInstanceStatus, state: PlanState) -> tuple[Notice, ...]:
    """The word that a child run leaves for its parent when its status has changed."""
    parent = state.parent
    if parent is None or state.status is before or state.status not in _TOLD:
        return ()
    if before is PlanInstanceStatus.NOT_STARTED and state.status is PlanInstanceStatus.RUNNING:
        return ()  # the parent's own start has just said so
    payload = {
        "listener_id": parent.listener_id,
        "firing": parent.firing,
        "status": state.status.value,
        "message": _error_message(state),
        "result": _result(state),
    }
    body = json.dumps(payload, ensure_ascii=False)
    return (Notice(parent.run_id, state.run_id, state.version, body),)


def _error_message(state: PlanState) -> str:
    if state.status is not PlanInstanceStatus.ERROR:
        return ""
    return str(error_info(state.main_task).get("message", ""))


def _result(state: PlanState) -> object:
    return dict(state.main_task.context) if state.status is PlanInstanceStatus.DONE else None
