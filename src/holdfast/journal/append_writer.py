"""Writes appends into SQLite, inside a transaction that the committer owns.

The common append (no new row) only gathers its records: where the run stands and how many
records there are is known from the append before, and the records of a batch are written by
few statements. Where that is one and nothing else is written, it needs no BEGIN and no COMMIT,
which take a sixth of the instructions of a lone append. A new row touches the indexes only where
status, activity or timer have changed.

What has expired is removed a little at a time, when an audit record says what time it is: the
journal has no clock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

from holdfast.errors import NameGone, NameTaken
from holdfast.journal import database
from holdfast.journal.database import Transaction, add_values, row_crc, snapshot_crc
from holdfast.journal.port import (
    AUDIT_START,
    NOTHING,
    Append,
    Attached,
    AuditRecord,
    ExpiringValue,
    OutboxMessage,
    QuestionRow,
    RunRow,
    Snapshot,
    StoredDefinition,
    check_names,
    conflict,
    link,
)
from holdfast.journal.rows import load_queries, packed

_SQL = load_queries("sqlite_queries.sql")
_LOCATE_RUN = _SQL["locate_run"]
_CREATE_RUN = _SQL["create_run"]
_DESCRIBE_RUN = _SQL["describe_run"]
_INDEX_RUN = _SQL["index_run"]
_PUT_QUESTION = _SQL["put_question"]
_LEAVE_NOTICE = _SQL["leave_notice"]
_HEAR_NOTICE = _SQL["hear_notice"]
_SAVE_SNAPSHOT = _SQL["save_snapshot"]
_STORE_DEFINITION = _SQL["store_definition"]
_KEEP = _SQL["keep"]
_DROP_KEPT = _SQL["drop_kept"]
_KEPT_UNTIL = _SQL["kept_until"]
_DROP_EXPIRED = _SQL["drop_expired"]
_LAST_AUDITED = _SQL["last_audited"]
_ADD_AUDITED = _SQL["add_audited"]
_LAST_COMMIT = _SQL["last_commit"]
_PLACED = _SQL["placed"]
_PLACE_TAIL = _SQL["place_tail"]
_NOTE_PLACED = _SQL["note_placed"]
_QUESTION_PAIR = _SQL["question_pair"]

_COLUMNS = 6
_AT_ONCE = 16 * _COLUMNS
_ADD_EVENTS = {
    count * _COLUMNS: _SQL["add_event"] + ", (?, ?, ?, ?, ?, ?)" * (count - 1)
    for count in range(1, _AT_ONCE // _COLUMNS + 1)
}
"""What adds so many values. A statement for each record takes 1.4 times the instructions."""

MOST_PLACES = 50_000
EXPIRED_AT_ONCE = 16
"""Tuning: of how many runs it is known where they stand, and how much of what has expired goes
at once."""


def _values_of(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Takes a row apart in the order of its fields, which is that of the columns."""
    return attrgetter(*(field.name for field in fields(kind)))


_run_values = _values_of(RunRow)
_question_values = _values_of(QuestionRow)
_notice_values = _values_of(OutboxMessage)
_kept_values = _values_of(ExpiringValue)
_audit_values = _values_of(AuditRecord)


_SEQ = 0xFFFFFFFF
_NOWHERE = -1
"""The place of no record: whatever is expected, it is not there."""
_UNKNOWN = -1
"""The newest position, before it has been read."""


def place(run: int, seq: int) -> int:
    """Where a record stands in `events`."""
    return run << 32 | seq


Pair: TypeAlias = tuple[str, str]


class Tally:
    """How many rows there are of each pair of values, known without looking at them all.

    The rows are counted once, inside a transaction; from then on every commit brings the changes
    that it has made. After a rollback the tally is forgotten, and counted when next asked for.
    """

    def __init__(self, query: str) -> None:
        self._query = query
        self.known: Mapping[Pair, int] | None = None
        """As of the last commit; None until it is asked for. Replaced, never changed: it is read by
        the event loop while another thread commits."""
        self.kept = False
        """Whether changes are to be noted."""

    def count(self, transaction: Transaction) -> Mapping[Pair, int]:
        rows = transaction.execute(self._query).fetchall()
        self.kept = True
        return {(one, other): count for one, other, count in rows}

    def begin(self, counted: Mapping[Pair, int]) -> None:
        self.known = counted

    def move(self, before: Pair | None, after: Pair) -> None:
        """A row has changed, or is new."""
        if self.known is None:
            return
        known = dict(self.known)
        if before is not None:
            known[before] = known.get(before, 0) - 1
        known[after] = known.get(after, 0) + 1
        self.known = {pair: count for pair, count in known.items() if count > 0}

    def leave(self, pair: Pair, count: int) -> None:
        """So many rows are gone."""
        if self.known is not None:
            known = {**self.known, pair: self.known.get(pair, 0) - count}
            self.known = {one: left for one, left in known.items() if left > 0}

    def forget(self) -> None:
        self.known, self.kept = None, False


