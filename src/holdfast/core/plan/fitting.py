"""Whether a patch fits a run as it stands: what is asked when it is judged is what is asked when it
is proposed, and again when it is applied.

`standing_problems` speak against any patch of the run, `past_problems` against what these
operations would do to work that has been done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from holdfast.core.plan.compiled import VERIFY
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import (
    Operation,
    frozen_problems,
    operations_from_json,
    touched,
)
from holdfast.core.repair.records import Add, InsertBefore, SetOutput, SetRetry, Skip
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import StepStatus
from holdfast.i18n.message import joined, msg
from holdfast.model.plan import AgentAction, Listener
from holdfast.model.repair import MOST_PATCHES, PlanPatch

_MAY_CHANGE: Final = (StepStatus.CONSULTING, StepStatus.FAILED)


def why_stale(state: PlanState, patch: PlanPatch) -> str | None:
    """Why a patch does not fit the run any more, if it does not."""
    operations = dict(enumerate(operations_from_json(patch.operations)))
    problems = standing_problems(state, patch.base) or past_problems(state, operations)
    return joined("; ", problems) if problems else None


def standing_problems(state: PlanState, base: str) -> tuple[str, ...]:
    """`base` is the digest of the plan for which a patch was made."""
    found = []
    most, had = min(state.plan.plan.repair.most.patches, MOST_PATCHES), len(state.repair.patches)
    if had >= most:
        found.append(msg("the plan has been repaired {n} times already", n=had))
    if base != state.plan.digest:
        found.append(msg("the run's plan has changed since the repair was proposed"))
    return tuple(found)


def past_problems(state: PlanState, operations: Mapping[int, Operation]) -> tuple[str, ...]:
    """The operations go by their places in the patch."""
    those = tuple(operations.values())
    named = {one.listener_id for one in those if not isinstance(one, Add)}
    past = {one for one in named if _is_past(state.steps.get(one))}
    return (
        *frozen_problems(operations, past),
        *_done_problems(state, those),
        *_lost_checks(state, those),
    )


def frozen(state: PlanState) -> frozenset[str]:
    """The listeners that have fired, and neither failed nor wait for their trigger anew: no patch
    changes what they did."""
    return frozenset(one for one, step in state.steps.items() if _is_past(step))


def _is_past(step: StepState | None) -> bool:
    if step is None or step.firing == 0 or step.forgotten:
        return False
    return step.status not in _MAY_CHANGE


def _done_problems(state: PlanState, operations: Sequence[Operation]) -> tuple[str, ...]:
    """Work that is done, and of which only the output could not be determined, is not done again:
    nothing but what its result means can still be changed."""
    again = [one for one in operations if not isinstance(one, SetOutput | SetRetry | Skip)]
    steps = ((one, state.steps.get(one)) for one in sorted(touched(again)))
    done = (one for one, step in steps if step is not None and step.carried is not None)
    return tuple(
        msg("{id} has done its work: only what its output is made of can be changed", id=one)
        for one in done
    )


def _lost_checks(state: PlanState, operations: Sequence[Operation]) -> tuple[str, ...]:
    """An agent's check of the outcome that has begun goes with its last listener."""
    skipped = {one.listener_id for one in operations if isinstance(one, Skip)}
    begun = [one for one in state.plan.verify_ids if one in state.steps] if skipped else []
    if not begun:
        return ()
    listeners = (*state.plan.plan.listeners, *_new_listeners(operations))
    left = _checked_by(one for one in listeners if one.listener_id not in skipped)
    lost = _checked_by(one for one in listeners if one.listener_id in skipped) - left
    return tuple(
        msg("{id} checks the outcome already: its agent must stay in the plan", id=one)
        for one in begun
        if one in lost
    )


def _new_listeners(operations: Sequence[Operation]) -> Iterator[Listener]:
    for one in operations:
        if isinstance(one, InsertBefore):
            yield one.listener
        elif isinstance(one, Add):
            yield from one.listeners


def _checked_by(listeners: Iterable[Listener]) -> frozenset[str]:
    """The checks of the agents that these listeners ask."""
    actions = (one.action for one in listeners)
    return frozenset(f"{VERIFY}{one.agent_id}" for one in actions if isinstance(one, AgentAction))
