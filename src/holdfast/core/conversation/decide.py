"""A conversation's decisions and effects: which command leads to what, and what is done then.

Of child runs a new owner only hears; nothing goes on by itself, because a conversation moves when
its consumer asks for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from holdfast.core.conversation import phases, questions, snapshot, tasks
from holdfast.core.conversation.briefing import agent_prompt
from holdfast.core.conversation.builder import Builder
from holdfast.core.conversation.state import (
    ANSWER,
    CONTEXT,
    DECOMPOSE,
    ConversationDefinition,
    ConversationState,
    results_before,
    told_turn,
)
from holdfast.core.conversation.tables import COMMANDS, PAUSABLE, THINKING
from holdfast.core.decider import (
    MAX_RECOVERIES,
    OF_EVERY_RUN,
    WENT_DOWN,
    Decider,
    Decisions,
    Effects,
    quarantined,
)
from holdfast.core.run.state import EMPTY, StepState
from holdfast.core.run.steps import hears, in_flight, release, repeatable
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.i18n.message import msg, term
from holdfast.model import commands as c
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.conversation import EngineState, SubTask
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json

_AT_REST = (EngineState.IDLE, EngineState.COMPLETED, EngineState.ERROR)


def blank(run_id: str, definition: ConversationDefinition) -> ConversationState:
    """The state of a conversation of which nothing has been recorded yet."""
    return ConversationState(run_id, definition=definition)


def _advance(builder: Builder, command: c.Advance) -> None:
    (phases.go_ahead if command.ahead else phases.advance)(builder)


def _abort(builder: Builder, command: c.Abort) -> None:
    _require(builder, tuple(set(EngineState) - set(_AT_REST)), msg("cancelled"))
    phases.abort(builder, command.reason, command.by)


def _go_on(builder: Builder, command: c.GoOn) -> None:
    _require(builder, (EngineState.ERROR,), msg("gone on with: it has not failed"))
    phases.go_on(builder, command)


def _start_over(builder: Builder, command: c.StartOver) -> None:
    builder.withdraw_all(msg("the conversation was reset"))
    builder.emit(v.StartedOver(command.by))


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


def _unhold(builder: Builder, command: c.Unhold) -> None:
    if builder.state.pausing:
        builder.emit(v.PauseWished(wished=False, by=command.by))
        return
    _require(builder, (EngineState.PAUSED,), msg("resumed"))
    phases.unhold(builder, command.by)


def _open(builder: Builder, command: c.OpenConversation) -> None:
    digest = builder.state.definition.digest
    root_id = command.root_id or builder.state.run_id
    builder.emit(v.ConversationOpened(digest, root_id, command.by, command.unattended))


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


def _restore(builder: Builder, command: c.RestoreSnapshot) -> None:
    _require(builder, _AT_REST, msg("replaced by a snapshot; reset it first"))
    builder.emit(v.SnapshotRestored(snapshot.checked(command.snapshot), command.by))
    for step_id in in_flight(builder):
        questions.ask_unknown(builder, step_id, msg("it was under way when the snapshot was taken"))


def _hear_child(builder: Builder, command: c.HearChild) -> None:
    if command.step_id not in builder.state.steps:
        phases.hear_late(builder, command)
    elif hears(builder, command):
        _child_heard(builder, command)


def _child_heard(builder: Builder, command: c.HearChild) -> None:
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


def _recover(builder: ConversationDecider, command: c.Recover) -> Effects:
    """What may be repeated is begun again when the consumer asks. Work that takes its process down
    time and again is not."""
    lost, count = in_flight(builder), builder.state.recoveries + 1
    for step_id in lost:
        if builder.restarts(step_id) and repeatable(builder.step(step_id)):
            release(builder, step_id)
        else:
            questions.ask_unknown(builder, step_id, WENT_DOWN)
    if lost and command.crashed and builder.state.status is not RunStatus.CANCELLING:
        # After the releases, which alone would forget earlier crashes.
        builder.emit(e.RunRecovered(count))
        if count >= MAX_RECOVERIES:
            builder.quarantine(quarantined(count))
    return words_to_children(builder.state)


DECISIONS: Final[Decisions] = {
    **OF_EVERY_RUN,
    c.OpenConversation: _open,
    c.Converse: _converse,
    c.Advance: _advance,
    c.Hold: _hold,
    c.Unhold: _unhold,
    c.Abort: _abort,
    c.GoOn: _go_on,
    c.StartOver: _start_over,
    c.RestoreSnapshot: _restore,
    c.StartStep: tasks.start,
    c.ReportOutcome: tasks.report,
    c.HearChild: _hear_child,
    c.Recover: _recover,
}


def effects_of(
    before: ConversationState, state: ConversationState, events: Iterable[v.ConversationEvent]
) -> tuple[f.Effect, ...]:
    """The effects of events that have just been decided."""
    found: list[f.Effect] = []
    for event in events:
        match event:
            case v.TaskStarted(child_id=child_id, resumes=True):
                found.append(f.ResumeChild(str(child_id), state.started_by))
            case (
                v.WorkStarted(step_id=step_id)
                | v.TaskStarted(step_id=step_id)
                | v.ArgumentsWanted(step_id=step_id)
            ):
                found.append(_work(state, step_id, state.steps[step_id]))
            case v.EngineFailed():
                found.extend(_forsaken(before, _not_kept(before, state)))
            case (
                v.StartedOver()
                | v.ConversationStopped()
                | v.SnapshotRestored()
                | e.CancelRequested()
            ):
                found.extend(_forsaken(before, before.steps))
                found.extend(_given_up(before, before.former))
            case v.ConversationResumed(skipped=skipped):
                found.extend(_given_up(before, skipped))
            case v.TaskFailed(step_id=step_id):
                found.extend(_forsaken(before, (step_id,)))
            case _:
                pass
    return tuple(found)


def effects_in_flight(state: ConversationState) -> tuple[f.Effect, ...]:
    """What a new owner must take up again; of child runs it only hears."""
    return tuple(
        _work(state, step_id, step)
        for step_id, step in sorted(state.steps.items())
        if step.status is StepStatus.RUNNING and not step.awaits_child
    )


def words_to_children(state: ConversationState) -> tuple[f.Effect, ...]:
    """A child run that was to go on may not have heard of it before a crash."""
    return tuple(
        f.ResumeChild(str(step.child_id), state.started_by)
        for _, step in sorted(state.steps.items())
        if step.status is StepStatus.RUNNING and step.resuming
    )


def _forsaken(before: ConversationState, step_ids: Iterable[str]) -> Iterator[f.Effect]:
    """Child runs that are not waited for any more, also those that wait to be mended."""
    for step_id in sorted(step_ids):
        step = before.steps[step_id]
        if step.awaits_child and step.status in (StepStatus.RUNNING, StepStatus.FAILED):
            yield f.CancelChild(str(step.child_id), before.started_by, msg("nobody waits for it"))


def _not_kept(before: ConversationState, state: ConversationState) -> list[str]:
    """A child run that has failed is kept: its task may be tried again, and it goes on then."""
    kept = {step_id for step_id, former in state.former.items() if former.child_id is not None}
    return [one for one in before.steps if one not in kept]


def _given_up(before: ConversationState, step_ids: Iterable[str]) -> Iterator[f.Effect]:
    """Child runs that failed in a turn that failed, and will not go on any more."""
    for step_id in sorted(step_ids):
        former = before.former.get(step_id)
        if former is not None and former.child_id is not None:
            yield f.CancelChild(former.child_id, before.started_by, msg("nobody waits for it"))


def _work(state: ConversationState, step_id: str, step: StepState) -> f.Effect:
    key = f"{state.run_id}:{state.turn}.{step_id}:{step.firing}:{step.generation}"
    work = f.Work(state.run_id, step_id, step.firing, step.attempt, step.claim, key)
    if step_id == CONTEXT:
        return f.FetchContext(work, state.text)
    if step_id == DECOMPOSE:
        said = tuple(map(told_turn, state.history))
        complaint = ". ".join(filter(None, (state.feedback, state.complaint)))
        return f.Decompose(work, state.text, state.context, said, complaint)
    if step_id == ANSWER:
        return f.WriteAnswer(work, state.text, state.context, tuple(_done(state)))
    task = state.tasks[step_id]
    if parameters := state.filling.get(step_id):
        return f.FillArguments(work, task, state.text, parameters, results_before(state, task))
    return _task_work(state, work, step, task)


def _done(state: ConversationState) -> Iterator[Mapping[str, Json]]:
    for task in (state.tasks[one] for one in state.order):
        came = {"skipped": task.skipped} if task.skipped else {"result": task.result}
        yield {"id": task.id, "description": task.description, **came}


def _task_work(state: ConversationState, work: f.Work, step: StepState, task: SubTask) -> f.Effect:
    args = step.args or EMPTY
    match task.route:
        case "tool":
            return f.CallTool(work, task.type, args, step.idempotent, step.consent)
        case "agent":
            prompt = agent_prompt(task, state.text, state.context, results_before(state, task))
            return f.StartAgent(work, str(step.child_id), task.type, prompt, state.root_id)
        case "plan":
            return f.StartChild(work, str(step.child_id), task.type, args, state.root_id)
        case _:
            given = replace(task, args=args)
            return f.RunTask(work, given, state.text, state.context, results_before(state, task))


class ConversationDecider(Builder, Decider[ConversationState, v.ConversationEvent]):
    COMMANDS = COMMANDS
    DECISIONS = DECISIONS
    answered = tasks.answered
    ask_unknown = questions.ask_unknown
    child_heard = _child_heard
    effects_in_flight = staticmethod(effects_in_flight)

    def carry_out(self, command: c.Command) -> Effects:
        """Child runs that are not waited for any more are looked up in the state before."""
        before, self.shared, mark = self.state, True, len(self.events)
        effects = super().carry_out(command)
        events = [event for _, event in self.events[mark:]]
        return (*effects, *effects_of(before, self.state, events))

    def quarantine(self, message: str, step_ids: tuple[str, ...] = ()) -> None:
        phases.abort(self, message)

    @staticmethod
    def goes_on_by_itself(state: ConversationState) -> bool:
        return False


decide, replay = ConversationDecider.decide, ConversationDecider.replayed
