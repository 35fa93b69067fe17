"""What came of an answer: the result of the listener that it was for.

The listener may have asked itself, or an agent that works for it, or an agent that works for
that one. The caller who answered waits until the listener is through, or until the next question
stands in its way.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from holdfast.core.agent.state import ReactState
from holdfast.core.plan.state import PlanState, refused, remedy
from holdfast.core.run.state import QuestionState, RunState
from holdfast.core.run.tables import StepStatus
from holdfast.forms.schemas import dump_form
from holdfast.i18n.message import joined, msg, term
from holdfast.journal.codec import decode
from holdfast.model import events as e
from holdfast.model.form import Form
from holdfast.model.recorded import Event
from holdfast.model.run import Parent, RunStatus
from holdfast.runtime.engine import Engine

Taken: TypeAlias = tuple[str, QuestionState, RunState]
"""An answer that was taken: the run, its question, and its state with the answer."""

_BUSY = (StepStatus.READY, StepStatus.RUNNING, StepStatus.BACKOFF, StepStatus.CONSULTING)
_STOPPED = (RunStatus.ERROR, RunStatus.CANCELLED)


async def result_of_answer(
    engine: Engine, run_id: str, question: QuestionState, answered: RunState
) -> dict[str, Any]:
    """What the listener made of the answer to `question` of the run `run_id`."""
    since = answered.questions[question.request.request_id].opened_seq
    step = Parent(run_id, question.step_id, question.firing)
    if isinstance(answered, PlanState):
        return await _of_listener(engine, step, since)
    return await _of_agent(engine, step)


async def _of_listener(engine: Engine, step: Parent, since: int = 0) -> dict[str, Any]:
    state = await engine.wait_for(step.run_id, lambda state: _rested(state, step))
    for record in await engine.journal.read(step.run_id, since):
        event = decode(record)
        if _step_of(event) == (step.step_id, step.firing):
            result = _result_of(event)
            if result is not None:
                return _with_remedy(result, state, step)
    return {"success": False, "error": msg("the instance is {status}", status=term(state.status))}


def _with_remedy(result: dict[str, Any], state: RunState, of: Parent) -> dict[str, Any]:
    """Where the run has failed because a value was refused: how to be asked for it again."""
    step = state.steps[of.step_id]
    names = refused(step) if state.status is RunStatus.ERROR and step.firing == of.firing else ()
    return {**result, "error": joined("; ", (result["error"], remedy(names)))} if names else result


async def _of_agent(engine: Engine, step: Parent) -> dict[str, Any]:
    """An agent's part is over with its turn; what it works for goes on with that."""
    state = await engine.wait_for(step.run_id, lambda state: _settled(state, step))
    assert isinstance(state, ReactState)
    if state.status is not RunStatus.DONE:
        return _halted(state)
    if state.parent is None:
        return {"success": True, "result": state.answer, "task_updates": []}
    above = await engine.state(state.parent.run_id)
    if isinstance(above, ReactState):
        return await _of_agent(engine, state.parent)
    return await _of_listener(engine, state.parent)


def _rested(state: RunState, of: Parent) -> bool:
    if state.status in _STOPPED:
        return True
    step = state.steps[of.step_id]
    return step.firing != of.firing or step.status not in _BUSY


def _settled(state: RunState, of: Parent) -> bool:
    """The turn is over, or the step is and others wait for people."""
    if state.status is RunStatus.DONE or state.status in _STOPPED:
        return True
    step = state.steps.get(of.step_id)
    return state.status is RunStatus.PAUSE and (step is None or step.status not in _BUSY)


def _halted(state: ReactState) -> dict[str, Any]:
    for question_id in sorted(state.open_questions):
        question = state.questions[question_id]
        if question.purpose == "missing":
            return _lacks(question.request.form)
    why = state.error or msg("{id} waits for another answer", id=state.run_id)
    if state.status is RunStatus.CANCELLED:
        why = msg("{id} was ended by {by}", id=state.run_id, by=state.cancelled_by)
    return {"success": False, "error": why, "task_updates": []}


def _result_of(event: Event) -> dict[str, Any] | None:
    match event:
        case e.ListenerSucceeded():
            moves = [{"task_id": m.task_id, "status": m.status.value} for m in event.moves]
            return {"success": True, "result": event.result, "task_updates": moves}
        case e.ListenerFailed():
            return {"success": False, "error": event.failure.message, "task_updates": []}
        case e.QuestionOpened(purpose="missing", request=request):
            return _lacks(request.form)
        case _:
            return None


def _lacks(form: Form) -> dict[str, Any]:
    """As the seed has it: the fields, and their names alone."""
    return {
        "success": False,
        "reason": "missing_params",
        "required_params": dump_form(form),
        "missing_params": [field.name for field in form.fields],
        "task_updates": [],
    }


def _step_of(event: Event) -> tuple[str | None, int | None]:
    """The step that an event speaks of, by whichever name, and its firing."""
    step_id = getattr(event, "step_id", None) or getattr(event, "listener_id", None)
    return step_id, getattr(event, "firing", None)
