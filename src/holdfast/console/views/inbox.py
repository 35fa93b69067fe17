"""The inbox: open questions, the most urgent first, and those that are closed.

Questions with a deadline come first, by deadline; then the others, the oldest first. Those due
within `SOON` are always among the `SHOWN`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Final

from holdfast.console.formatting import query
from holdfast.console.views.card import Card, card_from
from holdfast.console.views.options import OptionView, going_on, options_of
from holdfast.errors import NotFound
from holdfast.interactions.cards import call_of
from holdfast.language.display import visible
from holdfast.model.interaction import InteractionAction, InteractionRequest, InteractionType
from holdfast.model.rows import QuestionQuery, QuestionRow
from holdfast.server.auth.authentication import Caller
from holdfast.server.questions import Question, Questions
from holdfast.server.services import Services
from holdfast.views import repairs

TABS: Final[Mapping[str, str]] = {
    "pending": "open",
    "answered": "answered",
    "expired": "expired",
    "withdrawn": "withdrawn",
}
SHOWN: Final = 200
SOON: Final = 86_400.0
_LONGEST_HINT: Final = 80


@dataclass(frozen=True, slots=True)
class Filters:
    """The page's query, besides the question that is shown."""

    tab: str = "pending"
    role: str | None = None
    run: str | None = None

    def query(self, **changes: str | None) -> str:
        members = {**asdict(self), **changes}
        if members["tab"] == "pending":
            members["tab"] = None
        return query(**members)

    def link(self, question_id: str = "", **changes: str | None) -> str:
        place = f"/console/inbox/{question_id}" if question_id else "/console/inbox"
        return place + self.query(**changes)

    def part(self, chosen: str) -> str:
        return "/console/parts/inbox" + self.query(chosen=chosen or None)

    def asked(self) -> QuestionQuery:
        status, newest = frozenset({TABS[self.tab]}), self.tab != "pending"
        return QuestionQuery(status=status, role=self.role, newest=newest, limit=SHOWN + 1)


@dataclass(frozen=True, slots=True)
class Entry:
    """A question in the queue; `shared` are options that can answer several at once."""

    row: QuestionRow
    request: InteractionRequest
    name: str
    about: str
    in_conversation: bool
    hint: str
    mine: bool
    no_approver: bool
    shared: tuple[OptionView, ...]

    @property
    def approval(self) -> bool:
        return self.request.type is InteractionType.TOOL_APPROVAL

    def offered(self, spoken: Callable[[str], str]) -> str:
        """The `shared` options as JSON for the browser; `spoken` is in the reader's language."""
        told = [
            {
                "id": one.option.option_id,
                "label": spoken(one.label),
                "action": one.option.action.value,
                "tone": one.tone,
                "needed": one.option.requires_input,
            }
            for one in self.shared
        ]
        return json.dumps(told, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Queue:
    filters: Filters
    entries: tuple[Entry, ...]
    capped: bool
    roles: tuple[str, ...]

    @property
    def tabs(self) -> tuple[str, ...]:
        return tuple(TABS)

    @property
    def bulk(self) -> bool:
        return any(entry.shared for entry in self.entries)


async def queue_of(served: Services, caller: Caller, filters: Filters) -> Queue:
    questions = Questions(served, caller)
    pending = filters.tab == "pending"
    found = await (_pending if pending else _closed)(served, questions, filters)
    entries = tuple([await _entry(questions, one, pending) for one in found[:SHOWN]])
    named = {entry.row.role for entry in entries if entry.row.role}
    roles = sorted(named | ({filters.role} if filters.role else set()))
    return Queue(filters, entries, len(found) > SHOWN, tuple(roles))


async def cards_of(
    served: Services, caller: Caller, ids: Sequence[str], option: str
) -> tuple[Card, ...]:
    """The cards of those questions that the caller may still answer so."""
    questions = Questions(served, caller)
    cards = [await card_from(served, questions, one) for one in await _found(questions, ids)]
    return tuple(one for one in cards if one.answerable and one.named(option) is not None)


async def _found(questions: Questions, ids: Sequence[str]) -> list[Question]:
    found = []
    for question_id in dict.fromkeys(ids):
        with suppress(NotFound):
            found.append(await questions.find(question_id))
    return found


async def _pending(served: Services, questions: Questions, filters: Filters) -> list[Question]:
    soon = replace(filters.asked(), due_before=served.now() + SOON)
    found = {
        one.row.question_id: one
        for asked in (soon, filters.asked())
        for one in await _first(questions, asked, filters.run)
    }
    return sorted(found.values(), key=lambda one: _urgency(one.row))


def _urgency(row: QuestionRow) -> tuple[float, float]:
    return (inf if row.deadline is None else row.deadline, row.opened_at)


async def _first(questions: Questions, asked: QuestionQuery, run: str | None) -> list[Question]:
    found, _ = await questions.listed(asked, below=run)
    return found


async def _closed(_: Services, questions: Questions, filters: Filters) -> list[Question]:
    """Of the newest questions, the last closed first."""
    found = await _first(questions, filters.asked(), filters.run)
    return sorted(found, key=lambda one: -(one.row.closed_at or 0.0))


async def _entry(questions: Questions, question: Question, pending: bool) -> Entry:
    request = question.request
    mine = pending and await questions.why_not(question) is None
    another = mine and await questions.why_not_approve(question) is not None
    return Entry(
        row=question.row,
        request=request,
        name=question.name,
        about=visible(question.about),
        in_conversation=question.in_conversation,
        hint=_hint(request),
        mine=mine,
        no_approver=pending and await questions.no_approver_left(question),
        shared=tuple(_shared(request, another=another)) if mine else (),
    )


def _hint(request: InteractionRequest) -> str:
    """The call in one line, where the tool is named unless the title names it; or why a repair is
    proposed."""
    if repairs.proposes(request):
        return request.message
    tool, args = call_of(request) or ("", {})
    told = ", ".join(f"{name}: {_short(value)}" for name, value in args.items())
    line = visible(told if tool in request.title else f"{tool}({told})")
    return line if len(line) <= _LONGEST_HINT else line[: _LONGEST_HINT - 1] + "…"


def _short(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shared(request: InteractionRequest, *, another: bool) -> Iterator[OptionView]:
    """Options that need a form cannot answer several questions, and what `another` person must
    approve can only be refused."""
    for one in options_of(request, repairs=repairs.proposes(request)):
        needs_a_form = one.option.action is InteractionAction.PROVIDE_INFO
        if not needs_a_form and not (another and going_on(one)):
            yield one
