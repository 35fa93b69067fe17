"""The state of a conversation: its phase, its tasks, and who waits for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from immutables import Map

from holdfast.core.conversation.schedule import Heap
from holdfast.core.conversation.tables import CONVERSATION
from holdfast.core.run.state import RunState, StepState
from holdfast.core.run.tables import Lifecycle
from holdfast.model.conversation import ConversationSettings, EngineState, SubTask
from holdfast.model.record import record, state
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

CONTEXT = "context"
DECOMPOSE = "decompose"
CONFIRM = "confirm"
ANSWER = "answer"


@dataclass(frozen=True)
class ConversationDefinition:
    """What a conversation is pinned to."""

    settings: ConversationSettings
    digest: str


@record
class Turn:
    """What was wanted, and what came of it: the next turn knows. `unfinished` is what is to be
    known of a turn that failed."""

    text: str
    results: Mapping[str, Json]
    unfinished: Mapping[str, Json] = field(default_factory=dict)
    answer: str = ""


@state
class ConversationState(RunState):
    """`tasks` are kept by their steps, `steps_of` finds those by the tasks' own ids.

    `unattended` says that it has no consumer of its own, `pending` that an input waits to be
    received. `waits_for` counts what a task still
    waits for, `frees` lists who waits for it, `queue` has those that may start, the most
    urgent first. `untold` are outcomes that the consumer has yet to hear of. `former` has the
    steps of a turn that failed (see `recovery`), and `kept` says that one goes on or was stopped.
    `pausing` is a pause that takes hold before the first task; `feedback` is what a person who
    wanted other tasks said of those before, which the model hears. `filling` has the parameters
    that a model is asked for, and is empty for a task of which it has been asked.
    """

    LIFECYCLE: ClassVar[Lifecycle] = CONVERSATION

    definition: ConversationDefinition = field(kw_only=True)
    phase: EngineState = EngineState.IDLE
    left: EngineState = EngineState.IDLE
    pending: bool = False
    unattended: bool = False
    turn: int = 0
    text: str = ""
    context: Mapping[str, Json] = field(default_factory=dict)
    complaint: str = ""
    history: tuple[Turn, ...] = ()
    tasks: Map[str, SubTask] = Map()
    steps_of: Map[str, str] = Map()
    order: tuple[str, ...] = ()
    scheduled: int = 0
    waits_for: Map[str, int] = Map()
    frees: Map[str, tuple[str, ...]] = Map()
    queue: Heap = None
    untold: tuple[str, ...] = ()
    total: int = 0
    completed: int = 0
    skipped: int = 0
    error: str = ""
    former: Map[str, StepState] = Map()
    kept: bool = False
    pausing: bool = False
    confirmed: bool = False
    feedback: str = ""
    by_model: bool = False
    answer: str = ""
    filling: Map[str, Mapping[str, Json]] = Map()

    @property
    def settings(self) -> ConversationSettings:
        return self.definition.settings

    @property
    def progress(self) -> float:
        """What was skipped is not done."""
        return self.completed / self.total if self.total else 0.0

    @property
    def all_told(self) -> bool:
        return self.completed + self.skipped == self.total

    @property
    def stopped(self) -> bool:
        """A person has ended its turn that failed; what was left of it does not run."""
        return self.status is RunStatus.DONE and self.phase is EngineState.IDLE and self.kept

    @property
    def places(self) -> int:
        """How many more tasks may be chosen; one that waits for a person takes no place."""
        waiting = len(self.open_questions) + self.paused_children
        return self.settings.max_parallel - (self.active - waiting)

    @property
    def has_room(self) -> bool:
        """Whether one more may start: what waited for a person comes back beside the others."""
        return self.in_flight - self.paused_children < self.settings.max_parallel


def told_turn(turn: Turn) -> dict[str, Json]:
    """A former turn as the model hears of it, and as a snapshot keeps it."""
    told: dict[str, Json] = {"text": turn.text, "results": dict(turn.results)}
    told = {**told, "unfinished": dict(turn.unfinished)} if turn.unfinished else told
    return {**told, "answer": turn.answer} if turn.answer else told


def results_before(state: ConversationState, task: SubTask) -> Mapping[str, Json]:
    """What the tasks that it depends on have returned."""
    return {one: state.tasks[state.steps_of[one]].result for one in task.dependencies}
