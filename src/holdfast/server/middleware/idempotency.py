"""A request that changes something is carried out once, however often it is sent.

The client names the request (`Idempotency-Key`); the name counts for one principal, method
and path. With the command's own commit goes a *claim* under that name, so a request that took
effect is known even when the server fell right after; when the answer is there it takes the
claim's place and is given again, byte for byte. A claim without an answer is answered from the
run as it is now, by what the route says with `answered_again`.

Of two servers of one store that are sent the same request at once, one claims it: the commit of the
other fails as a whole, with all that the request was to do, and it answers as if it had come later.

The same person with other roles is answered nothing from before: what was done for an admin's
token is not told to a viewer's of the same name, nor done a second time.

Where a claim is on disk and the route knows how to answer again, no client waits until the answer
is kept: a server that falls right then answers from the claim.

A refusal changed nothing and is not kept: the same request is judged anew.

An answer may hold what is shown only once, a token's plaintext for one. It is kept under the
vault's key, and the fingerprint that tells one body from another is keyed too.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import Context
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from fastapi import Request, Response

from holdfast.errors import HoldfastError, InvalidValue, NameTaken, NotAllowed, OperatorError
from holdfast.i18n.message import msg
from holdfast.model.rows import Attached, ExpiringValue
from holdfast.runtime.audit import CLAIM_SECONDS, REQUEST
from holdfast.runtime.clock import Clock
from holdfast.runtime.identity import Claim
from holdfast.runtime.store import Store
from holdfast.server.auth.principal import Principal

if TYPE_CHECKING:
    from holdfast.server.services import Services

log = logging.getLogger("holdfast")

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")
_NONCE: Final = 12
LAG_SECONDS: Final = 0.05
ANSWER_SECONDS: Final = 2.0
ANSWER_LOOKS: Final = 20
"""How long, and in how many looks, the answer of another server is waited for that has claimed a
request."""

Serve: TypeAlias = Callable[[Claim], Awaitable[Response]]
Again: TypeAlias = "Callable[[Claimed, Request, Services], Awaitable[Response]]"

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Claimed:
    """A request that took effect, and whose answer was lost."""

    run_id: str
    version: int


def answered_again(again: Again) -> Callable[[Endpoint], Endpoint]:
    """How a route answers a request that took effect before, from the run as it is now."""

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.__dict__["answers_again"] = again
        return endpoint

    return mark


def way_to_answer_again(endpoint: Callable[..., Any]) -> Again | None:
    found: Again | None = getattr(endpoint, "answers_again", None)
    return found


class Keys(Protocol):
    """A vault, of which this uses the keys."""

    def derived(self, purpose: str) -> bytes: ...


class WriteBehind:
    """What may reach the disk a little later than the answer that it belongs to.

    Until it is written it is known here: the difference shows only after a crash in between.
    Everything that gathers within `LAG_SECONDS` is one commit.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unwritten: dict[str, ExpiringValue] = {}
        self._writing: asyncio.Task[None] | None = None

    def known(self, key: str, now: float) -> ExpiringValue | None:
        """What was put under a key and is not on disk yet."""
        kept = self._unwritten.get(key)
        return kept if kept is None or kept.expires_at is None or kept.expires_at > now else None

    def put(self, kept: ExpiringValue) -> None:
        self._unwritten[kept.key] = kept
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_soon(), context=Context())

    async def close(self) -> None:
        """Write what has not been written; nothing more may come."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait((self._writing,))
        await self.flush()

    async def flush(self) -> None:
        """Everything that was put before is on disk, or could not be written."""
        kept = tuple(self._unwritten.values())
        if not kept:
            return
        try:
            await self._store.attach(Attached(kept=kept))
        except HoldfastError as error:
            log.warning("answers to %d requests could not be kept: %s", len(kept), error)
        self._forget(kept)

    def _forget(self, written: Iterable[ExpiringValue]) -> None:
        for one in written:
            if self._unwritten.get(one.key) is one:
                del self._unwritten[one.key]

    async def _write_soon(self) -> None:
        try:
            while self._unwritten:
                await asyncio.sleep(LAG_SECONDS)
                await self.flush()
        finally:
            self._writing = None


class Requests:
    """The requests that were served, by name."""

    def __init__(self, store: Store, clock: Clock, vault: Keys) -> None:
        self._store = store
        self._clock = clock
        self._vault = vault
        self.late = WriteBehind(store)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def once(
        self,
        request: Request,
        who: Principal,
        serve: Serve,
        again: Again | None,
        services: Services,
    ) -> Response:
        """Serve a request under its key if it has not been served yet; else answer as before."""
        key = request.headers[HEADER]
        claim = Claim(_name(key, who.id, request), await self._fingerprint(request, who))
        lock = self._locks.setdefault(claim.key, asyncio.Lock())
        async with lock:
            kept = await self._kept(claim)
            if kept is None:
                try:
                    response = await serve(claim)
                    await self._keep(claim, response, again)
                    return response
                except NameTaken as taken:
                    if (taken.kind, taken.key) != (REQUEST, claim.key):
                        raise
                    kept = await self._kept(claim)
                    if kept is None:
                        raise
            known = await self._known(kept, claim, again)
            answer = self._given_before(known, claim)
            return answer or await _answered_now(known, request, again, services)

    async def _kept(self, claim: Claim) -> ExpiringValue | None:
        now = self._clock.now()
        return self.late.known(claim.key, now) or await self._store.kept(REQUEST, claim.key, now)

    async def _fingerprint(self, request: Request, who: Principal) -> str:
        """Of what was sent, and of everything that it is judged by."""
        powers = who.powers.encode("utf-8", "backslashreplace")
        sent = b"\0".join((powers, request.scope["query_string"], await request.body()))
        return hmac.digest(self._fingerprints, sent, "sha256").hex()

    async def _known(
        self, kept: ExpiringValue, claim: Claim, again: Again | None
    ) -> Mapping[str, Any]:
        """What is known of a request that took effect. Where only its answer will do, it is waited
        for: another server of the store, or of this application, may be about to give it."""
        known = self._of_this(json.loads(kept.body), claim)
        if again is None:
            for _ in range(ANSWER_LOOKS):
                if "answer" in known:
                    break
                await asyncio.sleep(ANSWER_SECONDS / ANSWER_LOOKS)
                kept = await self._kept(claim) or kept
                known = json.loads(kept.body)
        return known

    def _of_this(self, known: Mapping[str, Any], claim: Claim) -> Mapping[str, Any]:
        if not hmac.compare_digest(str(known["fingerprint"]), claim.fingerprint):
            raise InvalidValue(
                msg("named another request before, or yours with other roles: take a new one"),
                HEADER,
            )
        return known

    def _given_before(self, known: Mapping[str, Any], claim: Claim) -> Response | None:
        return self._opened(claim, known["answer"]) if "answer" in known else None

    async def _keep(self, claim: Claim, response: Response, again: Again | None) -> None:
        """The command is on disk already: an answer that cannot be kept is given all the same.

        NameTaken where nothing was claimed so far, and another server was quicker.
        """
        body = getattr(response, "body", None)
        if not isinstance(body, bytes) or not 200 <= response.status_code < 400:
            return
        members = {"fingerprint": claim.fingerprint, "answer": self._sealed(claim, response, body)}
        expires = self._clock.now() + CLAIM_SECONDS
        kept = ExpiringValue(REQUEST, claim.key, json.dumps(members), expires)
        if again is not None and claim.held:
            self.late.put(kept)
            return
        attached = Attached(kept=(kept,))
        if not claim.held:
            attached = Attached(claimed=(kept,), at=expires - CLAIM_SECONDS)
        try:
            await self._store.attach(attached)
        except OperatorError as error:
            log.warning("the answer to a request could not be kept: %s", error)

    @cached_property
    def _fingerprints(self) -> bytes:
        return self._vault.derived("fingerprints of requests")

    @cached_property
    def _cipher(self) -> AESGCM:
        return AESGCM(self._vault.derived("answers to requests"))

    def _sealed(self, claim: Claim, response: Response, body: bytes) -> str:
        plain = json.dumps(
            {
                "status": response.status_code,
                "headers": dict(response.headers),
                "body": b64encode(body).decode(),
            }
        )
        nonce = os.urandom(_NONCE)
        sealed = self._cipher.encrypt(nonce, plain.encode(), claim.key.encode())
        return b64encode(nonce + sealed).decode()

    def _opened(self, claim: Claim, answer: str) -> Response:
        sealed = b64decode(answer)
        try:
            plain = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], claim.key.encode())
        except InvalidTag:
            raise NotAllowed(
                msg("this request took effect before, and its answer was kept under another key")
            ) from None
        given = json.loads(plain)
        response = Response(b64decode(given["body"]), given["status"])
        response.headers.update(given["headers"])
        response.headers[REPLAYED] = "true"
        return response


async def _answered_now(
    known: Mapping[str, Any], request: Request, again: Again | None, services: Services
) -> Response:
    """It took effect and its answer was lost: tell how that stands now."""
    if again is None:
        raise NotAllowed(
            msg("this request took effect before, and its answer was lost: look what it did")
        )
    claimed = Claimed(str(known.get("run_id", "")), int(known.get("version", 0)))
    response = await again(claimed, request, services)
    response.headers[REPLAYED] = "true"
    return response


def _name(key: str, who: str, request: Request) -> str:
    if not _KEY.fullmatch(key):
        raise InvalidValue(
            msg("{least} to {most} visible ASCII characters", least=1, most=200), HEADER
        )
    parts = (who, request.method, request.scope["path"], key)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()
