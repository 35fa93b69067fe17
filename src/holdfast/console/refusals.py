"""Why there is no page: the errors of `problems`, told to a person.

Not signed in, the page says how to get a link. What may not be told stays in the log.
"""

from __future__ import annotations

import logging
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from holdfast.console.rendering import render
from holdfast.errors import HoldfastError
from holdfast.server.guard import identify
from holdfast.server.principal import Principal
from holdfast.server.problems import request_id, status_of

log = logging.getLogger("holdfast")

TOLD: Final = frozenset({401, 403, 404, 422, 503})
"""The statuses that have words of their own; any other says that something went wrong."""


def answer_with_pages(console: FastAPI) -> None:
    console.exception_handler(HoldfastError)(_refused)
    console.exception_handler(HTTPException)(_not_served)
    console.exception_handler(RequestValidationError)(_not_valid)


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


async def _page(request: Request, status: int, detail: str) -> Response:
    principal = None if status == 401 else await _known(request)
    context = {
        "status": status,
        "told": status if status in TOLD else 404 if status < 500 else 500,
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
