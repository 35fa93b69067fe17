"""Cases: what a run does about a failure beside waiting for a person.

Where the planner gives up, a case opens for each listener that failed by itself. Rules and lessons
look at it first (`Look`), then perhaps a model is asked, as often as the budgets allow: each
request is on disk before it is made, so that a process that goes down again and again spends no
more. What comes of it is a proposal, which is a question like any other. Whatever else people do
about the failure meanwhile closes the case.

A refusal by a person, a child run's failure and a run that is quarantined open none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from holdfast.core.interactions.requests import request_from_asking
from holdfast.core.plan.builder import Builder
from holdfast.core.plan.fitting import refused_in, why_stale
from holdfast.core.plan.state import PlanState
from holdfast.core.repair.state import CaseState, operations_digest
from holdfast.errors import InvalidAnswer, NotAllowed
from holdfast.i18n.message import msg
from holdfast.model import commands as c
from holdfast.model.events import (
    CaseClosed,
    CaseDiagnosed,
    CaseOpened,
    DiagnosisReceived,
    DiagnosisRequested,
    PatchProposed,
    QuestionOpened,
    QuestionWithdrawn,
    RepairDisproven,
    RepairProven,
)
from holdfast.model.interaction import (
    REPAIR,
    Asking,
    InteractionAction,
    InteractionOption,
    InteractionType,
)
from holdfast.model.repair import (
    LONGEST_DIAGNOSIS,
    LONGEST_REQUEST,
    MOST_CASES,
    MOST_LOOKS,
    MOST_REQUESTS,
    MOST_REQUESTS_OF_A_CASE,
    MOST_TOKENS,
    CaseStatus,
    Diagnosis,
    Level,
    Look,
    Proposal,
    RepairMode,
    Thought,
)
from holdfast.model.retry import Cause, Failure, FailureKind
from holdfast.model.values import Json

APPLY: Final = "apply"
REFUSE: Final = "refuse"

_OPERATOR, _APPROVER = "operator", "approver"


def opened(
    builder: Builder, failed: Collection[str], message: str, looks: Mapping[str, Look] | None = None
) -> None:
    """The planner gave up on these listeners, or on the plan as a whole where there is none."""
    if builder.state.plan.plan.repair.mode is RepairMode.OFF:
        return
    for listener_id in failed or ("",):
        failure = _failure_of(builder, listener_id, message)
        if failure is None or builder.state.repair.pending_for(listener_id) is not None:
            continue
        case_id = open_case(builder, listener_id, failure)
        if case_id is not None and looks is not None and listener_id in looks:
            looked(builder, case_id, looks[listener_id])


def _failure_of(builder: Builder, listener_id: str, message: str) -> Failure | None:
    """What a case would be about; None where no repair could help."""
    if not listener_id:
        return Failure(FailureKind.PERMANENT, message, cause=Cause.PLAN)
    step = builder.step(listener_id)
    if step.child_id is not None:
        return None
    if builder.listener(listener_id).verifies:
        return Failure(FailureKind.PERMANENT, message, cause=Cause.WRONG_RESULT)
    failure = step.failure
    return None if failure is None or failure.cause is Cause.REFUSED else failure


def case_id_for(state: PlanState, listener_id: str) -> str:
    """What the case is called that a failure of the listener would open, or open again."""
    applied = state.repair.applied_for(listener_id)
    return f"case_{len(state.repair.cases) + 1}" if applied is None else applied.case_id


def open_case(builder: Builder, listener_id: str, failure: Failure | None) -> str | None:
    """The id of a new case, or of the one whose repair did not help; None beyond the most."""
    applied = builder.state.repair.applied_for(listener_id)
    if applied is None:
        return _new_case(builder, listener_id, failure)
    reason = failure.message if failure is not None else ""
    of = (applied.case_id, applied.patch_id, listener_id, _firing(builder, listener_id))
    builder.emit(RepairDisproven(*of, failure, reason))
    return applied.case_id


def _new_case(builder: Builder, listener_id: str, failure: Failure | None) -> str | None:
    """A failure that is looked at once more counts once."""
    cases, firing = builder.state.repair.cases, _firing(builder, listener_id)
    failures = {(one.listener_id, one.firing) for one in cases.values()}
    anew = (listener_id, firing) in failures
    if len(cases) >= MOST_LOOKS or (not anew and len(failures) >= MOST_CASES):
        return None
    case_id = f"case_{len(cases) + 1}"
    builder.emit(CaseOpened(case_id, listener_id, firing, failure))
    return case_id


def _firing(builder: Builder, listener_id: str) -> int:
    return builder.step(listener_id).firing if listener_id else 0


def report(builder: Builder, command: c.ReportDiagnosis) -> None:
    """A word that comes too late, or twice, changes nothing."""
    case = builder.state.repair.cases.get(command.case_id)
    if case is None or not case.busy or command.number != _awaited(case):
        return
    if isinstance(command.found, Look):
        looked(builder, case.case_id, command.found)
    else:
        _thought(builder, case, command.found)


def _awaited(case: CaseState) -> int:
    return case.number if case.status is CaseStatus.THINKING else 0


def looked(builder: Builder, case_id: str, look: Look) -> None:
    builder.emit(CaseDiagnosed(case_id, look.diagnosis))
    if look.thinks and _may_ask(builder, case_id):
        builder.emit(DiagnosisRequested(case_id, _next_number(builder, case_id), "", look.proposal))
    elif look.proposal is not None:
        propose(builder, case_id, look.proposal)


def _thought(builder: Builder, case: CaseState, thought: Thought) -> None:
    """What was sound before stands where a model has nothing better."""
    ended = (case.case_id, case.number, thought.diagnosis, thought.reason, thought.usage)
    builder.emit(DiagnosisReceived(*ended))
    best = thought.proposal or case.kept
    if thought.again and _may_ask(builder, case.case_id):
        number = _next_number(builder, case.case_id)
        builder.emit(DiagnosisRequested(case.case_id, number, thought.complaint, best))
    elif best is None or not propose(builder, case.case_id, best):
        propose_kept(builder, case.case_id)


def propose_kept(builder: Builder, case_id: str) -> None:
    """What rules and lessons had to offer beside a model."""
    kept = builder.state.repair.cases[case_id].kept
    if kept is not None:
        propose(builder, case_id, kept)


def recovered(builder: Builder) -> None:
    """A request that a process took down with it counts."""
    for case in tuple(builder.state.repair.in_status(CaseStatus.THINKING)):
        reason = msg("the process that asked went down")
        builder.emit(DiagnosisReceived(case.case_id, case.number, reason=reason, lost=True))


def _next_number(builder: Builder, case_id: str) -> int:
    return builder.state.repair.cases[case_id].number + 1


def _may_ask(builder: Builder, case_id: str) -> bool:
    """Whether the budgets of case, run and plan allow another request. One that might end after the
    time for all of them is not begun."""
    repair, most = builder.state.repair, builder.state.plan.plan.repair.most
    case, latest = repair.cases[case_id], builder.now + LONGEST_REQUEST
    if case.number >= MOST_REQUESTS_OF_A_CASE:
        return False
    if case.asked_at is not None and latest > case.asked_at + LONGEST_DIAGNOSIS:
        return False
    requests = repair.requests < min(most.requests, MOST_REQUESTS)
    return requests and repair.tokens < min(most.tokens, MOST_TOKENS)


def propose(builder: Builder, case_id: str, proposal: Proposal) -> bool:
    """Ask for consent to a patch, unless it is stale or has been refused, which a person may
    propose again; whether it is asked."""
    case = builder.state.repair.cases[case_id]
    refused = case.refused if proposal.patch.by else refused_in(builder.state)
    if operations_digest(proposal.patch.operations) in refused:
        return False
    if why_stale(builder.state, proposal) is not None:
        return False
    try:
        question = _question(builder, case, proposal)
    except InvalidAnswer:
        return False
    builder.emit(PatchProposed(case_id, proposal))
    builder.emit(question)
    return True


def _question(builder: Builder, case: CaseState, proposal: Proposal) -> QuestionOpened:
    level, policy = proposal.verdict.level, builder.state.plan.plan.repair
    role = policy.role or (_APPROVER if level is Level.ACT else _OPERATOR)
    request = request_from_asking(
        Asking(role=role, details=case.diagnosis.summary if case.diagnosis else ""),
        request_id=builder.unguessable(),
        session_id=builder.state.run_id,
        type=InteractionType.USER_CONFIRMATION,
        title=msg("Repair {id}?", id=case.listener_id or builder.state.plan.plan.name),
        message=proposal.patch.reason,
        options=_options(level),
        context={**_context(case, proposal), **proposal.shown},
    )
    of = (request, case.listener_id, case.firing, REPAIR)
    return QuestionOpened(*of, consent=proposal.verdict.consent)


def _options(level: Level) -> tuple[InteractionOption, ...]:
    return (
        InteractionOption(
            APPLY,
            msg("Repair and go on"),
            InteractionAction.APPROVE_AND_EXECUTE,
            description=msg("Changes the plan of this run as shown, and resumes it."),
            is_dangerous=level is Level.ACT,
        ),
        InteractionOption(
            REFUSE,
            msg("Leave the plan as it is"),
            InteractionAction.REJECT_WITH_REASON,
            description=msg("The run goes on waiting; it can still be resumed."),
        ),
    )


def _context(case: CaseState, proposal: Proposal) -> dict[str, Json]:
    patch, verdict = proposal.patch, proposal.verdict
    return {
        "case_id": case.case_id,
        "patch_id": patch.patch_id,
        "level": verdict.level.value,
        "source": patch.source,
        "warnings": list(verdict.warnings),
        "repair_tools": sorted(verdict.versions),
    }


def propose_patch(builder: Builder, command: c.ProposePatch) -> None:
    """A person's patch takes the place of what was proposed for the same listener."""
    proposal = command.proposal
    if (stale := why_stale(builder.state, proposal)) is not None:
        raise NotAllowed(stale)
    step = builder.state.steps.get(command.listener_id)
    listener_id = "" if step is None else command.listener_id
    before = builder.state.repair.pending_for(listener_id)
    close(builder, (listener_id,), msg("{by} proposed another repair", by=command.by))
    case_id = _new_case(builder, listener_id, None if step is None else step.failure)
    if case_id is None:
        had = len(builder.state.repair.cases)
        raise NotAllowed(msg("this run has had {n} cases, and may have no more", n=had))
    cause = (step.failure.cause if step and step.failure else None) or Cause.PLAN
    evidence = before.diagnosis.evidence if before and before.diagnosis else ()
    told = Diagnosis(cause, proposal.patch.reason, evidence, source="person")
    builder.emit(CaseDiagnosed(case_id, told))
    if not propose(builder, case_id, proposal):
        raise NotAllowed(msg("this repair was refused before, or cannot be asked about"))


