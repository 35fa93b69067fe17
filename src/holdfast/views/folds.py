"""Folds: a run's state as a `RunView`, one function per machine.

Lists are made of rows instead (`records`), and so is a question's view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.core.agent.state import THINK, ReactState
from holdfast.core.approval import rule_to_json
from holdfast.core.conversation import phases
from holdfast.core.conversation.briefing import final_answer, last_tasks
from holdfast.core.conversation.state import CONFIRM, ConversationState
from holdfast.core.conversation.tables import PAUSABLE, THINKING
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState, StepState, retry_timer, wait_timer
from holdfast.drawing.graph import step_standing, task_standing
from holdfast.drawing.tasks import standing
from holdfast.model.conversation import EngineState
from holdfast.model.run import KINDS, RunKind, RunStatus, StepStatus
from holdfast.model.values import Json
from holdfast.runs.handles import instance_context, resumed_listeners
from holdfast.runtime.machines import machine_of, run_row
from holdfast.views.cases import case_view, patch_views
from holdfast.views.records import (
    ConversationTask,
    ConversationView,
    PlanView,
    RunView,
    SessionView,
    StepView,
    TaskView,
    Trace,
    line_fields,
)

_OVER: Final = frozenset({RunStatus.DONE, RunStatus.CANCELLED})
_STUCK: Final = frozenset({RunStatus.PAUSE, RunStatus.ERROR})


def run_view(state: RunState, now: float, *, parts: bool = True) -> RunView:
    """`now` is when the reader asks: what a resume would run depends on it."""
    machine = machine_of(state)
    view = RunView(
        **line_fields(run_row(state)),
        version=state.version,
        started_by=state.started_by,
        error=machine.error(state) if state.status is RunStatus.ERROR else "",
        cancelled_by=state.cancelled_by,
        failed=state.failed,
        open_questions=len(state.open_questions),
        held=state.held,
        rests=rests(state),
        over=is_over(KINDS[machine.kind], state.status),
    )
    return _with_parts(view, state, now) if parts else view


def _with_parts(view: RunView, state: RunState, now: float) -> RunView:
    match state:
        case PlanState():
            return replace(view, plan=plan_view(state, now))
        case ReactState():
            return replace(view, session=session_view(state))
        case ConversationState():
            return replace(view, conversation=conversation_view(state))
        case _:
            raise AssertionError(f"{state.run_id} is of no known kind")


def is_over(kind: RunKind, status: RunStatus) -> bool:
    """Nothing can move this run any more; a chat or conversation that is done may be told more."""
    return status is RunStatus.CANCELLED or (kind is RunKind.PLAN and status is RunStatus.DONE)


def plan_view(state: PlanState, now: float) -> PlanView:
    main = state.main_task.context
    return PlanView(
        plan_id=state.plan_id,
        digest=state.plan.digest,
        prompt=state.prompt,
        main_task_id=state.plan.main,
        context=instance_context(state),
        tasks=tuple(_task(state, one.task_id, one.name) for one in state.plan.plan.tasks),
        steps=tuple(_listener(state, one) for one in sorted(state.steps)),
        done=state.done_tasks,
        retries=sum(step.retries for step in state.steps.values()),
        error_info=_mapping(main.get("error_info")),
        failed_listener_id=_text(main.get("failed_listener_id")),
        resume_runs=tuple(resumed_listeners(state, now)),
        verification=dict(state.verification),
        pinned=(state.origin or state.plan).digest,
        cases=tuple(case_view(state, one) for one in state.repair.in_order()),
        patches=tuple(patch_views(state)),
    )


def _task(state: PlanState, task_id: str, name: str) -> TaskView:
    task = state.task(task_id)
    condition, words = task_standing(state, task_id)
    trace = tuple(Trace(one.status, one.reason, one.at) for one in reversed(task.trace))
    return TaskView(task_id, name, task.status, condition, words, dict(task.context), trace)


def _listener(state: PlanState, listener_id: str) -> StepView:
    compiled = state.plan.listeners[listener_id]
    most = compiled.listener.retry.attempts
    return _step(state, listener_id, most, target=compiled.target, tool=compiled.tool)


def session_view(state: ReactState) -> SessionView:
    return SessionView(
        agent_id=state.agent.agent_id,
        agent_name=state.agent.name or state.agent.agent_id,
        stage=state.stage.value,
        turn=state.turn,
        text=state.text,
        messages=tuple(reversed(list(state.messages))),
        answer=state.answer,
        usage=state.usage,
        requests=state.requests,
        rules={tool: rule_to_json(rule) for tool, rule in state.approval.items()},
        grants=tuple(state.grants.values()),
        tools=state.tools,
        steps=tuple(_call(state, one) for one in sorted(state.steps)),
        error=state.error,
        role=state.agent.asking.role,
    )


def _call(state: ReactState, step_id: str) -> StepView:
    call, most = state.calls.get(step_id), state.agent.retry.attempts
    if call is None or step_id == THINK:
        return _step(state, step_id, most)
    return _step(state, step_id, most, tool=call.tool, args=dict(call.args))


def conversation_view(state: ConversationState) -> ConversationView:
    named = state.tasks
    failed = state.phase is EngineState.ERROR or state.status is RunStatus.ERROR
    return ConversationView(
        phase=state.phase,
        left=state.left,
        turn=state.turn,
        text=state.text,
        answer=final_answer(state),
        said=state.answer,
        tasks=tuple(_conversation_task(state, one) for one in state.order),
        steps=tuple(_conversation_steps(state)),
        total=state.total,
        completed=state.completed,
        skipped=state.skipped,
        progress=state.progress,
        pausing=state.pausing,
        pausable=state.phase in (*PAUSABLE, *THINKING) and not state.pausing,
        stopped=state.stopped,
        choices=tuple(phases.choices(state)) if failed else (),
        retried=tuple(named[one].id for one in phases.failed(state)),
        left_out=tuple(named[one].id for one in phases.to_skip(state)),
        ends=tuple(one.id for one in last_tasks(state)),
        doubtful=tuple(named[one].id for one in phases.doubtful(state)),
        error=state.error,
    )


def _conversation_task(state: ConversationState, step_id: str) -> ConversationTask:
    condition, words = standing(state, step_id)
    return ConversationTask(step_id, state.tasks[step_id], condition, words)


def _conversation_steps(state: ConversationState) -> Iterator[StepView]:
    """With those of a turn that failed, which are put aside."""
    most = state.settings.retry.attempts
    for step_id in sorted(state.steps):
        yield _step(state, step_id, most)
    for step_id in sorted(set(state.former) - set(state.steps)):
        yield _of_step(state, step_id, state.former[step_id], most, put_aside=True)


def _step(state: RunState, step_id: str, most: int, **more: Any) -> StepView:
    return _of_step(state, step_id, state.steps[step_id], most, **more)


def _of_step(state: RunState, step_id: str, step: StepState, most: int, **more: Any) -> StepView:
    condition, words = step_standing(state, step)
    return StepView(
        step_id=step_id,
        status=step.status,
        condition=condition,
        words=words,
        firing=step.firing,
        attempt=step.attempt,
        retries=step.retries,
        most=most,
        error=step.failure.message if step.failure else None,
        why=step.why,
        retry_at=state.timers.get(retry_timer(step_id)),
        child_id=step.child_id,
        child_status=step.child_status,
        question_id=step.question_id,
        waits_until=state.timers.get(wait_timer(step_id)),
        **more,
    )


def rests(state: RunState) -> bool:
    """Nothing more will happen by itself: the run is over, or waits for a person."""
    if state.status in _OVER:
        return True
    if state.status not in _STUCK or machine_of(state).goes_on_by_itself(state):
        return False
    if isinstance(state, ConversationState) and _has_more(state):
        return False
    return not any(_moves(state, *each) for each in state.steps.items())


def _has_more(state: ConversationState) -> bool:
    """What its consumer has yet to hear of, or may have started beside what waits."""
    confirm = state.steps.get(CONFIRM)
    shown = confirm is not None and confirm.status is StepStatus.WAITING
    if state.held or shown or state.status is RunStatus.ERROR:
        return False
    ready = any(step.status is StepStatus.READY for step in state.steps.values())
    return ready or bool(state.untold) or (state.queue is not None and state.places > 0)


def _moves(state: RunState, step_id: str, step: StepState) -> bool:
    if step.status is StepStatus.RUNNING:
        return step.child_status not in _STUCK
    if step.status is StepStatus.BACKOFF:
        return state.status is not RunStatus.ERROR
    return step.status is StepStatus.CONSULTING or wait_timer(step_id) in state.timers


def _mapping(value: Json) -> Mapping[str, Json] | None:
    return dict(value) if isinstance(value, Mapping) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None
