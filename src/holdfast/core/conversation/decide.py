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
from holdfast.core.conversation.builder import Draft
from holdfast.core.conversation.effects import effects_of, words_to_children
from holdfast.core.conversation.state import ConversationDefinition, ConversationState
from holdfast.core.conversation.tables import COMMANDS, PAUSABLE, THINKING
from holdfast.core.interactions.answers import keep_draft
from holdfast.core.run.decision import MAX_RECOVERIES, Decision, decided, unwelcome
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import cancel_run, hears, in_flight, release, repeatable
from holdfast.core.run.tables import ACCEPT, StepStatus
from holdfast.core.run.timing import end_grace, tick
from holdfast.errors import InvalidAnswer, NotAllowed
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
    return Draft(state).replay(records)


def decide(
    state: ConversationState, command: c.Command, moment: c.Moment
) -> Decision[ConversationState, v.ConversationEvent]:
    draft = Draft(state, moment)
    return decided(draft, carry_out(draft, command))


def carry_out(draft: Draft, command: c.Command) -> Sequence[Effect]:
    """Who waited for a child run before is looked up afterwards: that state is kept."""
    state, before, draft.shared = draft.state, len(draft.events), True
    if COMMANDS.get(type(command), EMPTY).get(state.status) is not ACCEPT:
        return unwelcome(state, command, COMMANDS)
    _accepted(draft, cast(c.ConversationCommand, command))
    if draft.state.status is RunStatus.CANCELLING and draft.state.in_flight == 0:
        draft.emit(RunCancelled())
    events = [event for _, event in draft.events[before:]]
    effects = effects_of(state, draft.state, events)
    return effects + words_to_children(draft.state) if isinstance(command, c.Recover) else effects


def _accepted(draft: Draft, command: c.ConversationCommand) -> None:
    match command:
        case c.Advance(ahead=ahead):
            phases.go_ahead(draft) if ahead else phases.advance(draft)
        case c.StartStep():
            tasks.start(draft, command)
        case c.ReportOutcome():
            tasks.report(draft, command)
        case c.OpenConversation():
            _open(draft, command)
        case c.Converse():
            _converse(draft, command)
        case c.Hold():
            _hold(draft, command)
        case c.Unhold(by=by):
            _unhold(draft, by)
        case c.Abort(reason=reason, by=by):
            _require(draft, tuple(set(EngineState) - set(_AT_REST)), "cancelled")
            phases.abort(draft, reason, by)
        case c.GoOn():
            _require(draft, (EngineState.ERROR,), "gone on with: it has not failed")
            recovery.go_on(draft, command)
        case c.StartOver(by=by):
            draft.withdraw_all("the conversation was reset")
            draft.emit(v.StartedOver(by))
        case c.RestoreSnapshot(snapshot=body, by=by):
            _restore(draft, body, by)
        case c.Answer():
            answers.answer(draft, command)
        case c.KeepDraft():
            keep_draft(draft, command)
        case c.Cancel():
            cancel_run(draft, command)
        case c.HearChild():
            if command.step_id not in draft.state.steps:
                recovery.hear_late(draft, command)
            elif hears(draft, command):
                _follow_child(draft, command)
        case c.Tick():
            tick(
                draft,
                partial(answers.expire, draft),
                partial(end_grace, draft, questions.ask_unknown),
            )
        case c.Recover(crashed=crashed):
            _recover(draft, crashed=crashed)
        case _:
            assert_never(command)


def _require(draft: Draft, phases_allowed: Iterable[EngineState], what: str) -> None:
    if draft.state.phase not in phases_allowed:
        phase = draft.state.phase
        raise NotAllowed(f"{draft.state.run_id} is {phase} and cannot be {what}")


def _hold(draft: Draft, command: c.Hold) -> None:
    """A pause that cannot take hold yet is kept where it will."""
    state = draft.state
    if command.when_possible and (state.phase in THINKING or state.pending):
        if not state.pausing:
            draft.emit(v.PauseWished(by=command.by))
        return
    _require(draft, PAUSABLE, "paused")
    phases.hold(draft, command.by)


def _unhold(draft: Draft, by: str) -> None:
    if draft.state.pausing:
        draft.emit(v.PauseWished(wished=False, by=by))
        return
    _require(draft, (EngineState.PAUSED,), "resumed")
    phases.unhold(draft, by)


def _open(draft: Draft, command: c.OpenConversation) -> None:
    digest = draft.state.definition.digest
    root_id = command.root_id or draft.state.run_id
    draft.emit(v.ConversationOpened(digest, root_id, command.by))


def _converse(draft: Draft, command: c.Converse) -> None:
    """The next turn begins where the last one was completed, or before the first."""
    if not command.text.strip():
        raise InvalidAnswer("a conversation needs words to begin with", {"user_input": "needed"})
    _require(draft, (EngineState.IDLE, EngineState.COMPLETED), "given another goal; reset it first")
    if draft.state.pending:
        raise NotAllowed(f"{draft.state.run_id} has yet to begin with {draft.state.text!r}")
    if draft.state.phase is EngineState.COMPLETED:
        draft.enter(EngineState.IDLE)
    draft.emit(v.InputReceived(draft.state.turn + 1, command.text, command.by))


def _restore(draft: Draft, body: object, by: str) -> None:
    _require(draft, _AT_REST, "replaced by a snapshot; reset it first")
    draft.emit(v.SnapshotRestored(snapshot.checked(body), by))
    for step_id in in_flight(draft):
        questions.ask_unknown(draft, step_id, "it was under way when the snapshot was taken")


def _follow_child(draft: Draft, command: c.HearChild) -> None:
    """One that is done concludes its task at once, so that a pause keeps its result too."""
    if command.status == RunStatus.DONE:
        tasks.conclude_carried(draft, command.step_id)
    elif draft.step(command.step_id).status is not StepStatus.RUNNING:
        return
    elif command.ended_by and draft.state.status is not RunStatus.CANCELLING:
        phases.abort(draft, f"ended by {command.ended_by}")
    elif command.status in (RunStatus.ERROR, RunStatus.CANCELLED):
        why = command.message or f"it is {command.status}"
        failure = Failure(FailureKind.PERMANENT, f"{command.child_id}: {why}")
        tasks.broke(draft, command.step_id, failure)


def _recover(draft: Draft, *, crashed: bool) -> None:
    """Nobody works on it any more: what may be repeated is begun again when somebody asks.
    Work that takes its process down with it time and again is not."""
    lost, count = in_flight(draft), draft.state.recoveries + 1
    for step_id in lost:
        if repeatable(draft.step(step_id)):
            release(draft, step_id)
        else:
            questions.ask_unknown(draft, step_id, "the process that ran it went down")
    if lost and crashed and draft.state.status is not RunStatus.CANCELLING:
        # After the releases, which alone would forget earlier crashes.
        draft.emit(RunRecovered(count))
        if count >= MAX_RECOVERIES:
            phases.abort(draft, f"quarantined: the process went down {count} times while this ran")
