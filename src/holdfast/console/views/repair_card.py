"""What a question about a repair proposes: the change in words and as a picture, what it would do,
and who must consent.

The run's own case has the last word on what is proposed. Once that is gone, because the repair was
refused or withdrawn, the card has what the question itself says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from holdfast.console.views.facts import Fact
from holdfast.forms.secrets import is_reference
from holdfast.i18n.message import Message, msg
from holdfast.language.display import clip, indented
from holdfast.model.interaction import InteractionRequest
from holdfast.model.repair import Rehearsal, RehearsedCall
from holdfast.model.values import Json, JsonObject
from holdfast.runtime.offload import aside
from holdfast.server.questions import Question
from holdfast.server.services import Services
from holdfast.views import repairs
from holdfast.views.reader import RunVersion
from holdfast.views.records import CaseView
from holdfast.views.stories.repairs import CAUSES

MOST_CALLS: Final = 100
MOST_DRAWN: Final = 200
"""Tasks; the picture of a larger plan would be most of the page."""

LONGEST_VALUE: Final = 400
_MARKS: Final[Mapping[str, str]] = {
    "insert_before": "added",
    "add": "added",
    "ask_first": "added",
    "skip": "removed",
}
"""What operations do to a plan; all others change what is there."""


@dataclass(frozen=True, slots=True)
class Said:
    """A text and whose words it is: empty for ours, else a key of `repair_words.SAID_BY`."""

    text: str
    by: str


@dataclass(frozen=True, slots=True)
class Change:
    """What one operation changes, in words; the mark is one of `repair_words.MARKS`, or empty."""

    mark: str
    words: str


@dataclass(frozen=True, slots=True)
class CallLine:
    """A call of a rehearsal; `mark` is how the patch concerns its step."""

    call: RehearsedCall
    mark: str
    args: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class RehearsalView:
    """`more` calls are not listed."""

    told: Rehearsal
    calls: tuple[CallLine, ...]
    more: int


@dataclass(frozen=True, slots=True)
class RepairView:
    """A proposal. `source` is a rule, a lesson, a model or a person, and `by` that person.

    `picture` is empty where none was asked for, and where the plan is too `large` for one.
    """

    run_id: str
    patch_id: str
    level: str
    source: str
    by: str
    reason: Said
    cause: str
    summary: Said
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]
    success: RehearsalView | None = None
    failure: RehearsalView | None = None
    raw: str = ""
    picture: Markup = Markup()
    large: bool = False

    @property
    def wrong(self) -> str:
        """What is wrong, in words of ours."""
        summary = "" if self.summary.by else self.summary.text
        if not (self.cause and summary):
            return self.cause or summary
        return msg("{told}: {reason}", told=self.cause, reason=summary)


async def repair_of(
    served: Services, question: Question, language: str | None
) -> RepairView | None:
    """What the question proposes, if it is about a repair; drawn where a language is given."""
    if not repairs.proposes(question.request):
        return None
    run = await served.reader.at(question.row.run_id)
    case = repairs.case_of(run, question.request)
    return None if case is None else await aside(_repair, run, case, question.request, language)


def _repair(
    run: RunVersion, case: CaseView, request: InteractionRequest, language: str | None
) -> RepairView:
    proposal, diagnosis = case.proposal, case.diagnosis
    if proposal is None or proposal.patch.patch_id != request.context["patch_id"]:
        return _told(run, request)
    patch, verdict = proposal.patch, proposal.verdict
    large = int(run.view(parts=False).summary.get("tasks") or 0) > MOST_DRAWN
    marks = _concerned(patch.operations)
    return RepairView(
        run_id=run.run_id,
        patch_id=patch.patch_id,
        level=verdict.level,
        source=source_of(patch.source),
        by=patch.by,
        reason=said(patch.reason, patch.source),
        cause=CAUSES[diagnosis.cause] if diagnosis else "",
        summary=said(diagnosis.summary, diagnosis.source) if diagnosis else said("", ""),
        changes=tuple(changes(_texts(proposal.shown.get("words")), patch.operations)),
        warnings=verdict.warnings,
        success=_rehearsed(verdict.success, marks),
        failure=_rehearsed(verdict.failure, marks),
        raw=indented([dict(one) for one in patch.operations]),
        picture=Markup() if large or not language else drawn(run, patch.patch_id, language),
        large=large and language is not None,
    )


def _told(run: RunVersion, request: InteractionRequest) -> RepairView:
    """What the question itself says."""
    context = request.context
    source = str(context.get("source"))
    return RepairView(
        run_id=run.run_id,
        patch_id=str(context["patch_id"]),
        level=str(context.get("level")),
        source=source_of(source),
        by="",
        reason=said(request.message, source),
        cause="",
        summary=said(request.details, ""),
        changes=tuple(changes(_texts(context.get("words")), ())),
        warnings=_texts(context.get("warnings")),
    )


def source_of(source: str) -> str:
    """Of `rule:precondition` that it is a rule."""
    return source.partition(":")[0]


def said(text: str, source: str) -> Said:
    """What is no message of ours is told apart from what is."""
    ours = isinstance(text, Message) or not text
    return Said(text, "" if ours else source_of(source) or "other")


def _texts(value: Json) -> tuple[str, ...]:
    """Those of a list that are texts; messages stay messages."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def changes(words: Sequence[str], operations: Sequence[JsonObject]) -> Iterator[Change]:
    """There is a text for each operation; where those are not known, it has no mark."""
    marks = [_MARKS.get(str(one["op"]), "changed") for one in operations]
    for place, told in enumerate(words):
        yield Change(marks[place] if place < len(marks) else "", told)


def _concerned(operations: Sequence[JsonObject]) -> Mapping[str, str]:
    """By its id, each listener that operations bring or change."""
    found: dict[str, str] = {}
    for one in operations:
        several = one.get("listeners")
        new = (one.get("listener"), *(several if isinstance(several, list) else ()))
        found |= {str(each["listener_id"]): "added" for each in new if isinstance(each, Mapping)}
        found.setdefault(str(one.get("listener_id")), "changed")
    return found


def _rehearsed(told: Rehearsal | None, marks: Mapping[str, str]) -> RehearsalView | None:
    if told is None:
        return None
    calls = (
        CallLine(one, marks.get(one.step_id, ""), tuple(short_facts(one.args)))
        for one in told.calls[:MOST_CALLS]
    )
    return RehearsalView(told, tuple(calls), max(len(told.calls) - MOST_CALLS, 0))


def short_facts(values: Mapping[str, Json]) -> Iterator[Fact]:
    """Each on one line, and long ones cut: what is consented to stands elsewhere, whole."""
    for name, value in values.items():
        secret = is_reference(value)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield Fact(name, "" if secret else clip(text, LONGEST_VALUE), secret=secret)


def drawn(run: RunVersion, patch_id: str, language: str) -> Markup:
    """The plan before and after a patch; NotFound where the run has no such patch."""
    picture = repairs.patch_svg(run, patch_id, styled=False, language=language)
    return Markup(picture)  # noqa: S704 (the drawing escapes every text itself)
