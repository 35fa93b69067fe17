"""The number beside the inbox, as a part that every page has."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from holdfast.console.showing import show_part, waiting_questions
from holdfast.server.auth.authentication import Called
from holdfast.server.services import Served

router = APIRouter()


@router.get("/parts/inbox-count")
async def inbox_count(request: Request, served: Served, caller: Called) -> Response:
    waiting = await waiting_questions(served, caller)
    return show_part(request, caller, "inbox_count.html", waiting=waiting)
