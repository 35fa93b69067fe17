"""The console: what Holdfast does, to look at and to answer, in a browser.

Pages are rendered here, on the server, from what the server's own services say. What changes
by itself is a *part*: a template that its page includes and that is also served alone, so
that the browser fetches it anew when it hears of an event (`static/live.js`). Whatever a
person does goes to the REST API as JSON, like every other client's.

    server = create(app, settings)
    install(server)
"""

from __future__ import annotations

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.middleware.gzip import GZipMiddleware

from holdfast.console import assets, counts, language
from holdfast.console.pages import cards as pages_cards
from holdfast.console.pages import chat as pages_chat
from holdfast.console.pages import inbox as pages_inbox
from holdfast.console.pages import plans as pages_plans
from holdfast.console.pages import run as pages_run
from holdfast.console.pages import runs as pages_runs
from holdfast.console.refusals import answer_refused_links, answer_with_pages, ask_to_sign_in
from holdfast.console.showing import note_cursor
from holdfast.server.mount import CONSOLE, root_of

PAGES = (pages_runs, pages_run, pages_inbox, pages_chat, pages_plans)
PARTS = (assets, language, counts, pages_cards)


def install(server: FastAPI) -> None:
    """Serve the console under /console; `/` leads there."""
    console = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    console.state = server.state
    console.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=5)
    answer_with_pages(console)
    answer_refused_links(server)
    server.state.ask_to_sign_in = ask_to_sign_in
    for page in PAGES:
        console.include_router(page.router, dependencies=[Depends(note_cursor)])
    for part in PARTS:
        console.include_router(part.router)
    for way in ("/", CONSOLE):
        server.add_api_route(way, _start, include_in_schema=False)
    server.mount(CONSOLE, console)


async def _start(request: Request) -> RedirectResponse:
    return RedirectResponse(f"{root_of(request)}{CONSOLE}/", 303)
