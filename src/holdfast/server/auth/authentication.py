"""Authentication: who is calling, by what they carry, and how often that may be refused.

Two things prove who a caller is: `Authorization: Bearer …` (an API token, or a JWT of the
configured issuer) and the console's cookie. A bearer is judged alone: one that is not good is
refused even beside a good cookie. No other header names a caller.

All tabs of a browser share the cookie, and another person may sign in in one of them. A page
therefore says for whom it was made (`Holdfast-Person`), and what it sends is refused, not done
or kept in the name of the other one.

A browser sends the cookie by itself, also for a page that is not ours. A request that changes
something and comes with a cookie must therefore come from our own origin. A bearer is never
sent unasked and needs no such proof.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Annotated, Final, Protocol, TypeAlias
from urllib.parse import unquote, urlsplit

from fastapi import Depends, Request

from holdfast.errors import NotAllowed, NotFound, NotPermitted, TooMany, Unauthenticated
from holdfast.i18n.catalogue import preferred
from holdfast.i18n.message import msg, term
from holdfast.i18n.terms import role_name
from holdfast.runtime.identity import Claim, Identity, acting
from holdfast.server.auth.credentials import TOKEN, csrf_token
from holdfast.server.auth.principal import (
    Permission,
    Principal,
    may,
    may_somewhere,
    named,
    role_for,
    run_of,
)

if TYPE_CHECKING:
    from holdfast.server.services import Services

COOKIE: Final = "holdfast"
PERSON: Final = "holdfast-person"
"""The header with the id, percent-encoded, of the principal for whom a page was made."""
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_CALLER: Final = "holdfast.caller"

LOGIN: Final = "login"
ANSWER: Final = "answer"


Key: TypeAlias = tuple[str, str]
"""The kind of an attempt, and the neighbourhood of the client."""


@dataclass(frozen=True, slots=True)
class Limit:
    refusals: int
    seconds: float


LIMITS: Final[Mapping[str, Limit]] = {LOGIN: Limit(10, 60.0), ANSWER: Limit(30, 60.0)}


@dataclass(frozen=True, slots=True)
class Caller:
    """`origin` is the address the request came from; `csrf` what this session's forms carry;
    `language` what its `Accept-Language` asks for."""

    principal: Principal
    origin: str = ""
    cookie: bool = False
    csrf: str = ""
    language: str = "en"

    def may(self, permission: Permission, subject: str | None) -> bool:
        return may(self.principal, permission, subject)

    def sees(self, subject: str) -> bool:
        """Whether a plan or agent exists for them."""
        return self.may(Permission.READ, subject)

    async def require(
        self,
        services: Services,
        permission: Permission,
        run_id: str | None = None,
        *,
        subject: str | None = None,
    ) -> None:
        """Raise unless permitted for a run, for a subject, or everywhere.

        A run that the caller may not see does not exist for them. READ with nothing named is
        for lists: a caller who may read anything passes, and the list shows what they may see.
        """
        if run_id is not None:
            subject = await self.subject_of(services, run_id)
        if subject is None and permission is Permission.READ:
            allowed = may_somewhere(self.principal, permission)
        else:
            allowed = self.may(permission, subject)
        if not allowed:
            raise NotPermitted(_lacking(permission, subject))

    async def subject_of(self, services: Services, run_id: str) -> str:
        """What a run is judged by; NotFound where the caller may not see it."""
        row = await services.reader.root(run_id)
        if row is None or not self.may(Permission.READ, run_of(row.kind, row.name)):
            raise NotFound(msg("there is no {kind} {name}", kind=term("run"), name=run_id))
        return run_of(row.kind, row.name)


def _lacking(permission: Permission, subject: str | None) -> str:
    if not subject:
        return msg(
            "your roles do not permit you to {permission}: ask an admin for the role {role}",
            permission=term(permission),
            role=role_name(role_for(permission)),
        )
    return msg(
        "your roles do not permit you to {permission} for {name}: ask an admin for the role {role}",
        permission=term(permission),
        name=named(subject),
        role=role_name(role_for(permission)),
    )


PROOFS: Final = {
    "token": {"type": "http", "scheme": "bearer"},
    "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
}
"""What proves who a caller is, as OpenAPI says it; any one of them is enough."""


async def identify(request: Request) -> Caller:
    """Who is asking, or Unauthenticated; asked once for a request however often it is called."""
    known = request.scope.get(_CALLER)
    if not isinstance(known, Caller):
        known = request.scope[_CALLER] = await _identify(request)
        request.state.person = known.principal.id
    return known


async def identify_again(request: Request) -> Caller:
    """As `identify`, for a request that lasts: a caller who was known may not be any more."""
    return await _identify(request)


Called = Annotated[Caller, Depends(identify)]


async def _identify(request: Request) -> Caller:
    services: Services = request.app.state.services
    header = request.headers.get("authorization")
    if header is not None:
        who = await _by_bearer(services, request, header)
        return Caller(who, client_of(request), language=_language(request))
    secret = request.cookies.get(COOKIE)
    if secret is None:
        raise Unauthenticated(msg("say who you are: Authorization: Bearer <token>, or sign in"))
    return await _by_session(services, request, secret)


async def _by_bearer(services: Services, request: Request, header: str) -> Principal:
    scheme, _, token = header.partition(" ")
    try:
        if scheme.lower() != "bearer":
            raise Unauthenticated(msg("Authorization must be: Bearer <token>"))
        return await bearer(services, token.strip())
    except Unauthenticated:
        services.attempts.failed(client_of(request), LOGIN)
        raise


async def bearer(services: Services, token: str) -> Principal:
    """The principal of a token or JWT; Unauthenticated says what is wrong with it."""
    oidc = services.oidc
    if oidc is not None and not token.startswith(TOKEN.prefix) and token.count(".") == 2:
        return await oidc.authenticate(token)
    principal = await services.tokens.authenticate(token)
    if principal is None:
        raise Unauthenticated(services.tokens.why_not(token))
    return principal


async def _by_session(services: Services, request: Request, secret: str) -> Caller:
    principal = await services.tokens.session(secret)
    if principal is None:
        raise Unauthenticated(msg("you are signed out: sign in again"))
    if request.method not in SAFE and not same_origin(request, services.settings.secure_cookies):
        raise NotPermitted(
            msg(
                "a page of another origin may not do this in your name; programs use "
                "Authorization: Bearer <token>"
            )
        )
    person = unquote(request.headers.get(PERSON, ""))
    if person and person != principal.id:
        raise NotAllowed(
            msg(
                "this page was opened by {person}, and {who} is signed in by now: nothing was "
                "done; load the page again",
                person=person,
                who=principal.id,
            )
        )
    return Caller(principal, client_of(request), True, csrf_token(secret), _language(request))


def _language(request: Request) -> str:
    accepted = request.headers.get("accept-language")
    return preferred(accepted) if accepted else "en"


def over_tls(request: Request, secure_cookies: bool) -> bool:
    """Whether the browser came over TLS, as far as the operator or a trusted proxy says so."""
    return secure_cookies or request.url.scheme == "https"


def client_of(request: Request) -> str:
    return request.client.host if request.client else ""


def same_origin(request: Request, secure: bool) -> bool:
    """As the browser itself says; a page cannot set either header."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = urlsplit(request.headers.get("origin", ""))
    schemes = {request.url.scheme, *(("https",) if secure else ())}
    return origin.scheme in schemes and origin.netloc == request.headers.get("host", "").lower()


