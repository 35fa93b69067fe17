"""Commands to a run: what is wanted, in the imperative.

A command is decided against the run's state and the `Moment` it arrives in; it
becomes events, or it is refused and nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from holdfast.model.approval import ApprovalRule
from holdfast.model.approval import ToolFacts as ToolFacts
from holdfast.model.conversation import AfterFailure, SubTask
from holdfast.model.events import TaskUpdate
from holdfast.model.fork import Fork
from holdfast.model.form import Form
from holdfast.model.interaction import InteractionRequest, Resolution, Waiting
from holdfast.model.message import ModelReply, Usage
from holdfast.model.record import record
from holdfast.model.repair import Look, Mend, Proposal, Thought
from holdfast.model.retry import Advice, Failure
from holdfast.model.run import Parent
from holdfast.model.values import Json, JsonObject


@record
class Moment:
    """What the core may not fetch itself: the time, and a secret that cannot be guessed.

    Under four eyes `wanted_by` says who wants what the tree of runs does, and how they said so;
    it is None where one person may want a call and approve it.
    """

    now: float
    entropy: bytes = b""
    wanted_by: Mapping[str, str] | None = None


@record
class StartRun:
    """`authors` are the people who registered this version of the plan, `usage` is what it cost to
    have a model find it, and its inputs."""

    plan_id: str
    prompt: str = ""
    values: Mapping[str, Json] = field(default_factory=dict)
    root_id: str = ""
    parent: Parent | None = None
    by: str = ""
    authors: tuple[str, ...] = ()
    usage: Usage | None = None


@record
class StartFork:
    """Go on, as a new run, from where another one once stood."""

    fork: Fork
    by: str = ""


@record
class StartSession:
    agent_id: str
    root_id: str = ""
    parent: Parent | None = None
    by: str = ""
    approval: Mapping[str, ApprovalRule] = field(default_factory=dict)
    only: tuple[str, ...] | None = None


@record
class Say:
    """A message to the agent: the next turn."""

    text: str
    by: str


@record
class Ask:
    """Ask a person something in the middle of a session; the agent hears the answer."""

    request: InteractionRequest


@record
class Propose:
    """Put a call before a person that the model has not asked for."""

    tool: str
    args: Mapping[str, Json]
    call_id: str
    by: str


@record
class RememberApproval:
    """Calls of `tool` that fit `pattern` need no consent for a while."""

    tool: str
    version: str
    by: str
    pattern: Mapping[str, Json] = field(default_factory=dict)
    expires_at: float | None = None
    uses: int | None = None


@record
class RevokeApproval:
    grant_id: str
    by: str


@record
class OpenConversation:
    root_id: str = ""
    by: str = ""
    unattended: bool = False


@record
class Converse:
    """What the user wants: the next turn."""

    text: str
    by: str = ""


@record
class Advance:
    """The consumer asks for the next event; `ahead`, for those after it too, up to a task that
    it has yet to ask for."""

    ahead: bool = False


@record
class Hold:
    """Pause a conversation; one that still thinks, `when_possible`, before its first task."""

    when_possible: bool = False
    by: str = ""


@record
class Unhold:
    """Go on with one that is paused, or is to be."""

    by: str = ""


@record
class Abort:
    """End the turn: it is in error, and says why."""

    reason: str = "cancelled"
    by: str = ""


@record
class GoOn:
    """Go on after a failure, with what was completed kept."""

    failed: AfterFailure
    by: str = ""


@record
class StartOver:
    """Forget the turn, from whatever state."""

    by: str = ""


@record
class RestoreSnapshot:
    snapshot: Mapping[str, Json]
    by: str = ""


@record
class StartStep:
    """A permit is held: start the ready step. `tool` is None when it is unknown."""

    step_id: str
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
    """`traceback` is for the log and for operators; no decision depends on it."""

    failure: Failure
    updates: tuple[TaskUpdate, ...] = ()
    result: Json = None
    traceback: str = field(default="", compare=False, repr=False)


@record
class Missing:
    """`version` is the tool's, if it was one that said so."""

    form: Form
    version: str = ""


@record
class Lost:
    reason: str
    retry_after: float | None = None
    traceback: str = field(default="", compare=False, repr=False)


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
class Replied:
    """The model's next words and calls."""

    reply: ModelReply


