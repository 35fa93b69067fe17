"""The tasks of a conversation as a graph: each after those that it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.tables import ACTIVE_STEPS, StepStatus
from holdfast.drawing.graph import INSTANCES, next_try, run_words, step_standing
from holdfast.drawing.picture import GLYPHS, Condition, Edge, Node, Picture
from holdfast.i18n.message import joined, msg
from holdfast.model.conversation import EngineState
from holdfast.model.run import RunStatus

_TELLING: Final = ACTIVE_STEPS | {StepStatus.FAILED}
_STOPPED: Final = (Condition.CANCELLED, msg("stopped"))
"""A task that was under way when its turn or run ended, and a turn that a person has ended."""

STATUSES: Final[Mapping[str, tuple[Condition, str]]] = {
    "pending": (Condition.IDLE, msg("not started")),
    "scheduled": (Condition.IDLE, msg("scheduled")),
    "running": (Condition.RUNNING, msg("running")),
    "finished": (Condition.DONE, msg("finished")),
    "completed": (Condition.DONE, msg("done")),
    "skipped": (Condition.SKIPPED, msg("skipped")),
    "failed": (Condition.FAILED, msg("failed")),
}


def picture_of_tasks(state: ConversationState) -> Picture:
    shown = state.order
    places = {state.tasks[one].id: place for place, one in enumerate(shown)}
    edges = [
        Edge(places[before], places[state.tasks[one].id])
        for one in shown
        for before in state.tasks[one].dependencies
        if before in places
    ]
    nodes = [_node(state, one) for one in shown]
    standing_of_run = (INSTANCES[state.status], run_words(state.status))
    condition, told = _STOPPED if state.stopped else standing_of_run
    title = joined(" ", (state.run_id, GLYPHS[condition], told))
    size = msg("{done} of {total} tasks done", done=state.completed, total=state.total)
    if state.skipped:
        size = joined("", (size, msg(", {n} skipped", n=state.skipped)))
    return Picture(title, size, tuple(nodes), tuple(edges))


def standing(state: ConversationState, step_id: str) -> tuple[Condition, str]:
    """How a task is: while it is under way or has failed, as its step is."""
    task, step = state.tasks[step_id], state.steps.get(step_id)
    if step is None or step.status not in _TELLING:
        return _by_itself(state, "skipped" if task.skipped else task.status)
    condition, told = step_standing(state, step, _STOPPED)
    if told != "retrying":
        return condition, told
    most = state.settings.retry.attempts
    return condition, msg("retrying, try {n} of {most}", n=step.attempt + 1, most=most)


def _by_itself(state: ConversationState, status: str) -> tuple[Condition, str]:
    """A task without a step: in a turn that has ended nothing is under way or to come."""
    over = state.stopped or state.status is RunStatus.CANCELLED
    if status == "running" and (over or state.phase is EngineState.ERROR):
        return _STOPPED
    if status == "scheduled" and over:
        status = "pending"
    return STATUSES.get(status, (Condition.IDLE, status))


def _node(state: ConversationState, step_id: str) -> Node:
    task = state.tasks[step_id]
    condition, told = standing(state, step_id)
    label = f"{task.id} {task.description}".strip()
    note = joined(", ", filter(None, [task.type, told]))
    due = next_try(state, step_id)
    return Node(step_id, label, note, condition=condition, due=due)