def review(builder: Builder, command: c.ReviewProposal) -> None:
    case = builder.state.repair.cases.get(command.case_id)
    if case is None or case.status is not CaseStatus.PROPOSED or case.proposal is None:
        return
    stale = why_stale(builder.state, case.proposal, command.elsewhere)
    if stale is None and dict(case.proposal.verdict.versions) != dict(command.versions):
        stale = msg("a tool that it names has changed")
    if stale is not None:
        _look_again(builder, case, stale)


def values_changed(builder: Builder) -> None:
    """A person has edited them: what was proposed with other values is looked at anew."""
    for case in tuple(builder.state.repair.in_status(CaseStatus.PROPOSED)):
        stale = None if case.proposal is None else why_stale(builder.state, case.proposal)
        if stale is not None:
            _look_again(builder, case, stale)


def _look_again(builder: Builder, case: CaseState, stale: str) -> None:
    _end(builder, case, stale)
    if case.listener_id in builder.state.failed:
        _new_case(builder, case.listener_id, case.failure)


def close(builder: Builder, listener_ids: Collection[str] | None, reason: str) -> None:
    """Somehow else it was dealt with these failures, or with all."""
    for case in tuple(builder.state.repair.pending()):
        if listener_ids is None or case.listener_id in listener_ids:
            _end(builder, case, reason)


