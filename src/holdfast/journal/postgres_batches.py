"""What appends are as parameters of statements: columns of a batch, one array each.

A batch has at most one append of a run, and no two that touch one name; `keys_of` says what an
append touches. `Batch` takes appends apart: runs that move on, runs that are born (which never
come by themselves where they are children), records of both, and what comes beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, TypeAlias
from zlib import crc32

from holdfast.journal.database import row_crc
from holdfast.journal.port import NOTHING, Append, Attached, ExpiringValue, QuestionRow, RunRow

Given: TypeAlias = Append | Attached
Columns: TypeAlias = list[list[Any]]

_head = Struct("<id").pack
_SIGN = 1 << 31


def record_crc(run: int, seq: int, at: float, text: bytes) -> int:
    """Of a record and its place; `run` is the checksum of its run's id."""
    return (crc32(text, crc32(_head(seq, at), run)) ^ _SIGN) - _SIGN


def name_crc(run_id: str) -> int:
    """What the checksums of a run's records begin with."""
    return crc32(run_id.encode())


def snapshot_crc(run_id: str, version: int, schema: int, payload: str) -> int:
    return record_crc(name_crc(run_id), version, schema, payload.encode())


def is_plain(given: Given) -> bool:
    """Whether it is one statement that moves a run on, and at most renews its row."""
    if not isinstance(given, Append) or given.expected == 0:
        return False
    return not (
        given.questions
        or given.child_appends
        or given.notices
        or given.heard
        or given.attached is not NOTHING
        or wakes(given)
    )


def wakes(append: Append) -> bool:
    """Whether it may turn a run active that another is to drive."""
    return append.drive is None and append.row is not None and append.row.active


def keys_of(given: Given) -> Iterator[str | tuple[str, str]]:
    """What no other of the same batch may touch: runs, and names of what is kept."""
    attached = given if isinstance(given, Attached) else given.attached
    if isinstance(given, Append):
        yield given.run_id
        for birth in given.child_appends:
            yield from keys_of(birth)
    for one in (*attached.kept, *attached.claimed):
        yield one.kind, one.key
    yield from attached.dropped
    yield from attached.spent


def columns(rows: Iterable[Sequence[Any]], count: int) -> Columns:
    """Rows as columns, of which there are so many even without rows."""
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(count)]


def scalars(append: Append) -> list[Any]:
    """The parameters of `append_one`, and of `append_one_with_row` where there is a row."""
    drive, row = append.drive, append.row
    values: list[Any] = [
        append.run_id,
        append.expected,
        append.expected + len(append.records),
        drive and drive.job,
        drive and drive.attempt,
    ]
    if row is not None:
        values += (row.status, row.active, row.wake_at, row.updated_at, row.title, row.summary)
        values.append(drive.job if drive is not None and append.ends_drive else None)
    run = name_crc(append.run_id)
    for seq, at, kind, payload in append.records:
        crc = record_crc(run, seq, at, (kind + payload).encode())
        values += (seq, at, kind, payload, crc)
    return values


def _records(place: int, append: Append) -> Iterator[tuple[Any, ...]]:
    run = name_crc(append.run_id)
    for seq, at, kind, payload in append.records:
        yield (
            place,
            seq,
            float(at),
            kind,
            payload,
            record_crc(run, seq, at, (kind + payload).encode()),
        )


def moves(appends: Iterable[tuple[int, Append]]) -> Columns:
    """The parameters of `append_many`: runs that exist, and their new records."""
    runs = []
    records: list[tuple[Any, ...]] = []
    for place, append in sorted(appends, key=lambda pair: pair[1].run_id):
        drive, expected = append.drive, append.expected
        version = expected + len(append.records)
        job, attempt = (drive.job, drive.attempt) if drive else (None, None)
        runs.append((place, append.run_id, expected, version, job, attempt))
        records += _records(place, append)
    return columns(runs, 6) + columns(records, 6)


def move_rows(appends: Iterable[tuple[int, Append]]) -> Columns:
    """What `append_many_with_rows` takes in addition."""
    renewed = []
    for _, append in sorted(appends, key=lambda pair: pair[1].run_id):
        row = append.row
        renewed.append(
            (None,) * 6
            if row is None
            else (
                row.status,
                row.active,
                _real(row.wake_at),
                float(row.updated_at),
                row.title,
                row.summary,
            )
        )
    return columns(renewed, 6)


def births(appends: Sequence[tuple[int, Append, RunRow]]) -> Columns:
    """The parameters of `bear_many`."""
    runs, rows = [], []
    records: list[tuple[Any, ...]] = []
    for place, append, row in appends:
        drive = append.drive
        job, attempt = (drive.job, drive.attempt) if drive else (None, None)
        runs.append((place, append.run_id, len(append.records), job, attempt))
        rows.append(_row_values(row))
        records += _records(place, append)
    return columns(runs, 5) + columns(records, 6) + columns(rows, 12)


def _row_values(row: RunRow) -> tuple[Any, ...]:
    return (
        row.kind,
        row.name,
        row.definition,
        row.status,
        row.active,
        _real(row.wake_at),
        row.root_id,
        row.parent_id,
        float(row.created_at),
        float(row.updated_at),
        row.title,
        row.summary,
    )


def questions(rows: Iterable[QuestionRow]) -> Columns:
    """The parameters of `put_questions`; of several of one name the last."""
    newest = {row.question_id: row for row in rows}
    return columns(map(_question_values, newest.values()), 12)


def _question_values(row: QuestionRow) -> tuple[Any, ...]:
    values = (
        row.question_id,
        row.run_id,
        row.root_id,
        row.status,
        row.type,
        row.title,
        row.role,
        float(row.opened_at),
        _real(row.deadline),
        _real(row.closed_at),
        row.body,
    )
    return *values, row_crc(values)


def kept(values: Iterable[ExpiringValue]) -> Columns:
    """The parameters of `keep`; of several of one name the last."""
    newest = {(one.kind, one.key): one for one in values}
    return columns(map(_kept_values, newest.values()), 5)


def claimed(values: Iterable[tuple[ExpiringValue, float]]) -> Columns:
    """The parameters of `claim`."""
    return columns(((*_kept_values(one), float(at)) for one, at in values), 6)


def _kept_values(one: ExpiringValue) -> tuple[Any, ...]:
    values = (one.kind, one.key, one.body, _real(one.expires_at))
    return *values, row_crc(values)


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)
