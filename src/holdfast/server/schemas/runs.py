"""Plans, instances and runs as the API shows and takes them, in the seeds' snake_case.

Whatever a caller sends is bounded, and an unknown key is refused rather than overlooked.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from holdfast.language.instants import iso
from holdfast.model.conversation import AfterFailure
from holdfast.model.plan import TaskStatus
from holdfast.model.run import RunKind, RunStatus
from holdfast.views.records import TimelineEntry

LONGEST_PAGE: Final = 200
LONGEST_SOURCE: Final = 500_000
LONGEST_WAIT: Final = 60.0

LONGEST_RUN_ID: Final = 500
LONGEST_ID: Final = 100

NAME: Final = r"^[\w.-]+$"
"""Ids of runs and plans; those of sub-runs have one part for each run above."""

STEP: Final = r"^[\w.#-]+$"

RunId = Annotated[
    str,
    Path(pattern=NAME, max_length=LONGEST_RUN_ID, description="A run.", examples=["inst_000001"]),
]
PlanId = Annotated[
    str,
    Path(pattern=NAME, max_length=LONGEST_ID, description="A plan.", examples=["apply_computer"]),
]
RunName = Annotated[str, StringConstraints(pattern=NAME, max_length=LONGEST_RUN_ID)]
PlanName = Annotated[str, StringConstraints(pattern=NAME, max_length=LONGEST_ID)]
StepName = Annotated[str, StringConstraints(pattern=STEP, max_length=LONGEST_RUN_ID)]
Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="A version, by content.")]
Before = Annotated[RunName | None, Query(description="`next` of the page before this one.")]
Limit = Annotated[int, Query(ge=1, le=LONGEST_PAGE)]
Statuses = Annotated[list[RunStatus] | None, Query(description="Any of these; repeatable.")]
Wait = Annotated[
    float,
    Query(
        ge=0,
        le=LONGEST_WAIT,
        allow_inf_nan=False,
        description="Seconds to wait for what comes of it; without, it answers after the commit.",
    ),
]


class Given(BaseModel):
    """What a caller sends."""

    model_config = ConfigDict(extra="forbid")


class Shown(BaseModel):
    """What a caller is shown: made of a view with attributes of these names."""

    model_config = ConfigDict(from_attributes=True)


class Source(Given):
    source: str = Field(
        max_length=LONGEST_SOURCE,
        description="The plan as a YAML file has it.",
        examples=["plan_id: greet\nname: Greet\nmain_task_id: '001'\ntasks: […]\nlisteners: […]\n"],
    )


class Checked(Shown):
    """A plan without mistakes; one with mistakes is refused with all of them."""

    ok: bool = True
    plan_id: str = Field(examples=["apply_computer"])
    name: str = Field(examples=["Computer for a colleague"])
    digest: str


class PlanLine(Shown):
    plan_id: str = Field(examples=["apply_computer"])
    name: str = Field(examples=["Computer for a colleague"])
    description: str = ""
    digest: str = Field(description="What new instances are pinned to.")
    origin: str = Field(description="`registered` here, or brought by the `application`.")
    registered_by: str | None = None
    registered_at: float | None = None
    tasks: int = Field(examples=[3])
    listeners: int = Field(examples=[2])


class PlanLines(Shown):
    plans: list[PlanLine]


class PlanShown(PlanLine):
    definition: dict[str, Any] = Field(description="The plan; its keys are those of the YAML file.")
    inputs: dict[str, Any] = Field(description="What it needs to begin, as JSON Schema.")
    source: str | None = Field(None, description="The text it was registered with.")


class VersionLine(Shown):
    digest: str
    stored_at: float | None = Field(description="None: it comes with the application.")
    current: bool = Field(description="Whether new instances use it.")


class VersionLines(Shown):
    plan_id: str
    versions: list[VersionLine]


class VersionShown(VersionLine):
    plan_id: str
    definition: dict[str, Any]


class Start(Given):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"prompt": "为张三申请电脑", "plan_id": "apply_computer", "values": {}}]
        }
    )

    prompt: str = Field("", max_length=100_000)
    plan_id: PlanName | None = Field(None, description="Without it the planner chooses, or asks.")
    values: dict[str, Any] | None = Field(None, description="The plan's inputs.")


class Continue(Given):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"provided_params": {"computer_model": "MacBook Pro"}}]}
    )

    provided_params: dict[str, Any]


class ResumePlan(Given):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"plan_instance_id": "inst_000001"}, {}]}
    )

    plan_instance_id: RunName | None = None


class Reason(Given):
    reason: str = Field("", max_length=10_000, examples=["ordered by phone"])


class ResumeGiven(Given):
    failed: AfterFailure | None = Field(
        None,
        description="For a conversation that failed, and only then: `retry` what failed, `skip` it "
        "with what depends on it, or `stop` the turn. What was completed stays so.",
        examples=["retry"],
    )


class Skip(Reason):
    listener_id: StepName = Field(examples=["L002"])


class OneTask(Given):
    task_id: StepName = Field(examples=["002"])
    context: dict[str, Any] = Field(default_factory=dict, examples=[{"order": "PC-7"}])


class EditTask(Given):
    task_id: StepName = Field(examples=["001"])
    context: dict[str, Any] = Field(examples=[{"email": "will.zhang@example.com"}])


class Rerun(Given):
    listener_id: StepName = Field(examples=["L002"])


class Summary(Shown):
    """A run in numbers: `done` of `tasks`, questions that wait, steps that failed for good."""

    model_config = ConfigDict(extra="allow")

    prompt: str | None = Field(
        None, description="What it was started with, or a chat was told last, in one line."
    )
    facts: str | None = Field(None, description="Its first inputs, in one line; no secrets.")
    done: int | None = Field(None, examples=[1])
    tasks: int | None = Field(None, examples=[3])
    skipped: int | None = Field(None, description="Tasks of a conversation that were left out.")
    waiting: int = Field(0, examples=[1])
    failed: list[str] = Field(default_factory=list)
    retries: int = Field(0, description="What was tried again, by whomever.")
    turn: int | None = None
    phase: str | None = None
    stopped: bool = Field(
        False, description="A conversation whose turn failed and was ended by a person."
    )
    tokens: int | None = None
    waits_until: float | None = Field(
        None, description="The moment that a running plan waits for, where it does nothing else."
    )


class RunLine(Shown):
    id: str = Field(examples=["inst_000001"])
    kind: RunKind
    name: str = Field(description="The plan or agent it is a run of.", examples=["apply_computer"])
    title: str = Field(examples=["Computer for a colleague"])
    status: RunStatus
    parent_id: str | None = None
    root_id: str = Field(examples=["inst_000001"])
    created_at: float = Field(examples=[1789000000.0])
    updated_at: float = Field(examples=[1789000012.5])
    summary: Summary


class RunLines(Shown):
    runs: list[RunLine]
    next: str | None = Field(None, description="`before` of the next page, if there may be more.")
    server_time: float


class InstanceLines(Shown):
    instances: list[RunLine]
    next: str | None = Field(None, description="`before` of the next page, if there may be more.")
    server_time: float


class RunShown(RunLine):
    version: int = Field(description="The journal's last sequence number.", examples=[12])
    started_by: str = Field(examples=["will.zhang"])
    error: str | None = Field(None, description="Why it stands in error.")
    interactions: list[str] = Field(description="Open questions, its sub-runs' included.")
    server_time: float


class TraceShown(Shown):
    status: TaskStatus
    reason: str
    at: Annotated[str, BeforeValidator(iso)] = Field(examples=["2026-01-05T09:00:00Z"])


class TaskShown(Shown):
    task_id: str = Field(examples=["002"])
    name: str = Field(examples=["Ordered"])
    status: TaskStatus
    context: dict[str, Any]
    trace: list[TraceShown]


class StepShown(Shown):
    """A listener that has fired."""

    listener_id: str = Field(examples=["L001"], validation_alias="step_id")
    status: str = Field(examples=["waiting"])
    firing: int
    attempt: int
    retries: int
    error: str | None = None
    child_id: str | None = None
    interaction_id: str | None = Field(None, validation_alias="question_id")
    retry_at: float | None = None
    waits_until: float | None = None


class InstanceShown(RunShown):
    plan_id: str = Field(examples=["apply_computer"])
    digest: str = Field(description="Of its plan as it is: not `pinned` once it was patched.")
    pinned: str = Field(description="The version that it began with.")
    prompt: str
    context: dict[str, Any] = Field(
        description="`values` and `metadata`; while it waits also `paused_listener_id`, "
        "`required_params`, `pause_reason` and `pause_timestamp`."
    )
    tasks: list[TaskShown]
    steps: list[StepShown]
    retries: int = Field(description="How often the planner has tried again.")
    error_info: dict[str, Any] | None = None
    failed_listener_id: str | None = None
    failed_listener_ids: list[str] = Field(default_factory=list)
    resume_runs: list[str] = Field(description="What a resume would run again.")
    verification: dict[str, str]


class Continued(Shown):
    """As the seed's `continue_plan` answers."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "success": True,
                    "status": "running",
                    "result": {"success": True, "result": {"order_id": "PC-7"}},
                }
            ]
        }
    )

    success: bool = True
    status: RunStatus
    result: dict[str, Any] | None = Field(
        None, description="The listener's result, when it was waited for and came."
    )


