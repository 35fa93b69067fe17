"""What the other runs of a tree have called: an effect that a repair must not have once more may be
theirs. Of a session all that its model wanted called counts, of a conversation what its present
goal had called."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.core.agent.state import ReactState
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.spent import is_alone, spent_calls
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.journal.port import RunQuery
from holdfast.model.message import ModelSaid
from holdfast.runtime.engine import Engine

_YET_TO_BEGIN: Final = ("pending", "scheduled")


async def called_elsewhere(engine: Engine, state: PlanState) -> frozenset[str]:
    """The tools that the other runs of the tree have called, or may have, and those of the run of
    which this is a fork."""
    found = set(() if state.forked is None else state.forked.called)
    if is_alone(state):
        return frozenset(found)
    run_ids = [state.root_id]
    for run_id in run_ids:
        if run_id != state.run_id:
            found |= _called(await engine.state(run_id))
        query = RunQuery(parent_id=run_id)
        while rows := await engine.journal.runs(query):
            run_ids += [row.run_id for row in rows]
            query = replace(query, before=rows[-1].run_id)
    return frozenset(found)


async def called_in_tree(engine: Engine, state: PlanState) -> frozenset[str]:
    """The same with the run's own calls."""
    return await called_elsewhere(engine, state) | _called(state)


def _called(state: RunState) -> set[str]:
    match state:
        case PlanState():
            return {*spent_calls(state), *(state.forked.called if state.forked else ())}
        case ReactState():
            said = (one for one in state.messages if isinstance(one, ModelSaid))
            return {call.tool for one in said for call in one.calls}
        case ConversationState():
            begun = (one for one in state.tasks.values() if one.status not in _YET_TO_BEGIN)
            return {task.type for task in begun if task.route == "tool"}
        case _:
            raise AssertionError(f"{state.run_id} is a run of no kind")
