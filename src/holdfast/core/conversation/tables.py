"""The conversation machine as tables, the first of them word for word the seed's.

A conversation is pull-driven: it moves on when its consumer asks for the next event
(`Advance`), and only what it has started goes on in the meantime.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.run.tables import INSTANCE, Lifecycle, Signal, Verdict, of_every_run, verdicts
from holdfast.errors import IllegalTransition
from holdfast.model import commands as c
from holdfast.model.conversation import EngineState
from holdfast.model.run import RunStatus as R

VALID_STATE_TRANSITIONS: Mapping[EngineState, list[EngineState]] = {
    EngineState.IDLE: [EngineState.RECEIVING],
    EngineState.RECEIVING: [EngineState.CONTEXT_FETCHING, EngineState.ERROR],
    EngineState.CONTEXT_FETCHING: [EngineState.DECOMPOSING, EngineState.ERROR],
    EngineState.DECOMPOSING: [EngineState.SCHEDULING, EngineState.ERROR],
    EngineState.SCHEDULING: [EngineState.EXECUTING, EngineState.PAUSED, EngineState.ERROR],
    EngineState.EXECUTING: [EngineState.COMPLETED, EngineState.PAUSED, EngineState.ERROR],
    EngineState.PAUSED: [EngineState.EXECUTING, EngineState.SCHEDULING],
    EngineState.COMPLETED: [EngineState.IDLE],
    EngineState.ERROR: [EngineState.IDLE],
}

PAUSABLE = (EngineState.EXECUTING, EngineState.SCHEDULING)
THINKING = (EngineState.RECEIVING, EngineState.CONTEXT_FETCHING, EngineState.DECOMPOSING)
"""Before the tasks are known: a pause that is wished here takes hold before the first of them."""

CONVERSATION: Lifecycle = {
    **INSTANCE,
    R.NOT_STARTED: {Signal.START: R.DONE},
    R.DONE: {Signal.NEXT_TURN: R.RUNNING, Signal.CANCEL: R.CANCELLING},
    R.ERROR: {**INSTANCE[R.ERROR], Signal.NEXT_TURN: R.RUNNING, Signal.FINISH: R.DONE},
    R.RUNNING: {**INSTANCE[R.RUNNING], Signal.NEXT_TURN: R.RUNNING},
    R.PAUSE: {**INSTANCE[R.PAUSE], Signal.FINISH: R.DONE},
    R.CONTINUE: {**INSTANCE[R.CONTINUE], Signal.FINISH: R.DONE},
}

_LIVING = set(R) - {R.NOT_STARTED, R.CANCELLING, R.CANCELLED}

COMMANDS: Mapping[type, Mapping[R, Verdict]] = {
    c.OpenConversation: verdicts({R.NOT_STARTED}),
    c.Converse: verdicts(_LIVING),
    c.Advance: verdicts(_LIVING, Verdict.IGNORE),
    c.Hold: verdicts(_LIVING),
    c.Unhold: verdicts(_LIVING),
    c.Abort: verdicts(_LIVING),
    c.GoOn: verdicts(_LIVING),
    c.StartOver: verdicts(_LIVING),
    c.RestoreSnapshot: verdicts(_LIVING),
    c.StartStep: verdicts(_LIVING, Verdict.IGNORE),
    **of_every_run(_LIVING),
}


def next_phase(before: EngineState, after: EngineState) -> EngineState:
    if after not in VALID_STATE_TRANSITIONS[before]:
        raise IllegalTransition(f"a conversation that is {before} cannot become {after}")
    return after
