"""What each event does to a session's state (`REDUCERS`): nothing else changes it."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.core.agent.state import FAILED_ENDS, THINK, ReactState
from holdfast.core.approval import spend
from holdfast.core.run import reducers as shared
from holdfast.core.run.builder import Reducer
from holdfast.core.run.state import (
    ANY_STEP,
    CHANGED,
    NEW_STEP,
    RESUMED,
    SPOKE,
    add_failed,
    add_step,
    asks,
    changed,
    move_step,
    progressed,
    signal,
    unfail,
    wants,
    without,
)
from holdfast.core.run.tables import ACTIVE_STEPS, Signal, StepMove
from holdfast.model import agent_events as r
from holdfast.model import events as e
from holdfast.model.message import (
    Message,
    ModelSaid,
    ToolCall,
    ToolReturned,
    UserSaid,
)
from holdfast.model.run import RunStatus


def session_started(state: ReactState, event: r.SessionStarted, at: float) -> ReactState:
    own = {"parent": event.parent, "approval": event.approval, "only": event.only}
    return shared.begun(state, event, at, **own)


def turn_started(state: ReactState, event: r.TurnStarted, at: float) -> ReactState:
    state = changed(
        state, turn=event.turn, text=event.text, open=True, iteration=0, did=(), error="", failed=()
    )
    state = wants(state, event.by, SPOKE)
    state = _say(signal(state, Signal.NEXT_TURN), UserSaid(event.text))
    return think_next(state)


def call_proposed(state: ReactState, event: r.CallProposed, at: float) -> ReactState:
    """The model finds the call as if it had wanted it, and hears what came of it."""
    call, words = event.call, f"[{event.by} proposes to call {event.call.tool}]"
    state = wants(state, event.by, SPOKE)
    state = changed(
        _forget_ended(state),
        turn=event.turn,
        text=words,
        open=True,
        iteration=0,
        did=(),
        numbered=state.numbered + 1,
    )
    state = _say(signal(state, Signal.NEXT_TURN), UserSaid(words))
    state = _say(state, ModelSaid("", (ToolCall(call.call_id, call.tool, call.args),)))
    return new_step(state, call)


def think_next(state: ReactState) -> ReactState:
    """The model's turn comes when nothing else is under way, and nothing has failed.

    What people said meanwhile comes behind the results of the calls, never between them.
    """
    if state.active or not state.open or state.status is RunStatus.ERROR:
        return state
    if state.asides:
        heard = UserSaid("\n\n".join(state.asides))
        state = _say(changed(state, asides=()), heard)
    step = state.steps.get(THINK)
    if step is None:
        return add_step(state, THINK)
    return move_step(state, THINK, StepMove.FIRE, NEW_STEP, firing=step.firing + 1)


def thinking_started(state: ReactState, event: r.ThinkingStarted, at: float) -> ReactState:
    state = changed(state, iteration=state.iteration + (event.attempt == 1))
    return move_step(
        state, THINK, StepMove.START, attempt=event.attempt, claim=state.version, idempotent=True
    )


def released(state: ReactState, event: e.StepReleased, at: float) -> ReactState:
    """Thinking that was released is no round of thinking."""
    state = changed(state, iteration=state.iteration - (event.step_id == THINK))
    return shared.step_released(state, event, at)


def model_replied(state: ReactState, event: r.ModelReplied, at: float) -> ReactState:
    state = _forget_ended(move_step(progressed(state), THINK, StepMove.SUCCEED))
    said = tuple(
        ToolCall(call.call_id, call.tool, call.args, call.malformed) for call in event.calls
    )
    if event.text or said:
        state = _say(state, ModelSaid(event.text, said))
    state = changed(
        state,
        usage=state.usage + event.usage,
        requests=state.requests + 1,
        numbered=state.numbered + len(event.calls),
    )
    for call in event.calls:
        state = new_step(state, call)
    return think_next(state) if state.asides else state


def new_step(state: ReactState, call: r.Call) -> ReactState:
    state = changed(state, calls=state.calls.set(call.step_id, call))
    return add_step(state, call.step_id)


def _forget_ended(state: ReactState) -> ReactState:
    """What an earlier reply wanted is over; a long session keeps only what is under way."""
    steps, calls = state.steps, state.calls
    for step_id in state.calls:
        if steps[step_id].status not in ACTIVE_STEPS:
            steps, calls = without(steps, step_id), without(calls, step_id)
    return changed(state, steps=steps, calls=calls)


def question_opened(state: ReactState, event: e.QuestionOpened, at: float) -> ReactState:
    """A question that belongs to no call is a step of its own."""
    if event.step_id not in state.steps:
        state = changed(state, numbered=state.numbered + 1)
        state = new_step(state, r.Call(event.step_id, "", ""))
    return shared.question_opened(state, event, at)


def cancel_requested(state: ReactState, event: e.CancelRequested, at: float) -> ReactState:
    return shared.cancel_requested(changed(state, open=False), event, at)


def call_started(state: ReactState, event: r.CallStarted, at: float) -> ReactState:
    granted = state.steps[event.step_id].grant_id if event.consent else None
    state = shared.call_started(state, event, grant_id=event.grant_id or granted)
    if event.grant_id is None:
        return state
    grant = spend(state.grants[event.grant_id])
    return changed(state, grants=state.grants.set(event.grant_id, grant))


def step_ended(state: ReactState, event: r.StepEnded, at: float) -> ReactState:
    call = state.calls[event.step_id]
    state = move_step(progressed(state), event.step_id, StepMove.SUCCEED, carried=None)
    if not call.tool:
        return think_next(_answer_heard(state, str(event.content)))
    failed = event.how in FAILED_ENDS
    state = _say(state, ToolReturned(call.call_id, call.tool, event.content, failed))
    state = changed(state, did=(*state.did, (call.tool, event.how, event.content)))
    if event.note:
        state = changed(state, asides=(*state.asides, event.note))
    return think_next(state)


def _answer_heard(state: ReactState, text: str) -> ReactState:
    """A person's answer to a question that belongs to no call; between turns it opens one."""
    if not state.open:
        state = changed(state, open=True, turn=state.turn + 1, text=text, iteration=0, did=())
    return changed(state, asides=(*state.asides, text))


