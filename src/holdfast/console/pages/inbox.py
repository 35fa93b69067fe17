"""The inbox page: the queue, and the card of the chosen question."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import StringConstraints

from holdfast.console.rendering import language, show_page, show_part
from holdfast.console.views.card import card_of
from holdfast.console.views.inbox import SHOWN, Filters, cards_of, queue_of
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.routes.interactions import NAME
from holdfast.server.schemas.interactions import QuestionId
from holdfast.server.schemas.runs import RunName
from holdfast.server.services import Served

Tab = Literal["pending", "answered", "expired", "withdrawn"]
QuestionName = Annotated[str, StringConstraints(pattern=NAME)]

router = APIRouter()


def filters(
    tab: Tab = "pending",
    role: Annotated[str, Query(max_length=200)] = "",
    run: RunName | Literal[""] = "",
) -> Filters:
    return Filters(tab, role or None, run or None)


Filtered = Annotated[Filters, Depends(filters)]


@router.get("/inbox")
async def inbox(request: Request, served: Served, caller: Called, asked: Filtered) -> Response:
    await caller.require(served, Permission.READ)
    queue = await queue_of(served, caller, asked)
    return await show_page(request, served, caller, "inbox.html", queue=queue, card=None, chosen="")


@router.get("/inbox/{request_id}")
async def inbox_question(
    request: Request, request_id: QuestionId, served: Served, caller: Called, asked: Filtered
) -> Response:
    card = await card_of(served, caller, request_id, language(request))
    queue = await queue_of(served, caller, asked)
    return await show_page(
        request, served, caller, "inbox.html", queue=queue, card=card, chosen=request_id
    )


@router.get("/parts/inbox")
async def inbox_part(
    request: Request,
    served: Served,
    caller: Called,
    asked: Filtered,
    chosen: Annotated[str, Query(pattern=f"{NAME}|^$")] = "",
) -> Response:
    await caller.require(served, Permission.READ)
    queue = await queue_of(served, caller, asked)
    return show_part(request, caller, "inbox_queue.html", queue=queue, chosen=chosen)


@router.get("/parts/answering")
async def answering_part(
    request: Request,
    served: Served,
    caller: Called,
    ids: Annotated[list[QuestionName], Query(min_length=1, max_length=SHOWN, alias="id")],
    option: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The cards that one answer is about to be given to."""
    cards = await cards_of(served, caller, ids, option)
    gone = len(set(ids)) - len(cards)
    return show_part(request, caller, "inbox_answering.html", cards=cards, gone=gone, option=option)
