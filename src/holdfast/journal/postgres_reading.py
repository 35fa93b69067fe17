"""What the PostgreSQL journal reads: each is one indexed statement, on a connection of the pool.

Lists are made of what is asked for, so that the planner sees it and takes the index for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final

from holdfast.errors import JournalDamaged, NotFound
from holdfast.journal.database import row_crc
from holdfast.journal.port import (
    ANY_QUESTION,
    ANY_RUN,
    ExpiringValue,
    OutboxMessage,
    QuestionQuery,
    QuestionRow,
    Record,
    RunQuery,
    RunRow,
    Snapshot,
    StoredDefinition,
)
from holdfast.journal.postgres_batches import name_crc, record_crc, snapshot_crc
from holdfast.journal.postgres_database import Connections, Row, load_statements
from holdfast.journal.rows import definition_of, run_row

log = logging.getLogger("holdfast")

SQL: Final = load_statements("postgres_queries.sql")

STRETCH: Final = 1000
COUNTED_EACH_TIME: Final = 10_000
COUNTS_KEPT_SECONDS: Final = 10.0
"""Up to so many rows are counted whenever they are asked for; a count of more is told for so long,
for a million take a fifth of a second."""

_LAST: Final = 2**62
_BYTES_PER_CHARACTER: Final = 4

Counts = Mapping[tuple[str, str], int]


class Reader:
    """Reads for `PostgresJournal`, which says what each method means."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._place = connections.place
        self._counts: dict[str, tuple[float, Counts]] = {}

    async def select(self, name: str, *parameters: Any) -> list[Row]:
        return await self._connections.select(SQL[name], parameters)

    async def read(
        self, run_id: str, after: int, limit: int | None, most_text: int | None
    ) -> list[Record]:
        records: list[Record] = []
        end = _LAST if limit is None else after + limit
        while after < end:
            wanted = min(end - after, STRETCH)
            page, version = await self._read_page(run_id, after, wanted, most_text)
            for record in page:
                records.append(record)
                if most_text is not None:
                    most_text -= len(record.payload)
                    if most_text <= 0:
                        return records
            after += len(page)
            if not page or after >= version:
                break
        return records

    async def _read_page(
        self, run_id: str, after: int, limit: int, most_text: int | None
    ) -> tuple[list[Record], int]:
        """Records after one, without a gap, and the run's version."""
        if most_text is None:
            rows = await self.select("read_events", run_id, after, limit)
        else:
            most = most_text * _BYTES_PER_CHARACTER
            rows = await self.select("read_events_within", run_id, after, limit, most)
        if not rows:
            return [], 0
        version = rows[0][0]
        found = [row[1:] for row in rows if row[1] is not None]
        last = after + len(found)
        whole = last >= min(version, after + limit) or (most_text is not None and found)
        if not whole or (found and found[-1][0] != last):
            raise JournalDamaged(
                f"{self._place} lacks records of run {run_id} between {after + 1} and {version}. "
                "Stop Holdfast, and restore a backup."
            )
        run = name_crc(run_id)
        return [self._record(run_id, run, row) for row in found], version

    def _record(self, run_id: str, run: int, row: Sequence[Any]) -> Record:
        seq, at, kind, payload, crc = row
        if crc != record_crc(run, seq, at, (kind + payload).encode()):
            raise JournalDamaged(
                f"record {seq} of run {run_id} in {self._place} has changed since it was written. "
                "Other runs go on; restore a backup to get this one back. "
                "`holdfast doctor --integrity` tells what else is damaged."
            )
        return Record(seq, at, kind, payload)

    async def run(self, run_id: str) -> RunRow | None:
        rows = await self.select("run", run_id)
        return run_row(rows[0]) if rows else None

    async def runs(self, query: RunQuery = ANY_RUN) -> list[RunRow]:
        before = await self._number_of("run", query.before, _LAST)
        equal = {"name": query.name, "kind": query.kind, "parent_id": query.parent_id}
        plain = ["parent_id IS NULL"] if query.roots_only else []
        if query.status is None or query.parent_id is not None:
            rows = await self._list(
                "runs_newest", before, query.limit, equal, plain, statuses=query.status
            )
            return [run_row(row[:-1]) for row in rows]
        found: list[Row] = []
        for status in query.status:
            one = {**equal, "status": status}
            found += await self._list("runs_newest", before, query.limit, one, plain)
        found.sort(key=_number, reverse=True)
        return [run_row(row[:-1]) for row in found[: query.limit]]

    async def question(self, question_id: str) -> QuestionRow | None:
        rows = await self.select("question", question_id)
        return QuestionRow(*self._sound("question", rows[0])) if rows else None

    async def questions(self, query: QuestionQuery = ANY_QUESTION) -> list[QuestionRow]:
        """Damaged ones are left out, and the page is filled with those that follow."""
        after = await self._number_of("question", query.after, _LAST if query.newest else 0)
        sound: list[QuestionRow] = []
        while len(sound) < query.limit:
            rows = await self._question_rows(query, after)
            sound += [
                QuestionRow(*row)
                for row in self._sound_ones("question", (row[:-1] for row in rows))
            ]
            if len(rows) < query.limit:
                break
            after = _number(rows[-1])
        return sound[: query.limit]

    async def _question_rows(self, query: QuestionQuery, after: int) -> list[Row]:
        name = "questions_newest" if query.newest else "questions_oldest"
        equal = {"run_id": query.run_id, "root_id": query.root_id, "role": query.role}
        due = query.due_before
        if query.status is None or query.run_id is not None or query.root_id is not None:
            return await self._list(
                name, after, query.limit, equal, due_before=due, statuses=query.status
            )
        found: list[Row] = []
        for status in query.status:
            one = {**equal, "status": status}
            found += await self._list(name, after, query.limit, one, due_before=due)
        return sorted(found, key=_number, reverse=query.newest)[: query.limit]

    async def _list(
        self,
        name: str,
        start: int,
        limit: int,
        equal: Mapping[str, str | None],
        plain: Sequence[str] = (),
        *,
        due_before: float | None = None,
        statuses: frozenset[str] | None = None,
    ) -> list[Row]:
        """A page of what has these values; the columns are names of ours."""
        parameters: list[Any] = [start, limit]
        conditions = list(plain)
        for column, value in equal.items():
            if value is not None:
                parameters.append(value)
                conditions.append(f"{column} = ${len(parameters)}")
        if due_before is not None:
            parameters.append(float(due_before))
            conditions.append(f"deadline < ${len(parameters)}")
        if statuses is not None:
            parameters.append(sorted(statuses))
            conditions.append(f"status = ANY(${len(parameters)}::text[])")
        text = "".join(f" AND {one}" for one in conditions)
        statement = SQL[name].replace(b"/* conditions */", text.encode())
        return await self._connections.select(statement, parameters)

    async def counts(self, name: str) -> Counts:
        told = self._counts.get(name)
        if told is not None and time.monotonic() < told[0]:
            return told[1]
        counted = {(one, other): count for one, other, count in await self.select(name)}
        if sum(counted.values()) > COUNTED_EACH_TIME:
            self._counts[name] = time.monotonic() + COUNTS_KEPT_SECONDS, counted
        return counted

    async def next_wake(self, after: float | None) -> float | None:
        [(earliest,)] = await self.select("next_wake", -inf if after is None else float(after))
        return None if earliest is None else float(earliest)

    async def notices(self, run_ids: Sequence[str] | None) -> list[OutboxMessage]:
        if run_ids is None:
            rows = await self.select("notices")
        else:
            rows = await self.select("notices_for", list(run_ids))
        return [OutboxMessage(*row) for row in rows]

    async def snapshot(self, run_id: str, schema: int) -> Snapshot | None:
        """One that has changed since it was written is none: the journal has everything."""
        for version, _, payload, crc in await self.select("snapshot", run_id, schema):
            if crc == snapshot_crc(run_id, version, schema, payload):
                return Snapshot(run_id, version, schema, payload)
            log.warning("the snapshot of run %s is damaged and left out", run_id)
        return None

    async def definition(self, digest: str) -> StoredDefinition | None:
        rows = await self.select("definition", digest)
        return definition_of(self._sound("definition", rows[0])) if rows else None

    async def definitions(self, kind: str, name: str) -> list[StoredDefinition]:
        rows = await self.select("definitions", kind, name)
        return [definition_of(row) for row in self._sound_ones("definition", rows)]

    async def kept(self, kind: str, key: str, now: float) -> ExpiringValue | None:
        rows = await self.select("kept", kind, key, float(now))
        return ExpiringValue(*self._sound("entry", rows[0])) if rows else None

    async def all_kept(self, kind: str, now: float) -> list[ExpiringValue]:
        rows = await self.select("all_kept", kind, float(now))
        return [ExpiringValue(*row) for row in self._sound_ones("entry", rows)]

    async def _number_of(self, what: str, name: str | None, otherwise: int) -> int:
        """By which lists are ordered: that of the run or question that a page goes on from."""
        if name is None:
            return otherwise
        rows = await self.select(f"locate_{what}", name)
        if not rows:
            raise NotFound(f"there is no {what} {name} to go on from")
        return int(rows[0][0])

    def _sound(self, what: str, row: Row) -> Row:
        """The row without its checksum, which must be its own."""
        *values, crc = row
        if crc != row_crc(values):
            raise JournalDamaged(
                f"the row of {what} {values[0]} in {self._place} has changed since it was written, "
                "and is not used. Restore a backup to get it back. "
                "`holdfast doctor --integrity` tells what else is damaged."
            )
        return tuple(values)

    def _sound_ones(self, what: str, rows: Iterable[Row]) -> Iterator[Row]:
        """One that is damaged must not take the others with it."""
        for row in rows:
            try:
                yield self._sound(what, row)
            except JournalDamaged as error:
                log.warning("%s", error)


def _number(row: Row) -> int:
    return int(row[-1])
