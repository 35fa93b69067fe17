"""Repairs as they are shown: what is wrong with a run, what is proposed, what that would do.

A proposal is read before it is consented to, so all of it is shown, in the words that its question
has: what each operation changes, at which level, with what warnings, and the calls of its
rehearsal in order. What tools and models wrote stands behind a bar, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli.terminal.untrusted_text import BAR, rows
from holdfast.errors import NotFound, NotPermitted
from holdfast.i18n.catalogue import worded
from holdfast.language.instants import iso
from holdfast.language.strict import canonical_json
from holdfast.model.interaction import InteractionRequest
from holdfast.model.repair import CaseStatus, Level, Proposal, Rehearsal, RehearsedCall
from holdfast.model.retry import Cause
from holdfast.model.values import Json
from holdfast.views.records import CaseView, InteractionView, PatchView
from holdfast.views.stories.text import named, visible

if TYPE_CHECKING:
    from holdfast.cli.backend import Reader

LEVELS: Final[Mapping[str, str]] = {
    Level.WAIT: "only waits",
    Level.RENAME: "the same values under other names, or read from another place",
    Level.LOOK: "calls more, but what only looks",
    Level.ACT: "calls what acts, or brings in a new value",
}
"""What each level means."""

_STANDINGS: Final[Mapping[CaseStatus, str]] = {
    CaseStatus.OPEN: "nothing is proposed",
    CaseStatus.THINKING: "the application's hooks or a model are being asked",
    CaseStatus.PROPOSED: "a repair is proposed",
    CaseStatus.APPLIED: "the plan was repaired; whether that helps is not known yet",
    CaseStatus.PROVEN: "the repair has helped",
    CaseStatus.CLOSED: "closed",
}
_PENDING: Final = (CaseStatus.OPEN, CaseStatus.THINKING, CaseStatus.PROPOSED)
_BY_A_PERSON: Final = "person"
_LONGEST: Final = 2_000
_NAMES: Final = frozenset({"case_id", "patch_id", "repair_tools"})
_TOLD: Final = frozenset(
    {*_NAMES, "title", "words", "level", "source", "warnings", "guessed", "lesson"}
)
_CUT: Final = "…"


def _cause(cause: Cause | None, language: str = "en") -> str:
    """In words."""
    from holdfast.views.stories.repairs import CAUSES

    return "not known" if cause is None else worded(CAUSES[cause], language)


def is_pending(case: CaseView) -> bool:
    return case.status in _PENDING


def is_repair(request: InteractionRequest) -> bool:
    """Whether a question asks for consent to a repair, and not to a call."""
    return request.context.keys() >= _NAMES and "tool" not in request.context


async def proposal_asked(reader: Reader, asked: InteractionView) -> Proposal | None:
    """What an open question about a repair proposes; None of any other, and of a run that the
    caller may not look into."""
    if not is_repair(asked.request) or not asked.is_open:
        return None
    with suppress(NotFound, NotPermitted):
        known = await reader.cases(asked.run_id)
        return next((one.proposal for one in known if one.question_id == asked.question_id), None)
    return None


async def rehearsal_asked(reader: Reader, asked: InteractionView) -> list[str]:
    """What a question about a repair does not say itself: what would happen."""
    proposal = await proposal_asked(reader, asked)
    return [] if proposal is None else list(shown_rehearsals(proposal, "  "))


def other_than(proposal: Proposal | None) -> str:
    """Who may not approve it, having proposed it; empty where anyone may who is asked."""
    if proposal is None or proposal.verdict.level is not Level.ACT:
        return ""
    return proposal.patch.by


def shown_request(
    request: InteractionRequest, indent: str = "", options: str = ""
) -> Iterator[str]:
    """What a question about a repair says of it; `options` are repeated in the command shown."""
    whole = f"holdfast diagnose {named(request.session_id)} --json{options}"
    yield from _weighed(request.context, indent, whole)


def shown_proposal(proposal: Proposal, indent: str, whole: str) -> Iterator[str]:
    """A patch, and all that is to be said of it; `whole` is the command that cuts nothing."""
    patch, verdict = proposal.patch, proposal.verdict
    told = {"level": verdict.level, "source": patch.source, "warnings": list(verdict.warnings)}
    yield from _weighed({**proposal.shown, **told}, indent, whole)
    yield from shown_rehearsals(proposal, f"{indent}  ")


def _changes(words: Sequence[str], indent: str) -> Iterator[str]:
    for number, one in enumerate(words, 1):
        first = f"{indent}  {number}. "
        yield from rows(visible(one, _LONGEST), first, f"{indent}     {BAR}")


def _weighed(told: Mapping[str, Any], indent: str, whole: str) -> Iterator[str]:
    words, warnings = _texts(told.get("words")), _texts(told.get("warnings"))
    yield from _changes(words, indent)
    if any(_CUT in one for one in (*words, *warnings)):
        yield f"{indent}  not all of it is shown here; to see it whole: {whole}"
    level, source = str(told.get("level", "")), str(told.get("source", ""))
    meaning = f" ({LEVELS[level]})" if level in LEVELS else ""
    yield f"{indent}  level: {named(level)}{meaning}"
    own = source == _BY_A_PERSON and level == Level.ACT
    other = " (who proposed it may not approve it)" if own else ""
    yield f"{indent}  from: {visible(source, 60)}{other}"
    if told.get("guessed"):
        yield f"{indent}  guessed: something else might be meant as well"
    for one in warnings:
        yield from rows(visible(one, _LONGEST), f"{indent}  warning: ", f"{indent}  {BAR}")
    for name in sorted(told.keys() - _TOLD):
        yield from rows(visible(_spelled(told[name]), _LONGEST), f"{indent}  {named(name)}: ")


def shown_rehearsals(proposal: Proposal, indent: str = "") -> Iterator[str]:
    success, failure = proposal.verdict.success, proposal.verdict.failure
    if success is not None:
        yield f"{indent}rehearsed, with nothing called; it would go on so:"
        yield from _shown_rehearsal(success, f"{indent}  ")
    if failure is not None and failure != success:
        calls = ", ".join(named(one.step_id) for one in failure.calls) or "nothing"
        again = f"should it fail again: calls {calls}; the end: {_ending(failure)}"
        yield from rows(visible(again, _LONGEST), indent, f"{indent}{BAR}")


def _shown_rehearsal(one: Rehearsal, indent: str) -> Iterator[str]:
    if not one.calls:
        yield f"{indent}no tool is called"
    for number, call in enumerate(one.calls, 1):
        told = visible(_called(call), _LONGEST)
        yield from rows(told, f"{indent}{number}. ", f"{indent}   {BAR}")
    for what in one.questions:
        yield from rows(visible(what, _LONGEST), f"{indent}asks: ", f"{indent}{BAR}")
    if one.stays:
        stays = "does not run again: " + ", ".join(map(named, one.stays))
        yield from rows(stays, indent, f"{indent}{BAR}")
    for what in one.stopped:
        yield from rows(visible(what, _LONGEST), f"{indent}stops at: ", f"{indent}{BAR}")
    for what in one.open_conditions:
        yield from rows(visible(what, _LONGEST), f"{indent}stays open: ", f"{indent}{BAR}")
    yield f"{indent}the end: {_ending(one)}"


def _called(call: RehearsedCall) -> str:
    marks = [
        "acts" if call.acts else "only looks",
        "a person approves it first" if call.asks else "",
        f"has taken effect {call.times} times in this run, or may have" if call.times else "",
    ]
    told = f"{named(call.step_id)} calls {named(call.tool)} ({'; '.join(filter(None, marks))})"
    return f"{told} with {canonical_json(dict(call.args))}"


def _ending(one: Rehearsal) -> str:
    if one.cut:
        return "not known; the rehearsal was broken off after too many steps"
    goal = "the goal is reached" if one.reached else "the goal is not reached"
    return f"the run is {one.status or 'where it was'}, and {goal}"


def shown_case(
    case: CaseView, asked: InteractionView | None, language: str, run_id: str = ""
) -> Iterator[str]:
    """One failure; `run_id` names the run that has it, where it is a sub-run's."""
    yield from _heading(case, run_id)
    if not is_pending(case):
        return
    yield from () if _is_wish(case) else _diagnosed(case, language)
    if case.proposal is not None and case.status is CaseStatus.PROPOSED:
        patch = case.proposal.patch
        told = _with(f"proposal {named(patch.patch_id)}", patch.reason)
        yield from rows(told, "  ", f"  {BAR}")
        yield from shown_proposal(case.proposal, "  ", "the same with --json")
        role = asked.role if asked is not None else None
        who = who_is_asked(role, other_than(case.proposal))
        yield from rows(who, "    ", f"    {BAR}")


