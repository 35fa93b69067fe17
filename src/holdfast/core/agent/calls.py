"""Calls: which may start, which need a person first, and what comes of them.

Whatever happens to a call, the model hears of it, and a failure is only a result like
others. A call that is rejected, skipped or refused never reaches the executor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never, cast

from holdfast.core.agent import questions, thinking
from holdfast.core.agent.builder import Draft
from holdfast.core.agent.state import HELPER, THINK
from holdfast.core.approval import best, lapsed, mode_for, mode_for_helper
from holdfast.core.interactions.calling import (
    NeedArguments,
    NeedConsent,
    Refuse,
    Start,
    judge_call,
)
from holdfast.core.interactions.outdated import without_outdated
from holdfast.core.run.state import EMPTY
from holdfast.core.run.steps import counts, lost, release, repeatable, says_failure, tries_again
from holdfast.core.run.tables import StepStatus
from holdfast.model import agent_events as r
from holdfast.model import commands as c
from holdfast.model.agent import ASK_PERSON
from holdfast.model.approval import ApprovalMode, Grant
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.run import RunStatus
from holdfast.model.values import Json


def start(draft: Draft, command: c.StartStep) -> None:
    step = draft.state.steps.get(command.step_id)
    if step is None or step.status is not StepStatus.READY:
        return
    if command.step_id == THINK:
        thinking.start(draft)
    elif step.carried is not None:
        _carry(draft, command.step_id, step.carried[0])
    else:
        _start_call(draft, draft.call(command.step_id), command.tool)


def _carry(draft: Draft, step_id: str, result: Json) -> None:
    """The result is at hand already: a child run's, or what a person told of a lost call."""
    draft.end(step_id, "failed" if says_failure(result) else "done", result)


def _start_call(draft: Draft, call: r.Call, tool: c.ToolFacts | None) -> None:
    state = draft.state
    if call.malformed is not None:
        _refuse(draft, call, f"the arguments are not a JSON object: {call.malformed}")
    elif call.tool in state.helpers:
        _start_helper(draft, call)
    elif call.tool == ASK_PERSON and state.agent.asks_people and state.only is None:
        questions.ask_person(draft, call)
    elif call.tool not in state.tools:
        known = ", ".join([*state.tools, *state.helpers]) or "no tools at all"
        _refuse(draft, call, f"there is no tool {call.tool!r}; you have {known}")
    elif tool is None:
        _refuse(draft, call, f"the tool {call.tool!r} is not available now")
    else:
        _start_tool(draft, call, tool)


def _refuse(draft: Draft, call: r.Call, message: str) -> None:
    draft.end(call.step_id, "refused", {"error": message})


def _start_helper(draft: Draft, call: r.Call) -> None:
    """Handing work over is judged like any call, by the rules for the agent and its tool."""
    state, args = draft.state, _arguments(draft, call)
    task = args.get("task")
    if not isinstance(task, str) or not task.strip():
        _refuse(draft, call, "say in `task` what is to be done")
        return
    names = (call.tool, state.helpers[call.tool])
    mode = mode_for_helper(
        names,
        args,
        agent=state.agent.approval,
        session=state.approval,
        four_eyes=draft.wanted_by is not None,
    )
    _judge(draft, call, HELPER, args, mode)


def _start_tool(draft: Draft, call: r.Call, tool: c.ToolFacts) -> None:
    state = draft.state
    args = without_outdated(state, call.step_id, _arguments(draft, call), tool)
    mode = mode_for(
        call.tool,
        args,
        own=tool.approval,
        agent=state.agent.approval,
        session=state.approval,
        four_eyes=draft.wanted_by is not None,
    )
    if call.proposed and mode is ApprovalMode.AUTO:
        mode = ApprovalMode.REQUIRE_APPROVAL
    _judge(draft, call, tool, args, mode)


def _arguments(draft: Draft, call: r.Call) -> Mapping[str, Json]:
    step = draft.step(call.step_id)
    return {**call.args, **step.provided} if step.args is None else step.args


def _judge(
    draft: Draft, call: r.Call, tool: c.ToolFacts, args: Mapping[str, Json], mode: ApprovalMode
) -> None:
    place = (draft.state.run_id, call.step_id, draft.step(call.step_id).firing)
    verdict = judge_call(place, call.tool, args, tool, mode, _given_consent(draft, call))
    match verdict:
        case Start(consent=consent):
            _started(draft, call, tool, args, consent=consent)
        case NeedArguments(form=form):
            questions.ask_missing(draft, call, form, args, tool.version)
        case NeedConsent(consent=bound):
            _consent(draft, call, tool, args, bound)
        case Refuse(message=message):
            _refuse(draft, call, message)
        case _:
            assert_never(verdict)


