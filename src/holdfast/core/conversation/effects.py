"""From a conversation's events to effects: what must be done once the events are on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from holdfast.core.conversation.briefing import agent_prompt
from holdfast.core.conversation.state import (
    ANSWER,
    CONTEXT,
    DECOMPOSE,
    ConversationState,
    results_before,
    told_turn,
)
from holdfast.core.run.state import EMPTY, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.i18n.message import msg
from holdfast.model import conversation_events as v
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.conversation import SubTask
from holdfast.model.values import Json


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


def goes_on_by_itself(state: ConversationState) -> bool:
    """Never: it moves on when its consumer asks for more."""
    return False


def _forsaken(before: ConversationState, step_ids: Iterable[str]) -> Iterator[f.Effect]:
    """Child runs that nobody waits for any more, also those that wait to be mended."""
    for step_id in sorted(step_ids):
        step = before.steps[step_id]
        if step.awaits_child and step.status in (StepStatus.RUNNING, StepStatus.FAILED):
            yield f.CancelChild(str(step.child_id), before.started_by, msg("nobody waits for it"))


def _not_kept(before: ConversationState, state: ConversationState) -> list[str]:
    """A child run that has failed is kept: its task may be tried again, and it goes on then."""
    kept = {step_id for step_id, former in state.former.items() if former.child_id is not None}
    return [one for one in before.steps if one not in kept]


def _given_up(before: ConversationState, step_ids: Iterable[str]) -> Iterator[f.Effect]:
    """Child runs that failed in a turn that failed: nobody will have them go on any more."""
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
