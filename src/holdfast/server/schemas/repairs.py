"""Cases and patches of an instance as the API shows and takes them, in snake_case.

Operations name ids and have the same shape here, in the journal and in files. Words for people are
in the caller's language; what tools, authors and models wrote stays as it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import ConfigDict, Field

from holdfast.i18n.catalogue import worded
from holdfast.model.repair import (
    MOST_OPERATIONS,
    CaseStatus,
    Diagnosis,
    Level,
    Proposal,
    Rehearsal,
)
from holdfast.model.retry import Cause
from holdfast.server.schemas.interactions import InteractionShown
from holdfast.server.schemas.runs import LONGEST_ID, NAME, Given, Shown, StepName
from holdfast.views.records import CaseView, PatchView
from holdfast.views.stories.repairs import CAUSES

LONGEST_OPERATIONS: Final = 100_000
"""Characters, as canonical JSON has them: what judging a patch costs is bounded by it."""

LONGEST_REASON: Final = 2_000

CaseId = Annotated[
    str, Path(pattern=NAME, max_length=LONGEST_ID, description="A case.", examples=["case_1"])
]
PatchId = Annotated[
    str, Path(pattern=NAME, max_length=LONGEST_ID, description="A patch.", examples=["case_1_k1"])
]
Rehearse = Annotated[
    bool, Query(description="Say what the patch would do, and change nothing: 200, or 422 as else.")
]


class PatchGiven(Given):
    """Operations, or `to_current`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "operations": [
                        {"op": "set_args", "listener_id": "L002", "set": {"employee": "WZ001"}}
                    ],
                    "reason": "the access system wants an id",
                    "listener_id": "L002",
                },
                {"to_current": True},
            ]
        }
    )

    operations: list[Any] | None = Field(
        None,
        json_schema_extra={"items": {"type": "object"}, "maxItems": MOST_OPERATIONS},
        description="What is to change: `set_args`, `set_output`, `set_retry`, `use_tool`, "
        "`insert_before`, `add`, `ask_first` or `skip`, each an object with its `op`. At most "
        f"{LONGEST_OPERATIONS:,} characters.",
    )
    reason: str = Field("", max_length=LONGEST_REASON, description="For whoever is to approve it.")
    listener_id: StepName | None = Field(
        None,
        description="The failed listener that it mends; its open proposal is withdrawn. Left out "
        "it is the failed one that the operations change, if that is one alone.",
    )
    to_current: bool = Field(
        False, description="Bring the run to today's version of its plan, instead of operations."
    )


class EvidenceShown(Shown):
    seq: int = Field(description="The event of the run's history that says so.")
    text: str


class DiagnosisShown(Shown):
    """What is wrong, and who says so: `rule:…`, `lesson:…`, `model:…` or `person`."""

    cause: Cause
    told: str = Field(description="The cause in words.", examples=["an argument is wrong"])
    summary: str
    evidence: list[EvidenceShown]
    source: str = Field(examples=["rule:precondition"])

    @classmethod
    def of(cls, found: Diagnosis, language: str) -> DiagnosisShown:
        return cls(
            cause=found.cause,
            told=worded(CAUSES[found.cause], language),
            summary=worded(found.summary, language),
            evidence=[EvidenceShown.model_validate(one) for one in found.evidence],
            source=found.source,
        )


class RehearsalCallShown(Shown):
    """A call that would be made; nothing was called to find out."""

    step_id: str = Field(examples=["R1"])
    tool: str = Field(examples=["create_employee_profile"])
    args: dict[str, Any] = Field(description="As far as they are known; the rest as `‹L1.badge›`.")
    asks: bool = Field(description="A person approves it first.")
    acts: bool = Field(description="It does more than look.")
    times: int = Field(description="How often this tool has taken effect in this run, or may have.")


class RehearsalShown(Shown):
    calls: list[RehearsalCallShown]
    questions: list[str] = Field(description="What people would be asked.")
    stays: list[str] = Field(description="Listeners that are done and would not run again.")
    reached: bool = Field(description="Whether the main task would be Done in the end.")
    stopped: list[str] = Field(
        description="What would fail by itself, and why.",
        examples=[["L001: task 001's context has no 'stafff_id'"]],
    )
    open_conditions: list[str]
    status: str = Field(description="How the run would end.", examples=["done"])
    cut: bool = Field(description="Whether it was broken off after too many steps.")

    @classmethod
    def of(cls, one: Rehearsal | None, language: str) -> RehearsalShown | None:
        if one is None:
            return None
        return cls(
            calls=[RehearsalCallShown.model_validate(call) for call in one.calls],
            questions=_told(one.questions, language),
            stays=list(one.stays),
            reached=one.reached,
            stopped=_told(one.stopped, language),
            open_conditions=_told(one.open_conditions, language),
            status=one.status,
            cut=one.cut,
        )