class Resumed(Shown):
    success: bool = True
    message: str = "Plan resumed successfully"
    plan_instance_id: str = Field(examples=["inst_000001"])
    status: RunStatus


class EventShown(Shown):
    run_id: str = Field(examples=["inst_000001"])
    seq: int
    at: float
    type: str = Field(examples=["RunStarted"])
    data: dict[str, Any]


class TracebackShown(Shown):
    step_id: str = Field(examples=["L002"])
    attempt: int
    at: float
    text: str


class Tracebacks(Shown):
    tracebacks: list[TracebackShown]
    names: dict[str, str] = Field(
        description="What a step is called, by its `step_id`.",
        examples=[{"L002": "L002 (grant_access)"}],
    )
    server_time: float


class History(Shown):
    events: list[EventShown]
    next: int | None = Field(None, description="`after` of the next page, if there may be more.")
    server_time: float


class TimelinePage(Shown):
    entries: list[TimelineEntry]
    next: int | None = Field(None, description="`after` of the next page, if there may be more.")
    server_time: float


class DefinitionShown(Shown):
    """`kind` is `plan`, `react` for an agent, or `conversation`."""

    run_id: str = Field(examples=["inst_000001"])
    kind: str = Field(examples=["plan"])
    name: str = Field(examples=["apply_computer"])
    digest: str = Field(description="Of the whole of it, by content.")
    definition: dict[str, Any]
