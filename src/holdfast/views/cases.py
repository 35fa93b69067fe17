"""Cases and patches of a run, as they are shown."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.core.plan.cases import REFUSE
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import operations_from_json, patched
from holdfast.core.repair.state import CaseState
from holdfast.core.run.state import QuestionState
from holdfast.model.interaction import REPAIR
from holdfast.model.repair import CaseStatus
from holdfast.repair.words import described
from holdfast.views.records import CaseView, PatchView


def case_view(state: PlanState, case: CaseState) -> CaseView:
    failure = case.failure
    return CaseView(
        case_id=case.case_id,
        listener_id=case.listener_id,
        status=case.status,
        opened_at=case.opened_at,
        opened_seq=case.opened_seq,
        cause=case.diagnosis.cause if case.diagnosis else failure.cause if failure else None,
        error=failure.message if failure else "",
        requests=case.number,
        reason=case.reason,
        diagnosis=case.diagnosis,
        proposal=case.proposal,
        question_id=_asked(state, case),
        patch_id=case.patch_id,
        refused_by=_refused_by(state, case),
    )


def _refused_by(state: PlanState, case: CaseState) -> str:
    """Of a case that is open again; also where something else is proposed by now."""
    if case.status not in (CaseStatus.OPEN, CaseStatus.PROPOSED):
        return ""
    asked = (one for one in state.questions.values() if _concerns(one, case) and one.closed_at)
    last = max(asked, key=lambda one: one.opened_seq, default=None)
    return last.by or "" if last is not None and last.option_id == REFUSE else ""


def _asked(state: PlanState, case: CaseState) -> str | None:
    about = (one for one in sorted(state.open_questions) if _is_about(state, one, case))
    return next(about, None)


def _is_about(state: PlanState, question_id: str, case: CaseState) -> bool:
    return _concerns(state.questions[question_id], case)


def _concerns(question: QuestionState, case: CaseState) -> bool:
    return question.purpose == REPAIR and question.request.context["case_id"] == case.case_id


def patch_views(state: PlanState) -> Iterator[PatchView]:
    """Each in words of the plan that it changed."""
    plan = (state.origin or state.plan).plan
    for event, (seq, at) in zip(state.repair.patches, state.repair.applied, strict=True):
        yield PatchView(
            patch_id=event.patch_id,
            case_id=event.case_id,
            seq=seq,
            at=at,
            base=event.base,
            digest=event.digest,
            operations=event.operations,
            words=described(plan, event.operations),
            by=event.by,
        )
        plan = patched(plan, operations_from_json(event.operations))
