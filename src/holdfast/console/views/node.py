"""Details of one box of the graph: input, output, attempts, status changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.console.attempts import Try, pretty, tries_of
from holdfast.console.views.card import message_of, title_of
from holdfast.console.views.graph import picture
from holdfast.console.words import Words
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.drawing.graph import TASKS
from holdfast.drawing.picture import Condition
from holdfast.errors import NotFound
from holdfast.journal.port import QuestionRow
from holdfast.runtime.projections import request_of
from holdfast.server.services import Services
from holdfast.views.actions import ActionOf, node_actions
from holdfast.views.stories.phrases import Voice
from holdfast.views.stories.plans import told_reason

MOST_TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Change:
    at: float
    status: str
    reason: str


@dataclass(frozen=True, slots=True)
class NodeView:
    """`actions` are names and what each is about; `context` is a task's, as JSON."""

    run_id: str
    id: str
    label: str
    note: str
    hint: str
    condition: Condition | None
    due: float | None
    why: str
    tries: tuple[Try, ...]
    changes: tuple[Change, ...]
    context: str | None
    child_id: str | None
    question: QuestionRow | None
    actions: tuple[ActionOf, ...]
    seq: int | None

    def asked(self, words: Words) -> tuple[str, str]:
        """The title and message of the step's question."""
        assert self.question is not None
        request = request_of(self.question)
        return title_of(request, words), message_of(request, words)

    @property
    def rounds(self) -> int:
        return max((one.round for one in self.tries), default=1)

    @property
    def input(self) -> str | None:
        return next((one.input for one in reversed(self.tries) if one.input), None)

    @property
    def output(self) -> str | None:
        return next((one.output for one in reversed(self.tries) if one.output), None)


async def node_of(
    served: Services, state: RunState, say: Voice, node_id: str, *, operates: bool, past: bool
) -> NodeView:
    """The box as it is in `state`; in the `past` it has no actions."""
    drawn = picture(state, say)
    found = next((one for one in drawn.nodes if one.id == node_id), None) if drawn else None
    if found is None:
        raise NotFound(f"{state.run_id} has no step or task {node_id}")
    step = state.steps.get(node_id)
    is_task = isinstance(state, PlanState) and node_id in state.plan.task_ids
    tries = () if is_task else (await tries_of(served, state, [node_id]))[node_id]
    return NodeView(
        run_id=state.run_id,
        id=node_id,
        label=found.label,
        note=found.note,
        hint=found.hint,
        condition=found.condition,
        due=found.due,
        why=step.why if step and found.due else "",
        tries=tries[-MOST_TRIES:],
        changes=_changes(state, node_id, say) if is_task else (),
        context=_context(state, node_id),
        child_id=step.child_id if step else None,
        question=await _question(served, step),
        actions=node_actions(state, node_id, served.now()) if operates and not past else (),
        seq=state.version if past else None,
    )


async def _question(served: Services, step: StepState | None) -> QuestionRow | None:
    if step is None or step.status is not StepStatus.WAITING or step.question_id is None:
        return None
    return await served.journal.question(step.question_id)


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
        Change(one.at, say(TASKS[one.status][1]), told_reason(one.reason, say))
        for one in state.task(task_id).trace
    )
