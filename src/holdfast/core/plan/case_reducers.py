"""What the events of cases and patches do to a plan's state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from immutables import Map

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.plan.recompiled import recompiled
from holdfast.core.plan.reducers import fire, moved
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import added, operations_from_json, patched, touched
from holdfast.core.repair.state import (
    CaseState,
    case_moved,
    case_with,
    operations_digest,
    repairs_with,
)
from holdfast.core.repair.tables import CaseMove
from holdfast.core.run import reducers as shared
from holdfast.core.run.builder import Reducer
from holdfast.core.run.state import CHANGED, changed, move_step, unfail, wants
from holdfast.core.run.tables import StepMove
from holdfast.model import events as e
from holdfast.model.interaction import REPAIR
from holdfast.model.values import JsonObject


def case_opened(state: PlanState, event: e.CaseOpened, at: float) -> None:
    """What was proposed for the same failure, and given up for another proposal, is kept."""
    of = (event.listener_id, event.firing)
    earlier = (one for one in state.repair.in_order() if (one.listener_id, one.firing) == of)
    kept = next((one.proposal or one.kept for one in reversed([*earlier])), None)
    opened = (event.case_id, *of, at, state.version, event.failure)
    _put(state, CaseState(*opened, kept=kept))


def case_diagnosed(state: PlanState, event: e.CaseDiagnosed, at: float) -> None:
    case = state.repair.cases[event.case_id]
    _put(state, case_with(case, diagnosis=event.diagnosis, looked=True))


def diagnosis_requested(state: PlanState, event: e.DiagnosisRequested, at: float) -> None:
    case = state.repair.cases[event.case_id]
    known = {"number": event.number, "complaint": event.complaint, "kept": event.meanwhile}
    known["asked_at"] = at if case.asked_at is None else case.asked_at
    _put(state, case_moved(case, CaseMove.THINK, **known), requests=state.repair.requests + 1)


def diagnosis_received(state: PlanState, event: e.DiagnosisReceived, at: float) -> None:
    case, usage = state.repair.cases[event.case_id], event.usage
    diagnosis = event.diagnosis or case.diagnosis
    tokens = state.repair.tokens + usage.input_tokens + usage.output_tokens
    told = {"diagnosis": diagnosis, "reason": event.reason, "looked": not event.lost}
    ended = case_moved(case, CaseMove.CONCLUDE, **told)
    _put(state, ended, tokens=tokens)


def patch_proposed(state: PlanState, event: e.PatchProposed, at: float) -> None:
    case = state.repair.cases[event.case_id]
    _put(state, case_moved(case, CaseMove.PROPOSE, proposal=event.proposal))


def patch_refused(state: PlanState, event: e.PatchRefused, at: float) -> None:
    case = state.repair.cases[event.case_id]
    assert case.proposal is not None
    refused = (*case.refused, operations_digest(case.proposal.patch.operations))
    told = {"proposal": None, "reason": event.reason, "refused": refused}
    _put(state, case_moved(case, CaseMove.REFUSE, **told))


def plan_patched(state: PlanState, event: e.PlanPatched, at: float) -> None:
    """A failed listener that waits for its trigger anew is passed over until then."""
    case = state.repair.cases[event.case_id]
    assert case.proposal is not None
    covers = (case.listener_id, *_covered(event.operations))
    applied = case_moved(case, CaseMove.ACCEPT, patch_id=event.patch_id, covers=covers)
    made = {
        "patches": (*state.repair.patches, event),
        "applied": (*state.repair.applied, (state.version, at)),
    }
    _put(state, applied, **made)
    origin = state.origin or state.plan
    state = wants(wants(state, case.proposal.patch.by, CHANGED), event.by, CHANGED)
    state = changed(state, origin=origin, plan=replanned(state, event))
    for listener_id in event.forgotten:
        state = move_step(unfail(state, listener_id), listener_id, StepMove.SKIP, forgotten=True)
    moved(fire(state, event.fired), event.moves, at)


def _covered(raw: tuple[JsonObject, ...]) -> tuple[str, ...]:
    operations = operations_from_json(raw)
    return (*sorted(touched(operations)), *added(operations))


def replanned(state: PlanState, event: e.PlanPatched) -> CompiledPlan:
    operations = operations_from_json(event.operations)
    plan = patched(state.plan.plan, operations)
    concerned = (*touched(operations), *added(operations))
    return recompiled(state.plan, plan, event.digest, concerned)


def with_patches(state: PlanState) -> PlanState:
    """Of a state that was read from a snapshot, with the plan that it has come to."""
    for event in state.repair.patches:
        origin = state.origin or state.plan
        state = changed(state, origin=origin, plan=replanned(state, event))
    return state


def repair_proven(state: PlanState, event: e.RepairProven, at: float) -> None:
    _put(state, case_moved(state.repair.cases[event.case_id], CaseMove.PROVE))


def repair_disproven(state: PlanState, event: e.RepairDisproven, at: float) -> None:
    """The case is about the new failure from here on."""
    case = state.repair.cases[event.case_id]
    newest = reversed(state.repair.patches)
    patch = next(one for one in newest if one.patch_id == event.patch_id)
    refused = (*case.refused, operations_digest(patch.operations))
    anew = {
        "looked": False,
        "asked_at": None,
        "diagnosis": None,
        "proposal": None,
        "kept": None,
        "reason": event.reason,
    }
    of = {"listener_id": event.listener_id, "firing": event.firing, "failure": event.failure}
    _put(state, case_moved(case, CaseMove.DISPROVE, refused=refused, **anew, **of))


def case_closed(state: PlanState, event: e.CaseClosed, at: float) -> None:
    case = state.repair.cases[event.case_id]
    _put(state, case_moved(case, CaseMove.CLOSE, reason=event.reason))


def question_withdrawn(state: PlanState, event: e.QuestionWithdrawn, at: float) -> None:
    """A proposal that is withdrawn ends its case."""
    question = state.questions[event.question_id]
    shared.question_withdrawn(state, event, at)
    if question.purpose == REPAIR:
        case = state.repair.cases[str(question.request.context["case_id"])]
        _put(state, case_moved(case, CaseMove.WITHDRAW, reason=event.reason))


def _put(state: PlanState, case: CaseState, **more: Any) -> None:
    cases: Map[str, CaseState] = state.repair.cases.set(case.case_id, case)
    changed(state, repair=repairs_with(state.repair, cases=cases, **more))


CASE_REDUCERS: Final[Mapping[type, Reducer]] = {
    e.CaseOpened: case_opened,
    e.CaseDiagnosed: case_diagnosed,
    e.DiagnosisRequested: diagnosis_requested,
    e.DiagnosisReceived: diagnosis_received,
    e.PatchProposed: patch_proposed,
    e.PatchRefused: patch_refused,
    e.PlanPatched: plan_patched,
    e.RepairProven: repair_proven,
    e.RepairDisproven: repair_disproven,
    e.CaseClosed: case_closed,
    e.QuestionWithdrawn: question_withdrawn,
}
