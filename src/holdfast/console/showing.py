"""A page or a part for somebody who is signed in: their name, and what waits for an answer."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse

from holdfast.console.rendering import render
from holdfast.journal.port import QuestionQuery
from holdfast.server.auth.authentication import Caller
from holdfast.server.questions import Questions
from holdfast.server.services import Served, Services

MOST_COUNTED: Final = 99
_OPEN: Final = QuestionQuery(status=frozenset({"open"}), limit=MOST_COUNTED + 1)


async def note_cursor(request: Request, served: Served) -> None:
    """Where the feed stands before a page reads anything, so that it misses nothing after."""
    request.state.cursor = str(await served.journal.last_commit())


async def show_page(
    request: Request, served: Services, caller: Caller, template: str, **context: Any
) -> HTMLResponse:
    """A template that extends `shell.html`."""
    waiting = await waiting_questions(served, caller)
    return render(request, template, caller.principal, {**context, "waiting": waiting})


def show_part(request: Request, caller: Caller, template: str, **context: Any) -> HTMLResponse:
    """A template of its own, as pages include it."""
    return render(request, template, caller.principal, context)


async def waiting_questions(served: Services, caller: Caller) -> int:
    """How many questions wait that the caller may see; beyond the most, nobody counts on."""
    found, _ = await Questions(served, caller).listed(_OPEN)
    return len(found)
