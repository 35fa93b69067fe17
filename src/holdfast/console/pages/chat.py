"""The chat pages: all sessions, the agents to start one with, and one session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from holdfast.console.rendering import show_page, show_part
from holdfast.console.views.chat import RECORDS, ChatView, agents_of, chat_view, chats_page
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.schemas.chats import SessionId
from holdfast.server.schemas.runs import Before
from holdfast.server.services import Served

Records = Annotated[int, Query(ge=1, le=1_000_000)]

router = APIRouter()


@router.get("/chat")
async def chats(
    request: Request, served: Served, caller: Called, before: Before = None
) -> Response:
    await caller.require(served, Permission.READ)
    page = await chats_page(served, caller, before)
    agents = agents_of(served, caller)
    known = bool(served.app.engine.definitions.agent_ids())
    return await show_page(
        request, served, caller, "chats.html", page=page, agents=agents, known=known
    )


@router.get("/parts/chats")
async def chats_part(
    request: Request, served: Served, caller: Called, before: Before = None
) -> Response:
    await caller.require(served, Permission.READ)
    page = await chats_page(served, caller, before)
    return show_part(request, caller, "chats_table.html", page=page)


async def seen_chat(
    session_id: SessionId, served: Served, caller: Called, records: Records = RECORDS
) -> ChatView:
    return await chat_view(served, caller, session_id, records)


Seen = Annotated[ChatView, Depends(seen_chat)]


@router.get("/chat/{session_id}")
async def chat(request: Request, served: Served, caller: Called, view: Seen) -> Response:
    return await show_page(request, served, caller, "chat.html", chat=view)


@router.get("/parts/chat/{session_id}")
async def chat_part(request: Request, caller: Called, view: Seen) -> Response:
    return show_part(request, caller, "chat_live.html", chat=view)
