"""Plans as their authors write them: tasks, and listeners that move them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from holdfast.model.form import Form
from holdfast.model.interaction import Asking
from holdfast.model.record import TextEnum
from holdfast.model.repair import RepairPolicy
from holdfast.model.retry import RetryPolicy
from holdfast.model.run import RunStatus
from holdfast.model.values import JsonObject


class TaskStatus(TextEnum):
    NOT_STARTED = "NotStarted"
    RUNNING = "Running"
    DONE = "Done"
    ERROR = "Error"
    RETRYING = "Retrying"
    PENDING = "Pending"
    SKIPPED = "Skipped"
    CANCELLED = "Cancelled"


PlanInstanceStatus: TypeAlias = RunStatus
"""A run's status, by the name that it has for plans."""


class WhilePaused(TextEnum):
    """What other branches do while a question is open."""

    GO_ON = "go_on"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Task:
    task_id: str
    name: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class ToolAction:
    """Calls a tool; what its schema requires and `args` lacks is asked of a person.

    `missing` says how that is asked, `consent` how an approval is.
    """

    kind: ClassVar[str] = "tool"
    tool: str
    args: JsonObject = field(default_factory=dict)
    fields: Form = Form()
    missing: Asking = Asking()
    consent: Asking = Asking()


@dataclass(frozen=True, slots=True)
class CodeAction:
    """Runs a snippet in the sandbox; it may call the tools named in `functions`."""

    kind: ClassVar[str] = "code"
    code_snippet: str
    functions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HumanAction:
    """Asks a person: a form to fill in, or a confirmation when the form is empty."""

    kind: ClassVar[str] = "human"
    form: Form = Form()
    asking: Asking = Asking()


VERSION: Final = "@version"
"""Among the values of a plan listener: the digest of the version that runs, if not today's."""


@dataclass(frozen=True, slots=True)
class PlanAction:
    """Runs another plan as a child run; its result is the child's main task context."""

    kind: ClassVar[str] = "plan"
    plan_id: str
    values: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AgentAction:
    """Hands a prompt to an agent, which runs as a child run."""

    kind: ClassVar[str] = "agent"
    agent_id: str
    action_prompt: str = ""


@dataclass(frozen=True, slots=True)
class WaitAction:
    """Waits for a moment: `until` a date and time, `after` a while, or until the `clock` shows a
    time of day in a `timezone`, on one of the `weekdays`. The first three may be templates."""

    kind: ClassVar[str] = "wait_until"
    until: str = ""
    after: str = ""
    clock: str = ""
    timezone: str = ""
    weekdays: tuple[str, ...] = ()


Action: TypeAlias = ToolAction | CodeAction | HumanAction | PlanAction | AgentAction | WaitAction


@dataclass(frozen=True, slots=True)
class Output:
    """What a listener does to a task when it succeeds or fails; `context` is a template."""

    task_id: str
    status: TaskStatus
    context: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listener:
    listener_id: str
    trigger_task_id: tuple[str, ...]
    trigger_condition: str
    action: Action
    success_output: Output | None = None
    failure_output: Output | None = None
    retry: RetryPolicy = RetryPolicy()
    timeout: float | None = None
    approval: bool = False
    repeat: bool = False
    priority: int = 100
    max_firings: int = 1_000

    @property
    def id(self) -> str:
        return self.listener_id

    @property
    def listener_type(self) -> str:
        return self.action.kind


@dataclass(frozen=True, slots=True)
class Check:
    """A read-only look at the outcome; `expect` is a condition over `result`."""

    tool: str
    args: JsonObject = field(default_factory=dict)
    expect: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    plan_id: str
    name: str
    main_task_id: str
    tasks: tuple[Task, ...]
    listeners: tuple[Listener, ...]
    description: str = ""
    inputs: Form = Form()
    verify: tuple[Check, ...] = ()
    while_paused: WhilePaused = WhilePaused.GO_ON
    repair: RepairPolicy = RepairPolicy()
