"""What every run has, whichever machine drives it: a kind, a status, and perhaps a parent."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from holdfast.model.record import TextEnum, record


class RunStatus(TextEnum):
    """`done` ends a plan; a session that is done takes a further message."""

    NOT_STARTED = "not_started"
    RUNNING = "running"
    PAUSE = "pause"
    CONTINUE = "continue"
    DONE = "done"
    ERROR = "error"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


FINISHED: Final = frozenset(
    {RunStatus.DONE.value, RunStatus.ERROR.value, RunStatus.CANCELLED.value}
)
"""In these a run goes on only if a person wants it to."""


class StepStatus(StrEnum):
    """Where one step's current firing stands."""

    READY = "ready"
    RUNNING = "running"
    BACKOFF = "backoff"
    WAITING = "waiting"
    CONSULTING = "consulting"
    FAILED = "failed"
    DONE = "done"
    SKIPPED = "skipped"
    STOPPED = "stopped"


class RunKind(TextEnum):
    """What a run is a run of, as people call it."""

    PLAN = "plan"
    CHAT = "chat"
    CONVERSATION = "conversation"


JOURNAL_KINDS: Final = {
    RunKind.PLAN: "plan",
    RunKind.CHAT: "react",
    RunKind.CONVERSATION: "conversation",
}
"""As the journal calls them."""

KINDS: Final = {name: kind for kind, name in JOURNAL_KINDS.items()}
"""The journal's names, as people call them."""


def is_below(run_id: str, above: str) -> bool:
    """Whether a run is another, or works for it."""
    return f"{run_id}.".startswith(f"{above}.")


@record
class Parent:
    """The step's firing whose work a child run is."""

    run_id: str
    step_id: str
    firing: int
