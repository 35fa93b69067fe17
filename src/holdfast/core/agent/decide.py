"""`decide`: a command to a session in, events and effects out. Pure, like a plan's.

    idle ──Say──> thinking ──calls──> acting ──results──> thinking ──answer──> idle

The loop is not a loop: each word that comes back (a reply, a result, an answer) is a
command, and what follows from it is decided then. So a session may stop at any call, for
a minute or a month.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from math import isfinite
from typing import assert_never, cast

from holdfast.core.agent import answers, calls, questions
from holdfast.core.agent.builder import Builder
from holdfast.core.agent.effects import effects_in_flight, effects_of, goes_on_by_itself
from holdfast.core.agent.state import THINK, AgentDefinition, ReactState
from holdfast.core.agent.tables import COMMANDS
from holdfast.core.approval import lets_run
from holdfast.core.interactions.answers import keep_draft
from holdfast.core.run.builder import MAX_RECOVERIES, Decision, decided, end_grace, tick, unwelcome
from holdfast.core.run.four_eyes import refuse_beforehand
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import cancel_run, hears, in_flight, release, repeatable, terminate
from holdfast.core.run.tables import ACCEPT, StepStatus
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
from holdfast.i18n.message import msg
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model.approval import Grant
from holdfast.model.effects import Effect
from holdfast.model.events import RunCancelled, RunRecovered
from holdfast.model.run import RunStatus
from holdfast.model.values import Json


def blank(run_id: str, definition: AgentDefinition) -> ReactState:
    """The state of a session of which nothing has been recorded yet."""
    return ReactState(run_id, definition=definition)


def replay(state: ReactState, records: Iterable[tuple[float, r.ReactEvent]]) -> ReactState:
    """The state after `(at, event)` records: the journal, and nothing else, is the run."""
    return Builder(state).replay(records)


def decide(
    state: ReactState, command: c.Command, moment: c.Moment
) -> Decision[ReactState, r.ReactEvent]:
    builder = Builder(state, moment)
    return decided(builder, carry_out(builder, command))


def carry_out(builder: Builder, command: c.Command) -> Sequence[Effect]:
    if isinstance(command, c.Say):
        _refuse_while_open(builder.state)
    if COMMANDS.get(type(command), EMPTY).get(builder.state.status) is not ACCEPT:
        return unwelcome(builder.state, command, COMMANDS)
    before = len(builder.events)
    effects = _accepted(builder, cast(c.ReactCommand, command))
    if builder.state.status is RunStatus.CANCELLING and builder.state.in_flight == 0:
        builder.emit(RunCancelled())
    events = [event for _, event in builder.events[before:]]
    return (*effects, *effects_of(builder.state, events))


def _refuse_while_open(state: ReactState) -> None:
    if state.status in (RunStatus.RUNNING, RunStatus.PAUSE, RunStatus.CONTINUE):
        raise NotAllowed(_still_open(state))
    if state.status in (RunStatus.CANCELLING, RunStatus.CANCELLED):
        raise NotAllowed(
            msg(
                "{id} was ended by {by}; start another session",
                id=state.run_id,
                by=state.cancelled_by,
            )
        )


def _still_open(state: ReactState) -> str:
    if state.open_questions:
        return msg(
            "the last turn of {id} waits for an answer; a message is the next turn", id=state.run_id
        )
    return msg(
        "the last turn of {id} is still at work; a message is the next turn", id=state.run_id
    )


def _accepted(builder: Builder, command: c.ReactCommand) -> tuple[Effect, ...]:
    match command:
        case c.StartStep():
            calls.start(builder, command)
        case c.ReportOutcome():
            calls.report(builder, command)
        case c.StartSession():
            _start(builder, command)
        case c.Say():
            _say(builder, command)
        case c.Ask():
            if not builder.state.open:
                _refuse_to_child(builder)
            questions.ask(builder, command)
        case c.Propose():
            _propose(builder, command)
        case c.Answer():
            answers.answer(builder, command)
        case c.KeepDraft():
            keep_draft(builder, command)
        case c.RememberApproval():
            _remember(builder, command)
        case c.RevokeApproval():
            _revoke(builder, command)
        case c.Resume():
            _resume(builder, command)
        case c.Cancel():
            cancel_run(builder, command)
        case c.HearChild():
            if hears(builder, command):
                _heard(builder, command)
        case c.Tick():
            tick(
                builder,
                partial(answers.expire, builder),
                partial(end_grace, builder, questions.ask_unknown),
            )
        case c.Recover():
            return _recover(builder)
        case _:
            assert_never(command)
    return ()


def _start(builder: Builder, command: c.StartSession) -> None:
    """A run below inherits the rules of its session, and what they loosen is passed over there."""
    if command.parent is None and any(map(lets_run, command.approval.values())):
        refuse_beforehand(builder.wanted_by)
    definition = builder.state.definition
    builder.emit(
        r.SessionStarted(
            agent_id=command.agent_id,
            digest=definition.digest,
            root_id=command.root_id or builder.state.run_id,
            by=command.by,
            parent=command.parent,
            approval=command.approval,
            only=command.only,
        )
    )


def _say(builder: Builder, command: c.Say) -> None:
    if not command.text.strip():
        raise InvalidAnswer(msg("a message needs words"), {"text": msg("needed")})
    if builder.state.turn:
        _refuse_to_child(builder)
    if builder.state.active:
        raise NotAllowed(
            msg("{id} failed in the middle of calls; resume or cancel it", id=builder.state.run_id)
        )
    for step_id in sorted(builder.state.failed):
        if step_id != THINK:
            told = {"error": msg("{by} went on without it", by=command.by)}
            builder.emit(r.StepAbandoned(step_id, command.by, told))
    builder.emit(r.TurnStarted(builder.state.turn + 1, command.text, command.by))


def _refuse_to_child(builder: Builder) -> None:
    if builder.state.parent is not None:
        raise NotAllowed(
            msg(
                "{id} works for {parent} alone",
                id=builder.state.run_id,
                parent=builder.state.parent.run_id,
            )
        )


def _propose(builder: Builder, command: c.Propose) -> None:
    state = builder.state
    _refuse_to_child(builder)
    if command.tool not in state.tools:
        raise NotFound(msg("{id} has no tool {tool!r}", id=state.agent.agent_id, tool=command.tool))
    number = state.numbered + 1
    call = r.Call(f"c{number}", command.call_id, command.tool, command.args, proposed=True)
    builder.emit(r.CallProposed(state.turn + 1, call, command.by))


def _remember(builder: Builder, command: c.RememberApproval) -> None:
    refuse_beforehand(builder.wanted_by)
    uses, expires_at = command.uses, command.expires_at
    if uses is not None and (type(uses) is not int or uses < 1):
        message = msg("an approval is remembered for a whole number of uses, one at least")
        raise InvalidAnswer(message, {"uses": msg("must be a whole number from 1")})
    if expires_at is not None and not (isfinite(expires_at) and builder.now < expires_at):
        message = msg("an approval is remembered until a moment that lies ahead")
        raise InvalidAnswer(message, {"expires_at": msg("must be finite, and lie ahead")})
    grant = Grant(
        grant_id=builder.unguessable(),
        tool=command.tool,
        version=command.version,
        by=command.by,
        at=builder.now,
        pattern=command.pattern,
        expires_at=command.expires_at,
        uses=command.uses,
    )
    builder.emit(r.ApprovalRemembered(grant))


def _revoke(builder: Builder, command: c.RevokeApproval) -> None:
    if command.grant_id not in builder.state.grants:
        raise NotFound(
            msg(
                "{id} remembers no approval {grant}",
                id=builder.state.run_id,
                grant=command.grant_id,
            )
        )
    builder.emit(r.ApprovalRevoked(command.grant_id, command.by))


def _resume(builder: Builder, command: c.Resume) -> None:
    failed = builder.state.failed
    children = tuple(one for one in failed if builder.step(one).awaits_child)
    builder.emit(r.TurnResumed(command.by, children))


def _heard(builder: Builder, command: c.HearChild) -> None:
    if command.ended_by and builder.state.status is not RunStatus.CANCELLING:
        terminate(builder, command.ended_by, "")
    _follow_child(builder, command)


def _follow_child(builder: Builder, command: c.HearChild) -> None:
    """A helper that failed fails the turn, and is resumed with it; its work is never redone."""
    status = builder.step(command.step_id).status
    gone: Json = {"error": msg("{child} was cancelled", child=command.child_id)}
    if status is StepStatus.FAILED and command.status == RunStatus.CANCELLED:
        builder.emit(r.StepAbandoned(command.step_id, command.child_id, gone))
    if status is not StepStatus.RUNNING:
        return
    cancelling = builder.state.status is RunStatus.CANCELLING
    if command.status == RunStatus.CANCELLED:
        builder.end(command.step_id, "failed", gone)
    elif command.status == RunStatus.ERROR and not cancelling:
        message = msg("{place}: {problem}", place=command.child_id, problem=command.message)
        builder.emit(r.TurnFailed(message, (command.step_id,)))
    elif command.status == RunStatus.DONE:
        builder.end(command.step_id, "done", command.result)


def _release_calls(builder: Builder) -> None:
    """A call that may be repeated starts anew under its key, judged by the tool as it is now."""
    for step_id in in_flight(builder):
        if step_id != THINK and repeatable(builder.step(step_id)):
            release(builder, step_id)


def _recover(builder: Builder) -> tuple[Effect, ...]:
    """A session that only rests lost nothing with its owner; the others count the loss."""
    if not goes_on_by_itself(builder.state):
        return ()
    count = builder.state.recoveries + 1
    cancelling = builder.state.status is RunStatus.CANCELLING
    if count < MAX_RECOVERIES and not cancelling:
        # Before the count, because a release alone would forget earlier crashes.
        _release_calls(builder)
    builder.emit(RunRecovered(count))
    for step_id in in_flight(builder):
        if cancelling or not repeatable(builder.step(step_id)):
            questions.ask_unknown(builder, step_id, msg("the process that ran it went down"))
    if count >= MAX_RECOVERIES and not cancelling:
        message = msg("quarantined: the process went down {n} times while this ran", n=count)
        builder.emit(r.TurnFailed(message, in_flight(builder)))
    return effects_in_flight(builder.state)
