"""Writes what an append says into SQLite, inside a transaction that others own.

The common append (no new row) costs one SELECT, which finds whether the run still
stands at `expected`, and one INSERT per record: nobody else writes in between, for
the transaction is IMMEDIATE. A new row touches the indexes only where status,
activity or timer have changed. Its place among all commits is written down only where
another run has committed last.

What expires is let go a little at a time, whenever a deed says what time it is: the
journal has no clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
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
    Record,
    RunRow,
    Snapshot,
    StoredDefinition,
)
from holdfast.journal.rules import conflict
from holdfast.journal.statements import load_queries

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
_NEXT_POSITION = _SQL["next_position"]
_NOTE_COMMIT = _SQL["note_commit"]
_PRUNE_COMMITS = _SQL["prune_commits"]

POSITIONS_KEPT = 500_000
PRUNE_EVERY = 16_384
EXPIRED_AT_ONCE = 16
"""Tuning: how many of the newest positions stay, how often the older ones are forgotten, and
how much of what has expired goes at once."""


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


def write(connection: Connection, append: Append) -> int:
    """Everything in an append, births included; the run's new version."""
    if append.expected == 0 and append.row is not None:
        run = _create(connection, append, append.row)
    else:
        run = _locate(connection, append)
        if append.row is not None:
            _describe(connection, run, append.row)
    connection.executemany(_ADD_EVENT, [_event(place(run, r.seq), r) for r in append.records])
    if append.records:
        _note_commit(connection, run, append)
    if append.questions or append.notices or append.heard or append.births:
        _write_company(connection, append)
    if append.attached is not NOTHING:
        attach(connection, append.attached)
    return append.expected + len(append.records)


def _event(place: int, record: Record) -> tuple[Any, ...]:
    kind, payload = record.type, record.payload
    crc = checksums.of_record(place, record.at, kind.encode(), payload.encode())
    return place, record.at, kind, payload, crc


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


def write_snapshot(connection: Connection, snapshot: Snapshot) -> None:
    crc = checksums.of_snapshot(snapshot.version, snapshot.schema, snapshot.payload.encode())
    connection.execute(_SAVE_SNAPSHOT, {**asdict(snapshot), "crc": crc})


def write_definition(connection: Connection, definition: StoredDefinition) -> None:
    meta = json.dumps(dict(definition.meta), ensure_ascii=False)
    values = (
        definition.digest,
        definition.kind,
        definition.name,
        definition.body,
        definition.stored_at,
        meta,
    )
    connection.execute(_STORE_DEFINITION, _checked(values))


def _locate(connection: Connection, append: Append) -> int:
    rows = connection.execute(_LOCATE_RUN, (append.run_id,)).fetchall()
    if not rows or rows[0][1] != append.expected:
        raise conflict(append)
    return int(rows[0][0])


def _create(connection: Connection, append: Append, row: RunRow) -> int:
    rows = connection.execute(_CREATE_RUN, _run_values(row)).fetchall()
    if not rows:
        raise conflict(append)
    return int(rows[0][0])


def _describe(connection: Connection, run: int, row: RunRow) -> None:
    values = (row.updated_at, row.title, row.summary, run)
    [held] = connection.execute(_DESCRIBE_RUN, values).fetchall()
    wanted = (row.status, row.active, row.wake_at)
    if held != wanted:
        connection.execute(_INDEX_RUN, (*wanted, run))


def _note_commit(connection: Connection, run: int, append: Append) -> None:
    rows = connection.execute(_NEXT_POSITION, (run,)).fetchall()
    if not rows:
        return
    position = int(rows[0][0])
    connection.execute(_NOTE_COMMIT, (position, run, append.expected + 1))
    if (position - 1) // PRUNE_EVERY != (position - 1 + len(append.records)) // PRUNE_EVERY:
        connection.execute(_PRUNE_COMMITS, (position - POSITIONS_KEPT,))


def _add_deeds(connection: Connection, deeds: Sequence[Deed]) -> None:
    """Goes on from the end of the chain as this transaction sees it."""
    rows = connection.execute(_LAST_DEED).fetchall()
    last, previous = rows[0] if rows else (0, chain.START)
    for number, deed in enumerate(deeds, last + 1):
        digest = chain.link(previous, number, deed)
        connection.execute(_ADD_DEED, (number, *_deed_values(deed), previous, digest))
        previous = digest


def _write_company(connection: Connection, append: Append) -> None:
    questions = map(_checked, map(_question_values, append.questions))
    connection.executemany(_PUT_QUESTION, questions)
    for birth in append.births:
        write(connection, birth)
    connection.executemany(_LEAVE_NOTICE, map(_notice_values, append.notices))
    connection.executemany(
        _HEAR_NOTICE, [(append.run_id, source_id, seq) for source_id, seq in append.heard]
    )
