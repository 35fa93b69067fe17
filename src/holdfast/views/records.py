"""The records that surfaces show: frozen, without behaviour, and JSON as they are (`wire`).

Those of lists and questions are made here of the projection's rows, which loads none of the
machines; those that need a run's state are made by `folds`.

Texts that are ours are messages, which a surface puts into the reader's language
(`wire.in_language` does it for an entry of a timeline). Times are seconds since the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from holdfast.drawing.picture import Condition
from holdfast.language.display import columns
from holdfast.model.approval import Grant
from holdfast.model.conversation import AfterFailure, EngineState, SubTask
from holdfast.model.interaction import InteractionRequest, InteractionStatus, InteractionType
from holdfast.model.message import Message, Usage
from holdfast.model.plan import TaskStatus
from holdfast.model.repair import CaseStatus, Diagnosis, Proposal
from holdfast.model.retry import Cause
from holdfast.model.rows import QuestionRow, RunRow, asked_under_four_eyes, request_of
from holdfast.model.run import JOURNAL_KINDS, KINDS, RunKind, RunStatus, StepStatus
from holdfast.model.values import Json, JsonObject
from holdfast.views.stories.text import clock

if TYPE_CHECKING:
    from holdfast.core.run.state import QuestionState


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run as lists show it: its row, and nothing that would need its events.

    `name` is the plan or agent that it is a run of; `about` what it is about beyond its title;
    `summary` has its numbers (`done` of `tasks`, `waiting`, `failed`, `retries`, `turn`, …).
    """

    run_id: str
    kind: RunKind
    name: str
    title: str
    status: RunStatus
    root_id: str
    parent_id: str | None
    created_at: float
    updated_at: float
    about: str
    summary: Mapping[str, Json]
    definition: str

    @property
    def is_root(self) -> bool:
        return self.root_id == self.run_id

    @property
    def waits_until(self) -> float | None:
        """The moment that a running plan waits for, where it does nothing else."""
        moment = self.summary.get("waits_until")
        return float(moment) if isinstance(moment, int | float) else None


@dataclass(frozen=True, slots=True)
class StepView:
    """A step's current firing: a listener, a task of a conversation, a model's call.

    `most` is how many attempts a round has (0 where none is set), `retries` how many rounds the
    planner has added; `why` what a delayed attempt waits for, `retry_at` when it is due. `target`
    is the task of a plan that it sets, `tool` what a session's step calls. `put_aside`: the turn
    of the conversation that it belonged to has failed. `waits_until`: the moment that it waits for.
    """

    step_id: str
    status: StepStatus
    condition: Condition
    words: str
    firing: int
    attempt: int
    retries: int
    most: int
    error: str | None
    why: str
    retry_at: float | None
    child_id: str | None
    child_status: str | None
    question_id: str | None
    target: str | None = None
    tool: str | None = None
    args: Mapping[str, Json] = field(default_factory=dict)
    put_aside: bool = False
    waits_until: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A status that a task has had."""

    status: TaskStatus
    reason: str
    at: float


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task of a plan; `words` says how it is, `trace` has the oldest first."""

    task_id: str
    name: str
    status: TaskStatus
    condition: Condition
    words: str
    context: Mapping[str, Json]
    trace: tuple[Trace, ...]


@dataclass(frozen=True, slots=True)
class CaseView:
    """A failure that a repair could mend. `requests` is how often hooks or a model were asked,
    `reason` why there is no proposal, or why the case is closed; `question_id` asks for consent.
    `refused_by`: who refused what was proposed last; the reason is then in their own words."""

    case_id: str
    listener_id: str
    status: CaseStatus
    opened_at: float
    opened_seq: int
    cause: Cause | None
    error: str
    requests: int
    reason: str
    diagnosis: Diagnosis | None
    proposal: Proposal | None
    question_id: str | None
    patch_id: str
    refused_by: str = ""


@dataclass(frozen=True, slots=True)
class PatchView:
    """A change of this run's plan, by its event `seq`; `words` says it in plain words."""

    patch_id: str
    case_id: str
    seq: int
    at: float
    base: str
    digest: str
    operations: tuple[JsonObject, ...]
    words: tuple[str, ...]
    by: str


