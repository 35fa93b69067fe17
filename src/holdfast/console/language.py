"""The language switch: a cookie, and back to where one was."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from holdfast.console.rendering import COOKIE

YEAR: Final = 365 * 24 * 3600

router = APIRouter()


@router.get("/language/{language}")
async def choose_language(language: Literal["en", "zh"], back: str = "") -> Response:
    answer = RedirectResponse(within_console(back), 303)
    answer.set_cookie(COOKIE, language, max_age=YEAR, path="/", httponly=True, samesite="lax")
    return answer


def within_console(back: str) -> str:
    """An address of ours; whatever else a link may carry leads to the start."""
    parts = urlsplit(back)
    ours = not parts.scheme and not parts.netloc and parts.path.startswith("/console/")
    plain = back.isascii() and back.isprintable() and "\\" not in back
    return back if ours and plain else "/console/"
