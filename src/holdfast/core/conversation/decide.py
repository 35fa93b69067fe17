"""`decide`: a command to a conversation in, events and effects out. Pure, like the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import assert_never, cast

from holdfast.core.conversation import (
    answers,
    phases,
    questions,
    recovery,
    snapshot,
    tasks,
)
from holdfast.core.conversation.builder import Builder
from holdfast.core.conversation.effects import effects_of, words_to_children
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.core.conversation.tables import COMMANDS, PAUSABLE, THINKING
from holdfast.core.interactions.answers import keep_draft
from holdfast.core.run.builder import MAX_RECOVERIES, Decision, decided, end_grace, tick, unwelcome
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import cancel_run, hears, in_flight, release, repeatable
from holdfast.core.run.tables import ACCEPT, StepStatus
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.i18n.message import msg, term
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model.conversation import EngineState
from holdfast.model.effects import Effect
from holdfast.model.events import RunCancelled, RunRecovered
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus

_AT_REST = (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)


def blank(run_id: str, definition: ConversationDefinition) -> ConversationState:
    """The state of a conversation of which nothing has been recorded yet."""
    return ConversationState(run_id, definition=definition)


def replay(
    state: ConversationState, records: Iterable[tuple[float, v.ConversationEvent]]
) -> ConversationState:
    """The state after `(at, event)` records: the journal, and nothing else, is the run."""
    return Builder(state).replay(records)


def decide(
    state: ConversationState, command: c.Command, moment: c.Moment
) -> Decision[ConversationState, v.ConversationEvent]:
    builder = Builder(state, moment)
    return decided(builder, carry_out(builder, command))


def carry_out(builder: Builder, command: c.Command) -> Sequence[Effect]:
    """Who waited for a child run before is looked up afterwards: that state is kept."""
    state, before, builder.shared = builder.state, len(builder.events), True
    if COMMANDS.get(type(command), EMPTY).get(state.status) is not ACCEPT:
        return unwelcome(state, command, COMMANDS)
    _accepted(builder, cast(c.ConversationCommand, command))
    if builder.state.status is RunStatus.CANCELLING and builder.state.in_flight == 0:
        builder.emit(RunCancelled())
    events = [event for _, event in builder.events[before:]]
    effects = effects_of(state, builder.state, events)
    return effects + words_to_children(builder.state) if isinstance(command, c.Recover) else effects


def _accepted(builder: Builder, command: c.ConversationCommand) -> None:
    match command:
        case c.Advance(ahead=ahead):
            phases.go_ahead(builder) if ahead else phases.advance(builder)
        case c.StartStep():
            tasks.start(builder, command)
        case c.ReportOutcome():
            tasks.report(builder, command)
        case c.OpenConversation():
            _open(builder, command)
        case c.Converse():
            _converse(builder, command)
        case c.Hold():
            _hold(builder, command)
        case c.Unhold(by=by):
            _unhold(builder, by)
        case c.Abort(reason=reason, by=by):
            _require(builder, tuple(set(EngineState) - set(_AT_REST)), msg("cancelled"))
            phases.abort(builder, reason, by)
        case c.GoOn():
            _require(builder, (EngineState.ERROR,), msg("gone on with: it has not failed"))
            recovery.go_on(builder, command)
        case c.StartOver(by=by):
            builder.withdraw_all(msg("the conversation was reset"))
            builder.emit(v.StartedOver(by))
        case c.RestoreSnapshot(snapshot=body, by=by):
            _restore(builder, body, by)
        case c.Answer():
            answers.answer(builder, command)
        case c.KeepDraft():
            keep_draft(builder, command)
        case c.Cancel():
            cancel_run(builder, command)
        case c.HearChild():
            if command.step_id not in builder.state.steps:
                recovery.hear_late(builder, command)
            elif hears(builder, command):
                _follow_child(builder, command)
        case c.Tick():
            tick(
                builder,
                partial(answers.expire, builder),
                partial(end_grace, builder, questions.ask_unknown),
            )
        case c.Recover(crashed=crashed):
            _recover(builder, crashed=crashed)
        case _:
            assert_never(command)


def _require(builder: Builder, phases_allowed: Iterable[EngineState], what: str) -> None:
    if builder.state.phase not in phases_allowed:
        phase = builder.state.phase
        raise NotAllowed(
            msg(
                "{id} is {phase} and cannot be {what}",
                id=builder.state.run_id,
                phase=term(phase),
                what=what,
            )
        )


def _hold(builder: Builder, command: c.Hold) -> None:
    """A pause that cannot take hold yet is kept where it will."""
    state = builder.state
    if command.when_possible and (state.phase in THINKING or state.pending):
        if not state.pausing:
            builder.emit(v.PauseWished(by=command.by))
        return
    _require(builder, PAUSABLE, msg("paused"))
    phases.hold(builder, command.by)


def _unhold(builder: Builder, by: str) -> None:
    if builder.state.pausing:
        builder.emit(v.PauseWished(wished=False, by=by))
        return
    _require(builder, (EngineState.PAUSED,), msg("resumed"))
    phases.unhold(builder, by)


def _open(builder: Builder, command: c.OpenConversation) -> None:
    digest = builder.state.definition.digest
    root_id = command.root_id or builder.state.run_id
    builder.emit(v.ConversationOpened(digest, root_id, command.by))


def _converse(builder: Builder, command: c.Converse) -> None:
    """The next turn begins where the last one was completed, or before the first."""
    if not command.text.strip():
        raise InvalidAnswer(
            msg("a conversation needs words to begin with"), {"user_input": msg("needed")}
        )
    _require(
        builder,
        (EngineState.IDLE, EngineState.COMPLETED),
        msg("given another goal; reset it first"),
    )
    if builder.state.pending:
        raise NotAllowed(
            msg(
                "{id} has yet to begin with {text!r}",
                id=builder.state.run_id,
                text=builder.state.text,
            )
        )
    if builder.state.phase is EngineState.COMPLETED:
        builder.enter(EngineState.IDLE)
    builder.emit(v.InputReceived(builder.state.turn + 1, command.text, command.by))


def _restore(builder: Builder, body: object, by: str) -> None:
    _require(builder, _AT_REST, msg("replaced by a snapshot; reset it first"))
    builder.emit(v.SnapshotRestored(snapshot.checked(body), by))
    for step_id in in_flight(builder):
        questions.ask_unknown(builder, step_id, msg("it was under way when the snapshot was taken"))


def _follow_child(builder: Builder, command: c.HearChild) -> None:
    """One that is done concludes its task at once, so that a pause keeps its result too."""
    if command.status == RunStatus.DONE:
        tasks.conclude_carried(builder, command.step_id)
    elif builder.step(command.step_id).status is not StepStatus.RUNNING:
        return
    elif command.ended_by and builder.state.status is not RunStatus.CANCELLING:
        phases.abort(builder, msg("ended by {by}", by=command.ended_by))
    elif command.status in (RunStatus.ERROR, RunStatus.CANCELLED):
        why = command.message or msg("it is {status}", status=term(command.status))
        failure = Failure(
            FailureKind.PERMANENT, msg("{place}: {problem}", place=command.child_id, problem=why)
        )
        tasks.broke(builder, command.step_id, failure)


def _recover(builder: Builder, *, crashed: bool) -> None:
    """Nobody works on it any more: what may be repeated is begun again when somebody asks.
    Work that takes its process down with it time and again is not."""
    lost, count = in_flight(builder), builder.state.recoveries + 1
    for step_id in lost:
        if repeatable(builder.step(step_id)):
            release(builder, step_id)
        else:
            questions.ask_unknown(builder, step_id, msg("the process that ran it went down"))
    if lost and crashed and builder.state.status is not RunStatus.CANCELLING:
        # After the releases, which alone would forget earlier crashes.
        builder.emit(RunRecovered(count))
        if count >= MAX_RECOVERIES:
            phases.abort(
                builder, msg("quarantined: the process went down {n} times while this ran", n=count)
            )