def _end(builder: Builder, case: CaseState, reason: str) -> None:
    if case.status is CaseStatus.PROPOSED:
        for question_id in _asked_about(builder, case):
            builder.emit(QuestionWithdrawn(question_id, reason))
    else:
        builder.emit(CaseClosed(case.case_id, reason))


def _asked_about(builder: Builder, case: CaseState) -> list[str]:
    """The open question about a case's proposal; none in the midst of a decision, which may be
    looked at later."""
    questions = builder.state.questions
    asked = (one for one in sorted(builder.state.open_questions))
    about = (one for one in asked if questions[one].purpose == REPAIR)
    return [one for one in about if case_id_of(questions[one].request.context) == case.case_id]


def case_id_of(context: Mapping[str, Json]) -> str:
    return str(context["case_id"])


def quarantined(builder: Builder, reason: str) -> None:
    """Looking at a case may have taken the process down: a person does that now."""
    for case in tuple(builder.state.repair.busy()):
        builder.emit(CaseClosed(case.case_id, reason))


def ended(builder: Builder) -> None:
    """The run is done, and so are its repairs."""
    close(builder, None, msg("the run is done"))
    for case in tuple(builder.state.repair.in_status(CaseStatus.APPLIED)):
        builder.emit(RepairProven(case.case_id, case.patch_id))
