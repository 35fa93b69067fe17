"""A run's graph: the picture, how many tasks are in which condition, a conversation's tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState
from holdfast.drawing.graph import picture_of, task_standing
from holdfast.drawing.layout import rank
from holdfast.drawing.outline import outline
from holdfast.drawing.picture import Condition, Picture
from holdfast.drawing.svg import draw
from holdfast.drawing.tasks import picture_of_tasks, standing
from holdfast.views.reader import RunVersion

ORDER: Final = (
    Condition.RUNNING,
    Condition.RETRYING,
    Condition.WAITING,
    Condition.FAILED,
    Condition.DONE,
    Condition.SKIPPED,
    Condition.CANCELLED,
    Condition.IDLE,
)
"""The order in which counts are shown."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task of a conversation; `skipped` is why it was skipped."""

    step_id: str
    id: str
    description: str
    type: str
    condition: Condition
    status: str
    priority: int
    waits_for: tuple[str, ...]
    skipped: str


def picture(run: RunVersion) -> Picture | None:
    """None for a chat, and for a conversation before its first turn."""
    state = run.state
    if isinstance(state, PlanState):
        return picture_of(state.plan.plan, state)
    if isinstance(state, ConversationState) and state.turn:
        return picture_of_tasks(state)
    return None


def plan_svg(run: RunVersion) -> str:
    """The graph of a plan's run, with a style sheet of its own."""
    return draw(_drawn(run))


def plan_text(run: RunVersion, width: int = 80) -> str:
    """The same in lines of at most `width` columns."""
    return outline(_drawn(run), width)


def _drawn(run: RunVersion) -> Picture:
    drawn = picture(run)
    assert drawn is not None, "a plan has a graph"
    return drawn


def task_counts(run: RunVersion) -> Mapping[Condition, int]:
    """Tasks per condition, as the picture shows them; none where there is no picture."""
    counts = Counter(_conditions(run.state))
    return {one: counts[one] for one in ORDER if counts[one]}


def _conditions(state: RunState) -> Iterator[Condition]:
    if isinstance(state, PlanState):
        yield from (task_standing(state, one.task_id)[0] for one in state.plan.plan.tasks)
    elif isinstance(state, ConversationState) and state.turn:
        yield from (standing(state, one)[0] for one in state.order)


def task_rows(run: RunVersion) -> tuple[TaskRow, ...]:
    """The tasks of a conversation in an order in which they may run."""
    state = run.state
    if not isinstance(state, ConversationState):
        return ()
    edges = picture_of_tasks(state).edges
    ranks = rank(len(state.order), [(one.source, one.target) for one in edges]).ranks
    places = sorted(range(len(state.order)), key=lambda place: (ranks[place], place))
    return tuple(_task_row(state, state.order[place]) for place in places)


def _task_row(state: ConversationState, step_id: str) -> TaskRow:
    task = state.tasks[step_id]
    condition, words = standing(state, step_id)
    return TaskRow(
        step_id=step_id,
        id=task.id,
        description=task.description,
        type=task.type,
        condition=condition,
        status=words,
        priority=task.priority,
        waits_for=task.dependencies,
        skipped=task.skipped,
    )
