"""Renders templates: pages, which extend `shell.html`, and parts, which pages include.

A part is also served alone. There is one environment per language and root; everything is
escaped, and a missing name is an error.

Links begin with `{{ root }}`, so that they work where the console is mounted under a prefix. What
a module fetches (`data-part`, `data-path`) does not: it goes through `place.js`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from holdfast.console import icons, repair_words, words
from holdfast.console.assets import address, imported_by, texts_in
from holdfast.console.formatting import iso, query, seen
from holdfast.i18n.catalogue import LANGUAGES, LOCALES, catalogue, said
from holdfast.i18n.message import Message, span
from holdfast.i18n.terms import role_name
from holdfast.language.display import clip, unquoted
from holdfast.model.rows import QuestionQuery
from holdfast.server.auth.authentication import Caller
from holdfast.server.auth.principal import Principal
from holdfast.server.mount import root_of_console
from holdfast.server.questions import Questions
from holdfast.server.services import Served, Services, services

COOKIE: Final = "lang"
MOST_COUNTED: Final = 99
_OPEN: Final = QuestionQuery(status=frozenset({"open"}), limit=MOST_COUNTED + 1)
_ROLES: Final = ("admin", "author", "approver", "operator", "viewer")


def language(request: Request) -> str:
    accepted = request.headers.get("accept-language", "")
    return words.language_of(request.cookies.get(COOKIE), accepted)


@lru_cache(maxsize=32)
def environment(language: str, root: str) -> Environment:
    def read(value: Any) -> Any:
        """A message in the reader's language, any other value as it is."""
        return said(value, language) if isinstance(value, Message) else value

    def spoken(text: str) -> str:
        return seen(said(text, language))

    made = Environment(
        loader=PackageLoader("holdfast.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=read,
    )
    made.globals.update(
        t=words.t,
        nt=words.nt,
        pt=words.pt,
        words=words,
        repair_words=repair_words,
        language=language,
        languages=LANGUAGES,
        root=root,
        asset=lambda name: root + address(name),
        modules=lambda *names, soon=(): modules(root, names, soon, language),
        icon=icons.icon,
        condition=icons.condition,
        query=query,
        spoken=spoken,
    )
    made.filters.update(
        seen=lambda text: seen(read(text)),
        spoken=spoken,
        unquoted=unquoted,
        role=role_name,
        labelled=lambda text: said(text, language),
        clipped=lambda text, columns: clip(read(text), columns),
        iso=iso,
        span=span,
    )
    return made


def modules(root: str, names: Sequence[str], soon: Sequence[str], language: str) -> Markup:
    """The modules of a page, with preload hints for all that they import, and with the texts that
    they say in the reader's language.

    Without hints the browser would fetch imports one after another. What a page may import
    `soon` is fetched with the rest.
    """
    found = [one for one in imported_by((*names, *soon)) if one not in names]
    hint = Markup('<link rel="modulepreload" href="{}">')
    script = Markup('<script type="module" src="{}"></script>')
    hints = [hint.format(root + address(one)) for one in found]
    spoken = catalogue(language) if language in LOCALES else {}
    ids = {one: words.text_id(one) for one in sorted(texts_in(tuple(names)))}
    told = {one: spoken[name] for one, name in ids.items() if name in spoken}
    brought = Markup('<script type="application/json" id="words">{}</script>')
    scripts = [script.format(root + address(one)) for one in names]
    return Markup("\n").join([brought.format(htmlsafe_json_dumps(told)), *hints, *scripts])


def render(
    request: Request,
    template: str,
    principal: Principal | None,
    context: Mapping[str, Any],
    status: int = 200,
) -> HTMLResponse:
    """The template in the reader's language."""
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
    """The most powerful role of a principal; empty if it has grants only."""
    held = principal.roles if principal else frozenset()
    return next((role for role in _ROLES if role in held), "")


async def note_cursor(request: Request, served: Served) -> None:
    """Records the feed's position before a page reads anything, so that it misses no event."""
    request.state.cursor = str(await served.reader.last_position())


async def show_page(
    request: Request, served: Services, caller: Caller, template: str, **context: Any
) -> HTMLResponse:
    waiting = await count_waiting(served, caller)
    return render(request, template, caller.principal, {**context, "waiting": waiting})


def show_part(request: Request, caller: Caller, template: str, **context: Any) -> HTMLResponse:
    return render(request, template, caller.principal, context)


async def count_waiting(served: Services, caller: Caller) -> int:
    """How many questions wait that the caller may see, at most `MOST_COUNTED` + 1."""
    found, _ = await Questions(served, caller).listed(_OPEN)
    return len(found)
