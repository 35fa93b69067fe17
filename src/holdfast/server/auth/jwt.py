"""People who come with a JWT of an OpenID Connect issuer.

What a token must be is settled by the operator, never by the token: its algorithm is one of
ours (all of them with public keys), its issuer and audience are those configured, its times
hold within a minute, and its key is one that the issuer publishes now.

The issuer's keys are fetched when first needed and kept for ten minutes. A key that is not
among them has them fetched again, at most every thirty seconds, so that rotation is seen
and made-up key ids cost the issuer nothing. While the issuer is away its known keys go on
counting for a day; with none the answer is "not now" and not "unauthenticated". While it is
slow, only those wait for it whose keys are not known: one fetches, and all take what it found.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import jwt

from holdfast.errors import IssuerUnavailable, Unauthenticated
from holdfast.i18n.message import msg
from holdfast.server.auth.credentials import RESERVED
from holdfast.server.auth.principal import Grants, Kind, Principal

PUBLIC_KEY_ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
LEEWAY: Final = 60.0
LONGEST_TOKEN: Final = 16 * 1024
LONGEST_SUBJECT: Final = 255
LARGEST_ANSWER: Final = 1024 * 1024
FRESH_SECONDS: Final = 600.0
PAUSE_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 1.0
STALE_SECONDS: Final = 86_400.0
TIMEOUT: Final = httpx.Timeout(5.0)

_CLIENTS: Final = ("client_id", "clientId", "cid", "appid")
_SIGNED_IN: Final = ("sid", "session_state", "auth_time", "nonce", "amr", "uid")
_MACHINES: Final[Mapping[str, tuple[str, ...]]] = {
    "idtyp": ("app",),
    "gty": ("client-credentials", "client_credentials"),
    "grant_type": ("client_credentials",),
}

Keys = Mapping[str | None, Mapping[str, Any]]


@dataclass(eq=False, slots=True)
class Oidc:
    """`roles_claim` may lead into an object (`realm_access.roles`).

    `person_claim` is what only people's tokens have, as `sid` or `idtyp=user`; left out, a
    token is judged by what issuers usually put into those of programs.
    Without `jwks_url` the issuer's own description says where its keys are.
    """

    issuer: str
    audience: str
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    roles_claim: str = "roles"
    grants_claim: str = "holdfast_grants"
    person_claim: str | None = None
    jwks_url: str | None = None
    monotonic: Callable[[], float] = time.monotonic
    _keys: Keys = field(default_factory=dict, init=False, repr=False)
    _fetched: float | None = field(default=None, init=False, repr=False)
    _tried: float | None = field(default=None, init=False, repr=False)
    _trouble: object = field(default="it was not asked yet", init=False, repr=False)
    _renewing: asyncio.Task[None] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        odd = sorted(set(self.algorithms) - PUBLIC_KEY_ALGORITHMS)
        if odd or not self.algorithms:
            allowed = ", ".join(sorted(PUBLIC_KEY_ALGORITHMS))
            raise ValueError(f"algorithms must be among {allowed}; not {', '.join(odd) or 'none'}")
        if not self.issuer or not self.audience:
            raise ValueError("an issuer and an audience must be named")
        for url in filter(None, (self.issuer, self.jwks_url)):
            _check_transport(url)

    async def authenticate(self, token: str) -> Principal:
        """The principal that the token names; Unauthenticated says what is wrong with it."""
        key = await self._key_for(_header(token))
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                issuer=self.issuer,
                audience=self.audience,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise Unauthenticated(_no_good(str(error))) from None
        return self._principal(claims)

    async def _key_for(self, header: Mapping[str, Any]) -> jwt.PyJWK:
        algorithm = header.get("alg")
        if algorithm not in self.algorithms:
            raise Unauthenticated(_no_good(msg("its algorithm is not accepted here")))
        found = _fitting(await self._current_keys(), header)
        if found is None:
            found = _fitting(await self._renewed_keys(), header)
        if found is None:
            raise Unauthenticated(_no_good(msg("its issuer has no such key")))
        try:
            return jwt.PyJWK(dict(found), algorithm)
        except jwt.PyJWTError:
            raise Unauthenticated(_no_good(msg("its key is of another kind"))) from None

    async def _current_keys(self) -> Keys:
        """Those at hand; a request that finds them old has them renewed, and waits a moment."""
        if self._older_than(self._fetched, STALE_SECONDS):
            return await self._renewed_keys()
        if self._older_than(self._fetched, FRESH_SECONDS) and self._begin_to_renew():
            await self._renewed(PATIENCE_SECONDS)
        return self._keys

    async def _renewed_keys(self) -> Keys:
        """As the issuer has them now; if that was tried a moment ago, as they were then."""
        self._begin_to_renew()
        await self._renewed(None)
        if self._older_than(self._fetched, STALE_SECONDS):
            raise _away(self.issuer, self._trouble)
        return self._keys

    def _begin_to_renew(self) -> bool:
        if self._renewing is not None or not self._older_than(self._tried, PAUSE_SECONDS):
            return False
        self._tried = self.monotonic()
        self._renewing = asyncio.create_task(self._renew())
        return True

    async def _renewed(self, patience: float | None) -> None:
        if self._renewing is not None:
            await asyncio.wait({self._renewing}, timeout=patience)

    async def _renew(self) -> None:
        try:
            self._keys = await _fetch(self.issuer, self.jwks_url)
            self._fetched = self.monotonic()
        except (httpx.HTTPError, TimeoutError, ValueError) as error:
            self._trouble = error
        finally:
            self._renewing = None

    def _older_than(self, at: float | None, seconds: float) -> bool:
        return at is None or self.monotonic() - at >= seconds

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        subject = _subject(claims)
        known_as = (claims.get(one) for one in ("name", "preferred_username", "email"))
        return Principal(
            id=f"oidc:{subject}",
            name=_text(next((one for one in known_as if isinstance(one, str) and one), subject)),
            kind=_kind(claims, self.person_claim),
            roles=_roles(_at(claims, self.roles_claim)),
            grants=_grants(_at(claims, self.grants_claim)),
            via="jwt",
            until=float(claims["exp"]),
        )


def _check_transport(url: str) -> None:
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        raise ValueError(
            f"{url} must be https: without it any machine in between could pass for the issuer"
        )


def _header(token: str) -> Mapping[str, Any]:
    try:
        if len(token) > LONGEST_TOKEN:
            raise Unauthenticated(_no_good(msg("it is too long")))
        return jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise Unauthenticated(_no_good(msg("it is not a JWT"))) from None


def _fitting(keys: Keys, header: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The key of that id; a token that names none fits an issuer that has only one."""
    kid = header.get("kid")
    if kid is None and len(keys) == 1:
        return next(iter(keys.values()))
    found = keys.get(kid)
    pinned = found.get("alg") if found is not None else None
    return None if pinned not in (None, header.get("alg")) else found