@dataclass(frozen=True, slots=True)
class PlanView:
    """`context` is the seed's: `values`, `metadata` and what it waits for. `resume_runs` are the
    listeners that a resume would run again. `digest` names the plan as it is now, `pinned` the one
    that the run began with; `patches` lie between them."""

    plan_id: str
    digest: str
    prompt: str
    main_task_id: str
    context: Mapping[str, Json]
    tasks: tuple[TaskView, ...]
    steps: tuple[StepView, ...]
    done: int
    retries: int
    error_info: Mapping[str, Json] | None
    failed_listener_id: str | None
    resume_runs: tuple[str, ...]
    verification: Mapping[str, str]
    pinned: str = ""
    cases: tuple[CaseView, ...] = ()
    patches: tuple[PatchView, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionView:
    """`messages` has the oldest first; `rules` are those of approval that it was opened with, as
    JSON; `steps` are the model's request and the calls of its last reply."""

    agent_id: str
    agent_name: str
    stage: str
    turn: int
    text: str
    messages: tuple[Message, ...]
    answer: str
    usage: Usage
    requests: int
    rules: Mapping[str, Json]
    grants: tuple[Grant, ...]
    tools: tuple[str, ...]
    steps: tuple[StepView, ...]
    error: str = ""
    role: str | None = None
    """Whom the agent's questions ask."""


@dataclass(frozen=True, slots=True)
class ConversationTask:
    """A task of a conversation, and how it is."""

    step_id: str
    task: SubTask
    condition: Condition
    words: str


@dataclass(frozen=True, slots=True)
class ConversationView:
    """`answer` is the last word of a completed turn, `said` what the model itself has said.

    `tasks` are in the order of their numbers. `choices` are how it may go on after a failure,
    `retried` and `left_out` the ids of the tasks that retrying and skipping are about; `ends` are
    the ids of the tasks that no other done task waited for. `pausing`: a pause takes hold before
    the first task. `pausable`: it can be paused now.
    """

    phase: EngineState
    left: EngineState
    turn: int
    text: str
    answer: str
    said: str
    tasks: tuple[ConversationTask, ...]
    steps: tuple[StepView, ...]
    total: int
    completed: int
    skipped: int
    progress: float
    pausing: bool
    pausable: bool
    stopped: bool
    choices: tuple[AfterFailure, ...]
    retried: tuple[str, ...]
    left_out: tuple[str, ...]
    ends: tuple[str, ...]
    doubtful: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class RunView(RunLine):
    """One run, folded from its state at `version`; one of the last three has what is particular
    to its kind, unless it was read without parts.

    `rests`: nothing more happens by itself. `over`: nothing can move it any more. `held`: a person
    has paused it. `failed` are the steps that stand in the way; `error` says why it is in error.
    """

    version: int
    started_by: str
    error: str
    cancelled_by: str | None
    failed: tuple[str, ...]
    open_questions: int
    held: bool
    rests: bool
    over: bool
    plan: PlanView | None = None
    session: SessionView | None = None
    conversation: ConversationView | None = None

    @property
    def steps(self) -> tuple[StepView, ...]:
        part = self.plan or self.session or self.conversation
        return part.steps if part is not None else ()

    @property
    def asks_or_rests(self) -> bool:
        return self.status is RunStatus.PAUSE or self.rests


@dataclass(frozen=True, slots=True)
class InteractionView:
    """A question, as its row has it; `about` is what the run at the top is about.

    The rest is known where its run was read too (`RunReader.question`): how it was answered, what
    was filled in so far, by whom (`drafts`), how often a reminder was sent. Where it is known who
    reads it, `why_not` is why they may not answer, and `why_not_approve` why they may only refuse.
    """

    question_id: str
    run_id: str
    root_id: str
    status: InteractionStatus
    type: InteractionType
    title: str
    role: str | None
    opened_at: float
    deadline: float | None
    closed_at: float | None
    request: InteractionRequest
    four_eyes: bool = False
    about: str = ""
    by: str | None = None
    option_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None
    drafts: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    reminded: int = 0
    why_not: str = ""
    why_not_approve: str = ""

    @property
    def is_open(self) -> bool:
        return self.status is InteractionStatus.OPEN

    @property
    def is_ours(self) -> bool:
        """Whether its reader may take each of its options, as far as is known."""
        return not (self.why_not or self.why_not_approve)


ChatKind: TypeAlias = Literal["said", "reply", "call", "result", "note"]


@dataclass(frozen=True, slots=True)
class ChatLine:
    """What an event is in a transcript: what a person said, a whole reply, a call and its result
    on one line each, or a note."""

    kind: ChatKind
    text: str


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One event in words: who did what, and what it did to tasks or a sub-run asked (`moves`).

    `took` is how long what it ends has taken. `told` is false where its neighbours tell it
    already. The rest is known where the run was folded along (`RunReader.timeline`, `follow`):
    `data` is the event as it is published, `status` and `rests` how the run is after it, `chat`
    what it is in a chat's transcript, `narrated` what the followers of a session
    (`AgentExecutionEvent`) or of a conversation (`EngineEvent`) are told, as JSON.
    """

    seq: int
    at: float
    type: str
    who: str
    what: str
    moves: tuple[str, ...]
    tone: Condition
    took: float | None
    told: bool = True
    chat: ChatLine | None = None
    status: RunStatus | None = None
    rests: bool = False
    data: Mapping[str, Json] = field(default_factory=dict)
    narrated: Mapping[str, Json] | None = None

    def lines(self, *, date: bool = False) -> list[str]:
        """As terminals print it: the event, and below it what it moved."""
        when = clock(self.at, date=date)
        moved = (f"{when}  {'':<8}   {one}" for one in self.moves)
        who = self.who + " " * (8 - columns(self.who))
        return [f"{when}  {who} {self.what}", *moved]


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event as it is published: `payload` is its JSON, without what was filled into drafts."""

    run_id: str
    seq: int
    at: float
    type: str
    payload: str


@dataclass(frozen=True, slots=True)
class Raised:
    """The traceback of a step's last attempt that raised something; `name` is the step's."""

    step_id: str
    name: str
    attempt: int
    at: float
    text: str


def run_line(row: RunRow) -> RunLine:
    return RunLine(**line_fields(row))


def line_fields(row: RunRow) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "kind": KINDS[row.kind],
        "name": row.name,
        "title": row.title,
        "status": RunStatus(row.status),
        "root_id": row.root_id,
        "parent_id": row.parent_id,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "about": about_row(row),
        "summary": json.loads(row.summary),
        "definition": row.definition,
    }


