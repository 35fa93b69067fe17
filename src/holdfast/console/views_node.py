"""One box of a graph, looked at closely: what went in and came out, each try, each change."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from holdfast.console.deeds import again_deeds, task_deeds
from holdfast.console.views_graph import picture
from holdfast.core.conversation.state import ConversationState
from holdfast.core.drawing.picture import Condition
from holdfast.core.plan.state import PlanState
from holdfast.core.run.moves import retry_timer
from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotFound
from holdfast.journal.codec import decode
from holdfast.model import events as e
from holdfast.model.conversation_events import TaskBroke, TaskFinished, TaskStarted
from holdfast.model.recorded import Event
from holdfast.model.values import Json
from holdfast.runtime.hub import Recorded
from holdfast.server.services import Services
from holdfast.story.voice import Voice

MOST_TRIES: Final = 20
LONGEST: Final = 20_000


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt; `how` is `running`, `done` or `failed`, `message` why it failed."""

    number: int
    began: float
    ended: float | None = None
    how: str = "running"
    message: str = ""
    input: str | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    at: float
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class NodeView:
    """`deeds` are names and what they are of; `context` is a task's, as JSON."""

    run_id: str
    id: str
    label: str
    note: str
    hint: str
    condition: Condition | None
    due: float | None
    tries: tuple[Try, ...]
    changes: tuple[Change, ...]
    context: str | None
    child_id: str | None
    question_id: str | None
    deeds: tuple[tuple[str, str], ...]
    seq: int | None

    @property
    def input(self) -> str | None:
        return next((one.input for one in reversed(self.tries) if one.input), None)

    @property
    def output(self) -> str | None:
        return next((one.output for one in reversed(self.tries) if one.output), None)


async def node_of(
    served: Services, state: RunState, say: Voice, node_id: str, *, operates: bool, past: bool
) -> NodeView:
    """The box as it is in `state`; what belongs to the past offers nothing to do."""
    drawn = picture(state, say)
    found = next((one for one in drawn.nodes if one.id == node_id), None) if drawn else None
    if found is None:
        raise NotFound(f"{state.run_id} has no step or task {node_id}")
    step = state.steps.get(node_id)
    is_task = isinstance(state, PlanState) and node_id in state.plan.task_ids
    tries = () if is_task else await _tries(served, state, node_id)
    return NodeView(
        run_id=state.run_id,
        id=node_id,
        label=found.label,
        note=found.note,
        hint=found.hint,
        condition=found.condition,
        due=state.timers.get(retry_timer(node_id)),
        tries=tries,
        changes=_changes(state, node_id, say) if is_task else (),
        context=_context(state, node_id),
        child_id=step.child_id if step else None,
        question_id=step.question_id if step and step.status is StepStatus.WAITING else None,
        deeds=_deeds(state, node_id, is_task, served.now()) if operates and not past else (),
        seq=state.version if past else None,
    )


def _deeds(state: RunState, node_id: str, is_task: bool, now: float) -> tuple[tuple[str, str], ...]:
    return task_deeds(state, node_id, now) if is_task else again_deeds(state, node_id, now)


def _context(state: RunState, node_id: str) -> str | None:
    if isinstance(state, PlanState) and node_id in state.plan.task_ids:
        return pretty(dict(state.task(node_id).context))
    if isinstance(state, ConversationState) and node_id in state.tasks:
        args = state.tasks[node_id].args
        return pretty(dict(args)) if args else None
    return None


def _changes(state: RunState, task_id: str, say: Voice) -> tuple[Change, ...]:
    assert isinstance(state, PlanState)
    return tuple(
        Change(one.at, say(one.status.value), one.reason) for one in state.task(task_id).trace
    )


async def _tries(served: Services, state: RunState, step_id: str) -> tuple[Try, ...]:
    """From the journal: only the records that name the step are read closely."""
    name = json.dumps(step_id, ensure_ascii=False)
    records = await served.journal.read(state.run_id, 0, state.version)
    named = (one for one in records if name in one.payload)
    events = (Recorded(one.seq, one.at, decode(one)) for one in named)
    return tuple(_attempts(events, step_id))[-MOST_TRIES:]


def _attempts(events: Iterable[Recorded], step_id: str) -> Iterator[Try]:
    begun: Try | None = None
    for recorded in events:
        if _step_of(recorded.event) != step_id:
            continue
        if isinstance(recorded.event, e.ListenerStarted | TaskStarted):
            if begun is not None:
                yield begun
            begun = _begun(recorded.event, recorded.at)
        elif begun is not None and (ending := _ending(recorded.event)):
            yield replace(begun, ended=recorded.at, **ending)
            begun = None
    if begun is not None:
        yield begun


def _begun(event: e.ListenerStarted | TaskStarted, at: float) -> Try:
    args = getattr(event, "args", None)
    return Try(event.attempt, at, input=pretty(dict(args)) if args else None)


def _ending(event: Event) -> dict[str, Any]:
    match event:
        case e.ListenerSucceeded(result=result) | TaskFinished(result=result):
            return {"how": "done", "output": None if result is None else pretty(result)}
        case e.ListenerFailed(failure=failure) | TaskBroke(failure=failure):
            return {"how": "failed", "message": failure.message}
        case e.AttemptFailed(failure=failure):
            return {"how": "failed", "message": failure.message}
        case e.OutcomeLost(reason=reason):
            return {"how": "failed", "message": reason}
        case e.CheckConcluded():
            how = "failed" if event.verdict == "failed" else "done"
            return {"how": how, "message": event.message, "output": pretty(event.result)}
        case _:
            return {}


def _step_of(event: Event) -> str | None:
    return getattr(event, "step_id", None) or getattr(event, "listener_id", None)


def pretty(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
