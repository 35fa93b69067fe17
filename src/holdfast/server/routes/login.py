"""Signing in and out, and the tokens of others.

A one-time link is opened in a browser. Opened by a person's own hand (typed, or from a
terminal: the browser says `Sec-Fetch-Site: none`) it signs in at once. Whatever else fetches
it, a preview in a chat, a prefetch, a page that wants a person signed in under a name they
do not expect, gets a page with one button and uses nothing up. Where there is no console to go
on to, a page says who is signed in.
"""

from __future__ import annotations

from html import escape
from typing import Annotated, Any, Final
from urllib.parse import parse_qs, urlencode

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from holdfast.errors import NotPermitted, Unauthenticated
from holdfast.i18n.message import msg
from holdfast.server.auth.authentication import (
    COOKIE,
    LOGIN,
    Called,
    bearer,
    client_of,
    identify,
    over_tls,
    same_origin,
)
from holdfast.server.auth.credentials import LINK, Credential, listed
from holdfast.server.auth.principal import Kind, Permission, Principal, permitted
from holdfast.server.mount import CONSOLE, address_of, cookie_path, has_console, root_of
from holdfast.server.openapi import SIGNING_IN
from holdfast.server.routing import new_router
from holdfast.server.services import Served, Services

router = new_router("access")

DAY: Final = 86_400.0
FORM: Final = "application/x-www-form-urlencoded"

_FRAME: Final = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Holdfast</title>
<meta name="viewport" content="width=device-width"></head>
<body><main><h1>Holdfast</h1>
{}
</main></body>
</html>
"""
PAGE: Final = _FRAME.format("""\
<p>This link signs you in to {here}, in this browser. It works once.</p>
<p lang="zh-CN">此链接将在当前浏览器中登录 {here}，只能使用一次。</p>
<form method="post" action="{action}"><input type="hidden" name="token" value="{token}">
<button>Sign in · 登录</button></form>""")
SIGNED_IN: Final = _FRAME.format("""\
<p>You are signed in to {here} as {name}. Go back to the page that you came from; this server has
no pages of its own.</p>
<p lang="zh-CN">您已以 {name} 的身份登录 {here}。请回到原来的页面；此服务器没有自己的页面。</p>""")


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", from_attributes=True)


Roles = Annotated[list[str], BeforeValidator(sorted)]


class SignIn(Model):
    """`token` is a one-time link's, an API token, or a JWT of the configured issuer."""

    token: str = Field(min_length=1, max_length=16_384, examples=["link_…"])


class Me(Model):
    """Who is asking, as the server knows them."""

    id: str = Field(examples=["Will Zhang"])
    name: str = Field(examples=["Will Zhang"])
    kind: Kind
    roles: list[str] = Field(examples=[["operator", "viewer"]])
    grants: dict[str, list[str]] = Field(examples=[{"apply_*": ["approver"]}])
    permissions: list[Permission]
    csrf_token: str = Field("", description="What a console's form carries; empty for a bearer")


class Wanted(Model):
    """Whom a credential is for: roles everywhere, and roles for single plans, agents, all
    conversations (`conversation:*`), or tools of plans (`tool:pay`)."""

    name: str = Field(min_length=1, max_length=100, examples=["nightly-import"])
    roles: list[str] = Field(default_factory=list, max_length=50, examples=[["operator"]])
    grants: dict[str, list[str]] = Field(
        default_factory=dict, max_length=200, examples=[{"apply_*": ["approver"]}]
    )


class WantedToken(Wanted):
    kind: Kind = "person"
    expires_in_days: float | None = Field(90.0, gt=0, le=3650, description="null: it never expires")


class Shown(Model):
    """A token, a session or an unused link; its secret is nowhere."""

    id: str = Field(examples=["tok_3b0b4c5d6e7f8091"])
    form: str = Field(description="token, session or link", examples=["token"])
    name: str
    kind: Kind
    roles: Roles
    grants: dict[str, Roles]
    created_at: float
    created_by: str
    expires_at: float | None
    last_used_at: float | None


class ShownTokens(Model):
    tokens: list[Shown]
    server_time: float


class Issued(Shown):
    """The only answer that ever has the secret."""

    token: str = Field(examples=["hf_…"])


class IssuedLink(Issued):
    url: str = Field(examples=["http://127.0.0.1:8420/login?token=link_…"])


@router.get(
    "/login",
    response_class=HTMLResponse,
    responses={303: {"description": "Signed in"}, **SIGNING_IN},
)
async def open_link(
    request: Request, served: Served, token: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """A one-time link as it is opened in a browser."""
    if not token and not has_console(request):
        return _told_signed_in(request, (await identify(request)).principal)
    if request.method == "GET" and _by_hand(request):
        return await _signed_in(request, served, token)
    ask = getattr(request.app.state, "ask_to_sign_in", _asked_plainly)
    answer: Response = ask(request, token)
    return answer


def _asked_plainly(request: Request, token: str) -> Response:
    """Where there is no console to ask in its own style."""
    action, here = f"{root_of(request)}/login", address_of(request)
    return HTMLResponse(PAGE.format(here=escape(here), action=escape(action), token=escape(token)))


def _told_signed_in(request: Request, principal: Principal) -> Response:
    """Where there is no console that a link could lead to."""
    here, name = escape(address_of(request)), escape(principal.name)
    return HTMLResponse(SIGNED_IN.format(here=here, name=name))


def _by_hand(request: Request) -> bool:
    said = request.headers
    return (
        said.get("sec-fetch-site") == "none"
        and said.get("sec-fetch-mode") == "navigate"
        and "sec-purpose" not in said
        and "purpose" not in said
    )


@router.post(
    "/login",
    response_model=Me,
    responses={303: {"description": "Signed in by the form of a page"}, **SIGNING_IN},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                kind: {"schema": SignIn.model_json_schema()} for kind in ("application/json", FORM)
            },
        }
    },
)
async def sign_in(request: Request, served: Served) -> Response:
    """Sign in to the console; the answer sets a cookie that scripts cannot read."""
    if _foreign(request, served):
        raise NotPermitted(msg("a page of another origin may not sign you in"))
    form = request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM
    token = _posted(parse_qs((await request.body()).decode()) if form else await request.json())
    if form:
        return await _signed_in(request, served, token)
    made, secret = await _session(request, served, token)
    answer = Response(_me(made.principal()).model_dump_json(), media_type="application/json")
    return _with_cookie(answer, secret, request, served)


