"""The audit's chain of entries, of a home or of a server, read from its beginning.

Of a home the digests are computed here; a server computes its own, and a head that was noted
before tells whether to believe it.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from holdfast.cli.home_reader import journal_path
from holdfast.cli.shell import Settings
from holdfast.client import Client
from holdfast.model.rows import AuditEntry, AuditRecord
from holdfast.views import homes
from holdfast.views.integrity import broken_link

PAGE = 200

Pages = Callable[[int, int], Awaitable[list[AuditEntry]]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a check; `problem` names the first entry that is broken."""

    count: int
    head: str
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.problem is None,
            "count": self.count,
            "head": self.head,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class AuditLog:
    """`page` has the entries after a number, at most so many."""

    page: Pages

    async def entries(self) -> AsyncIterator[AuditEntry]:
        after = 0
        while found := await self.page(after, PAGE):
            for entry in found:
                yield entry
            after = found[-1].number

    async def newest(self, limit: int, who: str | None, run_id: str | None) -> list[AuditEntry]:
        kept: deque[AuditEntry] = deque(maxlen=limit)
        async for entry in self.entries():
            if who in (None, entry.record.who) and run_id in (None, entry.record.run_id):
                kept.append(entry)
        return list(kept)

    async def verify(self, noted: str | None) -> Verdict:
        last: AuditEntry | None = None
        seen = False
        count, head = 0, ""
        async for entry in self.entries():
            problem = broken_link(entry, last)
            if problem is not None:
                return Verdict(count, head, problem)
            last, count, head = entry, count + 1, entry.digest
            seen = seen or entry.digest == noted
        return Verdict(count, head, None if noted is None or seen else _missing(noted))


@dataclass(frozen=True, slots=True)
class ServerAuditLog(AuditLog):
    """The chain of a server."""

    client: Client

    async def verify(self, noted: str | None) -> Verdict:
        told = await self.client.audit.verify()
        verdict = Verdict(told["entries"], told["head"], told["problem"])
        if verdict.problem is not None or noted is None:
            return verdict
        async for entry in self.entries():
            if entry.digest == noted:
                return verdict
        return replace(verdict, problem=_missing(noted))


def _missing(noted: str) -> str:
    return f"no entry has the digest {noted}: records up to it were changed or taken away"


@asynccontextmanager
async def audit_log(settings: Settings) -> AsyncIterator[AuditLog]:
    if settings.server is not None:
        from holdfast.cli.server_backend import connected

        async with connected(settings.server) as client:

            async def page(after: int, limit: int) -> list[AuditEntry]:
                found = await client.audit.list(after=after, limit=limit)
                return [_entry(one) for one in found["entries"]]

            yield ServerAuditLog(page, client)
        return
    async with homes.reading(journal_path(settings)) as journal:
        yield AuditLog(journal.audit)


def _entry(told: Mapping[str, Any]) -> AuditEntry:
    record = AuditRecord(
        at=told["at"],
        who=told["who"],
        action=told["action"],
        subject=told["subject"],
        run_id=told["run_id"],
        seen=told["seen"],
        origin=told["origin"],
        detail=json.dumps(told["detail"]),
    )
    return AuditEntry(told["number"], record, told["previous"], told["digest"])
