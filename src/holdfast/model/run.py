"""What every run has, whichever machine drives it: a status, and perhaps a parent."""

from __future__ import annotations

from enum import StrEnum

from holdfast.model.record import record


class RunStatus(StrEnum):
    """`done` ends a plan; a session that is done takes a further message."""

    NOT_STARTED = "not_started"
    RUNNING = "running"
    PAUSE = "pause"
    CONTINUE = "continue"
    DONE = "done"
    ERROR = "error"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


@record
class Parent:
    """The step's firing whose work a child run is."""

    run_id: str
    step_id: str
    firing: int
