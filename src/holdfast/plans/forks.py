"""Forks: a new run from any event of one that is over.

What the new run takes over is worked out by the core (`core.plan.forking`), from the whole journal
of the origin, beside the loop. Here it is read, and so are the journals of child runs that had
begun: one that has called nothing, or only what looks, may be started anew without asking.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.decide import blank
from holdfast.core.plan.fitting import refused_in
from holdfast.core.plan.forking import (
    Origin,
    children_in_doubt,
    fork_of,
    may_be_started_anew,
    origin_at,
    refuse_alive,
)
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import REGISTERED, RunState
from holdfast.errors import NotFound
from holdfast.journal.codec import decode
from holdfast.journal.port import Record
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.recorded import Event
from holdfast.runtime.engine import Engine
from holdfast.runtime.machines import as_plan, definition_of
from holdfast.runtime.registry import compiled
from holdfast.runtime.relatives import called_in_tree


async def fork(engine: Engine, run_id: str, seq: int, by: str) -> RunState:
    """A new run that goes on from event `seq` of one that is over.

    NotAllowed where that is not over, or where a run above may start it anew; NotFound where it has
    no such event.
    """
    now = as_plan(await engine.state(run_id))
    refuse_alive(now, await _above(engine, now))
    records = await engine.journal.read(run_id, 0, now.version)
    origin, plan = await asyncio.to_thread(_stood, now, records, seq)
    children = children_in_doubt(origin)
    untouched = [one for one in children if not await _has_acted(engine, one)]
    wanting = await _wanting(engine, now, plan.digest)
    called = await called_in_tree(engine, now)
    of = (origin, untouched, wanting, refused_in(now), called)
    taken = await asyncio.to_thread(fork_of, *of)
    number = await engine.journal.next_number("inst")
    return await engine.begin(f"inst_{number:06d}", plan, c.StartFork(taken, by))


async def _above(engine: Engine, origin: RunState) -> Sequence[RunState]:
    """The runs by which it may be started anew, the nearest first."""
    found = [origin]
    while may_be_started_anew(found[-1]):
        assert found[-1].parent is not None
        found.append(await engine.state(found[-1].parent.run_id))
    return found[1:]


def _stood(now: PlanState, records: Sequence[Record], seq: int) -> tuple[Origin, CompiledPlan]:
    """The origin as it was, and its plan at that time under the digest of its content."""
    birth = definition_of(now)
    assert isinstance(birth, CompiledPlan)
    told = [(one.at, decode(one)) for one in records]
    origin = origin_at(blank(now.run_id, birth), told, seq)  # type: ignore[arg-type]  # a plan's
    plan = origin.state.plan
    return origin, plan if origin.state.origin is None else compiled(plan.plan)


async def _wanting(engine: Engine, now: PlanState, digest: str) -> Mapping[str, str]:
    """Who registered the plan, and who wants what the origin and the runs around it did."""
    authors = dict.fromkeys(engine.definitions.authors(digest), REGISTERED)
    return {**authors, **await engine.four_eyes.known(now.root_id), **now.wanting}


async def _has_acted(engine: Engine, run_id: str) -> bool:
    """Whether a run, or one below it, has called what does more than look."""
    try:
        state = await engine.state(run_id)
    except NotFound:
        return False  # its start was journaled, and it was never born
    events = [decode(one) for one in await engine.journal.read(run_id, 0, state.version)]
    if any(not _looks(engine, tool) for tool in _called(state, events)):
        return True
    below = [one.child_id for one in events if isinstance(one, e.ListenerStarted | r.CallStarted)]
    return any([await _has_acted(engine, one) for one in below if one is not None])


def _looks(engine: Engine, tool: str) -> bool:
    facts = engine.worker.tool_facts(tool)
    return facts is not None and facts.read_only


def _called(state: RunState, events: Sequence[Event]) -> Iterator[str]:
    """The tools that a run has called, by name."""
    tools: dict[str, str] = {}
    for event in events:
        match event:
            case r.ModelReplied(calls=calls):
                tools |= {one.step_id: one.tool for one in calls}
            case r.CallProposed(call=call):
                tools[call.step_id] = call.tool
            case r.CallStarted(step_id=step_id, child_id=None):
                yield tools[step_id]
            case e.FunctionCalled(function=function):
                yield function
            case e.ListenerStarted(listener_id=listener_id, child_id=None, pure=False):
                tool = as_plan(state).plan.listener(listener_id).tool
                if tool is not None:
                    yield tool
            case _:
                pass
