"""The calls of a run that have taken effect, or may have: what a repair must not have once more.

A call has taken effect where its listener is done, or its result only waits to be concluded; it is
in doubt while it is under way, and where it is not known whether it happened. What a snippet has
called is known while it runs; afterwards it may have called whatever it names. What a repair has
brought in, and has yet to be called, counts too: it will be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import added, operations_from_json, touched
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import StepStatus
from holdfast.model.interaction import InteractionStatus
from holdfast.model.plan import CodeAction, Listener, ToolAction
from holdfast.model.retry import FailureKind

_TO_COME: Final = (StepStatus.READY, StepStatus.WAITING, StepStatus.BACKOFF)


def called_by_now(state: PlanState, tools: Collection[str]) -> frozenset[str]:
    """Which of these tools have been called. It costs what those listeners cost, not what the plan
    does."""
    concerned = _callers(state, frozenset(tools)) if tools else ()
    return frozenset(tools).intersection(_spent(state, concerned) if tools else ())


def is_alone(state: PlanState) -> bool:
    """Whether no other run belongs to its tree."""
    own = state.run_id == state.root_id and not state.heard
    return own and all(step.child_id is None for step in state.steps.values())


def _callers(state: PlanState, tools: frozenset[str]) -> Iterator[str]:
    """The steps that may have called one of the tools."""
    for plan in _plans(state):
        for one in [each for each in plan.listeners.values() if each.tool in tools or each.is_code]:
            if one.id in state.steps:
                yield one.id


def spent_calls(state: PlanState) -> Mapping[str, tuple[str, ...]]:
    """By tool the listeners whose call of it has taken effect, or may have."""
    return _spent(state, sorted(state.steps))


def _spent(state: PlanState, listener_ids: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for listener_id in listener_ids:
        for tool in _spent_by(state, listener_id, state.steps[listener_id]):
            found.setdefault(tool, {})[listener_id] = None
    for listener_id, tool in _brought_in(state):
        found.setdefault(tool, {})[listener_id] = None
    for question in state.questions.values():
        if question.purpose == "unknown" and question.status is not InteractionStatus.ANSWERED:
            tool = str(question.request.context["tool"])
            found.setdefault(tool, {})[question.step_id] = None
    return {tool: tuple(ids) for tool, ids in found.items()}


def _spent_by(state: PlanState, listener_id: str, step: StepState) -> Iterator[str]:
    yield from (one.function for one in step.calls)
    if step.calling is not None:
        yield step.calling[0]
    for listener in _versions(state, listener_id):
        match listener.action:
            case CodeAction(functions=functions) if _has_ended(state, step, listener):
                yield from functions
            case ToolAction(tool=tool) if _took_effect(step) or _did_before(state, step, listener):
                yield tool


def _has_ended(state: PlanState, step: StepState, listener: Listener) -> bool:
    return step.status is StepStatus.DONE or _did_before(state, step, listener)


def _versions(state: PlanState, listener_id: str) -> Iterator[Listener]:
    """The listener as it is, and as it was at the run's birth."""
    found = (plan.listeners.get(listener_id) for plan in _plans(state))
    yield from (one.listener for one in found if one is not None)


def _plans(state: PlanState) -> Sequence[CompiledPlan]:
    return [state.plan] if state.origin is None else [state.plan, state.origin]


def _took_effect(step: StepState) -> bool:
    if step.carried is not None or step.status is StepStatus.RUNNING:
        return True
    if step.failure is not None:
        return step.failure.kind is FailureKind.UNKNOWN
    return step.status is StepStatus.DONE


def _did_before(state: PlanState, step: StepState, listener: Listener) -> bool:
    """Whether an earlier firing has left its task as success does."""
    output = listener.success_output
    if output is None or step.firing == 1:
        return False
    moves = state.task(output.task_id).moves
    return any((one[0], one[1]) == (output.status, listener.listener_id) for one in moves)


def _brought_in(state: PlanState) -> Iterator[tuple[str, str]]:
    """By repairs that were made, as long as it has yet to be called."""
    patches = [operations_from_json(one.operations) for one in state.repair.patches]
    concerned = {one for each in patches for one in (*touched(each), *added(each))}
    for listener_id in sorted(concerned.intersection(state.plan.listeners)):
        step, tool = state.steps.get(listener_id), state.plan.listeners[listener_id].tool
        to_come = step is None or step.forgotten or step.status in _TO_COME
        if tool is not None and to_come and tool != _tool_at_birth(state, listener_id):
            yield listener_id, tool


def _tool_at_birth(state: PlanState, listener_id: str) -> str | None:
    born = None if state.origin is None else state.origin.listeners.get(listener_id)
    return None if born is None else born.tool
