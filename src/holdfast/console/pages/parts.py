"""Parts that several pages have: a card, which of its fields are asked, the inbox's number."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response

from holdfast.console.rendering import count_waiting, language, show_part
from holdfast.console.views.card import card_of
from holdfast.forms.validation import visible_fields
from holdfast.server.auth.authentication import Called
from holdfast.server.questions import Questions
from holdfast.server.schemas.interactions import QuestionId
from holdfast.server.services import Served

router = APIRouter()


@router.get("/parts/cards/{request_id}")
async def card_part(
    request: Request, request_id: QuestionId, served: Served, caller: Called
) -> Response:
    card = await card_of(served, caller, request_id, language(request))
    return show_part(request, caller, "card.html", card=card)


@router.post("/parts/cards/{request_id}/asked")
async def asked_fields(
    request_id: QuestionId,
    values: Annotated[dict[str, Any], Body(embed=True)],
    served: Served,
    caller: Called,
) -> dict[str, list[str]]:
    """The fields that are visible with these values, by the rules that will judge the answer."""
    question = await Questions(served, caller).find(request_id)
    return {"asked": [field.name for field in visible_fields(question.request.form, values)]}


@router.get("/parts/inbox-count")
async def inbox_count(request: Request, served: Served, caller: Called) -> Response:
    waiting = await count_waiting(served, caller)
    return show_part(request, caller, "inbox_count.html", waiting=waiting)
