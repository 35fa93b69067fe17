"""Whether a patch fits a run as it stands: what is asked when it is judged is what is asked when it
is proposed, and again when it is applied.

`standing_problems` speak against any patch of the run, `past_problems` against what these
operations would do to work that has been done. What was proposed was judged by what the run had
called and by the values that stood then: where that is different by now, it is judged anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NoReturn

from holdfast.core.plan.compiled import VERIFY
from holdfast.core.plan.spent import called_by_now
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import (
    Operation,
    added,
    frozen_problems,
    operations_from_json,
    touched,
)
from holdfast.core.repair.records import Add, InsertBefore, SetOutput, SetRetry, Skip, UseTool
from holdfast.core.run.state import StepState
from holdfast.core.run.tables import StepStatus
from holdfast.i18n.message import joined, msg
from holdfast.language.facts import reader, split_path
from holdfast.language.strict import digest
from holdfast.model.plan import AgentAction, Listener
from holdfast.model.repair import MOST_PATCHES, Proposal, Verdict
from holdfast.model.values import Json

_MAY_CHANGE: Final = (StepStatus.CONSULTING, StepStatus.FAILED)


def why_stale(state: PlanState, proposal: Proposal, elsewhere: Collection[str] = ()) -> str | None:
    """Why a proposal does not fit the run any more, if it does not. `elsewhere` are tools that
    other runs of its tree have called."""
    patch = proposal.patch
    operations = dict(enumerate(operations_from_json(patch.operations)))
    problems = (
        standing_problems(state, patch.base)
        or past_problems(state, operations)
        or _since_then(state, proposal.verdict, elsewhere)
    )
    return joined("; ", problems) if problems else None


def _since_then(state: PlanState, verdict: Verdict, elsewhere: Collection[str]) -> tuple[str, ...]:
    """What nobody could see who looked at the proposal."""
    found = []
    called = called_by_now(state, verdict.fresh) | set(verdict.fresh).intersection(elsewhere)
    if called:
        names = ", ".join(sorted(called))
        found.append(msg("{tools} was called since the repair was proposed", tools=names))
    if verdict.values and values_at(state, verdict.reads) != verdict.values:
        found.append(msg("a value that the repair reads has changed since it was proposed"))
    return tuple(found)


def brings_calls(proposal: Proposal) -> bool:
    """Whether it has something called that the plan had not, and whose effects cannot be had
    twice."""
    operations = operations_from_json(proposal.patch.operations)
    new = added(operations) or any(isinstance(one, UseTool) for one in operations)
    return bool(new and proposal.verdict.fresh)


def values_at(state: PlanState, paths: Sequence[str]) -> str:
    """A digest of what stands at these paths, and of where nothing does."""
    return digest([_value(state, path) for path in paths])


def _value(state: PlanState, path: str) -> Json:
    try:
        return [reader(split_path(path), _nowhere)(state)]
    except LookupError:
        return None


def _nowhere(_: object) -> NoReturn:
    raise LookupError


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


def refused_in(state: PlanState) -> frozenset[str]:
    """Digests of operations that people refused, or that did not help: in this run, and in the one
    of which it is a fork."""
    own = (name for case in state.repair.cases.values() for name in case.refused)
    return frozenset((*own, *(state.forked.refused if state.forked else ())))


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
