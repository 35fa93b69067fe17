"""A decision: the state so far, the events that led to it, the effects that follow.

The functions of a machine's `carry_out` emit their events into a `DecisionBuilder`, which applies
each at once, so that the next decision sees it. A replay emits recorded events in the same way.

A builder writes into a successor of its own. It makes another where the one it has may be held
elsewhere (`shared`); until then further decisions go into the same.

A timer is a name and a time in the state: `retry:L002`, `question:…`, `remind:…`, `escalate:…` and
`cancel`. When the clock jumps back nothing fires, because the time stays; when it jumps ahead each
timer fires once, because what has fired is removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

from holdfast.core.run.state import (
    CANCEL_TIMER,
    CONTINUE,
    EMPTY,
    RunState,
    S,
    StepState,
    settle,
    successor,
)
from holdfast.core.run.tables import StepStatus, Verdict
from holdfast.errors import NotAllowed
from holdfast.i18n.message import msg, term
from holdfast.language.instants import iso as iso
from holdfast.model.commands import Moment
from holdfast.model.effects import Effect
from holdfast.model.events import QuestionEscalated, QuestionReminded, StepWoken, WaitEnded
from holdfast.model.record import record
from holdfast.model.run import RunStatus

E = TypeVar("E")
Reducer: TypeAlias = Callable[[Any, Any, float], object]

NO_MOMENT = Moment(0.0)


class DecisionBuilder(Generic[S, E]):
    REDUCERS: ClassVar[Mapping[type, Reducer]]
    """What each event does to the state: the one place where it changes."""

    def __init__(self, state: S, moment: Moment = NO_MOMENT) -> None:
        self.state = state
        self.shared = True
        self._reducers = self.REDUCERS
        self.now, self.entropy, self.wanted_by = moment.now, moment.entropy, moment.wanted_by
        self.events: list[tuple[float, E]] = []
        self.readied: list[str] = []
        """The steps that have become ready, for the scheduler to take."""

    @property
    def moment(self) -> Moment:
        """When it decides, for what another draft decides with it."""
        return Moment(self.now, self.entropy, self.wanted_by)

    @property
    def mark(self) -> tuple[int, int]:
        """Where it stands, for `rewind`."""
        return len(self.events), len(self.readied)

    def emit(self, event: E) -> None:
        state, now = self.state, self.now
        if self.shared:
            self.state = state = successor(state, self.readied)
            self.shared = False
        fields = state.__dict__
        self.events.append((now, event))
        fields["version"] += 1
        fields["updated_at"] = now
        self._reducers[type(event)](state, event, now)
        if fields["status"] is CONTINUE:
            settle(state, event)

    def replay(self, records: Iterable[tuple[float, E]]) -> S:
        """The state after `(at, event)` records."""
        for self.now, event in records:
            self.emit(event)
            self.events.clear()
        return self.state

    def rewind(self, base: S, mark: tuple[int, int]) -> None:
        """Undo what was decided since `mark`; the events began with `base`."""
        decided, readied = mark
        if len(self.events) > decided:
            kept, now = self.events[:decided], self.now
            self.state, self.shared = base, True
            self.replay(kept)
            self.events[:], self.now = kept, now
            del self.readied[readied:]

    def step(self, step_id: str) -> StepState:
        return self.state.steps[step_id]

    def unguessable(self) -> str:
        """An id that nobody can guess, for what the next event brings into the world."""
        return self._drawn(16).hex()

    def jitter(self) -> float:
        """A number in [0, 1) that spreads retries."""
        return int.from_bytes(self._drawn(4), "big") / 2**32

    def _drawn(self, size: int) -> bytes:
        """Bytes that follow from the moment's secret and this place in this run's journal."""
        place = f"{self.state.run_id}:{self.state.version}".encode()
        return hashlib.blake2b(place, key=self.entropy[:64], digest_size=size).digest()


MAX_RECOVERIES = 3
"""A run that took its process down so often without progress is left to a person."""


@record
class Decision(Generic[S, E]):
    state: S
    events: tuple[E, ...] = ()
    effects: tuple[Effect, ...] = ()


def decided(builder: DecisionBuilder[S, E], effects: Sequence[Effect]) -> Decision[S, E]:
    return Decision(builder.state, tuple(event for _, event in builder.events), tuple(effects))


SAID: Final[Mapping[str, str]] = {
    "Converse": msg("Another message"),
    "Say": msg("Another message"),
    "Hold": msg("A pause"),
    "Unhold": msg("Going on"),
    "GoOn": msg("Going on"),
    "Abort": msg("Ending the turn"),
    "StartOver": msg("Starting over"),
    "RestoreSnapshot": msg("A snapshot"),
    "RerunFrom": msg("Running again"),
    "MarkDone": msg("Marking as done"),
    "EditContext": msg("Changing a context"),
}
"""Commands by words of the field, where their names are ours."""


Commands: TypeAlias = Mapping[type, Mapping[RunStatus, Verdict]]


def unwelcome(state: RunState, command: object, table: Commands) -> tuple[Effect, ...]:
    """Of a command that is not accepted: a word that comes too late decides nothing, any other
    is refused."""
    if table.get(type(command), EMPTY).get(state.status) is Verdict.IGNORE:
        return ()
    name = SAID.get(type(command).__name__) or term(type(command).__name__)
    raise NotAllowed(
        msg(
            "{command} is not possible: {id} is {status}",
            command=name,
            id=state.run_id,
            status=term(state.status),
        )
    )


D = TypeVar("D", bound=DecisionBuilder[Any, Any])


def tick(
    builder: DecisionBuilder[Any, Any], expire: Callable[[str], None], end_grace: Callable[[], None]
) -> None:
    """Fire every timer that is due; what a question's expiry means is the machine's."""
    due = sorted((at, name) for name, at in builder.state.timers.items() if at <= builder.now)
    for at, name in due:
        if builder.state.timers.get(name) != at:
            continue
        kind, _, subject = name.partition(":")
        match kind:
            case "retry":
                builder.emit(StepWoken(subject, builder.step(subject).firing))
            case "wait":
                builder.emit(WaitEnded(subject, builder.step(subject).firing, at))
            case "remind":
                builder.emit(QuestionReminded(subject, _reminders_due(builder, subject)))
            case "escalate":
                role = builder.state.questions[subject].request.escalate_to
                builder.emit(QuestionEscalated(subject, role))
            case "question":
                expire(subject)
            case _:
                assert name == CANCEL_TIMER
                end_grace()


def end_grace(builder: D, ask_unknown: Callable[[D, str, str], None]) -> None:
    """What has not ended by now is not waited for; whoever cancelled it is told so."""
    for step_id, step in sorted(builder.state.steps.items()):
        if step.status is StepStatus.RUNNING:
            ask_unknown(builder, step_id, msg("it had not ended when the grace was over"))


def _reminders_due(builder: DecisionBuilder[Any, Any], question_id: str) -> int:
    """How many reminders should have gone out by now; those missed while nobody ran are one."""
    question = builder.state.questions[question_id]
    due = (question.opened_at + after for after in question.request.reminders)
    return sum(at <= builder.now for at in due)
