"""From a template to a page: one environment per language, nothing unescaped, nothing missing.

A page is a template that extends `shell.html`; a part is a template of its own that pages
include and that is also served alone. Both are rendered with `render`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from holdfast.console import icons
from holdfast.console.assets import address
from holdfast.console.words import LANGUAGES, Words, language_of
from holdfast.core.drawing.display import clip, visible
from holdfast.server.principal import Principal
from holdfast.server.services import services

COOKIE: Final = "lang"
_ROLES: Final = ("admin", "author", "approver", "operator", "viewer")


def language(request: Request) -> str:
    accepted = request.headers.get("accept-language", "")
    return language_of(request.cookies.get(COOKIE), accepted)


def words_for(request: Request) -> Words:
    return Words(language(request))


@cache
def environment(language: str) -> Environment:
    made = Environment(
        loader=PackageLoader("holdfast.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words = Words(language)
    made.globals.update(
        t=words,
        said=words.starting,
        language=language,
        languages=LANGUAGES,
        asset=address,
        icon=icons.icon,
        condition=icons.condition,
        query=query,
    )
    units = words("js.units").split()
    made.filters.update(seen=seen, clipped=clip, iso=iso, span=lambda took: span(took, units))
    return made


def render(
    request: Request,
    template: str,
    principal: Principal | None,
    context: Mapping[str, Any],
    status: int = 200,
) -> HTMLResponse:
    """The template in the reader's language, for this principal."""
    made = environment(language(request)).get_template(template)
    text = made.render(
        context,
        principal=principal,
        role=leading_role(principal),
        path=request.url.path,
        here=request.url.path + query(**request.query_params),
        server=f"{request.url.scheme}://{request.url.netloc}",
        cursor=getattr(request.state, "cursor", ""),
        now=services(request).now(),
    )
    return HTMLResponse(text, status, {"Vary": "Accept-Language, Cookie"})


def leading_role(principal: Principal | None) -> str:
    """The role that says most about somebody; none where they have grants only."""
    held = principal.roles if principal else frozenset()
    return next((role for role in _ROLES if role in held), "")


def seen(text: object) -> str:
    """Text of people and models: line breaks stay, whatever else is hidden shows."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in str(text).split("\n"))


def query(**members: object) -> str:
    """A query of what is given; nothing at all gives an empty text."""
    given = {key: value for key, value in members.items() if value not in (None, "", ())}
    return f"?{urlencode(given, doseq=True)}" if given else ""


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: float, units: Sequence[str]) -> str:
    """How long something took, in its two largest units; the browser's clock says the same."""
    s, minute, hour, day = units
    n = max(0, round(seconds))
    if n < 60:
        return f"{n} {s}"
    if n < 3600:
        return f"{n // 60} {minute} {n % 60} {s}"
    if n < 86400:
        return f"{n // 3600} {hour} {n // 60 % 60} {minute}"
    return f"{n // 86400} {day} {n // 3600 % 24} {hour}"