def _heading(case: CaseView, run_id: str) -> Iterator[str]:
    place = f"{visible(run_id)} " if run_id else ""
    told = f"{place}{named(case.case_id)}: {_what(case)}; {_STANDINGS[case.status]}"
    refused = f"{visible(case.refused_by)} refused what was proposed" if case.refused_by else ""
    why = "" if refused or case.status is CaseStatus.PROPOSED else case.reason
    yield from rows(_with(told, why), "", f"  {BAR}")
    if refused:
        yield from rows(_with(refused, case.reason), "  ", f"  {BAR}")


def _what(case: CaseView) -> str:
    if case.listener_id:
        return f"{named(case.listener_id)} failed"
    return "a person wants another plan" if _is_wish(case) else "the plan leads no further"


def _is_wish(case: CaseView) -> bool:
    """Whether nothing failed: a person has proposed a patch."""
    own = case.diagnosis is not None and case.diagnosis.source == _BY_A_PERSON
    return own and not case.listener_id


def _diagnosed(case: CaseView, language: str) -> Iterator[str]:
    cause, found = f"cause: {_cause(case.cause, language)}", case.diagnosis
    if found is None:
        yield f"  {cause}"
        yield from rows(visible(case.error, _LONGEST), f"  {BAR}", f"  {BAR}")
        return
    yield f"  {cause} ({visible(found.source)})"
    if found.summary:
        yield from rows(visible(found.summary, _LONGEST), f"  {BAR}", f"  {BAR}")
    for one in found.evidence:
        yield from rows(visible(one.text, _LONGEST), f"    event {one.seq}: ", f"    {BAR}")


