"""A case is told in its reader's language, down to the rehearsal; what others wrote stays."""

from __future__ import annotations

from holdfast.i18n.message import msg
from holdfast.model.repair import (
    CaseStatus,
    Diagnosis,
    Evidence,
    PlanPatch,
    Proposal,
    Rehearsal,
    RehearsedCall,
    Verdict,
)
from holdfast.model.retry import Cause
from holdfast.views.records import CaseView, PatchView
from holdfast.views.wire import in_language

OURS, THEIRS = msg("planner"), "planner"
"""The same word, once as a message of ours."""

REHEARSAL = Rehearsal(
    calls=(RehearsedCall("L1", "pay", {"to": THEIRS}),),
    questions=(OURS, THEIRS),
    open_conditions=(OURS,),
)
PROPOSAL = Proposal(
    PlanPatch("p1", "d1", ({"op": "skip", "listener_id": "L1"},), OURS, source="rule:x"),
    Verdict("d2", problems=(OURS,), warnings=(OURS, THEIRS), success=REHEARSAL, failure=REHEARSAL),
    {"words": [OURS, THEIRS], "guessed": True},
)
CASE = CaseView(
    case_id="case_1",
    listener_id="L1",
    status=CaseStatus.PROPOSED,
    opened_at=1.0,
    opened_seq=5,
    cause=Cause.UNKNOWN,
    error=OURS,
    requests=0,
    reason=OURS,
    diagnosis=Diagnosis(Cause.UNKNOWN, OURS, (Evidence(3, THEIRS),), "rule:x"),
    proposal=PROPOSAL,
    question_id="q1",
    patch_id="",
)


def test_a_case_is_told_in_the_readers_language() -> None:
    told = in_language(CASE, "zh")
    assert (told.error, told.reason) == ("规划器", "规划器")
    assert told.diagnosis is not None
    assert told.diagnosis.summary == "规划器"
    assert told.diagnosis.evidence == (Evidence(3, "planner"),)
    assert told.proposal is not None
    patch, verdict = told.proposal.patch, told.proposal.verdict
    assert (patch.reason, patch.operations) == ("规划器", PROPOSAL.patch.operations)
    assert (verdict.problems, verdict.warnings) == (("规划器",), ("规划器", "planner"))
    assert told.proposal.shown == {"words": ["规划器", "planner"], "guessed": True}
    for rehearsal in (verdict.success, verdict.failure):
        assert rehearsal is not None
        assert rehearsal.questions == ("规划器", "planner")
        assert rehearsal.open_conditions == ("规划器",)
        assert rehearsal.calls == REHEARSAL.calls


def test_a_change_that_was_made_is_told_likewise() -> None:
    patch = PatchView("p1", "case_1", 7, 1.0, "d1", "d2", (), (OURS, THEIRS), "will")
    assert in_language(patch, "zh").words == ("规划器", "planner")
    assert in_language(patch, "en") is patch