@record
class Fetched:
    """The coordinator's context."""

    rules: tuple[Json, ...] = ()
    knowledge: tuple[Json, ...] = ()
    tools: tuple[Json, ...] = ()


@record
class Decomposed:
    """What the model made of the goal; the machine judges whether it can be run.

    One that is `by_model` may also be asked to fill in arguments, and for the answer.
    """

    tasks: tuple[SubTask, ...]
    by_model: bool = False


@record
class Undecomposed:
    """What the model said was no list of tasks."""

    reason: str


@record
class Filled:
    """What the model could fill in of a task's arguments, from the results before it."""

    values: Mapping[str, Json]


@record
class Written:
    """The answer to the goal in the model's words; empty where it had none."""

    text: str = ""


@record
class CallReturned:
    index: int
    result: Json = None


RunOutcome: TypeAlias = Succeeded | Failed | Missing | Lost | NotSent
PlanOutcome: TypeAlias = RunOutcome | OutputBroken | CallWanted | CallReturned
ReactOutcome: TypeAlias = RunOutcome | Replied
ConversationOutcome: TypeAlias = RunOutcome | Fetched | Decomposed | Undecomposed | Filled | Written
Outcome: TypeAlias = PlanOutcome | ReactOutcome | ConversationOutcome


@record
class ReportOutcome:
    """The work's result, under the claim that it was started with."""

    step_id: str
    firing: int
    claim: int
    outcome: Outcome


@record
class Advise:
    """The planner's advice on a failed listener, with what is known of the failure where the run
    is to wait for a person."""

    listener_id: str
    firing: int
    advice: Advice | Mend
    look: Look | None = None


@record
class WakeEarly:
    """What a delayed attempt waits for is over sooner than it was thought."""

    step_id: str


@record
class ReportDiagnosis:
    """What rules and lessons made of a case (`number` 0), or a model at its request."""

    case_id: str
    number: int
    found: Look | Thought


@record
class ProposePatch:
    """A person's own patch; `listener_id` is the failed one that it is for, if it is for one."""

    proposal: Proposal
    by: str
    listener_id: str = ""


@record
class ReviewProposal:
    """A proposal may be stale: the run or another of its tree has moved on, or the tools that it
    names have other versions by now. Then it is withdrawn, and the failure looked at anew.
    `versions` and `elsewhere` are those of today."""

    case_id: str
    versions: Mapping[str, str]
    elsewhere: frozenset[str] = frozenset()


@record
class Answer:
    """`resolution` is what the handler of a CUSTOM option made of the answer, `versions` are those
    of the tools that a repair names, and `elsewhere` are tools that other runs of the tree have
    called."""

    question_id: str
    by: str
    option_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None
    resolution: Resolution | None = None
    versions: Mapping[str, str] | None = None
    elsewhere: frozenset[str] = frozenset()


@record
class KeepDraft:
    question_id: str
    by: str
    data: Mapping[str, Json] = field(default_factory=dict)


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
    """`ended_by` is set where a person chose to end everything."""

    child_id: str
    seq: int
    step_id: str
    firing: int
    status: str
    message: str = ""
    result: Json = None
    ended_by: str = ""
    waits_for: Waiting | None = None
    provided: Mapping[str, Json] = field(default_factory=dict)
    continued_at: float | None = None


@record
class Tick:
    """Timers may have come due."""


@record
class Recover:
    """The run's former owner is gone; whatever was in flight is in doubt. One that has only
    left has not `crashed`, and does not count as a loss."""

    crashed: bool = True


RunCommand: TypeAlias = (
    StartStep | ReportOutcome | Answer | KeepDraft | Cancel | HearChild | Tick | Recover
)
"""What every machine takes."""

PlanCommand: TypeAlias = (
    RunCommand
    | StartRun
    | StartFork
    | Advise
    | ReportDiagnosis
    | ProposePatch
    | ReviewProposal
    | WakeEarly
    | Resume
    | Skip
    | MarkDone
    | EditContext
    | RerunFrom
)

ReactCommand: TypeAlias = (
    RunCommand | StartSession | Say | Ask | Propose | RememberApproval | RevokeApproval | Resume
)

ConversationCommand: TypeAlias = (
    RunCommand
    | OpenConversation
    | Converse
    | Advance
    | Hold
    | Unhold
    | Abort
    | GoOn
    | StartOver
    | RestoreSnapshot
)

Command: TypeAlias = PlanCommand | ReactCommand | ConversationCommand
