"""The tasks of a conversation as a graph: each after those that it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.core.conversation.state import ConversationState
from holdfast.core.drawing.graph import INSTANCES, STEPS
from holdfast.core.drawing.picture import GLYPHS, Condition, Edge, Node, Picture, Say, english
from holdfast.core.run.moves import retry_timer
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import ACTIVE_STEPS, StepStatus
from holdfast.model.conversation import SubTask

STATUSES: Final[Mapping[str, tuple[Condition, str]]] = {
    "pending": (Condition.IDLE, "pending"),
    "scheduled": (Condition.IDLE, "scheduled"),
    "running": (Condition.RUNNING, "running"),
    "finished": (Condition.DONE, "finished"),
    "completed": (Condition.DONE, "done"),
    "failed": (Condition.FAILED, "failed"),
}


def picture_of_tasks(state: ConversationState, say: Say = english) -> Picture:
    shown = state.order
    places = {state.tasks[one].id: place for place, one in enumerate(shown)}
    edges = [
        Edge(places[before], places[state.tasks[one].id])
        for one in shown
        for before in state.tasks[one].dependencies
        if before in places
    ]
    nodes = [_node(state, one, say) for one in shown]
    title = f"{state.run_id} {GLYPHS[INSTANCES[state.status]]} {say(state.status)}"
    size = say("{done} of {total} tasks done", done=state.completed, total=state.total)
    return Picture(title, size, tuple(nodes), tuple(edges))


def standing(task: SubTask, step: StepState | None) -> tuple[Condition, str]:
    """How a task is: while it is under way, as its step is."""
    if step is not None and step.status in ACTIVE_STEPS:
        return STEPS[step.status]
    if step is not None and step.status is StepStatus.FAILED:
        return STEPS[step.status]
    return STATUSES.get(task.status, (Condition.IDLE, task.status))


def _node(state: ConversationState, step_id: str, say: Say) -> Node:
    task = state.tasks[step_id]
    condition, told = standing(task, state.steps.get(step_id))
    label = f"{task.id} {task.description}".strip()
    note = ", ".join(filter(None, [task.type, say(told)]))
    due = state.timers.get(retry_timer(step_id))
    return Node(step_id, label, note, condition=condition, due=due)
