"""The desk at which questions are answered, whichever run asked them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.language.strict import strict_json, strict_text
from holdfast.core.run.state import RunState
from holdfast.errors import AuthorError, CallerError, InvalidAnswer, NotFound
from holdfast.handlers import Handlers
from holdfast.journal.port import QuestionRow
from holdfast.model import commands as c
from holdfast.model.interaction import InteractionResponse
from holdfast.model.values import Json
from holdfast.plans import LOCAL
from holdfast.runtime.engine import Engine
from holdfast.runtime.views import request_of


def is_above(run_id: str, row: QuestionRow) -> bool:
    """Whether a run asked this question, or works through the run that did."""
    return run_id == row.root_id or f"{row.run_id}.".startswith(f"{run_id}.")


class QuestionDesk:
    def __init__(self, engine: Engine, handlers: Handlers) -> None:
        self.engine = engine
        self.handlers = handlers

    async def answer(self, response: InteractionResponse, *, by: str = LOCAL) -> RunState:
        """Answer any run's question; the first valid answer wins."""
        row = await self._row(response.request_id)
        if response.session_id and not is_above(response.session_id, row):
            message = f"{response.request_id} is asked by {row.run_id}: answer it there, or above"
            raise InvalidAnswer(message, {"session_id": f"must be {row.run_id}, or left out"})
        clean = InteractionResponse(
            response.request_id,
            row.run_id,
            response.selected_option_id,
            strict_json(dict(response.data)),
            None if response.feedback is None else strict_text(response.feedback, "feedback"),
        )
        resolution = None
        if row.status == "open":
            resolution = await self.handlers.resolve(request_of(row), clean)
        command = c.Answer(
            clean.request_id,
            strict_text(by, "by"),
            clean.selected_option_id,
            clean.data,
            clean.feedback,
            resolution,
        )
        return await self.engine.submit(row.run_id, command)

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
            raise NotFound(f"there is no question {question_id}")
        return row
