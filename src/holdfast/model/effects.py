"""Effects: what is to be done in the world after the events are on disk.

An effect names the claim under which its outcome must be reported, and the key
under which the outside world may recognise a repetition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from holdfast.model.approval import ApprovalRule
from holdfast.model.conversation import SubTask
from holdfast.model.message import Message
from holdfast.model.record import record
from holdfast.model.retry import Failure
from holdfast.model.values import Json, JsonObject


@record
class RecordedCall:
    """An external function's call that a snippet has already made."""

    function: str
    args: JsonObject
    result: Json


@record
class Work:
    """One claimed piece of work: which firing, which attempt, under which key."""

    run_id: str
    step_id: str
    firing: int
    attempt: int
    claim: int
    key: str
    timeout: float | None = None


@record
class CallTool:
    work: Work
    tool: str
    args: Mapping[str, Json]
    idempotent: bool
    consent: str | None = None


@record
class RunSnippet:
    work: Work
    code_snippet: str
    functions: tuple[str, ...]
    recorded: tuple[RecordedCall, ...]
    provided: Mapping[str, Json]
    now: float


@record
class CallFunction:
    """An external function of a snippet, as an effect of its own."""

    work: Work
    index: int
    function: str
    args: Mapping[str, Json]
    idempotent: bool


@record
class Conclude:
    """The work is done already: determine what its result means for the plan."""

    work: Work
    result: Json


@record
class AskModel:
    """The model's next turn, given what it may see of the conversation."""

    work: Work
    model: str | None
    system: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    agents: tuple[str, ...]
    asks_people: bool = False


@record
class StartChild:
    """A plan as a child run, born in the transaction of its parent's start."""

    work: Work
    child_id: str
    plan_id: str
    values: Mapping[str, Json]
    root_id: str


@record
class StartAgent:
    """An agent as a child run, born likewise; one that verifies may only look.

    `approval` are the rules of the session that hands the work over: they go on to the child.
    """

    work: Work
    child_id: str
    agent_id: str
    prompt: str
    root_id: str
    verifies: bool = False
    approval: Mapping[str, ApprovalRule] = field(default_factory=dict)


@record
class StopModel:
    """The model's reply is not wanted any more."""

    work: Work


@record
class FetchContext:
    """Ask the coordinator for rules, knowledge and tools."""

    work: Work
    text: str


@record
class Decompose:
    """Ask the model for tasks; `complaint` is what was wrong with those before."""

    work: Work
    text: str
    context: Mapping[str, Json]
    history: tuple[Mapping[str, Json], ...] = ()
    complaint: str = ""


@record
class RunTask:
    """A task of a conversation, by one's own callable or the default executor."""

    work: Work
    task: SubTask
    text: str
    context: Mapping[str, Json]
    results: Mapping[str, Json]


@record
class FillArguments:
    """Ask the model for what a task's call lacks, from the results before it."""

    work: Work
    task: SubTask
    text: str
    parameters: Mapping[str, Json]
    results: Mapping[str, Json]


@record
class WriteAnswer:
    """Ask the model for the answer to the goal, from what came of its tasks."""

    work: Work
    text: str
    context: Mapping[str, Json]
    tasks: tuple[Mapping[str, Json], ...]


ConversationWork: TypeAlias = FetchContext | Decompose | RunTask | FillArguments | WriteAnswer
"""What a conversation's own coordinator, model and callables do."""


@record
class ConsultPlanner:
    """Ask the planner whether a failed listener is to be tried again."""

    run_id: str
    listener_id: str
    firing: int
    task_id: str
    failure: Failure
    retry_count: int


@record
class Diagnose:
    """Look at a case by rules and lessons (`number` 0), or ask a model about it."""

    run_id: str
    case_id: str
    number: int


@record
class ResumeChild:
    child_id: str
    by: str


@record
class CancelChild:
    child_id: str
    by: str
    reason: str


Effect: TypeAlias = (
    CallTool
    | RunSnippet
    | CallFunction
    | Conclude
    | AskModel
    | StopModel
    | FetchContext
    | Decompose
    | RunTask
    | FillArguments
    | WriteAnswer
    | StartChild
    | StartAgent
    | ConsultPlanner
    | Diagnose
    | ResumeChild
    | CancelChild
)
