"""A session's steps: when the model is asked, which calls may start, and what comes of both.

Whatever happens to a call, the model hears of it, and a failure is only a result like others. A
call that is rejected, skipped or refused never reaches the executor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never, cast

from holdfast.core.agent import questions
from holdfast.core.agent.builder import Builder
from holdfast.core.agent.state import HELPER, THINK
from holdfast.core.approval import best, lapsed, mode_for, mode_for_helper
from holdfast.core.interactions.calls import (
    NeedArguments,
    NeedConsent,
    Refuse,
    Start,
    judge_call,
    without_outdated,
)
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import counts, lost, release, repeatable, says_failure, tries_again
from holdfast.core.run.tables import StepStatus
from holdfast.i18n.message import msg
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model.agent import ASK_PERSON
from holdfast.model.approval import ApprovalMode, Grant
from holdfast.model.message import ModelReply, ToolCall
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json


def start(builder: Builder, command: c.StartStep) -> None:
    step = builder.state.steps.get(command.step_id)
    if step is None or step.status is not StepStatus.READY:
        return
    if command.step_id == THINK:
        _think(builder)
    elif step.carried is not None:
        _carry(builder, command.step_id, step.carried[0])
    else:
        _start_call(builder, builder.call(command.step_id), command.tool)


def _think(builder: Builder) -> None:
    state = builder.state
    if state.iteration >= state.agent.max_iterations:
        why = msg("no answer after {n} rounds of thinking (max_iterations)", n=state.iteration)
        builder.emit(r.TurnFailed(why, (THINK,)))
        return
    step = builder.step(THINK)
    builder.emit(r.ThinkingStarted(step.firing, step.attempt + 1))


def _replied(builder: Builder, reply: ModelReply) -> None:
    """Calls to be made, or the answer that ends the turn.

    It does not end while a person is being asked, or has said what the model has yet to hear.
    """
    builder.emit(
        r.ModelReplied(
            firing=builder.step(THINK).firing,
            text=reply.text,
            calls=_numbered(builder, reply.calls),
            usage=reply.usage,
            model=reply.model,
            finish=reply.finish,
        )
    )
    if not builder.state.active:
        _answered(builder, reply)


_NAMELESS = "no_name"
"""Only a person's question has no tool; what a model says must never pass for the answer to one."""


def _numbered(builder: Builder, calls: tuple[ToolCall, ...]) -> tuple[r.Call, ...]:
    first = builder.state.numbered + 1
    return tuple(
        r.Call(f"c{number}", call.call_id, call.tool or _NAMELESS, call.args, call.malformed)
        for number, call in enumerate(calls, first)
    )


def _answered(builder: Builder, reply: ModelReply) -> None:
    if reply.text.strip():
        builder.emit(r.TurnCompleted(builder.state.turn, reply.text))
        return
    if reply.finish == "length":
        why = msg("the model gave no answer: its reply was cut off")
    else:
        why = msg("the model gave no answer: it stopped by {reason!r}", reason=reply.finish)
    builder.emit(r.TurnFailed(why))


def _unasked(builder: Builder, failure: Failure) -> None:
    """The client has tried often enough; a person may resume when the model is back."""
    why = msg("the model could not be asked: {reason}", reason=failure.message)
    builder.emit(r.TurnFailed(why, (THINK,)))


def _carry(builder: Builder, step_id: str, result: Json) -> None:
    """The result is at hand already: a child run's, or what a person told of a lost call."""
    builder.end(step_id, "failed" if says_failure(result) else "done", result)


def _start_call(builder: Builder, call: r.Call, tool: c.ToolFacts | None) -> None:
    state = builder.state
    if call.malformed is not None:
        _refuse(
            builder, call, msg("the arguments are not a JSON object: {text}", text=call.malformed)
        )
    elif call.tool in state.helpers:
        _start_helper(builder, call)
    elif call.tool == ASK_PERSON and state.agent.asks_people and state.only is None:
        questions.ask_person(builder, call)
    elif call.tool not in state.tools:
        known = ", ".join([*state.tools, *state.helpers]) or msg("no tools at all")
        _refuse(
            builder,
            call,
            msg("there is no tool {tool!r}; you have {names}", tool=call.tool, names=known),
        )
    elif tool is None:
        _refuse(builder, call, msg("the tool {tool!r} is not available now", tool=call.tool))
    else:
        _start_tool(builder, call, tool)


def _refuse(builder: Builder, call: r.Call, message: str) -> None:
    builder.end(call.step_id, "refused", {"error": message})


def _start_helper(builder: Builder, call: r.Call) -> None:
    """Handing work over is judged like any call, by the rules for the agent and its tool."""
    state, args = builder.state, _arguments(builder, call)
    task = args.get("task")
    if not isinstance(task, str) or not task.strip():
        _refuse(builder, call, msg("say in `task` what is to be done"))
        return
    names = (call.tool, state.helpers[call.tool])
    mode = mode_for_helper(
        names,
        args,
        agent=state.agent.approval,
        session=state.approval,
        four_eyes=builder.wanted_by is not None,
    )
    _judge(builder, call, HELPER, args, mode)


