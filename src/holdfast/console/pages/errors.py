"""Error pages: what `server.problems` answers programs, as pages for people.

The page for 401 says how to get a link. Details of 5xx stay in the log.

The link that signs in belongs to the server, but people open it. If it is refused, a browser gets
one of these pages; programs get a problem as everywhere.
"""

from __future__ import annotations

import logging
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from holdfast.console.rendering import render
from holdfast.errors import HoldfastError, TooMany, Unauthenticated
from holdfast.server.auth.authentication import identify
from holdfast.server.auth.principal import Principal
from holdfast.server.mount import CONSOLE, root_of
from holdfast.server.problems import refusal, request_id, status_of
from holdfast.server.routes.login import open_link, sign_in

log = logging.getLogger("holdfast")

TOLD: Final = frozenset({401, 403, 404, 422, 429, 503})
"""The statuses with texts of their own; others are shown as 404 or 500."""


def answer_with_pages(console: FastAPI) -> None:
    console.exception_handler(HoldfastError)(_refused)
    console.exception_handler(HTTPException)(_not_served)
    console.exception_handler(RequestValidationError)(_not_valid)


def answer_refused_links(server: FastAPI) -> None:
    for kind in (Unauthenticated, TooMany):
        server.exception_handler(kind)(_not_let_in)


def ask_to_sign_in(request: Request, token: str) -> Response:
    """The page with a button, for a link that was not opened by navigation from the address bar."""
    return render(_as_the_start(request), "link.html", None, {"token": token})


async def _not_let_in(request: Request, error: HoldfastError) -> Response:
    """Answers a refused link; a reader who is signed in already is led to the console."""
    plain = refusal(request, error)
    if request.scope.get("endpoint") not in (open_link, sign_in) or not _reads_pages(request):
        return plain
    if await _known(request):
        return RedirectResponse(f"{root_of(request)}{CONSOLE}/", 303)
    bare = request.method == "GET" and not request.query_params.get("token")
    told = "link" if plain.status_code == 401 and not bare else plain.status_code
    answer = await _page(_as_the_start(request), plain.status_code, "", told)
    if "retry-after" in plain.headers:
        answer.headers["retry-after"] = plain.headers["retry-after"]
    return answer


def _reads_pages(request: Request) -> bool:
    """Whether this is a navigation; over plain HTTP browsers do not send the mode."""
    said = request.headers
    navigates = said.get("sec-fetch-mode", "navigate") == "navigate"
    return navigates and "text/html" in said.get("accept", "")


def _as_the_start(request: Request) -> Request:
    """The request with the console's start as its address: pages repeat it, and it has a secret."""
    root = request.scope.get("root_path", "") + CONSOLE
    start = {"root_path": root, "path": f"{root}/", "query_string": b""}
    return Request({**request.scope, **start})


async def _refused(request: Request, error: HoldfastError) -> Response:
    status, _ = status_of(error)
    if status >= 500:
        log.error("%s %s: %s", request_id(request), request.url.path, error)
    return await _page(request, status, str(error) if status < 500 else "")


async def _not_served(request: Request, error: HTTPException) -> Response:
    return await _page(request, error.status_code, "")


async def _not_valid(request: Request, error: RequestValidationError) -> Response:
    names = (str(one["loc"][1]) for one in error.errors())
    return await _page(request, 422, ", ".join(dict.fromkeys(names)))


async def _page(
    request: Request, status: int, detail: str, told: int | str | None = None
) -> Response:
    principal = None if status == 401 else await _known(request)
    context = {
        "status": status,
        "told": told or (status if status in TOLD else 404 if status < 500 else 500),
        "detail": detail,
        "request_id": request_id(request),
        "waiting": 0,
    }
    return render(request, "refused.html", principal, context, status)


async def _known(request: Request) -> Principal | None:
    try:
        return (await identify(request)).principal
    except HoldfastError:
        return None
