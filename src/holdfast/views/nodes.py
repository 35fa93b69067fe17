"""Details of one box of a run's graph: input, output, attempts, status changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState, StepState
from holdfast.drawing.graph import TASKS
from holdfast.drawing.picture import Node
from holdfast.errors import NotFound
from holdfast.i18n.message import msg
from holdfast.language.display import pretty
from holdfast.model.run import StepStatus
from holdfast.runtime.offload import aside
from holdfast.views.attempts import Attempt
from holdfast.views.pictures import picture
from holdfast.views.reader import RunReader, RunVersion
from holdfast.views.records import InteractionView, interaction_view
from holdfast.views.stories.plans import told_reason

MOST_ATTEMPTS: Final = 20


@dataclass(frozen=True, slots=True)
class Change:
    """A status that a task has had, in words."""

    at: float
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """`why` is what a delayed attempt waits for; `context` is a task's, as JSON."""

    node: Node
    why: str
    attempts: tuple[Attempt, ...]
    changes: tuple[Change, ...]
    context: str | None
    child_id: str | None
    question: InteractionView | None

    @property
    def rounds(self) -> int:
        return max((one.round for one in self.attempts), default=1)

    @property
    def input(self) -> str | None:
        return next((one.input for one in reversed(self.attempts) if one.input), None)

    @property
    def output(self) -> str | None:
        return next((one.output for one in reversed(self.attempts) if one.output), None)


async def node_details(reader: RunReader, run: RunVersion, node_id: str) -> NodeDetails:
    """The box as it is in that version; NotFound where the graph has none of that id."""
    state, drawn = run.state, await aside(picture, run)
    found = next((one for one in drawn.nodes if one.id == node_id), None) if drawn else None
    if found is None:
        raise NotFound(msg("{id} has no step or task {of}", id=state.run_id, of=node_id))
    step = state.steps.get(node_id)
    is_task = isinstance(state, PlanState) and node_id in state.plan.task_ids
    made = () if is_task else (await reader.attempts(run, [node_id]))[node_id]
    return NodeDetails(
        node=found,
        why=step.why if step and found.due else "",
        attempts=made[-MOST_ATTEMPTS:],
        changes=_changes(state, node_id),
        context=_context(state, node_id),
        child_id=step.child_id if step else None,
        question=await _question(reader, step),
    )


async def _question(reader: RunReader, step: StepState | None) -> InteractionView | None:
    if step is None or step.status is not StepStatus.WAITING or step.question_id is None:
        return None
    row = await reader.journal.question(step.question_id)
    return None if row is None else interaction_view(row)


def _context(state: RunState, node_id: str) -> str | None:
    if isinstance(state, PlanState) and node_id in state.plan.task_ids:
        return pretty(dict(state.task(node_id).context))
    if isinstance(state, ConversationState) and node_id in state.tasks:
        args = state.tasks[node_id].args
        return pretty(dict(args)) if args else None
    return None


def _changes(state: RunState, task_id: str) -> tuple[Change, ...]:
    if not isinstance(state, PlanState) or task_id not in state.plan.task_ids:
        return ()
    return tuple(
        Change(one.at, TASKS[one.status][1], told_reason(one.reason))
        for one in state.task(task_id).trace
    )
