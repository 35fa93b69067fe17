"""Tokens, one-time links and console sessions: given out, asked for, taken back.

Issuing, revoking, signing in and out are audited, in the transaction that makes them true. A
link is for signing in once and lasts a quarter of an hour. A session is what the console's
cookie carries; one that was opened with a token, or with a JWT, ends with that.

When a credential was last used is kept beside it, not in it: a use that is noted late must
never bring back what has been revoked meanwhile.

One that was found good is known for a few seconds, so that not every request reads it. Whatever is
taken back is forgotten at once, with all others of its journal; another server of the same store
accepts it until it is told (`forget_known`), and for `KNOWN_SECONDS` at most.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from holdfast.errors import (
    InvalidValue,
    JournalUnavailable,
    NameGone,
    NotFound,
    Unauthenticated,
)
from holdfast.i18n.message import msg
from holdfast.model.rows import Attached, AuditRecord, ExpiringValue
from holdfast.runtime.audit import attach_claimed
from holdfast.runtime.identity import LOCAL
from holdfast.runtime.store import Store
from holdfast.server.auth.credentials import (
    FORMS,
    LINK,
    SESSION,
    TOKEN,
    Credential,
    Form,
    Holder,
    credential_of,
    holder_of,
    kept_as,
    listed,
    new_id,
    who_is,
)
from holdfast.server.auth.principal import ADMIN, Kind, Principal

LINK_SECONDS: Final = 15 * 60.0
SESSION_SECONDS: Final = 12 * 3600.0
USE_SECONDS: Final = 60.0
KNOWN_SECONDS: Final = 5.0
MOST_KNOWN: Final = 10_000
OWNER: Final = "owner"
NEW_LINK: Final = msg("`holdfast serve --link` prints a new one")


OnEnd = Callable[[Collection[str]], None]


class Now(Protocol):
    def now(self) -> float: ...


class _Good(NamedTuple):
    """A credential that was found good, and need not be looked for again before `until`."""

    credential: Credential
    principal: Principal
    until: float


_KNOWN: Final[WeakKeyDictionary[Store, dict[str, _Good]]] = WeakKeyDictionary()
"""By journal, kind and key. A journal's is replaced when something is taken back, so that a look-up
under way cannot put it back."""


def forget_known(store: Store) -> None:
    """Have every credential looked for again: something was taken back, here or elsewhere."""
    _KNOWN.pop(store, None)


def hash_of(secret: str) -> str:
    """The name that a secret is kept under."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Tokens:
    def __init__(
        self,
        store: Store,
        clock: Now,
        session_seconds: float = SESSION_SECONDS,
        on_end: OnEnd = lambda credentials: None,
    ) -> None:
        """`on_end` is told the ids of credentials that were taken back."""
        self._on_end = on_end
        self._store = store
        self._clock = clock
        self._session_seconds = session_seconds
        self._noted: dict[str, float] = {}

    async def issue(
        self,
        name: str,
        kind: Kind = "person",
        roles: Collection[str] = (),
        grants: Mapping[str, Collection[str]] | None = None,
        expires: float | None = None,
        by: str = LOCAL,
        origin: str = "",
    ) -> tuple[Credential, str]:
        """A new API token and its secret, which cannot be shown again."""
        holder = holder_of(name, kind, roles, grants or {})
        if expires is not None and expires <= self._clock.now():
            raise InvalidValue(msg("a token must end later than now"), "expires_at")
        return await self._issue(TOKEN, holder, expires, by, origin)

    async def new_link(
        self,
        name: str = OWNER,
        roles: Collection[str] = (ADMIN,),
        grants: Mapping[str, Collection[str]] | None = None,
        by: str = LOCAL,
        origin: str = "",
    ) -> tuple[Credential, str]:
        """A link's secret: it signs one person in, once, within a quarter of an hour."""
        holder = holder_of(name, "person", roles, grants or {})
        return await self._issue(LINK, holder, self._clock.now() + LINK_SECONDS, by, origin)

    async def _issue(
        self, form: Form, holder: Holder, expires: float | None, by: str, origin: str
    ) -> tuple[Credential, str]:
        made = Credential(
            id=new_id(form),
            form=form.kind,
            name=holder.name,
            who=who_is(holder),
            kind=holder.kind,
            roles=holder.roles,
            grants=holder.grants,
            created_at=self._clock.now(),
            created_by=by,
            expires_at=expires,
        )
        secret = form.new_secret()
        record = self._record(by, f"issued_{form.kind}", made, origin)
        kept = [kept_as(made, hash_of(secret)), *((_opened(made),) if form is TOKEN else ())]
        await self._attach(Attached(audit=[record], kept=kept))
        return made, secret

    async def authenticate(self, secret: str) -> Principal | None:
        """The principal of an API token; None if it is not good."""
        return await self._principal(TOKEN, secret)

    async def session(self, secret: str) -> Principal | None:
        """The principal of a console session; None if it is over."""
        return await self._principal(SESSION, secret)

    async def _principal(self, form: Form, secret: str) -> Principal | None:
        known = _KNOWN.setdefault(self._store, {})
        key = f"{form.kind} {hash_of(secret)}"
        good = known.get(key)
        if good is None or self._clock.now() >= good.until:
            found = await self._find(form, secret)
            if found is None:
                return None
            good = self._good(found)
            if len(known) >= MOST_KNOWN:
                known.clear()
            known[key] = good
        await self._note_use(good.credential)
        return good.principal

    def _good(self, found: Credential) -> _Good:
        ends = inf if found.expires_at is None else found.expires_at
        return _Good(found, found.principal(), min(self._clock.now() + KNOWN_SECONDS, ends))

    async def _find(self, form: Form, secret: str) -> Credential | None:
        if not form.fits(secret):
            return None
        kept = await self._store.kept(form.kind, hash_of(secret), self._clock.now())
        found = credential_of(kept) if kept is not None else None
        if found is None or found.parent is None:
            return found
        token = await self._store.kept(TOKEN.kind, found.parent, self._clock.now())
        return found if token is not None else None

    async def _note_use(self, used: Credential) -> None:
        now = self._clock.now()
        if now - self._noted.get(used.id, now - USE_SECONDS) < USE_SECONDS:
            return
        self._noted[used.id] = now
        kept = ExpiringValue("used", used.id, json.dumps({"at": now}), used.expires_at)
        try:
            await self._store.attach(Attached(kept=[kept]))
        except JournalUnavailable:
            # Reading goes on while nothing can be written; the use is noted another time.
            del self._noted[used.id]

    def why_not(self, secret: str) -> str:
        """Why a token was not accepted."""
        if TOKEN.fits(secret):
            return msg("this token was revoked or has expired: ask an admin for a new one")
        if secret.startswith(TOKEN.prefix):
            return msg("this token is not complete: copy the whole of it")
        return msg("this is no token of this server: they begin with {prefix}", prefix=TOKEN.prefix)

    async def redeem(self, secret: str, origin: str = "") -> tuple[Credential, str]:
        """Sign in with a one-time link: the first use gets a session, any other is refused."""
        if not LINK.fits(secret):
            raise Unauthenticated(
                msg("this link is not complete: copy the whole of it, or {remedy}", remedy=NEW_LINK)
            )
        link = await self._find(LINK, secret)
        if link is not None:
            with suppress(NameGone):  # it was used a moment ago, maybe at another server
                return await self._open(replace(link.principal(), until=None), origin, used=secret)
        raise Unauthenticated(
            msg("this link was used already or has expired: {remedy}", remedy=NEW_LINK)
        )

    async def sign_in(self, principal: Principal, origin: str = "") -> tuple[Credential, str]:
        """A console session for a principal that was authenticated in another way."""
        return await self._open(principal, origin)

    async def _open(
        self, principal: Principal, origin: str, used: str = ""
    ) -> tuple[Credential, str]:
        now = self._clock.now()
        made = Credential(
            id=new_id(SESSION),
            form=SESSION.kind,
            name=principal.name,
            who=principal.id,
            kind=principal.kind,
            roles=principal.roles,
            grants=principal.grants,
            created_at=now,
            created_by=principal.id,
            expires_at=min(now + self._session_seconds, principal.until or inf),
            parent=await self._key_of(principal.via),
        )
        secret = SESSION.new_secret()
        record = self._record(principal.id, "signed_in", made, origin, via=principal.via)
        spent = [(LINK.kind, hash_of(used))] if used else []
        kept = [kept_as(made, hash_of(secret)), _opened(made)]
        await self._store.attach(Attached(audit=[record], kept=kept, spent=spent, at=now))
        return made, secret

    async def sign_out(self, secret: str, origin: str = "") -> None:
        """End a session; harmless when it has ended."""
        found = await self._find(SESSION, secret)
        if found is not None:
            await self._drop(found, hash_of(secret), found.who, "signed_out", origin)

    async def list(self) -> Sequence[Credential]:
        """Every credential that is still good, the oldest first, with its last use."""
        now = self._clock.now()
        used = {kept.key: kept for kept in await self._store.all_kept("used", now)}
        found = [one for form in FORMS for one, _ in await self._kept_of(form)]
        found.sort(key=lambda one: (one.created_at, one.id))
        return [replace(one, last_used_at=_used_at(used.get(one.id))) for one in found]

    async def revoke(self, token_id: str, by: str = LOCAL, origin: str = "") -> Credential:
        """It is not accepted any more, nor is a session that was opened with it."""
        for form in FORMS:
            for one, key in await self._kept_of(form):
                if one.id == token_id:
                    await self._drop(one, key, by, f"revoked_{one.form}", origin)
                    return one
        raise NotFound(
            msg("there is no token {id}: it was revoked, has expired, or never was", id=token_id)
        )

    async def ever_opened(self) -> bool:
        """Whether a token or session was ever made."""
        return await self._store.kept("access", "opened", self._clock.now()) is not None

    async def _key_of(self, token_id: str) -> str | None:
        return next((key for one, key in await self._kept_of(TOKEN) if one.id == token_id), None)

    async def _kept_of(self, form: Form) -> Sequence[tuple[Credential, str]]:
        rows = await self._store.all_kept(form.kind, self._clock.now())
        return [(credential_of(row), row.key) for row in rows]

    async def _drop(self, one: Credential, key: str, by: str, action: str, origin: str) -> None:
        dropped = [(one.form, key), ("used", one.id)]
        record = self._record(by, action, one, origin)
        try:
            await self._attach(Attached(audit=[record], dropped=dropped))
        finally:
            forget_known(self._store)
        self._noted.pop(one.id, None)
        self._on_end([one.id])
        self._on_end([each.id for each, _ in await self._kept_of(SESSION) if each.parent == key])

    async def _attach(self, attached: Attached) -> None:
        """What a request asked for, and that it is served."""
        await attach_claimed(self._store, attached, self._clock.now())

    def _record(
        self, by: str, action: str, one: Credential, origin: str, via: str = ""
    ) -> AuditRecord:
        told = {
            "name": one.name,
            "kind": one.kind,
            "roles": sorted(one.roles),
            "grants": listed(one.grants),
            "expires_at": one.expires_at,
            **({"via": via} if via else {}),
        }
        detail = json.dumps(told, ensure_ascii=False)
        return AuditRecord(self._clock.now(), by, action, one.id, origin=origin, detail=detail)


async def ensure_first_link(tokens: Tokens) -> str | None:
    """The secret of an admin's link, as long as no token or session was ever made.

    Each start prints one, for its own log: also the starts of several servers at once. Who missed a
    link starts again and needs another, so the first made must not be the only one.
    """
    if await tokens.ever_opened():
        return None
    _, secret = await tokens.new_link()
    return secret


def _opened(one: Credential) -> ExpiringValue:
    return ExpiringValue("access", "opened", json.dumps({"at": one.created_at}))


def _used_at(kept: ExpiringValue | None) -> float | None:
    return float(json.loads(kept.body)["at"]) if kept is not None else None
