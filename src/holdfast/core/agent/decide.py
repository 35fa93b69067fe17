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
from holdfast.core.agent.builder import Draft
from holdfast.core.agent.effects import effects_in_flight, effects_of, goes_on_by_itself
from holdfast.core.agent.state import THINK, AgentDefinition, ReactState
from holdfast.core.agent.tables import COMMANDS
from holdfast.core.approval import lets_run
from holdfast.core.interactions.answers import keep_draft
from holdfast.core.run.decision import MAX_RECOVERIES, Decision, decided, unwelcome
from holdfast.core.run.four_eyes import refuse_beforehand
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import cancel_run, hears, in_flight, release, repeatable, terminate
from holdfast.core.run.tables import ACCEPT, StepStatus
from holdfast.core.run.timing import end_grace, tick
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
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
    return Draft(state).replay(records)


def decide(
    state: ReactState, command: c.Command, moment: c.Moment
) -> Decision[ReactState, r.ReactEvent]:
    draft = Draft(state, moment)
    return decided(draft, carry_out(draft, command))


def carry_out(draft: Draft, command: c.Command) -> Sequence[Effect]:
    if isinstance(command, c.Say):
        _refuse_while_open(draft.state)
    if COMMANDS.get(type(command), EMPTY).get(draft.state.status) is not ACCEPT:
        return unwelcome(draft.state, command, COMMANDS)
    before = len(draft.events)
    effects = _accepted(draft, cast(c.ReactCommand, command))
    if draft.state.status is RunStatus.CANCELLING and draft.state.in_flight == 0:
        draft.emit(RunCancelled())
    events = [event for _, event in draft.events[before:]]
    return (*effects, *effects_of(draft.state, events))


def _refuse_while_open(state: ReactState) -> None:
    if state.status in (RunStatus.RUNNING, RunStatus.PAUSE, RunStatus.CONTINUE):
        waits = "waits for an answer" if state.open_questions else "is still at work"
        raise NotAllowed(f"the last turn of {state.run_id} {waits}; a message is the next turn")
    if state.status in (RunStatus.CANCELLING, RunStatus.CANCELLED):
        raise NotAllowed(f"{state.run_id} was ended by {state.cancelled_by}; start another session")


def _accepted(draft: Draft, command: c.ReactCommand) -> tuple[Effect, ...]:
    match command:
        case c.StartStep():
            calls.start(draft, command)
        case c.ReportOutcome():
            calls.report(draft, command)
        case c.StartSession():
            _start(draft, command)
        case c.Say():
            _say(draft, command)
        case c.Ask():
            if not draft.state.open:
                _refuse_to_child(draft)
            questions.ask(draft, command)
        case c.Propose():
            _propose(draft, command)
        case c.Answer():
            answers.answer(draft, command)
        case c.KeepDraft():
            keep_draft(draft, command)
        case c.RememberApproval():
            _remember(draft, command)
        case c.RevokeApproval():
            _revoke(draft, command)
        case c.Resume():
            _resume(draft, command)
        case c.Cancel():
            cancel_run(draft, command)
        case c.HearChild():
            if hears(draft, command):
                _heard(draft, command)
        case c.Tick():
            tick(
                draft,
                partial(answers.expire, draft),
                partial(end_grace, draft, questions.ask_unknown),
            )
        case c.Recover():
            return _recover(draft)
        case _:
            assert_never(command)
    return ()


def _start(draft: Draft, command: c.StartSession) -> None:
    """A run below inherits the rules of its session, and what they loosen is passed over there."""
    if command.parent is None and any(map(lets_run, command.approval.values())):
        refuse_beforehand(draft.wanted_by)
    definition = draft.state.definition
    draft.emit(
        r.SessionStarted(
            agent_id=command.agent_id,
            digest=definition.digest,
            root_id=command.root_id or draft.state.run_id,
            by=command.by,
            parent=command.parent,
            approval=command.approval,
            only=command.only,
        )
    )


def _say(draft: Draft, command: c.Say) -> None:
    if not command.text.strip():
        raise InvalidAnswer("a message needs words", {"text": "needed"})
    if draft.state.turn:
        _refuse_to_child(draft)
    if draft.state.active:
        raise NotAllowed(f"{draft.state.run_id} failed in the middle of calls; resume or cancel it")
    for step_id in sorted(draft.state.failed):
        if step_id != THINK:
            told = {"error": f"{command.by} went on without it"}
            draft.emit(r.StepAbandoned(step_id, command.by, told))
    draft.emit(r.TurnStarted(draft.state.turn + 1, command.text, command.by))