def acting_as(caller: Caller, claim: Claim | None = None) -> AbstractContextManager[None]:
    """What is done within is put down to the caller."""
    who = caller.principal
    return acting(Identity(who=who.id, origin=caller.origin, via=who.via, claim=claim))


class Now(Protocol):
    def now(self) -> float: ...


class Attempts:
    """How often a client may be refused: a sliding window for each client and kind of attempt.

    Only refusals count, never work. What was refused too often is answered with TooMany until
    enough of it lies far enough back. A good token always passes, whatever others at the same
    address have tried: tokens are too long to be guessed, and no client can lock out another.

    `elsewhere` is what other servers of the same store have refused (`SharedRefusals`).

    Memory is bounded: each key holds at most as many times as its limit, and beyond `keys` keys
    the one that was refused longest ago is forgotten.
    """

    def __init__(
        self, clock: Now, limits: Mapping[str, Limit] = LIMITS, keys: int = 10_000
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._keys = keys
        self._refused: OrderedDict[Key, deque[float]] = OrderedDict()
        self.refusals = 0
        self.elsewhere: Mapping[Key, Sequence[float]] = {}

    def __len__(self) -> int:
        return len(self._refused)

    def failed(self, who: str, kind: str) -> None:
        """Count a refusal; TooMany when there were too many already."""
        self.check(who, kind)
        key = _key(who, kind)
        self._refused.setdefault(key, deque()).append(self._clock.now())
        self._refused.move_to_end(key)
        self.refusals += 1
        if len(self._refused) > self._keys:
            self._refused.popitem(last=False)

    def check(self, who: str, kind: str) -> None:
        """TooMany while a client must wait."""
        if not (self._refused or self.elsewhere):
            return
        limit, key = self._limits[kind], _key(who, kind)
        times: Sequence[float] = self._recent(key, limit)
        if key in self.elsewhere:
            since = self._clock.now() - limit.seconds
            times = sorted([*times, *(at for at in self.elsewhere[key] if at > since)])
            times = times[-limit.refusals :]
        if len(times) < limit.refusals:
            return
        wait = max(times[0] + limit.seconds - self._clock.now(), 0.0)
        raise TooMany(msg("refused too often: wait {n:.0f} seconds and try again", n=wait), wait)

    @property
    def longest(self) -> float:
        """For how many seconds a refusal counts at most."""
        return max(limit.seconds for limit in self._limits.values())

    def latest(self, most: int) -> Mapping[Key, Sequence[float]]:
        """When the clients that were refused last were refused here."""
        found: dict[Key, Sequence[float]] = {}
        for key in [key for key, _ in zip(reversed(self._refused), range(most), strict=False)]:
            if times := self._recent(key, self._limits[key[0]]):
                found[key] = tuple(times)
        return found

    def _recent(self, key: Key, limit: Limit) -> deque[float]:
        times = self._refused.get(key, deque())
        while times and times[0] <= self._clock.now() - limit.seconds:
            times.popleft()
        if not times:
            self._refused.pop(key, None)
        return times


def _key(who: str, kind: str) -> Key:
    return kind, neighbourhood(who)


def neighbourhood(who: str) -> str:
    """One household has a whole IPv6 network of 64 bits."""
    try:
        address = ip_address(who)
    except ValueError:
        return who
    if not isinstance(address, IPv6Address):
        return who
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), 64), strict=False))
