"""What the run page shows besides graph and timeline: head, failures, tasks, sub-runs, cards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.console.attempts import Count, in_vain, tries_of
from holdfast.console.views.card import Card, card_from
from holdfast.console.views.graph import counts_of
from holdfast.console.views.runs import prompt_of
from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState, StepState
from holdfast.core.run.tables import StepStatus
from holdfast.drawing.layout import rank
from holdfast.drawing.picture import Condition
from holdfast.drawing.tasks import picture_of_tasks, standing
from holdfast.journal.port import QuestionQuery, RunQuery
from holdfast.model.conversation import EngineState
from holdfast.model.run import RunStatus
from holdfast.runs.plan_instance import resumed_listeners
from holdfast.runtime.machines import definition_of
from holdfast.runtime.tracebacks import tracebacks_of
from holdfast.server.auth.authentication import Caller, root_of
from holdfast.server.auth.principal import Permission, run_of
from holdfast.server.questions import Questions
from holdfast.server.schemas.runs import RunLine, RunShown
from holdfast.server.services import Services
from holdfast.server.showing import listed, run_shown
from holdfast.views.actions import GO_ON, ActionOf, run_actions, step_actions
from holdfast.views.stories.phrases import Voice
from holdfast.views.stories.storyteller import storyteller

MOST_FAILURES: Final = 20
MOST_TRACEBACKS: Final = 20
MOST_CARDS: Final = 10
MOST_CHILDREN: Final = 50
_ENDED: Final = frozenset({RunStatus.DONE, RunStatus.ERROR, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class Head:
    """`ended_at` is when it ended, `actions` what the caller may do with it."""

    run: RunShown
    prompt: str
    digest: str
    phase: EngineState | None
    will_pause: bool
    counts: Mapping[Condition, int]
    ended_at: float | None
    actions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Raised:
    """The last exception that a step raised; `text` is the traceback."""

    step_id: str
    name: str
    attempt: int
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed for good; `child_id` is the sub-run that failed."""

    step_id: str
    name: str
    count: Count
    message: str
    child_id: str | None
    actions: tuple[ActionOf, ...]


@dataclass(frozen=True, slots=True)
class Failures:
    """`again` are the steps that a resume would run; `kept` counts those that it would not.

    `ways` are how a conversation may go on. `mended`: no step is failed any more, only a resume is
    missing.
    """

    run_id: str
    rows: tuple[Failure, ...]
    ways: tuple[str, ...]
    more: int
    message: str
    again: tuple[str, ...]
    kept: int
    resumable: bool
    mended: bool


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


async def may_operate(served: Services, caller: Caller, run_id: str) -> bool:
    root = await root_of(served, run_id)
    return root is not None and caller.may(Permission.OPERATE, run_of(root.kind, root.name))


async def head_of(served: Services, caller: Caller, state: RunState, say: Voice) -> Head:
    shown = await run_shown(served, state.run_id)
    operates = await may_operate(served, caller, state.run_id)
    return Head(
        run=shown,
        prompt=prompt_of(shown),
        digest=definition_of(state).digest,
        phase=state.phase if isinstance(state, ConversationState) else None,
        will_pause=isinstance(state, ConversationState) and state.pausing,
        counts=counts_of(state, say),
        ended_at=state.updated_at if state.status in _ENDED else None,
        actions=run_actions(state, served.now()) if operates else (),
    )


async def failures_of(
    served: Services, caller: Caller, state: RunState, say: Voice
) -> Failures | None:
    """None where no step is failed and the run has no error."""
    shown = await run_shown(served, state.run_id)
    if not state.failed and not shown.error:
        return None
    operates = await may_operate(served, caller, state.run_id)
    teller, now = storyteller(state, say), served.now()
    again = resumed_listeners(state, now) if isinstance(state, PlanState) else list(state.failed)
    tries = await tries_of(served, state, state.failed[:MOST_FAILURES])
    rows = tuple(
        _failure(
            state,
            one,
            teller.step(one),
            in_vain(made),
            step_actions(state, one, now) if operates else (),
        )
        for one, made in tries.items()
    )
    return Failures(
        run_id=state.run_id,
        rows=rows,
        ways=tuple(one for one in run_actions(state, now) if one in GO_ON) if operates else (),
        more=max(len(state.failed) - MOST_FAILURES, 0),
        message=shown.error or "",
        again=tuple(teller.step(one) for one in again),
        kept=sum(step.status is StepStatus.DONE for step in state.steps.values()),
        resumable=operates and "resume" in run_actions(state, now),
        mended=isinstance(state, PlanState) and not state.failed,
    )


def _failure(
    state: RunState, step_id: str, name: str, count: Count, actions: tuple[ActionOf, ...]
) -> Failure:
    step = _failed_step(state, step_id)
    message = step.failure.message if step.failure else ""
    return Failure(step_id, name, count, message, step.child_id, actions)


def _failed_step(state: RunState, step_id: str) -> StepState:
    """A conversation moves the steps of a failed turn to `former`."""
    if isinstance(state, ConversationState) and step_id not in state.steps:
        return state.former[step_id]
    return state.steps[step_id]


async def raised_in(
    served: Services, caller: Caller, state: RunState, say: Voice
) -> tuple[Raised, ...]:
    """The tracebacks of its steps, for those who may operate it."""
    if not await may_operate(served, caller, state.run_id):
        return ()
    teller = storyteller(state, say)
    found = await tracebacks_of(served.journal, state.run_id, served.now())
    return tuple(
        Raised(one.step_id, teller.step(one.step_id), one.attempt, one.at, one.text)
        for one in found[:MOST_TRACEBACKS]
    )


async def open_cards(served: Services, caller: Caller, state: RunState) -> list[Card]:
    """The open questions of this run and of its sub-runs, the oldest first."""
    questions = Questions(served, caller)
    query = QuestionQuery(frozenset({"open"}), root_id=state.root_id, limit=MOST_CARDS)
    found, _ = await questions.listed(query, below=state.run_id)
    return [await card_from(questions, one) for one in found]


async def children_of(served: Services, caller: Caller, state: RunState) -> list[RunLine]:
    query = RunQuery(parent_id=state.run_id, limit=MOST_CHILDREN)
    children, _ = await listed(served, caller, query)
    return children


def task_rows(state: RunState, say: Voice) -> tuple[TaskRow, ...]:
    """The tasks of a conversation in an order in which they may run."""
    if not isinstance(state, ConversationState):
        return ()
    edges = picture_of_tasks(state, say).edges
    ranks = rank(len(state.order), [(one.source, one.target) for one in edges]).ranks
    places = sorted(range(len(state.order)), key=lambda place: (ranks[place], place))
    return tuple(_task_row(state, state.order[place], say) for place in places)


def _task_row(state: ConversationState, step_id: str, say: Voice) -> TaskRow:
    task = state.tasks[step_id]
    condition, told = standing(state, step_id, say)
    return TaskRow(
        step_id=step_id,
        id=task.id,
        description=task.description,
        type=task.type,
        condition=condition,
        status=told,
        priority=task.priority,
        waits_for=task.dependencies,
        skipped=task.skipped,
    )
