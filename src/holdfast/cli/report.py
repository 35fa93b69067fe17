"""Where a run stands: for scripts as one JSON object, for people with the way to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from holdfast.cli.screen import say, status_text, visible
from holdfast.cli.shell import CANCELLED, OK, WAITS_FOR_PERSON, WAITS_FOR_RESUME
from holdfast.core.forms.shapes import dump_form
from holdfast.core.plan.draft import iso
from holdfast.core.plan.state import PlanState
from holdfast.instances import task_statuses
from holdfast.journal.port import QuestionRow
from holdfast.model.interaction import InteractionRequest
from holdfast.model.plan import PlanInstanceStatus
from holdfast.runtime.views import request_of

SHORTEST_PREFIX = 8


EXITS: Mapping[str, int] = {
    PlanInstanceStatus.ERROR: WAITS_FOR_RESUME,
    PlanInstanceStatus.PAUSE: WAITS_FOR_PERSON,
    PlanInstanceStatus.CANCELLING: CANCELLED,
    PlanInstanceStatus.CANCELLED: CANCELLED,
}


def exit_code(status: str) -> int:
    """What a run's status means to whoever started the command."""
    return EXITS.get(status, OK)


def standing_json(state: PlanState, questions: Sequence[QuestionRow] = ()) -> dict[str, Any]:
    context = state.main_task.context
    return {
        "status": state.status.value,
        "instance_id": state.run_id,
        "plan_id": state.plan_id,
        "tasks": task_statuses(state),
        "error_info": context.get("error_info"),
        "failed_listener_id": context.get("failed_listener_id"),
        "verification": dict(state.verification),
        "questions": [question_json(row) for row in questions],
    }


def question_json(row: QuestionRow) -> dict[str, Any]:
    request = request_of(row)
    return {
        "question_id": row.question_id,
        "instance_id": row.run_id,
        "type": row.type,
        "title": row.title,
        "message": request.message,
        "details": request.details,
        "context": dict(request.context),
        "options": [option_json(request, one.option_id) for one in request.options],
        "fields": dump_form(request.form),
        "opened_at": iso(row.opened_at),
        "deadline": None if row.deadline is None else iso(row.deadline),
    }


def option_json(request: InteractionRequest, option_id: str) -> dict[str, Any]:
    option = next(one for one in request.options if one.option_id == option_id)
    return {
        "option_id": option.option_id,
        "label": option.label,
        "dangerous": option.is_dangerous,
        "requires_input": option.requires_input,
    }


def short_ids(question_ids: Sequence[str]) -> dict[str, str]:
    """For each id a prefix that names only it."""
    length = SHORTEST_PREFIX
    while len({one[:length] for one in question_ids}) < len(set(question_ids)):
        length += 1
    return {one: one[:length] for one in question_ids}


def say_standing(state: PlanState, questions: Sequence[QuestionRow], options: str = "") -> None:
    """Where it stands, why, and how to go on; `options` are repeated in the commands shown."""
    say(Text.assemble(f"{state.run_id} is ", status_text(state.status.value)))
    error = state.main_task.context.get("error_info")
    if state.status is PlanInstanceStatus.ERROR and isinstance(error, dict):
        say(f"  {visible(error.get('message', ''))}")
    for row in questions:
        say(f"  waits for: {visible(row.title)}")
    for command in next_steps(state, questions, options):
        say(f"  {command}")


def next_steps(state: PlanState, questions: Sequence[QuestionRow], options: str = "") -> list[str]:
    run_id = state.run_id
    short = short_ids([row.question_id for row in questions])
    answers = [f"to answer: holdfast answer {one}{options}" for one in short.values()]
    match state.status:
        case PlanInstanceStatus.ERROR:
            return [*answers, f"to try again: holdfast resume {run_id}{options}"]
        case PlanInstanceStatus.PAUSE:
            return answers
        case PlanInstanceStatus.RUNNING | PlanInstanceStatus.CONTINUE:
            return [f"to go on: holdfast continue {run_id}{options}"]
        case PlanInstanceStatus.DONE if state.verification:
            checks = [verdict.replace("_", " ") for verdict in state.verification.values()]
            return [f"outcome: {', '.join(sorted(set(checks)))} ({len(checks)} checks)"]
        case _:
            return []
