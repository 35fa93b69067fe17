"""The session machine as tables: what a session adds to those that every run has.

A session that is done, or whose turn failed, takes a further message: the next turn.
Within a turn it thinks, acts and observes: the step `think` asks the model, each call
that the model wants is a step of its own, and when all of them have ended it thinks
again. So `STAGE` is not stored anywhere: it follows from the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from holdfast.core.run.tables import INSTANCE, Lifecycle, Signal, Verdict, of_every_run, verdicts
from holdfast.model import commands as c
from holdfast.model.run import RunStatus as R

SESSION: Lifecycle = {
    **INSTANCE,
    R.NOT_STARTED: {Signal.START: R.DONE},
    R.DONE: {
        Signal.NEXT_TURN: R.RUNNING,
        Signal.ASK: R.PAUSE,
        Signal.CANCEL: R.CANCELLING,
    },
    R.ERROR: {**INSTANCE[R.ERROR], Signal.NEXT_TURN: R.RUNNING},
}


class ReActStage(StrEnum):
    THINKING = "THINKING"
    ACTING = "ACTING"
    OBSERVING = "OBSERVING"


_OPEN = {R.RUNNING, R.PAUSE, R.CONTINUE}
_ALIVE = _OPEN | {R.DONE, R.ERROR}

COMMANDS: Mapping[type, Mapping[R, Verdict]] = {
    c.StartSession: verdicts({R.NOT_STARTED}),
    c.Say: verdicts({R.DONE, R.ERROR}),
    c.Ask: verdicts(_ALIVE),
    c.Propose: verdicts({R.DONE}),
    c.RememberApproval: verdicts(_ALIVE),
    c.RevokeApproval: verdicts(_ALIVE),
    c.StartStep: verdicts(_OPEN, Verdict.IGNORE),
    c.Resume: verdicts({R.ERROR}),
    **of_every_run(_ALIVE),
}