async def _fetch(issuer: str, jwks_url: str | None) -> Keys:
    async with httpx.AsyncClient(timeout=TIMEOUT, trust_env=False) as client:
        url = jwks_url or await _discovered(client, issuer)
        listed = (await _document(client, url)).get("keys")
    if not isinstance(listed, list):
        raise ValueError(f"{url} lists no keys")
    return {
        one.get("kid"): one
        for one in listed
        if isinstance(one, dict) and one.get("use", "sig") == "sig" and one.get("kty") != "oct"
    }


async def _discovered(client: httpx.AsyncClient, issuer: str) -> str:
    url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    found = await _document(client, url)
    if found.get("issuer") != issuer:
        raise ValueError(f"{url} describes another issuer: {found.get('issuer')!r}")
    keys = found.get("jwks_uri")
    if not isinstance(keys, str):
        raise ValueError(f"{url} names no jwks_uri")
    _check_transport(keys)
    return keys


async def _document(client: httpx.AsyncClient, url: str) -> Mapping[str, Any]:
    async with asyncio.timeout(10), client.stream("GET", url) as response:
        response.raise_for_status()
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > LARGEST_ANSWER:
                raise ValueError(f"{url} answers too much")
    return _as_object(httpx.Response(200, content=bytes(body)).json(), url)


def _as_object(found: Any, url: str) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"{url} does not answer a JSON object")
    return found


def _away(issuer: str, why: object) -> IssuerUnavailable:
    return IssuerUnavailable(f"the keys of {issuer} cannot be had: {why}")


def _subject(claims: Mapping[str, Any]) -> str:
    subject = str(claims["sub"])
    sound = 0 < len(subject) <= LONGEST_SUBJECT and subject.isprintable()
    if not sound or subject in RESERVED:
        raise Unauthenticated(_no_good(msg("its subject is no name")))
    return subject


def _kind(claims: Mapping[str, Any], person_claim: str | None) -> Kind:
    """A client that signed in as itself, with no person behind it, is a service."""
    if person_claim is None:
        return "service" if _is_machine(claims) else "person"
    name, _, value = person_claim.partition("=")
    found = _at(claims, name)
    return "person" if found and value in ("", str(found)) else "service"


def _is_machine(claims: Mapping[str, Any]) -> bool:
    """By the marks of Keycloak, Entra (`idtyp`, `oid`), Okta (`cid`), Auth0 (`gty`), RFC 9068.

    Some of them are in people's tokens too, and those tell of a sign-in.
    """
    itself = claims["sub"] in [claims.get(one) for one in (*_CLIENTS, "azp")]
    marked = any(claims.get(name) in marks for name, marks in _MACHINES.items())
    account = str(claims.get("preferred_username")).startswith("service-account-")
    perhaps = any(claims.get(one) for one in _CLIENTS) or claims["sub"] == claims.get("oid")
    signed_in = any(claims.get(one) for one in _SIGNED_IN)
    return itself or marked or account or (perhaps and not signed_in)


def _text(claim: str) -> str:
    """JSON may hold half a character, which no answer and no journal can."""
    return claim.encode("utf-8", "replace").decode()


def _at(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name, dots and all, or by a way into objects."""
    if path in claims:
        return claims[path]
    found: Any = claims
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _roles(claim: Any) -> frozenset[str]:
    listed = claim.replace(",", " ").split() if isinstance(claim, str) else claim
    if not isinstance(listed, list):
        return frozenset()
    return frozenset(_text(one) for one in listed if isinstance(one, str) and one)


def _grants(claim: Any) -> Grants:
    if not isinstance(claim, Mapping):
        return {}
    return {_text(str(key)): _roles(roles) for key, roles in claim.items()}


def _no_good(reason: str) -> str:
    return msg("this token is not good: {reason}", reason=reason)
