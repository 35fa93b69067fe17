"""Writes what an append says into SQLite, inside a transaction that others own.

The common append (no new row) only gathers its records: where the run stands and how many
records there are is known from the append before, and all records of a batch are written
by one statement. A new row touches the indexes only where status, activity or timer have
changed.

What expires is let go a little at a time, whenever a deed says what time it is: the
journal has no clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import partial
from operator import attrgetter
from typing import Any

from holdfast.journal import chain, checksums
from holdfast.journal.database import Connection
from holdfast.journal.port import (
    NOTHING,
    Append,
    Attached,
    Deed,
    Kept,
    Notice,
    QuestionRow,
    RunRow,
    Snapshot,
    StoredDefinition,
)
from holdfast.journal.rows import packed
from holdfast.journal.rules import conflict
from holdfast.journal.statements import load_queries
from holdfast.journal.tallies import Pair, Tally

_SQL = load_queries("sqlite_queries.sql")
_LOCATE_RUN = _SQL["locate_run"]
_CREATE_RUN = _SQL["create_run"]
_DESCRIBE_RUN = _SQL["describe_run"]
_INDEX_RUN = _SQL["index_run"]
_ADD_EVENT = _SQL["add_event"]
_PUT_QUESTION = _SQL["put_question"]
_LEAVE_NOTICE = _SQL["leave_notice"]
_HEAR_NOTICE = _SQL["hear_notice"]
_SAVE_SNAPSHOT = _SQL["save_snapshot"]
_STORE_DEFINITION = _SQL["store_definition"]
_KEEP = _SQL["keep"]
_DROP_KEPT = _SQL["drop_kept"]
_DROP_EXPIRED = _SQL["drop_expired"]
_LAST_DEED = _SQL["last_deed"]
_ADD_DEED = _SQL["add_deed"]
_LAST_COMMIT = _SQL["last_commit"]
_QUESTION_PAIR = _SQL["question_pair"]

MOST_HEADS = 50_000
EXPIRED_AT_ONCE = 16
"""Tuning: of how many runs it is known where they stand, and how much of what has expired goes
at once."""


def _values_of(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Takes a row apart in the order of its fields, which is that of the columns."""
    return attrgetter(*(field.name for field in fields(kind)))


_run_values = _values_of(RunRow)
_question_values = _values_of(QuestionRow)
_notice_values = _values_of(Notice)
_kept_values = _values_of(Kept)
_deed_values = _values_of(Deed)


def place(run: int, seq: int) -> int:
    """Where a record stands in `events`."""
    return run << 32 | seq


