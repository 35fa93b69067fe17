"""The planner's advice on a listener that failed: fire it again, repair the plan, or wait for a
person."""

from __future__ import annotations

from typing import Final

from holdfast.core.plan import cases
from holdfast.core.plan.builder import Builder
from holdfast.core.plan.fitting import brings_calls, refused_in, why_stale
from holdfast.core.plan.patching import apply
from holdfast.core.plan.planner import both, give_up, retry_moves, why_failed
from holdfast.core.plan.spent import is_alone
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import operations_from_json, touched
from holdfast.core.repair.state import operations_digest
from holdfast.core.run.state import StepState
from holdfast.core.run.steps import wait, why, why_not
from holdfast.core.run.tables import StepStatus
from holdfast.model.commands import Advise, Moment, WakeEarly
from holdfast.model.events import (
    CaseDiagnosed,
    CaseOpened,
    PatchProposed,
    PlannerRetried,
    StepWoken,
)
from holdfast.model.repair import Look, Mend, PlanPatch, Proposal, Verdict
from holdfast.model.retry import Failure, FailureKind, Retry

REHEARSED: Final = "rehearsed"


def advise(builder: Builder, command: Advise) -> None:
    """Of a step that is consulted about; any other has been dealt with meanwhile."""
    listener_id, advice = command.listener_id, command.advice
    step = builder.state.steps.get(listener_id)
    if step is None or step.status is not StepStatus.CONSULTING or step.firing != command.firing:
        return
    if isinstance(advice, Mend):
        if not _mend(builder, listener_id, step, advice):
            look = Look(advice.diagnosis, advice.proposal)
            _abandon(builder, listener_id, step, advice.why, look)
    elif isinstance(advice, Retry) and step.retries < advice.most:
        _retry(builder, listener_id, step, advice)
    else:
        _abandon(builder, listener_id, step, advice.why, command.look)


def _abandon(
    builder: Builder, listener_id: str, step: StepState, why: str, look: Look | None = None
) -> None:
    message = why_failed(builder, listener_id)
    looks = None if look is None else {listener_id: look}
    give_up(builder, message, (listener_id,), retries=step.retries, why=why, looks=looks)


def _retry(builder: Builder, listener_id: str, step: StepState, advice: Retry) -> None:
    """After the planner's own delay, else when the backoff, which goes on, is over."""
    policy = builder.listener(listener_id).listener.retry
    failure = step.failure or Failure(FailureKind.TRANSIENT, "")
    tries, delay = step.tried + step.attempt, advice.delay
    if delay is None:
        delay = wait(policy, failure, tries, builder.jitter())
    if delay is None:
        _abandon(builder, listener_id, step, why_not(policy, failure))
        return
    count, due = step.retries + 1, builder.now + delay if delay else None
    moves = retry_moves(builder, listener_id, count, advice.most, due or builder.now)
    by_policy = why(policy, failure, tries) if advice.delay is None else ""
    told = both(advice.why, by_policy)
    builder.emit(
        PlannerRetried(listener_id, step.firing, count, advice.most, tuple(moves), due, told)
    )


def wake_early(builder: Builder, command: WakeEarly) -> None:
    step = builder.state.steps.get(command.step_id)
    if step is not None and step.status is StepStatus.BACKOFF:
        builder.emit(StepWoken(command.step_id, step.firing))


def _mend(builder: Builder, listener_id: str, step: StepState, advice: Mend) -> bool:
    """The author's policy lets this repair be made without a person; whether it could be. Where
    several runs might do so at once, none brings in by itself what must happen once."""
    proposal = advice.proposal
    if why_stale(builder.state, proposal) is not None:
        return False
    if operations_digest(proposal.patch.operations) in refused_in(builder.state):
        return False
    if brings_calls(proposal) and not is_alone(builder.state):
        return False
    case_id = cases.open_case(builder, listener_id, step.failure)
    if case_id is None:
        return False
    builder.emit(CaseDiagnosed(case_id, advice.diagnosis))
    _go_on_patched(builder, case_id, listener_id, proposal, advice.why)
    return True


def _go_on_patched(
    builder: Builder, case_id: str, listener_id: str, proposal: Proposal, why: str = ""
) -> None:
    builder.emit(PatchProposed(case_id, proposal))
    apply(builder, builder.state.repair.cases[case_id], proposal, "")
    step = builder.state.steps.get(listener_id)
    if step is not None and step.status is StepStatus.CONSULTING:
        _retry(builder, listener_id, step, Retry(step.retries + 1, 0.0, why))


def as_patched(state: PlanState, patch: PlanPatch, digest: str, now: float) -> PlanState:
    """How a run would stand with a patch, for its rehearsal: of what is consulted about, what the
    patch changes is tried again."""
    builder = Builder(state, Moment(now))
    changed = touched(operations_from_json(patch.operations))
    consulting = [one for one, step in sorted(state.steps.items()) if _consults(step)]
    mended = (one for one in consulting if one in changed)
    listener_id = next(iter([*mended, *consulting]), "")
    builder.emit(CaseOpened(REHEARSED, listener_id))
    _go_on_patched(builder, REHEARSED, listener_id, Proposal(patch, Verdict(digest)))
    return builder.state


def _consults(step: StepState) -> bool:
    return step.status is StepStatus.CONSULTING
