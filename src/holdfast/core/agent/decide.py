"""A session's decisions and effects: which command leads to what, and what is done outside then.

    idle ──Say──> thinking ──calls──> acting ──results──> thinking ──answer──> idle

The loop is not a loop: each reply, result and answer is a command, and what follows from it is
decided then. So a session may stop at any call, for a minute or a month.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Final

from holdfast.core import decider
from holdfast.core.agent import questions, steps
from holdfast.core.agent.builder import Builder
from holdfast.core.agent.state import THINK, AgentDefinition, ReactState
from holdfast.core.agent.tables import COMMANDS
from holdfast.core.approval import lets_run
from holdfast.core.decider import (
    OF_EVERY_RUN,
    Decider,
    Decisions,
    Effects,
    Following,
    resumed_children,
    under_way,
)
from holdfast.core.run.four_eyes import refuse_beforehand
from holdfast.core.run.state import EMPTY, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.core.run.window import visible
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
from holdfast.i18n.message import msg
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.approval import Grant
from holdfast.model.run import RunStatus
from holdfast.model.values import Json


def blank(run_id: str, definition: AgentDefinition) -> ReactState:
    """The state of a session of which nothing has been recorded yet."""
    return ReactState(run_id, definition=definition)


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


def _ask(builder: Builder, command: c.Ask) -> None:
    if not builder.state.open:
        _refuse_to_child(builder)
    questions.ask(builder, command)


def _child_heard(builder: Builder, command: c.HearChild) -> None:
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


DECISIONS: Final[Decisions] = {
    **OF_EVERY_RUN,
    c.StartSession: _start,
    c.Say: _say,
    c.Ask: _ask,
    c.Propose: _propose,
    c.RememberApproval: _remember,
    c.RevokeApproval: _revoke,
    c.StartStep: steps.start,
    c.ReportOutcome: steps.report,
    c.Resume: _resume,
}


def goes_on_by_itself(state: ReactState) -> bool:
    """Something is under way or ready to start, so a new owner has work to take up."""
    match state.status:
        case RunStatus.CANCELLED:
            return False
        case RunStatus.CANCELLING:
            return state.in_flight > 0
        case RunStatus.ERROR:
            return under_way(state)
        case _:
            return state.active > state.resting


def _thinking(state: ReactState, event: r.ThinkingStarted) -> Effects:
    return (_work(state, THINK, state.steps[THINK]),)


def _calling(state: ReactState, event: r.CallStarted) -> Effects:
    return (_work(state, event.step_id, state.steps[event.step_id]),)


def _left(state: ReactState, event: r.StepAbandoned) -> Iterator[f.Effect]:
    step = state.steps[event.step_id]
    if step.awaits_child and step.child_status != RunStatus.CANCELLED:
        why = msg("the next turn began without it")
        yield f.CancelChild(str(step.child_id), event.by, why)


def _cancelled(state: ReactState, event: e.CancelRequested) -> Iterator[f.Effect]:
    """Child runs and replies that are not waited for any more."""
    for step_id, step in sorted(state.steps.items()):
        if step.awaits_child and step.status in (StepStatus.RUNNING, StepStatus.STOPPED):
            yield f.CancelChild(str(step.child_id), event.by, event.reason)
        elif step_id == THINK and step.status is StepStatus.RUNNING:
            yield f.StopModel(_claimed(state, step_id, step))


def _work(state: ReactState, step_id: str, step: StepState) -> f.Effect:
    work = _claimed(state, step_id, step)
    if step_id == THINK:
        return _ask_model(state, work)
    call = state.calls[step_id]
    if step.child_id is not None:
        return f.StartAgent(
            work=work,
            child_id=step.child_id,
            agent_id=state.helpers[call.tool],
            prompt=str((step.args or EMPTY)["task"]),
            root_id=state.root_id,
            approval=state.approval,
        )
    return f.CallTool(work, call.tool, step.args or EMPTY, step.idempotent, step.consent)


def _claimed(state: ReactState, step_id: str, step: StepState) -> f.Work:
    key = f"{state.run_id}:{step_id}:{step.firing}:{step.generation}"
    return f.Work(state.run_id, step_id, step.firing, step.attempt, step.claim, key)


def _ask_model(state: ReactState, work: f.Work) -> f.AskModel:
    agent = state.agent
    said = tuple(reversed(list(state.messages)))
    return f.AskModel(
        work=work,
        model=agent.model,
        system=agent.system_context,
        messages=visible(said, agent.context_limit),
        tools=state.tools,
        agents=agent.agents if state.only is None else (),
        asks_people=agent.asks_people and state.only is None,
    )


def effects_in_flight(state: ReactState) -> tuple[f.Effect, ...]:
    return decider.effects_in_flight(state, _work)


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


EFFECTS: Final[Following] = {
    r.ThinkingStarted: _thinking,
    r.CallStarted: _calling,
    r.TurnResumed: resumed_children,
    r.StepAbandoned: _left,
    e.CancelRequested: _cancelled,
}


class SessionDecider(Builder, Decider[ReactState, r.ReactEvent]):
    COMMANDS = COMMANDS
    DECISIONS = DECISIONS
    EFFECTS = EFFECTS
    answered = questions.answered
    ask_unknown = questions.ask_unknown
    child_heard = _child_heard
    goes_on_by_itself = staticmethod(goes_on_by_itself)
    effects_in_flight = staticmethod(effects_in_flight)

    def unwelcome(self, command: c.Command) -> Effects:
        if isinstance(command, c.Say):
            _refuse_while_open(self.state)
        return super().unwelcome(command)

    def quarantine(self, message: str, step_ids: tuple[str, ...]) -> None:
        self.emit(r.TurnFailed(message, step_ids))

    def restarts(self, step_id: str) -> bool:
        return step_id != THINK


decide, replay = SessionDecider.decide, SessionDecider.replayed