def _start_tool(builder: Builder, call: r.Call, tool: c.ToolFacts) -> None:
    state = builder.state
    args = without_outdated(state, call.step_id, _arguments(builder, call), tool)
    mode = mode_for(
        call.tool,
        args,
        own=tool.approval,
        agent=state.agent.approval,
        session=state.approval,
        four_eyes=builder.wanted_by is not None,
    )
    if call.proposed and mode is ApprovalMode.AUTO:
        mode = ApprovalMode.REQUIRE_APPROVAL
    _judge(builder, call, tool, args, mode)


def _arguments(builder: Builder, call: r.Call) -> Mapping[str, Json]:
    step = builder.step(call.step_id)
    return {**call.args, **step.provided} if step.args is None else step.args


def _judge(
    builder: Builder, call: r.Call, tool: c.ToolFacts, args: Mapping[str, Json], mode: ApprovalMode
) -> None:
    place = (builder.state.run_id, call.step_id, builder.step(call.step_id).firing)
    verdict = judge_call(place, call.tool, args, tool, mode, _given_consent(builder, call))
    match verdict:
        case Start(consent=consent):
            _started(builder, call, tool, args, consent=consent)
        case NeedArguments(form=form):
            questions.ask_missing(builder, call, form, args, tool.version)
        case NeedConsent(consent=bound):
            _consent(builder, call, tool, args, bound)
        case Refuse(message=message):
            _refuse(builder, call, message)
        case _:
            assert_never(verdict)


def _given_consent(builder: Builder, call: r.Call) -> str | None:
    """What was consented to, unless it rests on a remembered approval that is over."""
    step = builder.step(call.step_id)
    if step.grant_id is None:
        return step.consent
    grant = builder.state.grants.get(step.grant_id)
    over = lapsed(grant, builder.now) or builder.wanted_by is not None
    return None if over else step.consent


def _consent(
    builder: Builder, call: r.Call, tool: c.ToolFacts, args: Mapping[str, Json], consent: str
) -> None:
    """Given already, for calls like this one; or to be asked for."""
    grant = _grant(builder, call, tool, args)
    if grant is None:
        questions.ask_approval(builder, call, args, tool, consent)
    else:
        _started(builder, call, tool, args, consent=consent, grant_id=grant.grant_id)


def _grant(
    builder: Builder, call: r.Call, tool: c.ToolFacts, args: Mapping[str, Json]
) -> Grant | None:
    """A remembered approval; what is proposed from outside is always asked, and under four eyes
    every call is."""
    if call.proposed or builder.wanted_by is not None:
        return None
    return best(builder.state.grants.values(), call.tool, tool.version, args, builder.now)


def _started(
    builder: Builder,
    call: r.Call,
    tool: c.ToolFacts,
    args: Mapping[str, Json],
    *,
    consent: str | None = None,
    grant_id: str | None = None,
) -> None:
    step = builder.step(call.step_id)
    helping = call.tool in builder.state.helpers
    builder.emit(
        r.CallStarted(
            step_id=call.step_id,
            attempt=step.attempt + 1,
            generation=step.generation,
            args=args,
            idempotent=tool.idempotent,
            consent=consent,
            grant_id=grant_id,
            child_id=f"{builder.state.run_id}.{call.step_id}.1" if helping else None,
        )
    )


def report(builder: Builder, command: c.ReportOutcome) -> None:
    if counts(builder, builder.state.steps.get(command.step_id), command):
        _conclude(builder, command.step_id, cast(c.ReactOutcome, command.outcome))


def _conclude(builder: Builder, step_id: str, outcome: c.ReactOutcome) -> None:
    cancelling = builder.state.status is RunStatus.CANCELLING
    match outcome:
        case c.NotSent():
            release(builder, step_id)
        case c.Replied() | c.Missing() if cancelling:
            # It would lead to something more, and nothing more may start.
            release(builder, step_id)
        case c.Replied(reply=reply):
            _replied(builder, reply)
        case c.Failed() | c.Lost() if cancelling and step_id == THINK:
            release(builder, step_id)
        case c.Failed(failure=failure) if step_id == THINK:
            _unasked(builder, failure)
        case c.Lost() if step_id == THINK:
            _unasked(builder, lost(outcome))
        case c.Succeeded(result=result):
            builder.end(step_id, "done", result)
        case c.Failed():
            _fail(builder, step_id, outcome)
        case c.Missing(form=form, version=version):
            sent = builder.step(step_id).args or EMPTY
            questions.ask_missing(builder, builder.call(step_id), form, sent, version)
        case c.Lost():
            lose(builder, step_id, lost(outcome))
        case _:
            assert_never(outcome)


def _fail(builder: Builder, step_id: str, outcome: c.Failed) -> None:
    failure = outcome.failure
    if failure.kind is FailureKind.UNKNOWN:
        lose(builder, step_id, failure)
    elif not tries_again(builder, step_id, builder.state.agent.retry, failure):
        _tell_failure(builder, step_id, failure, outcome.result)


def _tell_failure(builder: Builder, step_id: str, failure: Failure, result: Json) -> None:
    told = result if result is not None else {"error": failure.message, "kind": failure.kind.value}
    builder.end(step_id, "failed", told)


def lose(builder: Builder, step_id: str, failure: Failure) -> None:
    """An idempotent call may be tried again under its key; of others only a person can tell."""
    cancelling = builder.state.status is RunStatus.CANCELLING
    if cancelling or not repeatable(builder.step(step_id)):
        questions.ask_unknown(builder, step_id, failure.message)
    elif not tries_again(builder, step_id, builder.state.agent.retry, failure):
        _tell_failure(builder, step_id, failure, None)
