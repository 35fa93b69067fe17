"""The shared journal: a PostgreSQL database that any number of processes append to.

`postgres_writer` says which appends share a commit, `postgres_appends` has their statements,
`postgres_sealing` the order of all commits and the audit chain, `postgres_hints` what processes
tell each other, `postgres_migrations` the schema. A run's version stands in its row, and every
append moves it on from the version that it was decided on: that is all that orders appends.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from holdfast.errors import JournalUnavailable, OperatorError
from holdfast.journal import postgres_removal
from holdfast.journal.condition import Figures
from holdfast.journal.database import row_crc
from holdfast.journal.port import (
    ANY_QUESTION,
    ANY_RUN,
    NOT_OPEN,
    NOTHING,
    Append,
    Attached,
    AuditEntry,
    Committed,
    Drive,
    ExpiringValue,
    OutboxMessage,
    QuestionQuery,
    QuestionRow,
    Record,
    Removal,
    RunQuery,
    RunRow,
    Snapshot,
    StoredDefinition,
    check,
    check_names,
)
from holdfast.journal.postgres_appends import SQL
from holdfast.journal.postgres_batches import snapshot_crc
from holdfast.journal.postgres_condition import figures
from holdfast.journal.postgres_database import AT_START, Connections, load_statements, place_of
from holdfast.journal.postgres_hints import Hints
from holdfast.journal.postgres_migrations import check_clock, check_schema, check_server
from holdfast.journal.postgres_numbers import SharedNumbers
from holdfast.journal.postgres_reading import Counts, Reader
from holdfast.journal.postgres_sealing import Sealer
from holdfast.journal.postgres_slots import Slots
from holdfast.journal.postgres_writer import Writer
from holdfast.journal.rows import entry_of
from holdfast.settings.sources import in_effect

_OPENING = load_statements("postgres_opening.sql")


class PostgresJournal:
    """A journal in the database at `url`; `direct` is its address past any PgBouncer."""

    shared = True
    role = "server"
    """What the process that has it open is: a server, or a worker."""

    def __init__(self, url: str, *, direct: str | None = None, unfinished: bool = False) -> None:
        """`unfinished`: also what a copy is yet to be finished of."""
        self.url = url
        self._unfinished = unfinished
        self._connections = Connections(url)
        self.direct = direct or in_effect().value("database_direct") or url
        place_of(self.direct)  # a mistake in it is told now
        self._reader = Reader(self._connections)
        self._sealer = Sealer(self._connections)
        self._numbers = SharedNumbers(self._connections)
        self._hints = Hints(self._connections, self.direct, self.role)
        self.slots = Slots(self._connections)
        self._writer: Writer | None = None
        self._worker_id: int | None = None
        self._epoch = 0

    @property
    def place(self) -> str:
        """Where it is, for messages."""
        return self._connections.place

    @property
    def epoch(self) -> int:
        return self._writer.epoch if self._writer else self._epoch

    @property
    def worker_id(self) -> int | None:
        return self._worker_id

    @worker_id.setter
    def worker_id(self, worker_id: int | None) -> None:
        self._worker_id = worker_id
        if self._writer is not None:
            self._writer.worker_id = worker_id

    async def open(self) -> None:
        async with AsyncExitStack() as undo:
            self._connections.open()
            undo.push_async_callback(self._connections.close)
            async with self._connections.one(AT_START) as connection:
                await check_server(connection, self.place)
                await check_schema(connection, self.place, unfinished=self._unfinished)
                await check_clock(connection, self.place)
            undo.pop_all()
        self._sealer = Sealer(self._connections)
        self._numbers = SharedNumbers(self._connections)
        self._hints = Hints(self._connections, self.direct, self.role)
        self._writer = Writer(self.url, self._hints.notify)
        self._writer.worker_id = self._worker_id

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        self._epoch = writer.epoch
        async with AsyncExitStack() as stops:  # all of them, though one be broken off
            stops.push_async_callback(self._connections.close)
            stops.push_async_callback(self._sealer.stop)
            stops.push_async_callback(self._numbers.stop)
            stops.push_async_callback(self._hints.stop)
            await writer.stop()

    async def confirm_key(self, key_check: str) -> None:
        """Refuse to go on with another key than the database was begun with.

        `key_check` is derived from the key and does not give it away; the first is remembered.
        """
        await self._connections.select(_OPENING["note_key"], [key_check])
        [(begun_with,)] = await self._connections.select(_OPENING["key"])
        if begun_with != key_check:
            raise OperatorError(
                f"{self.place} was begun with another HOLDFAST_SECRET_KEY. Give every server and "
                "worker that key: what was sealed with it opens with no other."
            )

    def append(self, append: Append) -> Awaitable[int]:
        check(append)
        return self._open_writer().write(append)

    async def attach(self, attached: Attached) -> None:
        check_names(attached)
        await self._open_writer().write(attached)

    async def take(self, run_id: str, drive: Drive) -> int:
        self._open_writer()
        parameters = [run_id, drive.job, drive.attempt]
        rows = await self._connections.select(SQL["take"], parameters)
        return int(rows[0][0]) if rows else 0

    async def reserve_jobs(self, count: int) -> Sequence[int]:
        rows = await self._connections.select(SQL["reserve_jobs"], [count])
        return [job for (job,) in rows]

    async def wake_due(self, now: float, limit: int = 100) -> int:
        [(count, job)] = await self._connections.select(SQL["wake_due"], [float(now), limit])
        if job is not None:
            self._hints.notify(job)
        return int(count)

    async def wake_forgotten(self, limit: int = 100) -> int:
        rows = await self._connections.select(SQL["forgotten_runs"], [limit])
        run_ids = sorted(run_id for (run_id,) in rows)
        if run_ids:
            jobs = await self._connections.select(SQL["defer_drives"], [run_ids])
            self._hints.notify(max(job for (job,) in jobs))
        return len(run_ids)

    async def versions(self, run_ids: Sequence[str]) -> Mapping[str, int]:
        return dict(await self._reader.select("versions", list(run_ids)))

    async def notices_for(self, run_ids: Sequence[str]) -> list[OutboxMessage]:
        return await self._reader.notices(run_ids)

    async def tell(self, hints: Sequence[str]) -> None:
        self._open_writer()
        self._hints.tell(hints)

    def hints(self) -> AsyncGenerator[str, None]:
        self._open_writer()
        return self._hints.listen()

    async def read(
        self,
        run_id: str,
        after: int = 0,
        limit: int | None = None,
        most_text: int | None = None,
    ) -> list[Record]:
        return await self._reader.read(run_id, after, limit, most_text)

    async def version(self, run_id: str) -> int:
        rows = await self._reader.select("version", run_id)
        return int(rows[0][0]) if rows else 0

    async def run(self, run_id: str) -> RunRow | None:
        return await self._reader.run(run_id)

    async def runs(self, query: RunQuery = ANY_RUN) -> list[RunRow]:
        return await self._reader.runs(query)

    async def active_runs(self) -> list[str]:
        return [run_id for (run_id,) in await self._reader.select("active_runs")]

    async def due_runs(self, now: float, limit: int = 100) -> list[str]:
        return [run_id for (run_id,) in await self._reader.select("due_runs", float(now), limit)]

    async def run_counts(self) -> Counts:
        """Of many runs they may be some seconds old, and of this process's own knowledge."""
        return await self._reader.counts("run_counts")

    async def question_counts(self) -> Counts:
        return await self._reader.counts("question_counts")

    async def next_wake(self, after: float | None = None) -> float | None:
        return await self._reader.next_wake(after)

    async def question(self, question_id: str) -> QuestionRow | None:
        return await self._reader.question(question_id)

    async def questions(self, query: QuestionQuery = ANY_QUESTION) -> list[QuestionRow]:
        return await self._reader.questions(query)

    async def notices(self, target_id: str | None = None) -> list[OutboxMessage]:
        return await self._reader.notices(None if target_id is None else [target_id])

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        self._open_writer()
        run_id, version, schema = snapshot.run_id, snapshot.version, snapshot.schema
        crc = snapshot_crc(run_id, version, schema, snapshot.payload)
        values = [run_id, version, schema, snapshot.payload, crc]
        await self._connections.select(SQL["save_snapshot"], values)

    async def snapshot(self, run_id: str, schema: int) -> Snapshot | None:
        return await self._reader.snapshot(run_id, schema)

    async def store_definition(self, definition: StoredDefinition) -> None:
        self._open_writer()
        values = [
            definition.digest,
            definition.kind,
            definition.name,
            definition.body,
            float(definition.stored_at),
            json.dumps(dict(definition.meta), ensure_ascii=False),
        ]
        await self._connections.select(SQL["store_definition"], [*values, row_crc(values)])

    async def definition(self, digest: str) -> StoredDefinition | None:
        return await self._reader.definition(digest)

    async def definitions(self, kind: str, name: str) -> list[StoredDefinition]:
        return await self._reader.definitions(kind, name)

    async def kept(self, kind: str, key: str, now: float) -> ExpiringValue | None:
        return await self._reader.kept(kind, key, now)

    async def all_kept(self, kind: str, now: float) -> list[ExpiringValue]:
        return await self._reader.all_kept(kind, now)

    async def figures(self) -> Figures:
        return await figures(self._connections)

    async def seal(self, wait: bool = True) -> None:
        await self._sealer.seal(wait)

    async def audit(self, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        await self._sealer.seal()
        return [entry_of(row) for row in await self._reader.select("audit", after, limit)]

    async def commits(self, after: int = 0, limit: int = 1000) -> list[Committed]:
        await self._sealer.seal()
        rows = await self._reader.select("commits", after, limit)
        found = [Committed(*row) for row in rows]
        if found and found[0].position - after < found[0].last - found[0].first + 1:
            left = found[0].position - after
            found[0] = replace(found[0], first=found[0].last + 1 - left)
        return found

    async def last_commit(self) -> int:
        await self._sealer.seal()
        position, _, _ = await self._sealer.state()
        return int(position)

    async def forgotten(self) -> int:
        _, forgotten, _ = await self._sealer.state()
        return int(forgotten)

    async def remove(self, removals: Sequence[Removal], attached: Attached = NOTHING) -> list[str]:
        self._open_writer()
        await self._sealer.seal()  # what is gone needs no place any more
        return await postgres_removal.remove(self._connections, removals, attached)

    async def reclaim(self) -> bool:
        return await postgres_removal.reclaim(self._connections)

    async def next_number(self, series: str) -> int:
        return await self._numbers.next(series)

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise JournalUnavailable(f"{self.place} {NOT_OPEN}")
        return self._writer