def _refuse_to_child(draft: Draft) -> None:
    if draft.state.parent is not None:
        raise NotAllowed(f"{draft.state.run_id} works for {draft.state.parent.run_id} alone")


def _propose(draft: Draft, command: c.Propose) -> None:
    state = draft.state
    _refuse_to_child(draft)
    if command.tool not in state.tools:
        raise NotFound(f"{state.agent.agent_id} has no tool {command.tool!r}")
    number = state.numbered + 1
    call = r.Call(f"c{number}", command.call_id, command.tool, command.args, proposed=True)
    draft.emit(r.CallProposed(state.turn + 1, call, command.by))


def _remember(draft: Draft, command: c.RememberApproval) -> None:
    refuse_beforehand(draft.wanted_by)
    uses, expires_at = command.uses, command.expires_at
    if uses is not None and (type(uses) is not int or uses < 1):
        message = "an approval is remembered for a whole number of uses, one at least"
        raise InvalidAnswer(message, {"uses": "must be a whole number from 1"})
    if expires_at is not None and not (isfinite(expires_at) and draft.now < expires_at):
        message = "an approval is remembered until a moment that lies ahead"
        raise InvalidAnswer(message, {"expires_at": "must be finite, and lie ahead"})
    grant = Grant(
        grant_id=draft.unguessable(),
        tool=command.tool,
        version=command.version,
        by=command.by,
        at=draft.now,
        pattern=command.pattern,
        expires_at=command.expires_at,
        uses=command.uses,
    )
    draft.emit(r.ApprovalRemembered(grant))


def _revoke(draft: Draft, command: c.RevokeApproval) -> None:
    if command.grant_id not in draft.state.grants:
        raise NotFound(f"{draft.state.run_id} remembers no approval {command.grant_id}")
    draft.emit(r.ApprovalRevoked(command.grant_id, command.by))


def _resume(draft: Draft, command: c.Resume) -> None:
    failed = draft.state.failed
    children = tuple(one for one in failed if draft.step(one).awaits_child)
    draft.emit(r.TurnResumed(command.by, children))


def _heard(draft: Draft, command: c.HearChild) -> None:
    if command.ended_by and draft.state.status is not RunStatus.CANCELLING:
        terminate(draft, command.ended_by, "")
    _follow_child(draft, command)


def _follow_child(draft: Draft, command: c.HearChild) -> None:
    """A helper that failed fails the turn, and is resumed with it; its work is never redone."""
    status = draft.step(command.step_id).status
    gone: Json = {"error": f"{command.child_id} was cancelled"}
    if status is StepStatus.FAILED and command.status == RunStatus.CANCELLED:
        draft.emit(r.StepAbandoned(command.step_id, command.child_id, gone))
    if status is not StepStatus.RUNNING:
        return
    cancelling = draft.state.status is RunStatus.CANCELLING
    if command.status == RunStatus.CANCELLED:
        draft.end(command.step_id, "failed", gone)
    elif command.status == RunStatus.ERROR and not cancelling:
        message = f"{command.child_id}: {command.message}"
        draft.emit(r.TurnFailed(message, (command.step_id,)))
    elif command.status == RunStatus.DONE:
        draft.end(command.step_id, "done", command.result)


def _release_calls(draft: Draft) -> None:
    """A call that may be repeated starts anew under its key, judged by the tool as it is now."""
    for step_id in in_flight(draft):
        if step_id != THINK and repeatable(draft.step(step_id)):
            release(draft, step_id)


def _recover(draft: Draft) -> tuple[Effect, ...]:
    """A session that only rests lost nothing with its owner; the others count the loss."""
    if not goes_on_by_itself(draft.state):
        return ()
    count = draft.state.recoveries + 1
    cancelling = draft.state.status is RunStatus.CANCELLING
    if count < MAX_RECOVERIES and not cancelling:
        # Before the count, because a release alone would forget earlier crashes.
        _release_calls(draft)
    draft.emit(RunRecovered(count))
    for step_id in in_flight(draft):
        if cancelling or not repeatable(draft.step(step_id)):
            questions.ask_unknown(draft, step_id, "the process that ran it went down")
    if count >= MAX_RECOVERIES and not cancelling:
        message = f"quarantined: the process went down {count} times while this ran"
        draft.emit(r.TurnFailed(message, in_flight(draft)))
    return effects_in_flight(draft.state)
