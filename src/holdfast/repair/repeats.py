"""Repeated effects: calls that have taken effect in a run, or may have, and would be made again.

Only tools that are not idempotent count, and do more than look. A call has taken effect where its
listener is done, or its result only waits to be concluded; it is in doubt while it is under way,
and where it is not known whether it happened. What a snippet has called is known while it runs;
afterwards it may have called whatever it names. `elsewhere` are tools that other runs of the same
tree have called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import StepStatus
from holdfast.model.interaction import InteractionStatus
from holdfast.model.plan import CodeAction, Listener, ToolAction
from holdfast.model.record import record
from holdfast.model.retry import FailureKind
from holdfast.repair.changes import Changed, Changes
from holdfast.repair.surroundings import Surroundings

ELSEWHERE = ""


@record
class Repeat:
    """`listener_id` would call the tool, `earlier` are the listeners that have; `ELSEWHERE` stands
    for other runs."""

    listener_id: str
    tool: str
    earlier: tuple[str, ...]


def repeats(
    state: PlanState, changes: Changes, known: Surroundings, elsewhere: Collection[str] = ()
) -> Iterator[Repeat]:
    """The effects that a patch would have once more."""
    spent = spent_calls(state)
    for one in changes.listeners:
        action = one.after.action
        if isinstance(action, ToolAction) and _calls_again(state, one):
            tool = action.tool
            earlier = (*spent.get(tool, ()), *((ELSEWHERE,) if tool in elsewhere else ()))
            if earlier and not _harmless(tool, known):
                yield Repeat(one.id, tool, earlier)


def _harmless(tool: str, known: Surroundings) -> bool:
    facts = known.tools.get(tool)
    return known.looks(tool) or (facts is not None and facts.idempotent)


def _calls_again(state: PlanState, one: Changed) -> bool:
    """A listener whose result is at hand only concludes with it, unless its call is changed."""
    step = state.steps.get(one.id)
    kept = step is not None and step.carried is not None
    return not kept or one.before is None or one.before.action != one.after.action


def spent_calls(state: PlanState) -> Mapping[str, tuple[str, ...]]:
    """By tool the listeners whose call of it has taken effect, or may have."""
    found: dict[str, dict[str, None]] = {}
    for listener_id, step in sorted(state.steps.items()):
        for tool in _spent_by(state, listener_id, step):
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
            case CodeAction(functions=functions) if step.status is StepStatus.DONE:
                yield from functions
            case ToolAction(tool=tool) if _took_effect(step) or _did_before(state, step, listener):
                yield tool


def _versions(state: PlanState, listener_id: str) -> Iterator[Listener]:
    """The listener as it is, and as it was at the run's birth."""
    plans = [state.plan] if state.origin is None else [state.plan, state.origin]
    found = (plan.listeners.get(listener_id) for plan in plans)
    yield from (one.listener for one in found if one is not None)


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
