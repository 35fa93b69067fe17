"""The audit: who did what, when, from where, seeing which digest; and whether the chain holds."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel, Field

from holdfast.model.rows import AuditEntry
from holdfast.runtime.store import verify
from holdfast.server.auth.authentication import Called
from holdfast.server.auth.principal import Permission
from holdfast.server.routing import new_router
from holdfast.server.services import Served
from holdfast.views.reader import RunReader

router = new_router("access")

PAGE = 1000
SLICE = 200
"""How many entries are verified before others have a turn."""


class Entry(BaseModel):
    """`digest` covers the record, its number and the digest before."""

    number: int = Field(examples=[7])
    at: float
    who: str = Field(examples=["Will Zhang"])
    action: str = Field(examples=["issued_token"])
    subject: str
    run_id: str
    seen: str = Field(description="The digest of what was shown to them")
    origin: str = Field(examples=["127.0.0.1"])
    detail: Any = None
    previous: str
    digest: str


class Entries(BaseModel):
    """`next` is what to ask for as `after`; null at the end."""

    entries: list[Entry]
    next: int | None
    server_time: float


class Verified(BaseModel):
    """`head` is the newest digest: noted elsewhere, it tells of a chain cut short."""

    ok: bool
    entries: int = Field(description="How many there are before anything is wrong")
    head: str
    problem: str | None = None


@router.get("/audit")
async def read_audit(
    served: Served,
    caller: Called,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = 100,
) -> Entries:
    """The audit chain, the oldest first."""
    await caller.require(served, Permission.ADMINISTER)
    found = await served.reader.audit(after, limit)
    following = found[-1].number if len(found) == limit else None
    return Entries(entries=[_entry(one) for one in found], next=following, server_time=served.now())


@router.get("/audit/verify")
async def verify_audit(served: Served, caller: Called) -> Verified:
    """Walk the whole chain and compute every digest again."""
    await caller.require(served, Permission.ADMINISTER)
    return await verified(served.reader)


async def verified(reader: RunReader) -> Verified:
    last: AuditEntry | None = None
    while True:
        page = await reader.audit(last.number if last is not None else 0, SLICE)
        for entry in page:
            problem = verify([entry], last)
            if problem is not None:
                return _result(last, problem)
            last = entry
        if len(page) < SLICE:
            return _result(last, None)
        # A journal need never make us wait, and others want a turn.
        await asyncio.sleep(0)


def _result(last: AuditEntry | None, problem: str | None) -> Verified:
    number, head = (last.number, last.digest) if last is not None else (0, "")
    return Verified(ok=problem is None, entries=number, head=head, problem=problem)


def _entry(entry: AuditEntry) -> Entry:
    told = {name: getattr(entry, name) for name in ("number", "previous", "digest")}
    return Entry(**{**asdict(entry.record), **told, "detail": json.loads(entry.record.detail)})
