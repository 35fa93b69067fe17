"""Changing the plan of a run: a proposal that a person accepts, or one that the author's policy
covers.

What has fired stays. A listener that failed and is changed fires again with the resume; one that
waits for an inserted task is forgotten, so that its new trigger fires it; a new listener whose
condition holds already would never see its trigger move, so the patch fires it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.core.interactions.answers import Answered
from holdfast.core.plan import cases
from holdfast.core.plan.builder import Builder
from holdfast.core.plan.compiled import CompiledListener
from holdfast.core.plan.fitting import why_stale
from holdfast.core.plan.planner import failed_tasks, holding, resume, while_retrying
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import (
    Operation,
    added,
    operations_from_json,
    patched,
    retriggered,
)
from holdfast.core.repair.state import CaseState
from holdfast.core.run.tables import StepStatus
from holdfast.errors import NotAllowed, NotPermitted
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model.events import Move, PatchRefused, PlanPatched
from holdfast.model.interaction import InteractionAction
from holdfast.model.plan import PlanInstanceStatus, TaskStatus
from holdfast.model.repair import Level, Proposal

_WAITS_FOR_ADVICE = (StepStatus.CONSULTING, StepStatus.FAILED)


def answered(builder: Builder, answer: Answered) -> None:
    """A person has decided about a proposal."""
    case_id = cases.case_id_of(answer.question.request.context)
    case = builder.state.repair.cases[case_id]
    assert case.proposal is not None
    if answer.action is InteractionAction.APPROVE_AND_EXECUTE:
        _refuse_stale(builder, case.proposal, answer)
        apply(builder, case, case.proposal, answer.by)
    else:
        patch_id = case.proposal.patch.patch_id
        builder.emit(PatchRefused(case_id, patch_id, answer.by, answer.reason))
        cases.propose_kept(builder, case_id)


def _refuse_stale(builder: Builder, proposal: Proposal, answer: Answered) -> None:
    stale = why_stale(builder.state, proposal, answer.elsewhere)
    versions = answer.versions
    if stale is None and versions is not None and dict(versions) != dict(proposal.verdict.versions):
        stale = msg("a tool that the repair names has changed since it was proposed")
    if stale is not None:
        raise NotAllowed(msg("{problem}: nothing was changed", problem=stale))
    if proposal.verdict.level is Level.ACT and answer.by and answer.by == proposal.patch.by:
        raise NotPermitted(msg("you proposed this repair: another person must approve it"))


def apply(builder: Builder, case: CaseState, proposal: Proposal, by: str) -> None:
    """The run has the patched plan from here on, and goes on where it was in error."""
    stuck = not builder.state.failed
    _patch(builder, case.case_id, proposal, by)
    cases.close(builder, None, msg("the plan has changed"))
    if builder.state.status is PlanInstanceStatus.ERROR:
        resume(builder, c.Resume(by), stuck=stuck)


def _patch(builder: Builder, case_id: str, proposal: Proposal, by: str) -> None:
    patch, verdict = proposal.patch, proposal.verdict
    state, operations = builder.state, operations_from_json(patch.operations)
    steps, again = state.steps, sorted(retriggered(operations))
    waiting = [one for one in again if one in steps and steps[one].status in _WAITS_FOR_ADVICE]
    builder.emit(
        PlanPatched(
            patch_id=patch.patch_id,
            case_id=case_id,
            base=patch.base,
            digest=verdict.digest,
            operations=patch.operations,
            fired=_fired(state, operations),
            forgotten=tuple(waiting),
            consent=verdict.consent,
            by=by,
            moves=_moves(builder, waiting),
        )
    )


def _fired(state: PlanState, operations: Sequence[Operation]) -> tuple[str, ...]:
    """The new listeners whose conditions hold already."""
    new = added(operations)
    if not new:
        return ()
    plan = patched(state.plan.plan, operations)
    found = {one.listener_id: one for one in plan.listeners if one.listener_id in new}
    return tuple(holding(state, [CompiledListener(found[one]) for one in new]))


def _moves(builder: Builder, waiting: Collection[str]) -> tuple[Move, ...]:
    """What failed with the listeners that wait for a new task has not been tried yet."""
    main = builder.state.plan.main
    tasks = {task: None for one in waiting for task in failed_tasks(builder, one) if task != main}
    moves = [Move(task, TaskStatus.NOT_STARTED, "repair") for task in tasks]
    if waiting and builder.state.status is not PlanInstanceStatus.ERROR:
        status = while_retrying(builder.state.main_task)
        moves.append(Move(main, status, "repair", {}, ("failed_listener_id",)))
    return tuple(moves)
