"""The service that takes answers to questions, whichever run asked them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from holdfast.core.interactions.filling import spoken_secret
from holdfast.core.run.state import RunState
from holdfast.errors import (
    AuthorError,
    CallerError,
    InvalidAnswer,
    NotFound,
    TooLate,
)
from holdfast.forms.secrets import is_reference
from holdfast.forms.validation import refuse_overlong
from holdfast.forms.values import Refusal, clean, is_empty
from holdfast.i18n.message import msg, term
from holdfast.interactions.handlers import Handlers
from holdfast.interactions.repairs import RepairAnswers
from holdfast.journal.port import NOTHING, Attached, ExpiringValue, QuestionRow
from holdfast.journal.vault import SecretScope, Vault, sealed_answer
from holdfast.language.strict import strict_json, strict_text
from holdfast.model import commands as c
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import (
    InteractionAction,
    InteractionOption,
    InteractionRequest,
    InteractionResponse,
)
from holdfast.model.rows import request_of
from holdfast.model.run import is_below
from holdfast.model.values import Json
from holdfast.runtime.audit import records_of_entering
from holdfast.runtime.engine import Engine
from holdfast.runtime.identity import LOCAL

KEPT_AHEAD: Final = 3600.0
"""Seconds that a secret waits for the answer it belongs to."""


def is_above(run_id: str, row: QuestionRow) -> bool:
    """Whether a run asked this question, or works through the run that did."""
    return run_id == row.root_id or is_below(row.run_id, run_id)


def _secret_field(request: InteractionRequest, name: str) -> Field:
    field = next((one for one in request.form.fields if one.name == name), None)
    if field is None:
        raise _misfit(name, msg("the form has no such field"))
    if field.type is not FieldType.SECRET:
        raise _misfit(name, msg("this is no secret: give it with the answer"))
    return field


def _misfit(name: str, why: str) -> InvalidAnswer:
    return InvalidAnswer(msg("{place}: {problem}", place=name, problem=why), {name: why})


def _secret_given(
    request: InteractionRequest, response: InteractionResponse
) -> InteractionResponse:
    """Bare words that are a secret are sealed as one: feedback is recorded as it was said."""
    if not response.feedback or response.data:
        return response
    field = spoken_secret(request, response.selected_option_id)
    if field is None:
        return response
    return replace(response, data={field.name: response.feedback}, feedback=None)


def _custom_option(request: InteractionRequest, option_id: str | None) -> InteractionOption | None:
    """The option of this id, where a handler decides about it."""
    for option in request.options:
        if option.option_id == option_id:
            return option if option.action is InteractionAction.CUSTOM else None
    return None


def _is_about_a_repair(request: InteractionRequest) -> bool:
    return isinstance(request.context.get("repair_tools"), list)


class InteractionService:
    def __init__(self, engine: Engine, handlers: Handlers, vault: Vault) -> None:
        self.engine = engine
        self.repairs = RepairAnswers(engine)
        self.handlers = handlers
        self.vault = vault

    async def answer(self, response: InteractionResponse, *, by: str = LOCAL) -> RunState:
        """Answer any run's question; the first valid answer wins."""
        row = await self._row(response.request_id)
        return await self.answer_row(row, request_of(row), response, by=by)

    async def answer_row(
        self,
        row: QuestionRow,
        request: InteractionRequest,
        response: InteractionResponse,
        *,
        by: str = LOCAL,
    ) -> RunState:
        """As `answer`, where the question has been read already."""
        if response.session_id and not is_above(response.session_id, row):
            message = msg(
                "{question} is asked by {id}: answer it there, or above",
                question=response.request_id,
                id=row.run_id,
            )
            raise InvalidAnswer(
                message, {"session_id": msg("must be {id}, or left out", id=row.run_id)}
            )
        response = _secret_given(request, response)
        given = strict_json(dict(response.data)) if response.data != {} else {}
        by = strict_text(by, "by")
        data, kept = await self._sealed(request.form, given, row, by)
        named, feedback = response.selected_option_id, response.feedback
        if feedback is not None:
            feedback = strict_text(feedback, "feedback")
        resolution = None
        custom = _custom_option(request, named) if row.status == "open" else None
        if custom is not None:
            said = InteractionResponse(row.question_id, row.run_id, named, data, feedback)
            resolution = await self.handlers.resolve(request, custom, said)
        if resolution is not None:
            # What a handler puts into secret fields is sealed too.
            known, more = await self._sealed(request.form, resolution.data, row, by)
            resolution, kept = replace(resolution, data=known), kept + more
        command = c.Answer(row.question_id, by, named, data, feedback, resolution)
        if _is_about_a_repair(request):
            return await self.repairs.answer(row.run_id, request, command)
        attached = Attached(kept=kept) if kept else NOTHING
        return await self.engine.submit(row.run_id, command, attached=attached)

    async def _sealed(
        self, form: Form, data: Mapping[str, Json], row: QuestionRow, by: str
    ) -> tuple[Mapping[str, Json], tuple[ExpiringValue, ...]]:
        """Data as an answer may carry it, and what is kept with it; only for a form with secrets
        the vault is asked."""
        if any(field.type is FieldType.SECRET for field in form.fields):
            scope = SecretScope(row.question_id, row.root_id, by)
            sealed = await sealed_answer(self.vault, form, data, scope, row.status)
            return sealed.data, sealed.kept
        if row.status == "open":
            refuse_overlong(form, data)
        return dict(data), ()

    async def keep_secret(
        self, question_id: str, field: str, value: str, *, by: str = LOCAL
    ) -> str:
        """Take a secret ahead of its answer, which then names the reference that this returns.

        It is kept for an hour, and for good with the answer, which must be the same person's.
        """
        row = await self._row(question_id)
        now = self.engine.clock.now()
        if row.status != "open" or (row.deadline is not None and now >= row.deadline):
            status = msg("too late for") if row.status == "open" else term(row.status)
            raise TooLate(
                msg("{title!r} is {status}; nothing was changed", title=row.title, status=status)
            )
        request = request_of(row)
        asked = _secret_field(request, field)
        given = strict_json(value)
        if is_reference(given) or is_empty(asked, given):
            raise _misfit(field, msg("enter the secret itself"))
        try:
            text = str(clean(asked, given))
        except Refusal as refusal:
            raise _misfit(field, str(refusal)) from None
        scope = SecretScope(question_id, row.root_id, strict_text(by, "by"))
        reference, kept = self.vault.enter(scope, field, text, now + KEPT_AHEAD)
        audit = records_of_entering(field, request, row.run_id, now)
        await self.engine.journal.attach(Attached(audit, (kept,)))
        return reference

    async def answer_many(
        self, question_ids: Sequence[str], response: InteractionResponse, *, by: str = LOCAL
    ) -> dict[str, CallerError | AuthorError | None]:
        """The same answer to exactly these questions; what became of each."""
        outcomes: dict[str, CallerError | AuthorError | None] = {}
        for question_id in dict.fromkeys(question_ids):
            try:
                await self.answer(replace(response, request_id=question_id), by=by)
                outcomes[question_id] = None
            except (CallerError, AuthorError) as error:
                outcomes[question_id] = error
        return outcomes

    async def keep_draft(
        self, question_id: str, data: Mapping[str, Any], *, by: str = LOCAL
    ) -> None:
        row = await self._row(question_id)
        command = c.KeepDraft(question_id, strict_text(by, "by"), strict_json(dict(data)))
        await self.engine.submit(row.run_id, command)

    async def draft(self, question_id: str, *, by: str = LOCAL) -> Mapping[str, Json]:
        """What this person has filled in so far."""
        row = await self._row(question_id)
        state = await self.engine.state(row.run_id)
        return state.questions[question_id].drafts.get(strict_text(by, "by"), {})

    async def _row(self, question_id: str) -> QuestionRow:
        row = await self.engine.journal.question(question_id)
        if row is None:
            raise NotFound(
                msg("there is no {kind} {name}", kind=term("question"), name=question_id)
            )
        return row
