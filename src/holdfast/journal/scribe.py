"""Writes what an append says into SQLite, inside a transaction that others own.

The common append (no new row) costs one SELECT, which finds whether the run still
stands at `expected`, and one INSERT per record: nobody else writes in between, for
the transaction is IMMEDIATE. A new row touches the indexes only where status,
activity or timer have changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any

from holdfast.journal.database import Connection
from holdfast.journal.port import Append, Notice, QuestionRow, RunRow, Snapshot, StoredDefinition
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


def _values_of(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Takes a row apart in the order of its fields, which is that of the columns."""
    return attrgetter(*(field.name for field in fields(kind)))


_run_values = _values_of(RunRow)
_question_values = _values_of(QuestionRow)
_notice_values = _values_of(Notice)


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
    connection.executemany(
        _ADD_EVENT, [(place(run, r.seq), r.at, r.type, r.payload) for r in append.records]
    )
    if append.questions or append.notices or append.heard or append.births:
        _write_company(connection, append)
    return append.expected + len(append.records)


def write_snapshot(connection: Connection, snapshot: Snapshot) -> None:
    connection.execute(_SAVE_SNAPSHOT, asdict(snapshot))


def write_definition(connection: Connection, definition: StoredDefinition) -> None:
    meta = json.dumps(dict(definition.meta), ensure_ascii=False)
    connection.execute(
        _STORE_DEFINITION,
        (
            definition.digest,
            definition.kind,
            definition.name,
            definition.body,
            definition.stored_at,
            meta,
        ),
    )


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


def _write_company(connection: Connection, append: Append) -> None:
    connection.executemany(_PUT_QUESTION, map(_question_values, append.questions))
    for birth in append.births:
        write(connection, birth)
    connection.executemany(_LEAVE_NOTICE, map(_notice_values, append.notices))
    connection.executemany(
        _HEAR_NOTICE, [(append.run_id, source_id, seq) for source_id, seq in append.heard]
    )
