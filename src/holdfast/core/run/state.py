"""The state that every run has: a fold of its events, kept in persistent maps.

Changing one step of ten thousand costs one small node, and the state before stays
valid: rolling back, or encoding a snapshot on another thread, needs no copy.

States have many fields and change at every event, so they keep a `__dict__`: copying
it is ten times faster than `dataclasses.replace`, which calls the constructor. The copies are
made with `{**fields}`: `fields.copy()` of a constructor's dict shares its keys, and on Python
3.11 each reading of an attribute then takes 270 instructions more. A decision
writes into a successor of the state it was given (`RunDraft`), as does a replay; a state
that others hold is never touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Final, TypeVar

from immutables import Map
from rpds import HashTrieSet

from holdfast.core.run.tables import INSTANCE, Lifecycle, StepStatus
from holdfast.model.effects import RecordedCall
from holdfast.model.interaction import InteractionRequest, InteractionStatus, Waiting
from holdfast.model.record import record, state
from holdfast.model.retry import Failure
from holdfast.model.run import Parent, RunStatus
from holdfast.model.values import Json


@state
class StepState:
    """One step's current firing.

    `clock` is the time that a snippet sees, the same at every pass over its recorded calls.
    `claim` is the sequence number of the start that is in flight; an outcome under another
    claim is late. `tried` counts the attempts of earlier rounds, which the backoff goes on
    from; `why` says what it waits for. `carried` holds a result (in a tuple, so that None is a
    result too) that only waits to be concluded. `former_consent` is one that the arguments
    have outgrown; whoever is asked again sees what has changed. `repeats` counts how often a
    listener has fired again by itself, `pending` the triggers that a repeating listener has
    yet to follow; a `forgotten` one may fire again although it has fired. `waits_for` is
    what the child run asks a person; `resuming` lasts until it has said that it goes on.
    """

    firing: int = 1
    status: StepStatus = StepStatus.READY
    attempt: int = 0
    generation: int = 0
    claim: int = 0
    idempotent: bool = False
    pure: bool = False
    args: Mapping[str, Json] | None = None
    provided: Mapping[str, Json] = field(default_factory=dict)
    carried: tuple[Json] | None = None
    calls: tuple[RecordedCall, ...] = ()
    clock: float = 0.0
    calling: tuple[str, Mapping[str, Json], bool] | None = None
    consent: str | None = None
    former_consent: str | None = None
    grant_id: str | None = None
    feedback: str | None = None
    question_id: str | None = None
    child_id: str | None = None
    child_status: str | None = None
    waits_for: Waiting | None = None
    failure: Failure | None = None
    tried: int = 0
    why: str = ""
    retries: int = 0
    retry_times: tuple[float, ...] = ()
    repeats: int = 0
    pending: int = 0
    forgotten: bool = False
    resuming: bool = False

    @property
    def awaits_child(self) -> bool:
        """A child run does the work, and has not finished it yet."""
        return self.child_id is not None and self.carried is None


@record
class QuestionState:
    request: InteractionRequest
    step_id: str
    firing: int
    purpose: str
    opened_at: float
    opened_seq: int
    deadline: float | None = None
    args: Mapping[str, Json] | None = None
    consent: str | None = None
    status: InteractionStatus = InteractionStatus.OPEN
    closed_at: float | None = None
    by: str | None = None
    option_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    feedback: str | None = None
    drafts: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    reminded: int = 0
    role: str | None = None
    wanted_by: Mapping[str, str] | None = None
    wish: bool = False


@state
class RunState:
    """What every machine must know of its run.

    `active` counts steps that will move by themselves or by an answer, `in_flight`
    those that are out in the world, `resting` those that wait for a person, a
    timer or a child run. `paused_children` counts child runs that wait for a person; `held`
    says that somebody has paused this one. `retried` counts what was tried again.
    `provided_params` is what a person gave last, here or in a child run.
    `wanting` has the people who want what the run does, and how they said so.
    `readied` is the list in which the draft that writes this state notes which steps become ready,
    `ANY_STEP` where that may be any; it is no part of the state.
    """

    LIFECYCLE: ClassVar[Lifecycle] = INSTANCE

    run_id: str
    version: int = 0
    status: RunStatus = RunStatus.NOT_STARTED
    root_id: str = ""
    parent: Parent | None = None
    started_by: str = ""
    created_at: float = 0.0
    updated_at: float = 0.0
    steps: Map[str, StepState] = Map()
    questions: Map[str, QuestionState] = Map()
    open_questions: HashTrieSet[str] = HashTrieSet()
    timers: Map[str, float] = Map()
    failed: tuple[str, ...] = ()
    heard: Map[str, int] = Map()
    active: int = 0
    in_flight: int = 0
    resting: int = 0
    paused_children: int = 0
    held: bool = False
    retried: int = 0
    recoveries: int = 0
    provided_params: Mapping[str, Json] = field(default_factory=dict)
    continued_at: float | None = None
    cancelled_by: str | None = None
    ended_by: str = ""
    wanting: Map[str, str] = Map()
    readied: list[str] = field(default_factory=list, compare=False, repr=False)


S = TypeVar("S", bound=RunState)
V = TypeVar("V")

EMPTY: Mapping[str, Any] = {}
ANY_STEP: Final = "\0"


new: Final = object.__new__
set_fields: Final = RunState.__dict__["__dict__"].__set__
set_step_fields: Final = StepState.__dict__["__dict__"].__set__
"""Named here once: looking them up takes as long as calling them."""


def evolve(before: StepState, /, **changes: Any) -> StepState:
    """A copy of a step with some fields changed."""
    after = new(StepState)
    set_step_fields(after, {**before.__dict__, **changes})
    return after


NEW_STEP = evolve(StepState())


def without(known: Map[str, V], key: str) -> Map[str, V]:
    """The map without that key, if it has it."""
    return known.delete(key) if key in known else known


def successor(before: S, readied: list[str]) -> S:
    """A copy for the next events to be written into; nobody else has seen it yet."""
    after = new(type(before))
    set_fields(after, {**before.__dict__, "readied": readied})
    return after


def changed(state: S, **changes: Any) -> S:
    """Write into a draft's successor: one copy serves all its events."""
    state.__dict__.update(changes)
    return state
