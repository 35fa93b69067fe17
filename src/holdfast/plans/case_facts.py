"""What a look at a case needs beside the run's state: its last events, what each tool answered
last and what it has refused, what other runs of its tree have called, and the tools and plans that
there are now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.core.plan.state import PlanState
from holdfast.journal.codec import decode
from holdfast.model.events import ListenerSucceeded
from holdfast.model.record import record
from holdfast.model.recorded import Event
from holdfast.model.values import Json
from holdfast.repair.refusals import Refusal, refusals_of
from holdfast.repair.surroundings import Surroundings
from holdfast.runtime.engine import Engine
from holdfast.runtime.relatives import called_elsewhere

MOST_RECORDS: Final = 500
"""How far back in a run's journal evidence is looked for."""


@record
class CaseFacts:
    """`seen` has what each tool answered last, `refused` the calls that they refused, `elsewhere`
    the tools that other runs called."""

    events: tuple[tuple[int, Event], ...]
    surroundings: Surroundings
    now: float
    seen: Mapping[str, Json]
    elsewhere: frozenset[str]
    refused: tuple[Refusal, ...]

    @property
    def judging(self) -> dict[str, Any]:
        """As `checks.judge` takes them."""
        beside = {"elsewhere": self.elsewhere, "refused": self.refused}
        return {"now": self.now, "seen": self.seen, **beside}


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
        refusals_of(state, (event for _, event in events)),
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