def turn_completed(state: ReactState, event: r.TurnCompleted, at: float) -> ReactState:
    state = changed(state, answer=event.text, open=False)
    return signal(state, Signal.FINISH)


def turn_failed(state: ReactState, event: r.TurnFailed, at: float) -> ReactState:
    for step_id in event.failed:
        state = move_step(state, step_id, StepMove.GIVE_UP)
        state = add_failed(state, step_id)
    return signal(changed(state, error=event.message), Signal.GIVE_UP)


def abandoned(state: ReactState, event: r.StepAbandoned, at: float) -> ReactState:
    """A call that failed for good, and that the next turn does not wait for."""
    call = state.calls[event.step_id]
    state = unfail(move_step(state, event.step_id, StepMove.SKIP), event.step_id)
    return _say(state, ToolReturned(call.call_id, call.tool, event.content, True))


def turn_resumed(state: ReactState, event: r.TurnResumed, at: float) -> ReactState:
    """Only what failed goes on: helpers where they stopped, calls and thinking anew."""
    failed = state.failed
    state = wants(state, event.by, RESUMED)
    state = changed(state, failed=(), error="", recoveries=0, iteration=0)
    state = shared.children_resumed(signal(state, Signal.RESUME), event.children)
    for step_id in failed:
        if step_id != THINK and step_id not in event.children:
            state = move_step(state, step_id, StepMove.GO_ON)
    state = think_next(state)
    state.readied.append(ANY_STEP)
    return signal(state, Signal.ASK) if asks(state) else state


def remembered(state: ReactState, event: r.ApprovalRemembered, at: float) -> ReactState:
    state = wants(state, event.grant.by, CHANGED)
    return changed(state, grants=state.grants.set(event.grant.grant_id, event.grant))


def revoked(state: ReactState, event: r.ApprovalRevoked, at: float) -> ReactState:
    state = wants(state, event.by, CHANGED)
    return changed(state, grants=without(state.grants, event.grant_id))


def _say(state: ReactState, message: Message) -> ReactState:
    return changed(state, messages=state.messages.push_front(message))


REDUCERS: Mapping[type, Reducer] = {
    **shared.REDUCERS,
    r.SessionStarted: session_started,
    r.TurnStarted: turn_started,
    r.CallProposed: call_proposed,
    r.ThinkingStarted: thinking_started,
    r.ModelReplied: model_replied,
    r.CallStarted: call_started,
    r.StepEnded: step_ended,
    r.StepAbandoned: abandoned,
    r.TurnCompleted: turn_completed,
    r.TurnFailed: turn_failed,
    r.TurnResumed: turn_resumed,
    r.ApprovalRemembered: remembered,
    r.ApprovalRevoked: revoked,
    e.StepReleased: released,
    e.QuestionOpened: question_opened,
    e.CancelRequested: cancel_requested,
}
