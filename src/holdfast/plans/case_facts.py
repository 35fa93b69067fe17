"""What a look at a case needs beside the run's state: its last events, what each tool answered
last, what other runs of its tree have called, and the tools and plans that there are now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from holdfast.core.agent.state import ReactState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.journal.codec import decode
from holdfast.journal.port import RunQuery
from holdfast.model.events import ListenerSucceeded
from holdfast.model.message import ModelSaid
from holdfast.model.record import record
from holdfast.model.recorded import Event
from holdfast.model.values import Json
from holdfast.repair.repeats import spent_calls
from holdfast.repair.surroundings import Surroundings
from holdfast.runtime.engine import Engine

MOST_RECORDS: Final = 500
"""How far back in a run's journal evidence is looked for."""


@record
class CaseFacts:
    """`seen` has what each tool answered last, `elsewhere` the tools that other runs called."""

    events: tuple[tuple[int, Event], ...]
    surroundings: Surroundings
    now: float
    seen: Mapping[str, Json]
    elsewhere: frozenset[str]

    @property
    def judging(self) -> dict[str, Any]:
        """As `checks.judge` takes them."""
        return {"now": self.now, "seen": self.seen, "elsewhere": self.elsewhere}


async def gathered(engine: Engine, state: PlanState, surroundings: Surroundings) -> CaseFacts:
    after = max(0, state.version - MOST_RECORDS)
    records = await engine.journal.read(state.run_id, after)
    events = tuple((one.seq, decode(one)) for one in records)
    return CaseFacts(
        events,
        surroundings,
        engine.clock.now(),
        last_results(state, (event for _, event in events)),
        await called_elsewhere(engine, state),
    )


def last_results(state: PlanState, events: Iterable[Event]) -> dict[str, Json]:
    """By tool what it answered last, as far as these events tell."""
    found: dict[str, Json] = {}
    for event in events:
        if isinstance(event, ListenerSucceeded):
            listener = state.plan.listeners.get(event.listener_id)
            if listener is not None and listener.tool is not None:
                found[listener.tool] = event.result
    return found


async def called_elsewhere(engine: Engine, state: PlanState) -> frozenset[str]:
    """The tools that the other runs of the tree have called, or may have."""
    if state.run_id == state.root_id and not _has_children(state):
        return frozenset()
    found: set[str] = set()
    run_ids = [state.root_id]
    for run_id in run_ids:
        if run_id != state.run_id:
            found |= tools_called(await engine.state(run_id))
        query = RunQuery(parent_id=run_id)
        while rows := await engine.journal.runs(query):
            run_ids += [row.run_id for row in rows]
            query = replace(query, before=rows[-1].run_id)
    return frozenset(found)


def _has_children(state: PlanState) -> bool:
    return any(step.child_id is not None for step in state.steps.values())


def tools_called(state: RunState) -> set[str]:
    match state:
        case PlanState():
            return set(spent_calls(state))
        case ReactState():
            said = (one for one in state.messages if isinstance(one, ModelSaid))
            return {call.tool for one in said for call in one.calls}
        case _:
            return set()
