"""The state that every run has, reduced from its events and kept in persistent maps.

Changing one step of ten thousand costs one small node, and the state before stays
valid: rolling back, or encoding a snapshot on another thread, needs no copy.

States have many fields and change at every event, so they keep a `__dict__`: copying
it is ten times faster than `dataclasses.replace`, which calls the constructor. The copies are
made with `{**fields}`: `fields.copy()` of a constructor's dict shares its keys, and on Python
3.11 each reading of an attribute then takes 270 instructions more. A decision writes into a
successor of the state it was given (`DecisionBuilder`), as does a replay; a state that others
hold is never changed.

Below the records: the changes to steps and statuses of which reducers are made. Statuses come from
the tables; the counts that summarise all steps are kept here only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, ClassVar, Final, TypeVar

from immutables import Map
from rpds import HashTrieSet

from holdfast.core.run.tables import (
    COUNTED,
    INSTANCE,
    Lifecycle,
    Signal,
    StepMove,
    StepStatus,
    next_instance,
    next_step,
)
from holdfast.model.effects import RecordedCall
from holdfast.model.events import QuestionAnswered
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
    from, `failing_since` is when the first of them failed; `why` says what it waits for.
    `carried` holds a result (in a tuple, so that None is a
    result too) that only waits to be concluded. `former_consent` is one that the arguments
    have outgrown; the person asked again sees what has changed. `repeats` counts how often a
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
    failing_since: float | None = None
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
    says that a person has paused this one. `retried` counts what was tried again.
    `provided_params` is what a person gave last, here or in a child run.
    `wanting` has the people who want what the run does, and how they said so.
    `readied` is the list in which this state's builder notes which steps become ready, `ANY_STEP`
    where that may be any; it is no part of the state.
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
    """A copy for the next events to be written into; nothing else holds it yet."""
    after = new(type(before))
    set_fields(after, {**before.__dict__, "readied": readied})
    return after


def changed(state: S, **changes: Any) -> S:
    """Write into a builder's successor: one copy serves all its events."""
    state.__dict__.update(changes)
    return state


CLOCK: Final = "clock"

STARTED: Final = "started"
SPOKE: Final = "spoke"
ANSWERED: Final = "answered"
CHANGED: Final = "changed"
RESUMED: Final = "resumed"
REGISTERED: Final = "registered"
"""How a person showed that they want what the run does (`four_eyes`)."""

CANCEL_TIMER = "cancel"
CONTINUE: Final = RunStatus.CONTINUE


_WAIT: Final = "wait:"


def wait_timer(step_id: str) -> str:
    return f"{_WAIT}{step_id}"


def next_moment(state: RunState) -> float | None:
    """The moment that a run waits for, where it waits for nothing else and does nothing."""
    if state.status is not RunStatus.RUNNING or state.in_flight or state.active > state.resting:
        return None
    if not all(name.startswith(_WAIT) for name in state.timers):
        return None
    return min(state.timers.values(), default=None)


def retry_timer(step_id: str) -> str:
    return f"retry:{step_id}"


def signal(state: S, given: Signal) -> S:
    status = next_instance(state.status, given, state.LIFECYCLE)
    return state if status is state.status else changed(state, status=status)


def asks(state: RunState) -> bool:
    """It waits for a person: this run or a child run asks something, or a person holds it."""
    return bool(state.open_questions) or state.paused_children > 0 or state.held


def settle(state: RunState, event: object) -> None:
    """`continue` lasts from the answer until the run takes its next step."""
    if not isinstance(event, QuestionAnswered):
        signal(state, Signal.ASK if asks(state) else Signal.GO_ON)


def add_step(state: S, step_id: str, step: StepState = NEW_STEP) -> S:
    """Store a step that there has not been, and count it."""
    return put_step(state, step_id, _ABSENT, step)


def move_step(
    state: S,
    step_id: str,
    move: StepMove | None,
    known: StepState | None = None,
    /,
    **changes: Any,
) -> S:
    """Move one step by the table.

    The step stays as it was but for its `changes`, or becomes what is `known` instead.
    """
    before = state.steps[step_id]
    if move is not None:
        changes["status"] = next_step(before.status, move)
    return put_step(state, step_id, before, evolve(known or before, **changes))


def put_step(state: S, step_id: str, before: StepState, after: StepState) -> S:
    """Store a step, and keep the counts that summarise all steps."""
    fields, was, now = state.__dict__, before.status, after.status
    fields["steps"] = fields["steps"].set(step_id, after)
    if before.child_id or after.child_id:
        counted, counts = _counts(before), _counts(after)
        for place, name in enumerate(_COUNTERS):
            fields[name] += counts[place] - counted[place]
    elif now is not was:
        for name, more in _SHIFTS[was][now]:
            fields[name] += more
    if now is _READY is not was:
        fields["readied"].append(step_id)
    return state


_COUNTERS: Final = ("active", "in_flight", "resting")
_SHIFTS: Final = {
    was: {
        now: tuple(
            (name, after - before)
            for name, before, after in zip(_COUNTERS, COUNTED[was], COUNTED[now], strict=True)
            if before != after
        )
        for now in StepStatus
    }
    for was in StepStatus
}
"""What a step's move from one status to another adds to the counts."""

_READY: Final = StepStatus.READY
_ABSENT: Final = evolve(NEW_STEP, status=StepStatus.STOPPED)
"""What counts for nothing, in place of a step that there is not yet."""


def _counts(step: StepState) -> tuple[int, int, int]:
    """A step that has a child run rests while that works."""
    rests = step.status is StepStatus.RUNNING and step.awaits_child and not step.resuming
    return (1, 1, 1) if rests else COUNTED[step.status]


def ended(state: S, how: Signal) -> S:
    """A run that has ended is never woken."""
    return signal(changed(state, timers=Map()), how)


def wants(state: S, by: str, how: str) -> S:
    """Four eyes: how a person first showed it is kept, unless a later sign says it closer. The
    clock wants nothing."""
    if by in ("", CLOCK) or state.wanting.get(by, CHANGED) != CHANGED:
        return state
    return changed(state, wanting=state.wanting.set(by, how))


def progressed(state: S) -> S:
    """Something came of the work: crashes before it no longer count."""
    return changed(state, recoveries=0) if state.recoveries else state


def add_failed(state: S, step_id: str) -> S:
    if step_id in state.failed:
        return state
    return changed(state, failed=(*state.failed, step_id))


def unfail(state: S, step_id: str) -> S:
    if step_id not in state.failed:
        return state
    return changed(state, failed=tuple(one for one in state.failed if one != step_id))


def waits_for(state: RunState) -> tuple[str, Waiting] | None:
    """The step that waits, and for what; None where nothing is asked, or it is not known what."""
    return min(_asked(state), key=lambda one: one[1].opened_at, default=None)


def _asked(state: RunState) -> Iterator[tuple[str, Waiting]]:
    opened = (state.questions[one] for one in state.open_questions)
    for one in sorted(opened, key=lambda one: one.opened_seq):
        request = one.request
        yield one.step_id, Waiting(request.request_id, one.purpose, request.form, one.opened_at)
    for step_id, step in sorted(state.steps.items()) if state.paused_children else ():
        if step.waits_for is not None and step.child_status == RunStatus.PAUSE:
            yield step_id, step.waits_for
