"""What all machines decide alike: a command in, events and effects out.

    state, command, moment ──> decide ──> Decision(events, effects, state)

Pure: it never awaits, logs, sleeps, reads a clock or invents an id. `COMMANDS` says which command
is welcome in which status, `DECISIONS` what it leads to, `EFFECTS` what is to be done once an event
is on disk. A refusal raises and changes nothing; a command that comes too late decides nothing.

Effects are worked out from the state: after a crash the same functions give the same effects for
what was in flight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, TypeAlias

from holdfast.core.interactions.answers import Answered, expired, keep_draft, take
from holdfast.core.run.builder import NO_MOMENT, DecisionBuilder, E
from holdfast.core.run.state import CANCEL_TIMER, EMPTY, RunState, S, StepState
from holdfast.core.run.steps import cancel_run, hears, in_flight, release, repeatable, terminate
from holdfast.core.run.tables import ACCEPT, StepStatus, Verdict
from holdfast.errors import NotAllowed
from holdfast.i18n.message import msg, term
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.events import (
    QuestionEscalated,
    QuestionReminded,
    RunCancelled,
    RunRecovered,
    StepWoken,
    WaitEnded,
)
from holdfast.model.record import record
from holdfast.model.run import RunStatus

MAX_RECOVERIES = 3
"""A run that took its process down so often without progress is left to a person."""

WENT_DOWN: Final = msg("the process that ran it went down")

Effects: TypeAlias = Sequence[f.Effect]
Commands: TypeAlias = Mapping[type, Mapping[RunStatus, Verdict]]
Decisions: TypeAlias = Mapping[type, Callable[[Any, Any], Effects | None]]
Following: TypeAlias = Mapping[type, Callable[[Any, Any], Iterable[f.Effect]]]

_CANCELLING: Final = RunStatus.CANCELLING
_RUNNING: Final = StepStatus.RUNNING


@record
class Decision(Generic[S, E]):
    state: S
    events: tuple[E, ...] = ()
    effects: tuple[f.Effect, ...] = ()


class Decider(DecisionBuilder[S, E], ABC):
    """One machine: its tables, and as methods what it does in its own way."""

    COMMANDS: ClassVar[Commands]
    DECISIONS: ClassVar[Decisions]
    """The effects returned are those that follow from no event."""
    EFFECTS: ClassVar[Following] = {}
    """Of events that have just been decided; the state is the one after them all."""
    WELCOME: ClassVar[Mapping[RunStatus, Decisions]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.WELCOME = {
            status: {
                kind: cls.DECISIONS[kind]
                for kind, verdicts in cls.COMMANDS.items()
                if verdicts[status] is ACCEPT
            }
            for status in RunStatus
        }

    def __init__(self, state: S, moment: c.Moment = NO_MOMENT) -> None:
        super().__init__(state, moment)
        self._welcome, self._effects = self.WELCOME, self.EFFECTS

    @classmethod
    def replayed(cls, state: S, records: Iterable[tuple[float, E]]) -> S:
        """The state after `(at, event)` records: the journal, and nothing else, is the run."""
        return cls(state).replay(records)

    @classmethod
    def decide(cls, state: S, command: c.Command, moment: c.Moment) -> Decision[S, E]:
        builder = cls(state, moment)
        effects = builder.carry_out(command)
        events = tuple(event for _, event in builder.events)
        return Decision(builder.state, events, tuple(effects))

    def carry_out(self, command: c.Command) -> Effects:
        """As `decide`, into a builder that may have decided other commands before."""
        decided = self._welcome[self.state.status].get(type(command))
        if decided is None:
            return self.unwelcome(command)
        events, before = self.events, len(self.events)
        effects = decided(self, command) or ()
        if len(events) == before:
            return effects
        state = self.state
        if not state.active or state.status is _CANCELLING:
            self.settle()
        follow = self._effects.get
        for _, event in events[before:]:
            following = follow(type(event))
            if following is not None:
                effects = (*effects, *following(state, event))
        return effects

    def unwelcome(self, command: c.Command) -> Effects:
        """A command that comes too late decides nothing, any other is refused."""
        kind, state = type(command), self.state
        if self.COMMANDS.get(kind, EMPTY).get(state.status) is Verdict.IGNORE:
            return ()
        raise NotAllowed(
            msg(
                "{command} is not possible: {id} is {status}",
                command=SAID.get(kind.__name__) or term(kind.__name__),
                id=state.run_id,
                status=term(state.status),
            )
        )

    def settle(self) -> None:
        """When nothing is active any more, or the run is being cancelled."""
        if self.state.status is _CANCELLING and self.state.in_flight == 0:
            self.emit(RunCancelled())  # type: ignore[arg-type]  # every machine has it

    @abstractmethod
    def answered(self, answer: Answered) -> None:
        """What an answer leads to, or that there is none."""

    @abstractmethod
    def child_heard(self, command: c.HearChild) -> None:
        """What the state of a child run means for the step that waits for it."""

    @abstractmethod
    def ask_unknown(self, step_id: str, reason: str, /) -> None:
        """Ask a person what became of a call, unless the run is ending."""

    @abstractmethod
    def quarantine(self, message: str, step_ids: tuple[str, ...], /) -> None:
        """The run took its process down again and again: a person must look at it."""

    def restarts(self, step_id: str, /) -> bool:
        """Whether a step that was in flight at a crash is judged anew before it goes on."""
        return True

    def recovered(self) -> None:
        """What else a machine does where the process of its run went down."""

    @staticmethod
    @abstractmethod
    def goes_on_by_itself(state: Any) -> bool:
        """Something is under way or ready to start, so a new owner has work to take up."""

    @staticmethod
    @abstractmethod
    def effects_in_flight(state: Any) -> Effects:
        """What a new owner of the run must take up again."""


AnyDecider: TypeAlias = Decider[Any, Any]


def under_way(state: RunState) -> bool:
    """While everything else is held back, only what has already started goes on."""
    return any(
        step.status is StepStatus.CONSULTING
        or (step.status is _RUNNING and (step.resuming or not step.awaits_child))
        for step in state.steps.values()
    )


def effects_in_flight(
    state: S, work: Callable[[S, str, StepState], f.Effect]
) -> tuple[f.Effect, ...]:
    """Work that this process did. A child run goes on by itself, but may not have heard what its
    parent wants."""
    found: list[f.Effect] = []
    for step_id, step in sorted(state.steps.items()):
        if step.status is StepStatus.CONSULTING:
            found.append(work(state, step_id, step))
        elif step.status is not _RUNNING:
            continue
        elif not step.awaits_child:
            found.append(work(state, step_id, step))
        elif state.cancelled_by is not None:
            found.append(f.CancelChild(str(step.child_id), state.cancelled_by, "cancelled"))
        elif step.resuming:
            found.append(f.ResumeChild(str(step.child_id), state.started_by))
    return tuple(found)


def resumed_children(state: RunState, event: Any) -> list[f.Effect]:
    return [f.ResumeChild(str(state.steps[one].child_id), event.by) for one in event.children]


def _answer(builder: AnyDecider, command: c.Answer) -> None:
    answer = take(builder, command)
    if answer is not None:
        builder.answered(answer)


def hear_child(builder: AnyDecider, command: c.HearChild) -> None:
    if not hears(builder, command):
        return
    if command.ended_by and builder.state.status is not _CANCELLING:
        terminate(builder, command.ended_by, "")
    builder.child_heard(command)


def _tick(builder: AnyDecider, command: c.Tick) -> None:
    """Fire every timer that is due."""
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
                builder.answered(expired(builder, subject))
            case _:
                assert name == CANCEL_TIMER
                _end_grace(builder)


def _end_grace(builder: AnyDecider) -> None:
    """What has not ended by now is not waited for; the person who cancelled is told so."""
    for step_id, step in sorted(builder.state.steps.items()):
        if step.status is _RUNNING:
            builder.ask_unknown(step_id, msg("it had not ended when the grace was over"))


def _reminders_due(builder: AnyDecider, question_id: str) -> int:
    """How many reminders should have gone out by now; those missed while no process ran are one."""
    question = builder.state.questions[question_id]
    due = (question.opened_at + after for after in question.request.reminders)
    return sum(at <= builder.now for at in due)


def _recover(builder: AnyDecider, command: c.Recover) -> Effects:
    """A run that only rests lost nothing with its owner; the others count the loss.

    A call that may be repeated starts anew under its key, judged by the tool as it is now.
    """
    if not builder.goes_on_by_itself(builder.state):
        return ()
    count = builder.state.recoveries + 1
    cancelling = builder.state.status is _CANCELLING
    if count < MAX_RECOVERIES and not cancelling:
        # Before the count, because a release alone would forget earlier crashes.
        for step_id in in_flight(builder):
            if builder.restarts(step_id) and repeatable(builder.step(step_id)):
                release(builder, step_id)
    builder.emit(RunRecovered(count))
    for step_id in in_flight(builder):
        if cancelling or not repeatable(builder.step(step_id)):
            builder.ask_unknown(step_id, WENT_DOWN)
    if not cancelling:
        builder.recovered()
    if count >= MAX_RECOVERIES and not cancelling:
        builder.quarantine(quarantined(count), in_flight(builder))
    return builder.effects_in_flight(builder.state)


def quarantined(count: int) -> str:
    return msg("quarantined: the process went down {n} times while this ran", n=count)


OF_EVERY_RUN: Final[Decisions] = {
    c.Answer: _answer,
    c.KeepDraft: keep_draft,
    c.Cancel: cancel_run,
    c.HearChild: hear_child,
    c.Tick: _tick,
    c.Recover: _recover,
}
"""What the commands that every machine knows lead to; `ReportOutcome` is each machine's own."""

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
