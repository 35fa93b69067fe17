"""Events of a session: what an agent was told, thought, called and answered.

A session's steps are its thinking (`think`), the calls that the model wants (`c1`,
`c2`, …) and the questions that belong to no call (`q1`, …). What happens to steps,
questions and child runs in every machine stands in `events`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from holdfast.model import events as e
from holdfast.model.approval import ApprovalRule, Grant
from holdfast.model.message import Usage
from holdfast.model.record import record
from holdfast.model.run import Parent
from holdfast.model.values import Json


@record
class Call:
    """A call that the model wants; `malformed` is its text where that is no JSON object.

    One that was `proposed` from outside always needs consent.
    """

    step_id: str
    call_id: str
    tool: str
    args: Mapping[str, Json] = field(default_factory=dict)
    malformed: str | None = None
    proposed: bool = False


@record
class SessionStarted:
    """`approval` overrides the agent's rules; `only` narrows the tools to those that look."""

    agent_id: str
    digest: str
    root_id: str
    by: str = ""
    parent: Parent | None = None
    approval: Mapping[str, ApprovalRule] = field(default_factory=dict)
    only: tuple[str, ...] | None = None


@record
class TurnStarted:
    turn: int
    text: str
    by: str


@record
class CallProposed:
    """A call was proposed between turns: the next turn begins with it."""

    turn: int
    call: Call
    by: str


@record
class ThinkingStarted:
    """The model is asked; `firing` counts its replies over the whole session."""

    firing: int
    attempt: int = 1


@record
class ModelReplied:
    firing: int
    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    finish: str = "stop"


@record
class CallStarted:
    """A permit is held and the call may now reach the outside world.

    `args` are the very bytes that will be sent. `consent` is what a person agreed to,
    `grant_id` the remembered approval that covers the call, `child_id` the child run that
    does the work.
    """

    step_id: str
    attempt: int = 1
    generation: int = 0
    args: Mapping[str, Json] = field(default_factory=dict)
    idempotent: bool = False
    consent: str | None = None
    grant_id: str | None = None
    child_id: str | None = None


@record
class StepEnded:
    """What came of a call or a question, and what the model is told of it.

    `how` is done, failed, refused (never sent: no such tool, disabled, malformed),
    rejected, retry, skipped, expired or provided. `note` says what a person changed.
    """

    step_id: str
    how: str
    content: Json = None
    note: str = ""


@record
class StepAbandoned:
    """A call that failed for good: the next turn begins without it."""

    step_id: str
    by: str
    content: Json = None


@record
class TurnCompleted:
    turn: int
    text: str = ""


@record
class TurnFailed:
    """The turn cannot go on by itself; a person may resume it, or say something else."""

    message: str
    failed: tuple[str, ...] = ()


@record
class TurnResumed:
    by: str
    children: tuple[str, ...] = ()


@record
class ApprovalRemembered:
    grant: Grant


@record
class ApprovalRevoked:
    grant_id: str
    by: str


ReactEvent: TypeAlias = (
    e.RunEvent
    | SessionStarted
    | TurnStarted
    | CallProposed
    | ThinkingStarted
    | ModelReplied
    | CallStarted
    | StepEnded
    | StepAbandoned
    | TurnCompleted
    | TurnFailed
    | TurnResumed
    | ApprovalRemembered
    | ApprovalRevoked
)