class AppendWriter:
    """Knows where each run stands: it is the only one that writes to this database.

    What is gathered is written by `flush`, at the latest before the commit. After a rollback
    `forget` has it look again.
    """

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """Where the last record of each run stands."""
        self._position = _UNKNOWN
        self._place_at = 0
        self.gathered: list[Any] = []
        """Records that are to be written, one value after another."""
        self.runs = Tally(_SQL["run_counts"])
        self.questions = Tally(_SQL["question_counts"])
        self.moves: list[Callable[[], None]] = []
        """What the tallies are to be told of once this is committed."""

    def forget(self) -> None:
        self._places.clear()
        self._position = _UNKNOWN
        self.gathered.clear()
        self.moves.clear()
        self.runs.forget()
        self.questions.forget()

    def forget_run(self, run_id: str) -> None:
        """It is removed."""
        self._places.pop(run_id, None)

    def committed(self) -> None:
        for move in self.moves:
            move()
        self.moves.clear()

    def count(self, transaction: Transaction, tally: Tally) -> None:
        self.moves.append(partial(tally.begin, tally.count(transaction)))

    def write(self, transaction: Transaction, append: Append) -> int:
        """Everything in an append, births included; the run's new version."""
        run_id, expected, records = append.run_id, append.expected, append.records
        if append.attached is not NOTHING:
            # First of all: what fails before anything is written, fails alone at no cost.
            _require_names(transaction, append.attached)
        place = self._places.get(run_id, _NOWHERE)
        if append.row is not None or place & _SEQ != expected:
            place = self._place_of(transaction, append)
        position = self._position
        if position == _UNKNOWN:
            [[position]] = transaction.execute(_LAST_COMMIT).fetchall()
            [[placed]] = transaction.execute(_PLACED).fetchall()
            self._place_at = placed + database.MOST_UNPLACED
        add_values(self.gathered, records, position, place)
        count = len(records)
        self._position = position + count
        self._places[run_id] = place + count
        if append.questions or append.notices or append.heard or append.child_appends:
            self._write_company(transaction, append)
        if append.attached is not NOTHING:
            _attach(transaction, append.attached)
        return expected + count

    def flush(self, transaction: Transaction) -> None:
        """Write what is gathered, to be committed with what else is written."""
        gathered = self.gathered
        for start in range(0, len(gathered), _AT_ONCE):
            values = gathered[start : start + _AT_ONCE]
            transaction.execute(_ADD_EVENTS[len(values)], values)
        gathered.clear()

    def prepare(self, transaction: Transaction) -> None:
        """The same, and where records lie, if that is due."""
        self.flush(transaction)
        if self._position >= self._place_at:
            transaction.execute(_PLACE_TAIL)
            transaction.execute(_NOTE_PLACED, {"position": self._position})
            self._place_at = self._position + database.MOST_UNPLACED

    def finish(self, transaction: Transaction) -> None:
        """The same when nothing else follows: where that is one statement, it commits by itself."""
        gathered = self.gathered
        if self._position >= self._place_at or transaction.begun or len(gathered) > _AT_ONCE:
            self.prepare(transaction)
        elif gathered:
            transaction.execute_alone(_ADD_EVENTS[len(gathered)], gathered)
            gathered.clear()

    def write_snapshot(self, transaction: Transaction, snapshot: Snapshot) -> None:
        self.flush(transaction)
        crc = snapshot_crc(snapshot.version, snapshot.schema, snapshot.payload.encode())
        transaction.execute(_SAVE_SNAPSHOT, {**asdict(snapshot), "crc": crc})

    def _place_of(self, transaction: Transaction, append: Append) -> int:
        """Where the run's last record stands, if that is where it is expected to."""
        if len(self._places) > MOST_PLACES:
            self.flush(transaction)  # what is only gathered, the database does not know of
            self._places.clear()
        row, expected = append.row, append.expected
        if expected == 0 and row is not None:
            run = _create(transaction, append, row)
            if self.runs.kept:
                self.moves.append(partial(self.runs.move, None, (row.kind, row.status)))
            return place(run, 0)
        last = self._places.get(append.run_id) or locate(transaction, append.run_id)
        if last & _SEQ != expected:
            raise conflict(append)
        if row is not None:
            status = _describe(transaction, last >> 32, row)
            if self.runs.kept and status != row.status:
                moved = (row.kind, status), (row.kind, row.status)
                self.moves.append(partial(self.runs.move, *moved))
        return last

    def _write_company(self, transaction: Transaction, append: Append) -> None:
        if self.questions.kept:
            self._tally_questions(transaction, append.questions)
        questions = map(_checked, map(_question_values, append.questions))
        transaction.executemany(_PUT_QUESTION, questions)
        for birth in append.child_appends:
            self.write(transaction, birth)
        transaction.executemany(_LEAVE_NOTICE, map(_notice_values, append.notices))
        heard = [(append.run_id, source_id, seq) for source_id, seq in append.heard]
        transaction.executemany(_HEAR_NOTICE, heard)

    def _tally_questions(self, transaction: Transaction, rows: Sequence[QuestionRow]) -> None:
        pairs: dict[str, Pair] = {}
        for row in rows:
            before = pairs.get(row.question_id) or _pair_of(transaction, row.question_id)
            after = (row.status, before[1] if before else row.type)
            pairs[row.question_id] = after
            self.moves.append(partial(self.questions.move, before, after))


