"""Questions as one caller has them: whether they exist for them, and may be answered by them.

A question belongs to its root run: the permission to read that is the permission to read the
question. To answer takes a role, never a name in the request, and under four eyes another person
than those who wanted what is to be approved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from holdfast.errors import InvalidAnswer, NotAllowed, NotFound, NotPermitted
from holdfast.forms.secrets import is_reference
from holdfast.i18n.catalogue import LOCALES, said
from holdfast.i18n.message import joined, msg, term
from holdfast.interactions.cards import consequence, request_to_wire, spoken_secret
from holdfast.interactions.service import is_above
from holdfast.model.form import FieldType
from holdfast.model.interaction import (
    InteractionAction,
    InteractionRequest,
    InteractionStatus,
    InteractionType,
)
from holdfast.model.rows import (
    QuestionQuery,
    QuestionRow,
    RunRow,
    asked_under_four_eyes,
    request_of,
)
from holdfast.model.run import KINDS, RunKind
from holdfast.runtime.audit import request_digest
from holdfast.runtime.four_eyes import refusal, wanting_now
from holdfast.server.auth.authentication import ANSWER, Caller
from holdfast.server.auth.principal import CONVERSATIONS, WANTS_IT, Principal, may_answer, run_of
from holdfast.views import repairs
from holdfast.views.records import InteractionView, about_row

if TYPE_CHECKING:
    from holdfast.server.services import Services

PAGE: Final = 20
MOST_PAGES_READ: Final = 100
"""How far a list goes on among questions that the caller may not see."""

_REASONS: Final = ("mayNotBecause", "mayNotApproveBecause")


@dataclass(frozen=True)
class Question:
    """A question that the caller may see, the name of the run at the top, what that is about, and
    the subject that permissions for it go by."""

    row: QuestionRow
    name: str
    about: str
    subject: str

    @property
    def in_conversation(self) -> bool:
        return self.subject == CONVERSATIONS

    @cached_property
    def request(self) -> InteractionRequest:
        return request_of(self.row)

    @cached_property
    def digest(self) -> str:
        return request_digest(self.request)

    def standing(self, state: InteractionView) -> Question:
        """The same question, as its run has it by now."""
        row = replace(
            self.row,
            role=state.role,
            status=state.status.value,
            deadline=state.deadline,
            closed_at=state.closed_at,
        )
        now = replace(self, row=row)
        vars(now).update(request=self.request, digest=self.digest)
        return now


class Questions:
    """For one request of one caller."""

    def __init__(self, services: Services, caller: Caller) -> None:
        self._services = services
        self.caller = caller
        self._runs: dict[str, RunRow | None] = {}
        self._wanting: dict[str, Mapping[str, str]] = {}
        self._people: Sequence[Principal] | None = None

    async def find(self, question_id: str) -> Question:
        row = await self._services.reader.question_row(question_id)
        question = None if row is None else await self._visible(row)
        if question is None:
            raise NotFound(
                msg("there is no {kind} {name}", kind=term("question"), name=question_id)
            )
        return question

    async def listed(
        self, query: QuestionQuery, below: str | None = None
    ) -> tuple[list[Question], str | None]:
        """A page of what the caller may see, the oldest first, and where the next one begins.

        Among many that they may not see it may have few, or none, and yet a next one.
        """
        wanted, found = query.limit, list[Question]()
        last = query.after
        for _ in range(MOST_PAGES_READ):
            rows = await self._services.reader.question_rows(replace(query, after=last, limit=PAGE))
            for row in rows:
                question = await self._visible(row)
                if question is not None and (below is None or is_above(below, row)):
                    if len(found) == wanted:
                        return found, last
                    found.append(question)
                last = row.question_id
            if len(rows) < PAGE:
                return found, None
            # A journal need never make us wait, and others want a turn.
            await asyncio.sleep(0)
        return found, last

    async def _visible(self, row: QuestionRow) -> Question | None:
        root = await self._run(row.root_id)
        if root is None:
            return None
        subject = run_of(root.kind, root.name)
        found = Question(row, root.name, about_row(root), subject)
        return found if self.caller.sees(subject) else None

    async def _run(self, run_id: str) -> RunRow | None:
        if run_id not in self._runs:
            self._runs[run_id] = await self._services.reader.row(run_id)
        return self._runs[run_id]

    async def kind(self, question: Question) -> RunKind:
        """Of the very run that asks, be it below another."""
        run = await self._run(question.row.run_id)
        assert run is not None
        return KINDS[run.kind]

    async def why_not(self, question: Question) -> str | None:
        """Why the caller may not answer, or None."""
        principal, row = self.caller.principal, question.row
        if principal.kind == "service" and "repair_tools" in question.request.context:
            return msg("a service token does not approve repairs: a person must answer this")
        wanting = await self.who_wants(question)
        how = wanting.get(principal.id)
        reason = may_answer(
            principal,
            row.role,
            row.type,
            question.subject,
            started_by=None if how is None else principal.id,
            four_eyes=how is not None,
        )
        return refusal(how) if how is not None and reason == WANTS_IT else reason

    async def why_not_approve(self, question: Question) -> str | None:
        """Why the caller, who may answer, may only refuse, or None."""
        reader, row = self._services.reader, question.row
        by = await repairs.proposer(reader, row.run_id, question.request)
        if by and by == self.caller.principal.id:
            return msg("you proposed this repair: another person must approve it")
        return None

    async def who_wants(self, question: Question) -> Mapping[str, str]:
        """Under four eyes: who wants the call that waits for consent, and how they said so."""
        if not self._under_four_eyes(question):
            return {}
        if question.row.question_id not in self._wanting:
            self._wanting[question.row.question_id] = await self._read_wanting(question.row)
        return self._wanting[question.row.question_id]

    async def _read_wanting(self, row: QuestionRow) -> Mapping[str, str]:
        engine = self._services.app.engine
        if engine.four_eyes.enabled:
            return dict(await engine.four_eyes.known(row.root_id))
        state = await engine.state(row.run_id)
        return wanting_now(state, state.questions[row.question_id], None) or {}

    def _under_four_eyes(self, question: Question) -> bool:
        """Asked for now, or when the question was opened."""
        if question.row.type != InteractionType.TOOL_APPROVAL:
            return False
        asked = self._services.app.engine.four_eyes.enabled
        return asked or asked_under_four_eyes(question.row)

    async def no_approver_left(self, question: Question) -> bool:
        """Whether all whom this server knows, and who could approve the call, want it."""
        if not await self.who_wants(question) or self._services.oidc is not None:
            return False
        if self._people is None:
            self._people = [one.principal() for one in await self._services.tokens.list()]
        wanting = await self.who_wants(question)
        return not any(
            one.id not in wanting and self._may_approve(one, question) for one in self._people
        )

    @staticmethod
    def _may_approve(principal: Principal, question: Question) -> bool:
        row = question.row
        refused = may_answer(
            principal, row.role, row.type, question.subject, started_by=None, four_eyes=False
        )
        return refused is None

    async def refuse_unauthorised(self, question: Question) -> None:
        """NotPermitted unless the caller may answer; refusals are counted, and too many wait."""
        attempts, who = self._services.attempts, self.caller.principal.id
        attempts.check(who, ANSWER)
        reason = await self.why_not(question)
        if reason is not None:
            attempts.failed(who, ANSWER)
            raise NotPermitted(reason)

    async def shown(
        self, question: Question, *, whole: bool = True, language: str = "en"
    ) -> dict[str, Any]:
        """What the API says of it; a draft is told only where one question is shown."""
        row = question.row
        state = await self._state(row) if whole or row.status != InteractionStatus.OPEN else None
        return await self.shown_as(question, state, language, whole=whole)

    async def shown_as(
        self,
        question: Question,
        state: InteractionView | None,
        language: str,
        *,
        whole: bool = True,
    ) -> dict[str, Any]:
        """As `shown`, where its run has been read already."""
        reason = await self._reason(question)
        but = None if reason is not None else await self.why_not_approve(question)
        shown = {
            **card(question.request),
            **_standing(question.row, question.request),
            **_ending(state),
            "about": question.about,
            "digest": question.digest,
            "draft": self._draft(state) if whole else None,
            "reminded": 0 if state is None else state.reminded,
            "mayAnswer": reason is None,
            "mayNotBecause": reason,
            "mayNotApproveBecause": but,
            **await self._four_eyes(question),
            "serverTime": self._services.now(),
        }
        return _in_language(shown, language)

    async def _reason(self, question: Question) -> str | None:
        if question.row.status != InteractionStatus.OPEN:
            return msg("it is {status}", status=term(question.row.status))
        return await self.why_not(question)

    async def _four_eyes(self, question: Question) -> dict[str, Any]:
        """Who may not approve the call, and whether a person is left who may."""
        if question.row.status != InteractionStatus.OPEN or not self._under_four_eyes(question):
            return {"wantedBy": None, "nobodyMayApprove": False}
        wanting = await self.who_wants(question)
        none_left = await self.no_approver_left(question)
        return {"wantedBy": sorted(wanting), "nobodyMayApprove": none_left}

    def _draft(self, state: InteractionView | None) -> dict[str, Any] | None:
        if state is None or state.status is not InteractionStatus.OPEN:
            return None
        draft = state.drafts.get(self.caller.principal.id)
        return None if draft is None else dict(draft)

    async def _state(self, row: QuestionRow) -> InteractionView:
        return await self._services.reader.whole(row)


def _standing(row: QuestionRow, request: InteractionRequest) -> dict[str, Any]:
    default = request.default_option_id
    at_deadline = {"expires": default is None, "optionId": default}
    return {
        "role": row.role,
        "status": row.status,
        "runId": row.run_id,
        "rootId": row.root_id,
        "openedAt": row.opened_at,
        "deadline": row.deadline,
        "atDeadline": None if row.deadline is None else at_deadline,
        "closedAt": row.closed_at,
    }


def _ending(state: InteractionView | None) -> dict[str, Any]:
    open_one = state is None or state.status is InteractionStatus.OPEN
    return {
        "answeredBy": None if open_one or state is None else state.by,
        "selectedOptionId": None if open_one or state is None else state.option_id,
        "data": None if open_one or state is None else dict(state.data),
        "feedback": None if open_one or state is None else state.feedback,
    }


def refuse_other_digest(question: Question, digest: str | None) -> None:
    """A digest says which question was shown: another one is refused."""
    if digest is not None and digest != question.digest:
        raise NotAllowed(
            msg("this is not the question that you were shown: read it again, and answer that")
        )


def refuse_raw_secrets(
    request: InteractionRequest,
    data: Mapping[str, Any],
    feedback: str | None = None,
    option_id: str | None = None,
) -> None:
    """A secret is posted to its own endpoint; everywhere else only its reference is taken.

    Bare words may be a field's value, so where a secret is provided there are none; but where it
    is the only field that is open they are its value, and are sealed like it.
    """
    secrets = [one.name for one in request.form.fields if one.type is FieldType.SECRET]
    raw = [name for name in secrets if name in data and not _is_kept(data[name])]
    if feedback and not data and _provides(request, option_id):
        raw = [] if spoken_secret(request, option_id) else secrets
    if raw:
        place = f"/interactions/{request.request_id}/secrets"
        fields = {
            name: msg(
                "is secret: post it to its own endpoint, {place}, and give the reference",
                place=f"{place}/{name}",
            )
            for name in raw
        }
        each = (msg("{name} {problem}", name=name, problem=fields[name]) for name in raw)
        raise InvalidAnswer(joined("; ", each), fields)


def _is_kept(value: object) -> bool:
    return value in (None, "") or is_reference(value)


def _provides(request: InteractionRequest, option_id: str | None) -> bool:
    taken = [one for one in request.options if one.option_id == option_id]
    return not taken or taken[0].action is InteractionAction.PROVIDE_INFO


def card(request: InteractionRequest, language: str = "en") -> dict[str, Any]:
    """A question as the wire has it, with what each of its options does."""
    wire = request_to_wire(request)
    for option, told in zip(request.options, wire["options"], strict=True):
        told["consequence"] = consequence(request, option)
    return _in_language(wire, language)


def _in_language(shown: dict[str, Any], language: str) -> dict[str, Any]:
    """With its texts in the reader's language; English is what they are in."""
    if language not in LOCALES:
        return shown
    told = _told(shown, language, "title", "message", "details", *_REASONS)
    words = ("label", "description", "inputPrompt", "consequence")
    told["options"] = [_told(one, language, *words) for one in shown["options"]]
    if fields := shown.get("form"):
        asked = ("label", "description")
        told["form"] = {name: _told(one, language, *asked) for name, one in fields.items()}
    return told


def _told(texts: Mapping[str, Any], language: str, *names: str) -> dict[str, Any]:
    given = (name for name in names if texts.get(name) is not None)
    return {**texts, **{name: said(texts[name], language) for name in given}}