def _foreign(request: Request, served: Services) -> bool:
    """A program has no origin to tell; a browser always tells one of these two."""
    told = "origin" in request.headers or "sec-fetch-site" in request.headers
    return told and not same_origin(request, served.settings.secure_cookies)


def _posted(body: Any) -> str:
    if isinstance(body, dict) and isinstance(body.get("token"), list):
        body = {**body, "token": body["token"][0]}
    try:
        return SignIn.model_validate(body).token
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise RequestValidationError(
            [{**one, "loc": ("body", *one["loc"])} for one in found]
        ) from None


async def _session(request: Request, served: Services, token: str) -> tuple[Credential, str]:
    origin = client_of(request)
    try:
        if token.startswith(LINK.prefix):
            return await served.tokens.redeem(token, origin)
        return await served.tokens.sign_in(await bearer(served, token), origin)
    except Unauthenticated:
        served.attempts.failed(origin, LOGIN)
        raise


async def _signed_in(request: Request, served: Services, token: str) -> Response:
    _, secret = await _session(request, served, token)
    after = f"{CONSOLE}/" if has_console(request) else "/login"
    answer = RedirectResponse(f"{root_of(request)}{after}", 303)
    return _with_cookie(answer, secret, request, served)


def _with_cookie(answer: Response, secret: str, request: Request, served: Services) -> Response:
    """Lax: it comes along when a person follows a link from another site. Nothing is changed by
    a GET, and authentication asks for our own origin wherever something is.
    """
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(served.settings.session_hours * 3600),
        path=cookie_path(root_of(request)),
        secure=over_tls(request, served.settings.secure_cookies),
        httponly=True,
        samesite="lax",
    )
    return answer


@router.post("/logout", status_code=204)
async def sign_out(request: Request, served: Served, caller: Called) -> Response:
    """End this session; with a bearer token there is none to end."""
    answer = Response(status_code=204)
    if caller.cookie:
        await served.tokens.sign_out(request.cookies[COOKIE], caller.origin)
        answer.delete_cookie(
            COOKIE,
            path=cookie_path(root_of(request)),
            secure=over_tls(request, served.settings.secure_cookies),
            httponly=True,
            samesite="lax",
        )
    return answer


@router.get("/me")
async def who_am_i(caller: Called) -> Me:
    """Who is asking, as the server knows them, and what they may do."""
    return _me(caller.principal, caller.csrf)


def _me(principal: Principal, csrf: str = "") -> Me:
    return Me(
        id=principal.id,
        name=principal.name,
        kind=principal.kind,
        roles=sorted(principal.roles),
        grants=listed(principal.grants),
        permissions=sorted(permitted(principal.roles)),
        csrf_token=csrf,
    )


@router.get("/tokens")
async def list_tokens(served: Served, caller: Called) -> ShownTokens:
    """Every token, session and unused link that is still good."""
    await caller.require(served, Permission.ADMINISTER)
    found = [Shown.model_validate(one) for one in await served.tokens.list()]
    return ShownTokens(tokens=found, server_time=served.now())


@router.post("/tokens", status_code=201)
async def issue_token(wanted: WantedToken, served: Served, caller: Called) -> Issued:
    """A new API token; its secret is in this answer and never again."""
    await caller.require(served, Permission.ADMINISTER)
    _refuse_to_become_a_person(caller.principal, wanted.kind)
    days = wanted.expires_in_days
    made, secret = await served.tokens.issue(
        wanted.name,
        wanted.kind,
        wanted.roles,
        wanted.grants,
        None if days is None else served.now() + days * DAY,
        by=caller.principal.id,
        origin=caller.origin,
    )
    return Issued(**_shown(made), token=secret)


@router.post("/tokens/link", status_code=201)
async def issue_link(
    wanted: Wanted, request: Request, served: Served, caller: Called
) -> IssuedLink:
    """A link that signs one person in, once, within a quarter of an hour."""
    await caller.require(served, Permission.ADMINISTER)
    _refuse_to_become_a_person(caller.principal, "person")
    made, secret = await served.tokens.new_link(
        wanted.name, wanted.roles, wanted.grants, by=caller.principal.id, origin=caller.origin
    )
    url = f"{address_of(request)}/login?{urlencode({'token': secret})}"
    return IssuedLink(**_shown(made), token=secret, url=url)


def _refuse_to_become_a_person(principal: Principal, kind: Kind) -> None:
    if principal.kind == "service" and kind == "person":
        raise NotPermitted(
            msg("a service does not issue credentials for people: it could approve with them")
        )


@router.delete("/tokens/{token_id}", status_code=204)
async def revoke_token(token_id: str, served: Served, caller: Called) -> None:
    """End a token, session or link; sessions opened with a token end with it."""
    await caller.require(served, Permission.ADMINISTER)
    await served.tokens.revoke(token_id, by=caller.principal.id, origin=caller.origin)


def _shown(one: Credential) -> dict[str, Any]:
    return Shown.model_validate(one).model_dump()