def _given_consent(draft: Draft, call: r.Call) -> str | None:
    """What was consented to, unless it rests on a remembered approval that is over."""
    step = draft.step(call.step_id)
    if step.grant_id is None:
        return step.consent
    grant = draft.state.grants.get(step.grant_id)
    over = lapsed(grant, draft.now) or draft.wanted_by is not None
    return None if over else step.consent


def _consent(
    draft: Draft, call: r.Call, tool: c.ToolFacts, args: Mapping[str, Json], consent: str
) -> None:
    """Given already, for calls like this one; or to be asked for."""
    grant = _grant(draft, call, tool, args)
    if grant is None:
        questions.ask_approval(draft, call, args, tool, consent)
    else:
        _started(draft, call, tool, args, consent=consent, grant_id=grant.grant_id)


def _grant(draft: Draft, call: r.Call, tool: c.ToolFacts, args: Mapping[str, Json]) -> Grant | None:
    """A remembered approval; what is proposed from outside is always asked, and under four eyes
    every call is."""
    if call.proposed or draft.wanted_by is not None:
        return None
    return best(draft.state.grants.values(), call.tool, tool.version, args, draft.now)


def _started(
    draft: Draft,
    call: r.Call,
    tool: c.ToolFacts,
    args: Mapping[str, Json],
    *,
    consent: str | None = None,
    grant_id: str | None = None,
) -> None:
    step = draft.step(call.step_id)
    helping = call.tool in draft.state.helpers
    draft.emit(
        r.CallStarted(
            step_id=call.step_id,
            attempt=step.attempt + 1,
            generation=step.generation,
            args=args,
            idempotent=tool.idempotent,
            consent=consent,
            grant_id=grant_id,
            child_id=f"{draft.state.run_id}.{call.step_id}.1" if helping else None,
        )
    )


def report(draft: Draft, command: c.ReportOutcome) -> None:
    if counts(draft, draft.state.steps.get(command.step_id), command):
        _conclude(draft, command.step_id, cast(c.ReactOutcome, command.outcome))


def _conclude(draft: Draft, step_id: str, outcome: c.ReactOutcome) -> None:
    cancelling = draft.state.status is RunStatus.CANCELLING
    match outcome:
        case c.NotSent():
            release(draft, step_id)
        case c.Replied() | c.Missing() if cancelling:
            # It would lead to something more, and nothing more may start.
            release(draft, step_id)
        case c.Replied(reply=reply):
            thinking.replied(draft, reply)
        case c.Failed() | c.Lost() if cancelling and step_id == THINK:
            release(draft, step_id)
        case c.Failed(failure=failure) if step_id == THINK:
            thinking.failed(draft, failure)
        case c.Lost() if step_id == THINK:
            thinking.failed(draft, lost(outcome))
        case c.Succeeded(result=result):
            draft.end(step_id, "done", result)
        case c.Failed():
            _fail(draft, step_id, outcome)
        case c.Missing(form=form, version=version):
            sent = draft.step(step_id).args or EMPTY
            questions.ask_missing(draft, draft.call(step_id), form, sent, version)
        case c.Lost():
            lose(draft, step_id, lost(outcome))
        case _:
            assert_never(outcome)


def _fail(draft: Draft, step_id: str, outcome: c.Failed) -> None:
    failure = outcome.failure
    if failure.kind is FailureKind.UNKNOWN:
        lose(draft, step_id, failure)
    elif not tries_again(draft, step_id, draft.state.agent.retry, failure):
        _tell_failure(draft, step_id, failure, outcome.result)


def _tell_failure(draft: Draft, step_id: str, failure: Failure, result: Json) -> None:
    told = result if result is not None else {"error": failure.message, "kind": failure.kind.value}
    draft.end(step_id, "failed", told)


def lose(draft: Draft, step_id: str, failure: Failure) -> None:
    """An idempotent call may be tried again under its key; of others only a person can tell."""
    cancelling = draft.state.status is RunStatus.CANCELLING
    if cancelling or not repeatable(draft.step(step_id)):
        questions.ask_unknown(draft, step_id, failure.message)
    elif not tries_again(draft, step_id, draft.state.agent.retry, failure):
        _tell_failure(draft, step_id, failure, None)
