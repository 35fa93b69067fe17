"""From a session's events to effects: what must be done once the events are on disk.

An effect is worked out from the state, not remembered: after a crash the same function
gives the same effect for what was in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.core.agent.state import THINK, ReactState
from holdfast.core.run.state import EMPTY, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.core.run.window import visible
from holdfast.i18n.message import msg
from holdfast.model import agent_events as r
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.run import RunStatus


def effects_of(state: ReactState, events: Iterable[r.ReactEvent]) -> tuple[f.Effect, ...]:
    """The effects of events that have just been decided; `state` is the one after them."""
    return tuple([effect for event in events for effect in _effects(state, event)])


def effects_in_flight(state: ReactState) -> tuple[f.Effect, ...]:
    """What a new owner of the session must take up again."""
    found: list[f.Effect] = []
    for step_id, step in sorted(state.steps.items()):
        if step.status is not StepStatus.RUNNING:
            continue
        if not step.awaits_child:
            found.append(_work(state, step_id, step))
        elif state.cancelled_by is not None:
            found.append(f.CancelChild(str(step.child_id), state.cancelled_by, "cancelled"))
        elif step.resuming:
            found.append(f.ResumeChild(str(step.child_id), state.started_by))
    return tuple(found)


def goes_on_by_itself(state: ReactState) -> bool:
    """Something is under way or ready to start, so a new owner has work to take up."""
    match state.status:
        case RunStatus.CANCELLED:
            return False
        case RunStatus.CANCELLING:
            return state.in_flight > 0
        case RunStatus.ERROR:
            return any(_under_way(step) for step in state.steps.values())
        case _:
            return state.active > state.resting


def _under_way(step: StepState) -> bool:
    return step.status is StepStatus.RUNNING and (step.resuming or not step.awaits_child)


def _effects(state: ReactState, event: r.ReactEvent) -> Iterator[f.Effect]:
    match event:
        case r.ThinkingStarted():
            yield _work(state, THINK, state.steps[THINK])
        case r.CallStarted():
            yield _work(state, event.step_id, state.steps[event.step_id])
        case r.TurnResumed():
            for step_id in event.children:
                yield f.ResumeChild(str(state.steps[step_id].child_id), event.by)
        case r.StepAbandoned():
            step = state.steps[event.step_id]
            if step.awaits_child and step.child_status != RunStatus.CANCELLED:
                yield f.CancelChild(
                    str(step.child_id), event.by, msg("the next turn began without it")
                )
        case e.CancelRequested():
            yield from _abandoned(state, event)
        case _:
            return


def _abandoned(state: ReactState, event: e.CancelRequested) -> Iterator[f.Effect]:
    """Child runs and replies that nobody waits for any more."""
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
