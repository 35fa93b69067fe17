"""Repeated effects: calls that have taken effect in a run, or may have, and would be made again.

Only tools that are not idempotent count, and do more than look. What a run has called is known to
the core (`core.plan.spent`); `elsewhere` are tools that other runs of the same tree have called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from holdfast.core.plan.spent import spent_calls
from holdfast.core.plan.state import PlanState
from holdfast.model.record import record
from holdfast.repair.changes import Changed, Changes
from holdfast.repair.parts import tools_called
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
    for listener_id, tool in _acting(state, changes, known):
        own = () if listener_id in state.steps else (listener_id,)
        earlier = [one for one in spent.get(tool, ()) if one not in own]
        earlier += [ELSEWHERE] if tool in elsewhere else []
        if earlier:
            yield Repeat(listener_id, tool, tuple(earlier))


def acting_tools(state: PlanState, changes: Changes, known: Surroundings) -> frozenset[str]:
    """The tools that a patch would have called, and whose effects cannot be had twice."""
    return frozenset(tool for _, tool in _acting(state, changes, known))


def _acting(state: PlanState, changes: Changes, known: Surroundings) -> Iterator[tuple[str, str]]:
    """What a snippet names counts: it may call it."""
    for one in changes.listeners:
        for tool in tools_called(one.after) if _calls_again(state, one) else ():
            if not _harmless(tool, known):
                yield one.id, tool


def _harmless(tool: str, known: Surroundings) -> bool:
    facts = known.tools.get(tool)
    return known.looks(tool) or (facts is not None and facts.idempotent)


def _calls_again(state: PlanState, one: Changed) -> bool:
    """A listener whose result is at hand only concludes with it, unless its call is changed."""
    step = state.steps.get(one.id)
    kept = step is not None and step.carried is not None
    return not kept or one.before is None or one.before.action != one.after.action