class ProposalShown(Shown):
    """A patch and all that is to be said of it."""

    patch_id: str = Field(examples=["patch_5f0c91aa"])
    base: str = Field(description="The plan that it changes, by its digest.")
    digest: str = Field(description="The plan that results; empty where none does.")
    operations: list[dict[str, Any]]
    words: list[str] = Field(description="What each operation changes.")
    reason: str
    source: str = Field(examples=["rule:made_first", "person"])
    by: str = Field(description="Who proposed it, if a person did.")
    level: Level = Field(description="Who must consent: `act` takes an approver, another person.")
    warnings: list[str]
    versions: dict[str, str] = Field(description="Of the tools that it names, as they were judged.")
    consent: str = Field(description="What consent is bound to: all of the above, by content.")
    success: RehearsalShown | None = Field(description="How it goes on where all succeeds.")
    failure: RehearsalShown | None = Field(description="The same where what it mends fails again.")
    shown: dict[str, Any] = Field(description="What else its question tells: `lesson`, `guessed`.")

    @classmethod
    def of(cls, one: Proposal, language: str) -> ProposalShown:
        patch, verdict = one.patch, one.verdict
        rest = {name: value for name, value in one.shown.items() if name not in _SHOWN_ALREADY}
        return cls(
            patch_id=patch.patch_id,
            base=patch.base,
            digest=verdict.digest,
            operations=[dict(operation) for operation in patch.operations],
            words=_told(one.shown.get("words", ()), language),
            reason=worded(patch.reason, language),
            source=patch.source,
            by=patch.by,
            level=verdict.level,
            warnings=_told(verdict.warnings, language),
            versions=dict(verdict.versions),
            consent=verdict.consent,
            success=RehearsalShown.of(verdict.success, language),
            failure=RehearsalShown.of(verdict.failure, language),
            shown=rest,
        )


_SHOWN_ALREADY: Final = ("words", "title")


class CaseShown(Shown):
    """A failure that a repair could mend, or, with an empty `listener_id`, a plan that leads no
    further."""

    case_id: str = Field(examples=["case_1"])
    run_id: str = Field(examples=["inst_000001"])
    listener_id: str = Field(examples=["L002"])
    status: CaseStatus
    opened_at: float
    opened_seq: int = Field(description="The event that opened it.")
    cause: Cause | None
    error: str
    requests: int = Field(description="How often hooks or a model were asked about it.")
    reason: str = Field(description="Why there is no proposal, or why it is closed.")
    refused_by: str = Field(
        description="Who refused what was proposed last; `reason` is then in their own words."
    )
    diagnosis: DiagnosisShown | None
    proposal: ProposalShown | None
    interaction_id: str | None = Field(description="The open question about its proposal.")
    patch_id: str = Field(description="The patch that was applied.")

    @classmethod
    def of(cls, run_id: str, one: CaseView, language: str) -> CaseShown:
        diagnosis, proposal = one.diagnosis, one.proposal
        return cls(
            case_id=one.case_id,
            run_id=run_id,
            listener_id=one.listener_id,
            status=one.status,
            opened_at=one.opened_at,
            opened_seq=one.opened_seq,
            cause=one.cause,
            error=worded(one.error, language),
            requests=one.requests,
            reason=worded(one.reason, language),
            refused_by=one.refused_by,
            diagnosis=None if diagnosis is None else DiagnosisShown.of(diagnosis, language),
            proposal=None if proposal is None else ProposalShown.of(proposal, language),
            interaction_id=one.question_id,
            patch_id=one.patch_id,
        )


class CaseAnswer(Shown):
    case: CaseShown
    server_time: float


class Cases(Shown):
    """The oldest first."""

    cases: list[CaseShown]
    server_time: float


class PatchShown(Shown):
    patch_id: str = Field(examples=["case_1_k1"])
    case_id: str = Field(examples=["case_1"])
    seq: int = Field(description="The event by which it was applied, and the moment.")
    at: float
    base: str = Field(description="The plan before, by its digest.")
    digest: str = Field(description="The plan after.")
    operations: list[dict[str, Any]]
    words: list[str] = Field(description="What each operation changed.")
    by: str = Field(description="Who approved it; empty where the plan's author lets it be made.")

    @classmethod
    def of(cls, one: PatchView, language: str) -> PatchShown:
        return cls(
            patch_id=one.patch_id,
            case_id=one.case_id,
            seq=one.seq,
            at=one.at,
            base=one.base,
            digest=one.digest,
            operations=[dict(operation) for operation in one.operations],
            words=_told(one.words, language),
            by=one.by,
        )


class Patches(Shown):
    """Those that were applied, in order; they make the plan `digest` of the plan `pinned`."""

    patches: list[PatchShown]
    pinned: str = Field(description="The plan that the run began with.")
    digest: str = Field(description="The plan that it has.")
    server_time: float


class Proposed(Shown):
    """The proposal is a question, answered as any other: `apply` or `refuse`."""

    case: CaseShown
    interaction: InteractionShown | None = Field(description="None where it is answered already.")


class Rehearsed(Shown):
    proposal: ProposalShown


def _told(texts: Any, language: str) -> list[str]:
    return [worded(str(one), language) for one in texts]