def about_row(row: RunRow) -> str:
    """What a run is about in one line, beyond its name; empty where its row does not say."""
    if row.kind == JOURNAL_KINDS[RunKind.CONVERSATION]:
        return row.title
    summary = json.loads(row.summary)
    prompt = summary.get("prompt") or ""
    return str((prompt not in (row.name, row.title) and prompt) or summary.get("facts") or "")


def interaction_view(
    row: QuestionRow,
    about: str = "",
    request: InteractionRequest | None = None,
    asked: QuestionState | None = None,
) -> InteractionView:
    """A question by its row, and by the state of its run where that was read: how it ended, or
    what was filled in so far. `request` is given where it was read from the row before."""
    request = request or request_of(row)
    view = InteractionView(
        question_id=row.question_id,
        run_id=row.run_id,
        root_id=row.root_id,
        status=InteractionStatus(row.status),
        type=InteractionType(row.type),
        title=request.title,
        role=row.role,
        opened_at=row.opened_at,
        deadline=row.deadline,
        closed_at=row.closed_at,
        request=request,
        four_eyes=asked_under_four_eyes(row),
        about=about,
    )
    if asked is None:
        return view
    return replace(
        view,
        role=asked.role,
        status=asked.status,
        deadline=asked.deadline,
        closed_at=asked.closed_at,
        by=asked.by,
        option_id=asked.option_id,
        data=dict(asked.data),
        feedback=asked.feedback,
        drafts={who: dict(data) for who, data in asked.drafts.items()},
        reminded=asked.reminded,
    )
