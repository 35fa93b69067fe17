"""From a template to a page: one environment per language and place, nothing unescaped or missing.

A page is a template that extends `shell.html`; a part is a template of its own that pages
include and that is also served alone. Both are rendered with `render`.

What a browser follows by itself begins with `{{ root }}`, so that a console under a prefix leads
to itself. What a module fetches (`data-part`, `data-path`) does not: it goes through `place.js`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from holdfast.console import icons
from holdfast.console.assets import address, imported_by
from holdfast.console.words import Words, language_of
from holdfast.i18n import spoken
from holdfast.i18n.languages import LANGUAGES
from holdfast.language.display import clip, visible
from holdfast.server.auth.principal import Principal
from holdfast.server.mount import root_of_console
from holdfast.server.services import services

COOKIE: Final = "lang"
_ROLES: Final = ("admin", "author", "approver", "operator", "viewer")


def language(request: Request) -> str:
    accepted = request.headers.get("accept-language", "")
    return language_of(request.cookies.get(COOKIE), accepted)


def words_for(request: Request) -> Words:
    return Words(language(request))


@lru_cache(maxsize=32)
def environment(language: str, root: str) -> Environment:
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
        root=root,
        asset=lambda name: root + address(name),
        modules=lambda *names, soon=(): modules(root, names, soon),
        icon=icons.icon,
        condition=icons.condition,
        query=query,
    )
    units = words("js.units").split()
    made.filters.update(
        seen=seen,
        spoken=lambda text: seen(spoken.said(text, language)),
        labelled=lambda text: spoken.labelled(text, language),
        clipped=clip,
        iso=iso,
        span=lambda took: span(took, units),
    )
    return made


def modules(root: str, names: Sequence[str], soon: Sequence[str]) -> Markup:
    """The modules of a page, and all that they import, told at once.

    Else the browser would find each import only when the one before it is there. What a page
    may import `soon` is fetched with the rest.
    """
    found = [one for one in imported_by((*names, *soon)) if one not in names]
    hint = Markup('<link rel="modulepreload" href="{}">')
    script = Markup('<script type="module" src="{}"></script>')
    hints = [hint.format(root + address(one)) for one in found]
    return Markup("\n").join([*hints, *(script.format(root + address(one)) for one in names)])


def render(
    request: Request,
    template: str,
    principal: Principal | None,
    context: Mapping[str, Any],
    status: int = 200,
) -> HTMLResponse:
    """The template in the reader's language, for this principal."""
    root = root_of_console(request)
    path = request.url.path.removeprefix(unquote(root))
    made = environment(language(request), root).get_template(template)
    text = made.render(
        context,
        principal=principal,
        role=leading_role(principal),
        path=path,
        here=path + query(**request.query_params),
        server=f"{request.url.scheme}://{request.url.netloc}{root}",
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
