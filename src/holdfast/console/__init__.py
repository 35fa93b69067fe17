"""The console: the pages that people watch runs and answer questions on.

Pages are rendered on the server. What changes by itself is a *part*: a template that its page
includes and that is also served alone, so that the browser fetches it again when it hears of an
event (`static/live.js`). Everything a person does goes to the REST API as JSON.

    server = create(app, settings)
    install(server)
"""

from __future__ import annotations

from fastapi import Depends, FastAPI, Request
from fastapi.responses import RedirectResponse
from starlette.middleware.gzip import GZipMiddleware

from holdfast.console import assets
from holdfast.console.pages import chat, inbox, language, parts, plans, run, runs
from holdfast.console.pages.errors import answer_refused_links, answer_with_pages, ask_to_sign_in
from holdfast.console.rendering import note_cursor
from holdfast.server.mount import CONSOLE, root_of

PAGES = (runs, run, inbox, chat, plans)
PARTS = (assets, language, parts)


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
    for path in ("/", CONSOLE):
        server.add_api_route(path, _start, include_in_schema=False)
    server.mount(CONSOLE, console)


async def _start(request: Request) -> RedirectResponse:
    return RedirectResponse(f"{root_of(request)}{CONSOLE}/", 303)
