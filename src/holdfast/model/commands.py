"""Commands to a plan run: what somebody wants, in the imperative.

A command is decided against the run's state and the `Moment` it arrives in; it
becomes events, or it is refused and nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from holdfast.model.events import Parent
from holdfast.model.form import Form
from holdfast.model.plan import TaskUpdate
from holdfast.model.record import record
from holdfast.model.retry import Failure
from holdfast.model.values import Json, JsonObject


@record
class Moment:
    """What the core may not fetch itself: the time, and a secret that nobody can guess."""

    now: float
    entropy: bytes = b""


@record
class ToolFacts:
    """What the core needs to know of a tool before a call."""

    parameters: JsonObject
    version: str = ""
    idempotent: bool = False
    approval: bool = False
    disabled: bool = False


@record
class StartRun:
    plan_id: str
    prompt: str = ""
    values: Mapping[str, Json] = field(default_factory=dict)
    root_id: str = ""
    parent: Parent | None = None
    by: str = ""


@record
class StartListener:
    """A permit is held: start the ready listener. `tool` is None when it is unknown."""

    listener_id: str
    tool: ToolFacts | None = None


@record
class Succeeded:
    result: Json = None
    updates: tuple[TaskUpdate, ...] = ()


@record
class OutputBroken:
    """The work is done, but what it means for the plan could not be determined."""

    result: Json
    message: str


@record
class Failed:
    failure: Failure
    updates: tuple[TaskUpdate, ...] = ()
    result: Json = None


@record
class Missing:
    form: Form


@record
class Lost:
    reason: str


@record
class NotSent:
    """The work was never handed over."""


@record
class CallWanted:
    """A snippet stopped at an external function that has no recorded result."""

    index: int
    function: str
    args: JsonObject
    idempotent: bool = False


@record
class CallReturned:
    index: int
    result: Json = None


Outcome: TypeAlias = (
    Succeeded | OutputBroken | Failed | Missing | Lost | NotSent | CallWanted | CallReturned
)


@record
class ReportOutcome:
    """The work's result, under the claim that it was started with."""

    listener_id: str
    firing: int
    claim: int
    outcome: Outcome


@record
class DecideRetry:
    """The planner's verdict on a failed listener: how many retries it may have."""

    listener_id: str
    firing: int
    max_retries: int


@record
class Answer:
    question_id: str
    by: str
    option_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None


@record
class Resume:
    by: str


@record
class Skip:
    listener_id: str
    by: str
    reason: str = ""


@record
class MarkDone:
    task_id: str
    by: str
    context: Mapping[str, Json] = field(default_factory=dict)


@record
class EditContext:
    task_id: str
    context: Mapping[str, Json]
    by: str


@record
class RerunFrom:
    listener_id: str
    by: str


@record
class Cancel:
    by: str
    reason: str = ""
    grace: float = 10.0


@record
class HearChild:
    child_id: str
    seq: int
    listener_id: str
    firing: int
    status: str
    message: str = ""
    result: Json = None


@record
class Tick:
    """Timers may have come due."""


@record
class Recover:
    """The run's former owner is gone; whatever was in flight is in doubt."""


Command: TypeAlias = (
    StartRun
    | StartListener
    | ReportOutcome
    | DecideRetry
    | Answer
    | Resume
    | Skip
    | MarkDone
    | EditContext
    | RerunFrom
    | Cancel
    | HearChild
    | Tick
    | Recover
)