def _with(ours: str, theirs: str) -> str:
    return f"{ours}: {visible(theirs, _LONGEST)}" if theirs else ours


def who_is_asked(role: str | None, but_not: str = "") -> str:
    """`but_not`: who proposed what another person must approve."""
    who = f"asks the role {visible(role)}" if role else "asks all who see the run"
    return f"{who}, but not {visible(but_not)}, who proposed it" if but_not else who


def shown_patch(one: PatchView) -> Iterator[str]:
    """A change that was made."""
    by = f" by {visible(one.by)}" if one.by else ""
    yield f"the plan of this run was changed{by} ({named(one.patch_id)}):"
    yield from _changes(one.words, "")


def case_json(case: CaseView, asked: InteractionView | None, run_id: str) -> dict[str, Any]:
    """As the API names things, with the question's id and role."""
    found, proposal = case.diagnosis, case.proposal
    return {
        "case_id": case.case_id,
        "instance_id": run_id,
        "listener_id": case.listener_id,
        "status": case.status.value,
        "opened_at": iso(case.opened_at),
        "opened_seq": case.opened_seq,
        "cause": None if case.cause is None else case.cause.value,
        "told": None if case.cause is None else _cause(case.cause),
        "error": case.error,
        "diagnosis": None if found is None else {**asdict(found), "cause": found.cause.value},
        "requests": case.requests,
        "reason": case.reason,
        "refused_by": case.refused_by,
        "proposal": None if proposal is None else proposal_json(proposal),
        "question_id": case.question_id,
        "role": None if asked is None else asked.role,
        "may_not_because": None if asked is None else asked.why_not or None,
        "may_not_approve_because": None if asked is None else asked.why_not_approve or None,
        "patch_id": case.patch_id,
    }


def proposal_json(one: Proposal) -> dict[str, Any]:
    patch, verdict = one.patch, one.verdict
    known = {name: value for name, value in one.shown.items() if name not in ("title", "words")}
    return {
        "patch_id": patch.patch_id,
        "base": patch.base,
        "digest": verdict.digest,
        "operations": [dict(operation) for operation in patch.operations],
        "words": _texts(one.shown.get("words")),
        "reason": patch.reason,
        "source": patch.source,
        "by": patch.by,
        "level": verdict.level.value,
        "problems": list(verdict.problems),
        "warnings": list(verdict.warnings),
        "versions": dict(verdict.versions),
        "success": None if verdict.success is None else asdict(verdict.success),
        "failure": None if verdict.failure is None else asdict(verdict.failure),
        "shown": known,
    }


def patch_json(one: PatchView) -> dict[str, Any]:
    operations = [dict(operation) for operation in one.operations]
    return {**asdict(one), "at": iso(one.at), "operations": operations}


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else []


def _spelled(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)
