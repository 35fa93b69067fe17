"""The language switch: a cookie, and back to where one was."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from holdfast.console.rendering import COOKIE
from holdfast.server.mount import cookie_path, root_of_console

YEAR: Final = 365 * 24 * 3600

_OTHERS: Final = ("cross-site", "same-site")
"""Where a page of another origin leads here: it does not choose for the reader."""

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
    """An address of ours; whatever else a link may carry leads to the start."""
    parts = urlsplit(back)
    ours = not parts.scheme and not parts.netloc and parts.path.startswith("/console/")
    plain = back.isascii() and back.isprintable() and "\\" not in back
    return back if ours and plain else "/console/"
