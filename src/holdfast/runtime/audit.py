"""What a command leaves behind beside its events: an audit record, and the claim of its request.

Only what a person asks for is recorded. What the engine tells a run in the course of its
work is in the run's own journal, and a draft is no decision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, assert_never

from holdfast.core.run.four_eyes import LEADS_TO_THE_CALL, action_of
from holdfast.core.run.state import RunState
from holdfast.journal.port import NOTHING, Attached, AuditRecord, ExpiringValue
from holdfast.language.strict import canonical_json, digest
from holdfast.model import commands as c
from holdfast.model.interaction import REPAIR, InteractionRequest
from holdfast.model.record import adapter
from holdfast.model.repair import LessonState
from holdfast.model.values import Json
from holdfast.runtime.identity import Claim, Identity, current
from holdfast.runtime.store import Store

REQUEST = "request"
"""The kind under which claims are kept."""

CLAIM_SECONDS = 24 * 3600.0

_SAID = {
    LessonState.PINNED: "pinned_lesson",
    LessonState.RETIRED: "retired_lesson",
    LessonState.TRIAL: "released_lesson",
    LessonState.PROVEN: "released_lesson",
}


@dataclass(frozen=True, slots=True)
class _Told:
    action: str
    subject: str = ""
    detail: Json = None


def audit_record_of(
    acting: Identity, command: c.Command, state: RunState, now: float
) -> AuditRecord | None:
    """What a person did by a command, given the run that took it; None for the engine's own."""
    told = _told(command)
    if told is None:
        return None
    if not isinstance(command, c.Answer):
        return _record(acting, told, state.run_id, "", now)
    told = replace(told, detail={**told.detail, **_consented(command, state)})
    seen = request_digest(state.questions[command.question_id].request)
    return _record(acting, told, state.run_id, seen, now)


def _consented(command: c.Answer, state: RunState) -> dict[str, Json]:
    """The digest of the call that an approval lets run, as it was shown or as it was changed, or
    of the repair that is made."""
    question, decided = state.questions[command.question_id], command.resolution
    action = action_of(question, question.option_id) if decided is None else decided.action
    bound = question.purpose in ("approval", REPAIR)
    runs = bound and action in LEADS_TO_THE_CALL and not question.wish
    return {"consent": question.consent} if runs else {}


def records_of_entering(
    field: str, request: InteractionRequest, run_id: str, now: float
) -> tuple[AuditRecord, ...]:
    """That a person put a secret under lock, ahead of the answer it belongs to; none where
    the caller is not signed in."""
    acting = current()
    if acting is None:
        return ()
    told = _Told("entered_secret", request.request_id, {"field": field})
    return (_record(acting, told, run_id, request_digest(request), now),)


def records_of_saying(lesson_id: str, state: LessonState, now: float) -> tuple[AuditRecord, ...]:
    """What a person said of a lesson; none where the caller is not signed in."""
    acting = current()
    if acting is None:
        return ()
    return (_record(acting, _Told(_SAID[state], lesson_id), "", "", now),)


def _record(acting: Identity, told: _Told, run_id: str, seen: str, now: float) -> AuditRecord:
    detail: dict[str, Any] = {} if told.detail is None else {**told.detail}
    if acting.via:
        detail["via"] = acting.via
    return AuditRecord(
        at=now,
        who=acting.who,
        action=told.action,
        subject=told.subject,
        run_id=run_id,
        seen=seen,
        origin=acting.origin,
        detail=canonical_json(detail),
    )


async def attach_claimed(store: Store, attached: Attached, now: float) -> None:
    """Commit what belongs to no run, together with the claim of the request under way, if it has
    one."""
    acting = current()
    claim = None if acting is None else acting.claim
    if claim is not None:
        attached = _with_claim(attached, claim, now)
    await store.attach(attached)
    if claim is not None:
        claim.held = True


def _with_claim(attached: Attached, claim: Claim, now: float, **served: Json) -> Attached:
    body = canonical_json({"fingerprint": claim.fingerprint, **served})
    served_by = ExpiringValue(REQUEST, claim.key, body, now + CLAIM_SECONDS)
    if claim.held:
        return replace(attached, kept=[*attached.kept, served_by])
    return replace(attached, claimed=[*attached.claimed, served_by], at=now)


def request_digest(request: InteractionRequest) -> str:
    """A question by its content: what was shown to the person who answers it."""
    return digest(
        adapter(InteractionRequest).dump_python(request, mode="json", exclude_defaults=True)
    )


def left_by(
    acting: Identity, command: c.Command, before: RunState, state: RunState, now: float
) -> Attached:
    """What goes with an accepted command. One that changed nothing, because it only repeats
    what was said before, leaves no further record; its request has been served all the same."""
    if _told(command) is None and not isinstance(command, c.KeepDraft):
        return NOTHING  # it is the engine's own
    changed = state.version != before.version
    record = audit_record_of(acting, command, state, now) if changed else None
    left = Attached(() if record is None else (record,))
    if acting.claim is None:
        return left
    # By which run the request was served, and how far that run was then.
    return _with_claim(left, acting.claim, now, run_id=state.run_id, version=state.version)


def _typed(reason: str) -> Json:
    """What a person typed stays with the run, and can be erased with it; the audit cannot."""
    return {"reason": digest(reason)} if reason else {}


def _told(command: c.Command) -> _Told | None:
    match command:
        case c.StartRun(plan_id=name) | c.StartSession(agent_id=name):
            return _Told("started", name)
        case c.StartFork(fork=fork):
            return _Told("forked", fork.origin, {"at": fork.seq})
        case c.OpenConversation():
            return _Told("started")
        case c.Say() | c.Converse():
            return _Told("said")
        case c.Ask(request=request):
            return _Told("asked", request.request_id)
        case c.Propose(tool=tool, call_id=call_id):
            return _Told("proposed", tool, {"call_id": call_id})
        case c.ProposePatch(proposal=proposal):
            return _Told("proposed", proposal.patch.patch_id, {"consent": proposal.verdict.consent})
        case c.RememberApproval(tool=tool, version=version):
            return _Told("granted", tool, {"version": version})
        case c.RevokeApproval(grant_id=grant_id):
            return _Told("revoked", grant_id)
        case c.Answer(question_id=question_id, option_id=option_id):
            return _Told("answered", question_id, {"option_id": option_id})
        case c.Skip(listener_id=listener_id, reason=reason):
            return _Told("skipped", listener_id, _typed(reason))
        case c.MarkDone(task_id=task_id):
            return _Told("marked_done", task_id)
        case c.EditContext(task_id=task_id):
            return _Told("edited_context", task_id)
        case c.RerunFrom(listener_id=listener_id):
            return _Told("reran", listener_id)
        case c.Cancel(reason=reason) | c.Abort(reason=reason):
            return _Told("cancelled", "", _typed(reason))
        case c.Resume() | c.Unhold():
            return _Told("resumed")
        case c.GoOn(failed=failed):
            return _Told("resumed", "", {"failed": failed.value})
        case c.Hold():
            return _Told("paused")
        case c.StartOver():
            return _Told("started_over")
        case c.RestoreSnapshot():
            return _Told("restored")
        case (
            c.KeepDraft()
            | c.Advance()
            | c.StartStep()
            | c.ReportOutcome()
            | c.Advise()
            | c.ReportDiagnosis()
            | c.ReviewProposal()
            | c.WakeEarly()
            | c.HearChild()
            | c.Tick()
            | c.Recover()
        ):
            return None
        case _:
            assert_never(command)