def _pair_of(transaction: Transaction, question_id: str) -> Pair | None:
    rows = transaction.execute(_QUESTION_PAIR, (question_id,)).fetchall()
    return (rows[0][0], rows[0][1]) if rows else None


def _checked(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row with its checksum."""
    return *values, row_crc(values)


def attach(transaction: Transaction, attached: Attached) -> None:
    """What is kept, dropped and audited, whichever run it belongs to."""
    check_names(attached)
    _require_names(transaction, attached)
    _attach(transaction, attached)


def _require_names(transaction: Transaction, attached: Attached) -> None:
    """That every name to be claimed is free, and every one to be spent is there."""
    for one in attached.claimed:
        if _is_kept(transaction, (one.kind, one.key), attached.at):
            raise NameTaken(one.kind, one.key)
    for name in attached.spent:
        if not _is_kept(transaction, name, attached.at):
            raise NameGone(*name)


def _is_kept(transaction: Transaction, name: Pair, now: float) -> bool:
    rows = transaction.execute(_KEPT_UNTIL, name).fetchall()
    return bool(rows) and (rows[0][0] is None or rows[0][0] > now)


def _attach(transaction: Transaction, attached: Attached) -> None:
    transaction.executemany(_DROP_KEPT, [*attached.dropped, *attached.spent])
    kept = [*attached.kept, *attached.claimed]
    transaction.executemany(_KEEP, map(_checked, map(_kept_values, kept)))
    if attached.audit:
        now = max(one.at for one in attached.audit)
        transaction.execute(_DROP_EXPIRED, (now, EXPIRED_AT_ONCE))
        _add_audited(transaction, attached.audit)


def write_definition(transaction: Transaction, definition: StoredDefinition) -> None:
    meta = json.dumps(dict(definition.meta), ensure_ascii=False)
    values = (
        definition.digest,
        definition.kind,
        definition.name,
        packed(definition.body),
        definition.stored_at,
        meta,
    )
    transaction.execute(_STORE_DEFINITION, _checked(values))


def locate(transaction: Transaction, run_id: str) -> int:
    rows = transaction.execute(_LOCATE_RUN, (run_id,)).fetchall()
    run, version, _ = rows[0] if rows else (0, None, None)
    return _NOWHERE if version is None else place(run, version)


def _create(transaction: Transaction, append: Append, row: RunRow) -> int:
    rows = transaction.execute(_CREATE_RUN, _run_values(row)).fetchall()
    if not rows:
        raise conflict(append)
    return int(rows[0][0])


def _describe(transaction: Transaction, run: int, row: RunRow) -> str:
    """Renews the row; the status that it had."""
    values = (row.updated_at, row.title, row.summary, run)
    [held] = transaction.execute(_DESCRIBE_RUN, values).fetchall()
    wanted = (row.status, row.active, row.wake_at)
    if held != wanted:
        transaction.execute(_INDEX_RUN, (*wanted, run))
    return str(held[0])


def _add_audited(transaction: Transaction, records: Sequence[AuditRecord]) -> None:
    """Goes on from the end of the chain as this transaction sees it."""
    rows = transaction.execute(_LAST_AUDITED).fetchall()
    last, previous = rows[0] if rows else (0, AUDIT_START)
    for number, record in enumerate(records, last + 1):
        digest = link(previous, number, record)
        transaction.execute(_ADD_AUDITED, (number, *_audit_values(record), previous, digest))
        previous = digest