class Scribe:
    """Writes appends, and knows where each run stands: nobody else writes to this database.

    What is gathered is written by `flush`, at the latest before the commit; whoever rolls back
    has the scribe `forget`, and it looks again.
    """

    def __init__(self) -> None:
        self._heads: dict[str, tuple[int, int]] = {}
        self._position: int | None = None
        self.gathered: list[tuple[Any, ...]] = []
        self.runs = Tally(_SQL["run_counts"])
        self.questions = Tally(_SQL["question_counts"])
        self.moves: list[Callable[[], None]] = []
        """What the tallies are to be told of once this is committed."""

    def forget(self) -> None:
        self._heads.clear()
        self._position = None
        self.gathered.clear()
        self.moves.clear()
        self.runs.forget()
        self.questions.forget()

    def committed(self) -> None:
        for move in self.moves:
            move()
        self.moves.clear()

    def count(self, connection: Connection, tally: Tally) -> None:
        self.moves.append(partial(tally.begin, tally.count(connection)))

    def write(self, append: Append, connection: Connection) -> int:
        """Everything in an append, births included; the run's new version."""
        run, version = self._heads.get(append.run_id) or (0, -1)
        if append.row is not None or version != append.expected:
            run = self._run_of(connection, append)
        position = self._position
        if position is None:
            [[position]] = connection.execute(_LAST_COMMIT).fetchall()
        place = run << 32 | append.expected
        self.gathered += checksums.rows_of(append.records, position, place)
        version = append.expected + len(append.records)
        self._position = position + len(append.records)
        self._heads[append.run_id] = run, version
        if append.questions or append.notices or append.heard or append.births:
            self._write_company(connection, append)
        if append.attached is not NOTHING:
            attach(connection, append.attached)
        return version

    def flush(self, connection: Connection) -> None:
        if self.gathered:
            connection.executemany(_ADD_EVENT, self.gathered)
            self.gathered.clear()
        if len(self._heads) > MOST_HEADS:  # only here: the database knows of no gathered records
            self._heads.clear()

    def write_snapshot(self, connection: Connection, snapshot: Snapshot) -> None:
        self.flush(connection)
        crc = checksums.of_snapshot(snapshot.version, snapshot.schema, snapshot.payload.encode())
        connection.execute(_SAVE_SNAPSHOT, {**asdict(snapshot), "crc": crc})

    def _run_of(self, connection: Connection, append: Append) -> int:
        """The run's number, if it stands where it is expected to."""
        row, expected = append.row, append.expected
        if expected == 0 and row is not None:
            run = _create(connection, append, row)
            if self.runs.kept:
                self.moves.append(partial(self.runs.move, None, (row.kind, row.status)))
            return run
        run, version = self._heads.get(append.run_id) or _locate(connection, append.run_id)
        if version != expected:
            raise conflict(append)
        if row is not None:
            status = _describe(connection, run, row)
            if self.runs.kept and status != row.status:
                moved = (row.kind, status), (row.kind, row.status)
                self.moves.append(partial(self.runs.move, *moved))
        return run

    def _write_company(self, connection: Connection, append: Append) -> None:
        if self.questions.kept:
            self._tally_questions(connection, append.questions)
        questions = map(_checked, map(_question_values, append.questions))
        connection.executemany(_PUT_QUESTION, questions)
        for birth in append.births:
            self.write(birth, connection)
        connection.executemany(_LEAVE_NOTICE, map(_notice_values, append.notices))
        heard = [(append.run_id, source_id, seq) for source_id, seq in append.heard]
        connection.executemany(_HEAR_NOTICE, heard)

    def _tally_questions(self, connection: Connection, rows: Sequence[QuestionRow]) -> None:
        pairs: dict[str, Pair] = {}
        for row in rows:
            before = pairs.get(row.question_id) or _pair_of(connection, row.question_id)
            after = (row.status, before[1] if before else row.type)
            pairs[row.question_id] = after
            self.moves.append(partial(self.questions.move, before, after))


def _pair_of(connection: Connection, question_id: str) -> Pair | None:
    rows = connection.execute(_QUESTION_PAIR, (question_id,)).fetchall()
    return (rows[0][0], rows[0][1]) if rows else None


def _checked(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row with its checksum."""
    return *values, checksums.of_row(values)


def attach(connection: Connection, attached: Attached) -> None:
    """What is kept, let go and done, whichever run it belongs to."""
    connection.executemany(_DROP_KEPT, attached.dropped)
    connection.executemany(_KEEP, map(_checked, map(_kept_values, attached.kept)))
    if attached.deeds:
        now = max(deed.at for deed in attached.deeds)
        connection.execute(_DROP_EXPIRED, (now, EXPIRED_AT_ONCE))
        _add_deeds(connection, attached.deeds)


def write_definition(connection: Connection, definition: StoredDefinition) -> None:
    meta = json.dumps(dict(definition.meta), ensure_ascii=False)
    values = (
        definition.digest,
        definition.kind,
        definition.name,
        packed(definition.body),
        definition.stored_at,
        meta,
    )
    connection.execute(_STORE_DEFINITION, _checked(values))


def _locate(connection: Connection, run_id: str) -> tuple[int, int]:
    rows = connection.execute(_LOCATE_RUN, (run_id,)).fetchall()
    return (rows[0][0], rows[0][1]) if rows else (0, -1)


def _create(connection: Connection, append: Append, row: RunRow) -> int:
    rows = connection.execute(_CREATE_RUN, _run_values(row)).fetchall()
    if not rows:
        raise conflict(append)
    return int(rows[0][0])


def _describe(connection: Connection, run: int, row: RunRow) -> str:
    """Renews the row; the status that it had."""
    values = (row.updated_at, row.title, row.summary, run)
    [held] = connection.execute(_DESCRIBE_RUN, values).fetchall()
    wanted = (row.status, row.active, row.wake_at)
    if held != wanted:
        connection.execute(_INDEX_RUN, (*wanted, run))
    return str(held[0])


def _add_deeds(connection: Connection, deeds: Sequence[Deed]) -> None:
    """Goes on from the end of the chain as this transaction sees it."""
    rows = connection.execute(_LAST_DEED).fetchall()
    last, previous = rows[0] if rows else (0, chain.START)
    for number, deed in enumerate(deeds, last + 1):
        digest = chain.link(previous, number, deed)
        connection.execute(_ADD_DEED, (number, *_deed_values(deed), previous, digest))
        previous = digest
