"""What keeps a run from going on: its failed steps, and what a resume would run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holdfast.core.conversation.state import ConversationState
from holdfast.core.plan.state import PlanState
from holdfast.core.run.state import RunState, StepState
from holdfast.model.run import StepStatus
from holdfast.runs.handles import resumed_listeners
from holdfast.views.actions import GO_ON, ActionOf, run_actions, step_actions
from holdfast.views.attempts import Attempt, Count, in_vain
from holdfast.views.reader import RunReader, RunVersion
from holdfast.views.stories.storyteller import storyteller

MOST_FAILURES: Final = 20


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


async def failures(
    reader: RunReader, run: RunVersion, error: str, *, operates: bool = True
) -> Failures | None:
    """None where no step is failed and the run has no `error`; actions only for who `operates`."""
    state = run.state
    if not state.failed and not error:
        return None
    made = await reader.attempts(run, state.failed[:MOST_FAILURES])
    return await run.beside(_failures, run, error, made, operates)


def _failures(
    run: RunVersion, error: str, made: Mapping[str, Sequence[Attempt]], operates: bool
) -> Failures:
    state = run.state
    name = storyteller(state).step
    possible = run_actions(run) if operates else ()
    again = resumed_listeners(state, run.now) if isinstance(state, PlanState) else state.failed
    rows = (
        _failure(
            _failed_step(state, one),
            one,
            name(one),
            in_vain(attempts),
            step_actions(run, one) if operates else (),
        )
        for one, attempts in made.items()
    )
    return Failures(
        run_id=state.run_id,
        rows=tuple(rows),
        ways=tuple(one for one in possible if one in GO_ON),
        more=max(len(state.failed) - MOST_FAILURES, 0),
        message=error,
        again=tuple(map(name, again)),
        kept=sum(step.status is StepStatus.DONE for step in state.steps.values()),
        resumable="resume" in possible,
        mended=isinstance(state, PlanState) and not state.failed,
    )


def _failure(
    step: StepState, step_id: str, name: str, count: Count, actions: tuple[ActionOf, ...]
) -> Failure:
    message = step.failure.message if step.failure else ""
    return Failure(step_id, name, count, message, step.child_id, actions)


def _failed_step(state: RunState, step_id: str) -> StepState:
    """A conversation moves the steps of a failed turn to `former`."""
    if isinstance(state, ConversationState) and step_id not in state.steps:
        return state.former[step_id]
    return state.steps[step_id]
