"""Writes what an append says into SQLite, inside a transaction that others own.

The common append (no new row) costs one UPDATE that moves the version only if the
run still stands at `expected`, and one INSERT per record. A new row touches the
indexes only where status, activity or timer have changed.
"""

from __future__ import annotations

import json

from holdfast.journal.database import Connection
from holdfast.journal.port import Append, RunRow, Snapshot, StoredDefinition
from holdfast.journal.rules import conflict
from holdfast.journal.statements import load_queries

_SQL = load_queries("sqlite_queries.sql")
_CREATE_RUN = _SQL["create_run"]
_MOVE_RUN = _SQL["move_run"]
_DESCRIBE_RUN = _SQL["describe_run"]
_INDEX_RUN = _SQL["index_run"]
_ADD_EVENT = _SQL["add_event"]
_PUT_QUESTION = _SQL["put_question"]
_LEAVE_NOTICE = _SQL["leave_notice"]
_HEAR_NOTICE = _SQL["hear_notice"]
_SAVE_SNAPSHOT = _SQL["save_snapshot"]
_STORE_DEFINITION = _SQL["store_definition"]


def place(run: int, seq: int) -> int:
    """Where a record stands in `events`."""
    return run << 32 | seq


def write(connection: Connection, append: Append) -> int:
    """Everything in an append, births included; the run's new version."""
    version = append.expected + len(append.records)
    if append.row is None:
        run = _move(connection, append, version)
    elif append.expected == 0:
        run = _create(connection, append, append.row, version)
    else:
        run = _describe(connection, append, append.row, version)
    connection.executemany(
        _ADD_EVENT, [(place(run, r.seq), r.at, r.type, r.payload) for r in append.records]
    )
    if append.questions or append.notices or append.heard or append.births:
        _write_company(connection, append)
    return version


def write_snapshot(connection: Connection, snapshot: Snapshot) -> None:
    connection.execute(
        _SAVE_SNAPSHOT,
        {
            "run_id": snapshot.run_id,
            "version": snapshot.version,
            "schema": snapshot.schema,
            "payload": snapshot.payload,
        },
    )


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


def _move(connection: Connection, append: Append, version: int) -> int:
    rows = connection.execute(_MOVE_RUN, (version, append.run_id, append.expected)).fetchall()
    if not rows:
        raise conflict(append)
    return int(rows[0][0])


def _create(connection: Connection, append: Append, row: RunRow, version: int) -> int:
    values = (
        row.run_id,
        version,
        row.kind,
        row.name,
        row.definition,
        row.status,
        row.active,
        row.wake_at,
        row.root_id,
        row.parent_id,
        row.created_at,
        row.updated_at,
        row.title,
        row.summary,
    )
    rows = connection.execute(_CREATE_RUN, values).fetchall()
    if not rows:
        raise conflict(append)
    return int(rows[0][0])


def _describe(connection: Connection, append: Append, row: RunRow, version: int) -> int:
    values = (version, row.updated_at, row.title, row.summary, append.run_id, append.expected)
    rows = connection.execute(_DESCRIBE_RUN, values).fetchall()
    if not rows:
        raise conflict(append)
    run, *indexed = rows[0]
    if indexed != [row.status, row.active, row.wake_at]:
        connection.execute(_INDEX_RUN, (row.status, row.active, row.wake_at, run))
    return int(run)


def _write_company(connection: Connection, append: Append) -> None:
    for q in append.questions:
        connection.execute(
            _PUT_QUESTION,
            (
                q.question_id,
                q.run_id,
                q.root_id,
                q.status,
                q.type,
                q.title,
                q.role,
                q.opened_at,
                q.deadline,
                q.closed_at,
                q.body,
            ),
        )
    for birth in append.births:
        write(connection, birth)
    connection.executemany(
        _LEAVE_NOTICE, [(n.target_id, n.source_id, n.seq, n.payload) for n in append.notices]
    )
    connection.executemany(
        _HEAR_NOTICE, [(append.run_id, source_id, seq) for source_id, seq in append.heard]
    )
