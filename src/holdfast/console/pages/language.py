"""The language switch: sets a cookie and leads back to the page."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from holdfast.console.rendering import COOKIE
from holdfast.server.mount import cookie_path, root_of_console

YEAR: Final = 365 * 24 * 3600

_OTHERS: Final = ("cross-site", "same-site")
"""A link on a page of another origin does not change the reader's language."""

router = APIRouter()


@router.get("/language/{language}")
async def choose_language(
    request: Request, language: Literal["en", "zh"], back: str = ""
) -> Response:
    root = root_of_console(request)
    answer = RedirectResponse(root + within_console(back), 303)
    if request.headers.get("sec-fetch-site") not in _OTHERS:
        answer.set_cookie(
            COOKIE, language, max_age=YEAR, path=cookie_path(root), httponly=True, samesite="lax"
        )
    return answer


def within_console(back: str) -> str:
    """`back` if it is a path of the console, else the console's start."""
    parts = urlsplit(back)
    ours = not parts.scheme and not parts.netloc and parts.path.startswith("/console/")
    plain = back.isascii() and back.isprintable() and "\\" not in back
    return back if ours and plain else "/console/"
