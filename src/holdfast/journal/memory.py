"""The journal in memory: for tests, and for runs that may be forgotten.

It keeps every promise of the port but the disk: an append is checked as a whole
before any of it is done, so it happens entirely or not at all.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from holdfast.errors import JournalUnavailable, NameGone, NameTaken, NotFound
from holdfast.journal.port import (
    ANY_QUESTION,
    ANY_RUN,
    AUDIT_START,
    NOT_OPEN,
    NOTHING,
    Append,
    Attached,
    AuditEntry,
    AuditRecord,
    Committed,
    ExpiringValue,
    Numbers,
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
    conflict,
    link,
    split_run_id,
)
from holdfast.model.run import FINISHED

STRETCHES_KEPT = 100_000


@dataclass(slots=True)
class _Run:
    number: int
    row: RunRow
    records: list[Record] = field(default_factory=list)
    snapshot: Snapshot | None = None


class MemoryJournal:
    """What it holds lives as long as the object; closing and opening it again keeps it."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._questions: dict[str, QuestionRow] = {}
        self._notices: dict[tuple[str, str, int], OutboxMessage] = {}
        self._definitions: dict[str, StoredDefinition] = {}
        self._kept: dict[tuple[str, str], ExpiringValue] = {}
        self._audit: list[AuditEntry] = []
        self._commits: list[Committed] = []
        self._forgotten = 0
        self._position = 0
        self._given = 0
        self._gone: dict[str, int] = {}
        self._numbers = Numbers()
        self._is_open = False

    shared = False

    @property
    def epoch(self) -> int:
        return 0

    async def open(self) -> None:
        self._is_open = True
        self._numbers = Numbers()

    async def close(self) -> None:
        self._is_open = False

    async def append(self, append: Append) -> int:
        self._require_open()
        check(append)
        self._require_version(append)
        self._require_unborn(append)
        self._require_names(append.attached)
        self._numbers.note(append)
        self._write(append)
        await asyncio.sleep(0)  # a run that never waits must not keep the loop to itself
        return append.expected + len(append.records)

    async def read(
        self,
        run_id: str,
        after: int = 0,
        limit: int | None = None,
        most_text: int | None = None,
    ) -> list[Record]:
        self._require_open()
        run = self._runs.get(run_id)
        end = None if limit is None else after + limit
        records = run.records[after:end] if run else []
        return records if most_text is None else _within(records, most_text)

    async def version(self, run_id: str) -> int:
        self._require_open()
        run = self._runs.get(run_id)
        return len(run.records) if run else 0

    async def run(self, run_id: str) -> RunRow | None:
        self._require_open()
        run = self._runs.get(run_id)
        return run.row if run else None

    async def runs(self, query: RunQuery = ANY_RUN) -> list[RunRow]:
        self._require_open()
        newest = reversed(self._runs.values())
        before = self._number_before(query.before)
        fitting = (run.row for run in newest if run.number < before and _fits(run.row, query))
        return [row for row, _ in zip(fitting, range(query.limit), strict=False)]

    async def active_runs(self) -> list[str]:
        self._require_open()
        return [row.run_id for row in self._rows() if row.active]

    async def due_runs(self, now: float, limit: int = 100) -> list[str]:
        self._require_open()
        due = [(row.wake_at, row.run_id) for row in self._rows() if row.wake_at is not None]
        due = [(wake_at, run_id) for wake_at, run_id in due if wake_at <= now]
        return [run_id for _, run_id in sorted(due, key=lambda pair: pair[0])][:limit]

    async def run_counts(self) -> Mapping[tuple[str, str], int]:
        self._require_open()
        return Counter((row.kind, row.status) for row in self._rows())

    async def question_counts(self) -> Mapping[tuple[str, str], int]:
        self._require_open()
        return Counter((row.status, row.type) for row in self._questions.values())

    async def next_wake(self, after: float | None = None) -> float | None:
        self._require_open()
        wakes = (row.wake_at for row in self._rows() if row.wake_at is not None)
        return min((at for at in wakes if after is None or at > after), default=None)

    async def question(self, question_id: str) -> QuestionRow | None:
        self._require_open()
        return self._questions.get(question_id)

    async def questions(self, query: QuestionQuery = ANY_QUESTION) -> list[QuestionRow]:
        self._require_open()
        later = self._questions_after(query.after, query.newest)
        fitting = [row for row in later if _suits(row, query)]
        return fitting[: query.limit]

    async def notices(self, target_id: str | None = None) -> list[OutboxMessage]:
        self._require_open()
        return [n for n in self._notices.values() if target_id in (None, n.target_id)]

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        self._require_open()
        run = self._runs.get(snapshot.run_id)
        if run is None or snapshot.version > len(run.records):
            return
        kept = run.snapshot
        if kept is None or kept.schema != snapshot.schema or kept.version <= snapshot.version:
            run.snapshot = snapshot

    async def snapshot(self, run_id: str, schema: int) -> Snapshot | None:
        self._require_open()
        run = self._runs.get(run_id)
        kept = run.snapshot if run else None
        return kept if kept is not None and kept.schema == schema else None

    async def store_definition(self, definition: StoredDefinition) -> None:
        self._require_open()
        self._definitions.setdefault(definition.digest, definition)

    async def definition(self, digest: str) -> StoredDefinition | None:
        self._require_open()
        return self._definitions.get(digest)

    async def definitions(self, kind: str, name: str) -> list[StoredDefinition]:
        self._require_open()
        stored = [one for one in self._definitions.values() if (one.kind, one.name) == (kind, name)]
        return sorted(stored, key=attrgetter("stored_at", "digest"), reverse=True)

    async def attach(self, attached: Attached) -> None:
        self._require_open()
        check_names(attached)
        self._require_names(attached)
        self._attach(attached)

    async def kept(self, kind: str, key: str, now: float) -> ExpiringValue | None:
        self._require_open()
        kept = self._kept.get((kind, key))
        return kept if kept is not None and _lasts(kept, now) else None

    async def all_kept(self, kind: str, now: float) -> list[ExpiringValue]:
        self._require_open()
        found = [one for one in self._kept.values() if one.kind == kind and _lasts(one, now)]
        return sorted(found, key=attrgetter("key"))

    async def audit(self, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        self._require_open()
        return self._audit[after : after + limit]

    async def commits(self, after: int = 0, limit: int = 1000) -> list[Committed]:
        self._require_open()
        start = bisect_right(self._commits, after, key=attrgetter("position"))
        return [_behind(one, after) for one in self._commits[start : start + limit]]

    async def last_commit(self) -> int:
        self._require_open()
        return self._position

    async def forgotten(self) -> int:
        self._require_open()
        return self._forgotten

    async def remove(self, removals: Sequence[Removal], attached: Attached = NOTHING) -> list[str]:
        self._require_open()
        refused = [next(iter(one.versions)) for one in removals if not self._may_go(one)]
        if refused:
            return refused
        check_names(attached)
        self._require_names(attached)
        for removal in removals:
            self._remove(removal)
        self._attach(attached)
        return []

    async def reclaim(self) -> bool:
        self._require_open()
        return False

    async def next_number(self, series: str) -> int:
        self._require_open()
        if not self._numbers.knows(series):
            found = (split_run_id(row.run_id) for row in self._rows() if row.parent_id is None)
            used = (number or 0 for name, number in found if name == series)
            self._numbers.begin(series, max(used, default=0))
            self._numbers.begin(series, self._gone.get(series, 0))
        return self._numbers.next(series)

    def _require_open(self) -> None:
        if not self._is_open:
            raise JournalUnavailable(f"the journal in memory {NOT_OPEN}")

    def _require_version(self, append: Append) -> None:
        run = self._runs.get(append.run_id)
        if (len(run.records) if run else 0) != append.expected:
            raise conflict(append)

    def _require_unborn(self, append: Append) -> None:
        coming = {append.run_id}
        for birth in _descendants(append):
            if birth.run_id in self._runs or birth.run_id in coming:
                raise conflict(birth)
            coming.add(birth.run_id)

    def _require_names(self, attached: Attached) -> None:
        for one in attached.claimed:
            if self._is_kept((one.kind, one.key), attached.at):
                raise NameTaken(one.kind, one.key)
        for name in attached.spent:
            if not self._is_kept(name, attached.at):
                raise NameGone(*name)

    def _is_kept(self, name: tuple[str, str], now: float) -> bool:
        kept = self._kept.get(name)
        return kept is not None and _lasts(kept, now)

    def _write(self, append: Append) -> None:
        if append.expected == 0 and append.row is not None:
            self._runs[append.run_id] = _Run(self._given, append.row)
            self._given += 1
        run = self._runs[append.run_id]
        run.records.extend(map(Record._make, append.records))
        if append.records:
            self._note_commit(append)
        if append.row is not None:
            run.row = _renewed(run.row, append.row)
        for question in append.questions:
            self._questions[question.question_id] = question
        for birth in append.child_appends:
            self._write(birth)
        for notice in append.notices:
            key = (notice.target_id, notice.source_id, notice.seq)
            self._notices.setdefault(key, notice)
        for source_id, seq in append.heard:
            self._notices.pop((append.run_id, source_id, seq), None)
        self._attach(append.attached)

    def _attach(self, attached: Attached) -> None:
        for name in (*attached.dropped, *attached.spent):
            self._kept.pop(name, None)
        for kept in (*attached.kept, *attached.claimed):
            self._kept[kept.kind, kept.key] = kept
        if attached.audit:
            self._drop_expired(max(one.at for one in attached.audit))
        for one in attached.audit:
            self._audit.append(self._link(one))

    def _may_go(self, removal: Removal) -> bool:
        root_id, names = next(iter(removal.versions)), removal.versions.keys()
        asks = any(q.root_id == root_id and q.status == "open" for q in self._questions.values())
        told = any({n.source_id, n.target_id} & names for n in self._notices.values())
        if asks or told or not names <= self._runs.keys():
            return False
        if self._runs[root_id].row.parent_id is not None:
            return False
        below = {row.run_id for row in self._rows() if row.parent_id in names}
        return below | {root_id} == names and all(
            len(self._runs[run_id].records) == version and _is_finished(self._runs[run_id].row)
            for run_id, version in removal.versions.items()
        )

    def _remove(self, removal: Removal) -> None:
        root_id, names = next(iter(removal.versions)), removal.versions.keys()
        for run_id in names:
            del self._runs[run_id]
        self._commits = [one for one in self._commits if one.run_id not in names]
        questions = self._questions.items()
        self._questions = {name: one for name, one in questions if one.root_id != root_id}
        self._attach(Attached(dropped=removal.dropped))
        series, number = split_run_id(root_id)
        if number is not None:
            self._gone[series] = max(number, self._gone.get(series, 0))

    def _drop_expired(self, now: float) -> None:
        self._kept = {name: one for name, one in self._kept.items() if _lasts(one, now)}

    def _link(self, record: AuditRecord) -> AuditEntry:
        number = len(self._audit) + 1
        previous = self._audit[-1].digest if self._audit else AUDIT_START
        return AuditEntry(number, record, previous, link(previous, number, record))

    def _note_commit(self, append: Append) -> None:
        first, count = append.expected + 1, len(append.records)
        before = self._commits[-1] if self._commits else None
        if before is not None and (before.position, before.run_id) == (
            self._position,
            append.run_id,
        ):
            first = self._commits.pop().first
        self._position = position = self._position + count
        last = append.expected + count
        self._commits.append(Committed(position, append.run_id, first, last))
        if len(self._commits) > 2 * STRETCHES_KEPT:
            self._forgotten = self._commits[-STRETCHES_KEPT - 1].position
            del self._commits[:-STRETCHES_KEPT]

    def _questions_after(self, question_id: str | None, newest: bool) -> Iterator[QuestionRow]:
        rows = reversed(self._questions.values()) if newest else iter(self._questions.values())
        if question_id is None:
            return rows
        if question_id not in self._questions:
            raise NotFound(f"there is no question {question_id} to go on from")
        while next(rows).question_id != question_id:
            pass
        return rows

    def _number_before(self, run_id: str | None) -> int:
        if run_id is None:
            return self._given
        if run_id not in self._runs:
            raise NotFound(f"there is no run {run_id} to go on from")
        return self._runs[run_id].number

    def _rows(self) -> Iterator[RunRow]:
        return (run.row for run in self._runs.values())


def _within(records: list[Record], most_text: int) -> list[Record]:
    """Those up to the one that brings them to so many characters."""
    for count, one in enumerate(records, 1):
        most_text -= len(one.payload)
        if most_text <= 0:
            return records[:count]
    return records


def _descendants(append: Append) -> Iterator[Append]:
    for birth in append.child_appends:
        yield birth
        yield from _descendants(birth)


def _is_finished(row: RunRow) -> bool:
    return not row.active and row.wake_at is None and row.status in FINISHED


def _renewed(row: RunRow, new: RunRow) -> RunRow:
    return replace(
        row,
        status=new.status,
        active=new.active,
        wake_at=new.wake_at,
        updated_at=new.updated_at,
        title=new.title,
        summary=new.summary,
    )


def _fits(row: RunRow, query: RunQuery) -> bool:
    return (
        (query.status is None or row.status in query.status)
        and query.name in (None, row.name)
        and query.kind in (None, row.kind)
        and query.parent_id in (None, row.parent_id)
        and not (query.roots_only and row.parent_id is not None)
    )


def _suits(row: QuestionRow, query: QuestionQuery) -> bool:
    return (
        (query.status is None or row.status in query.status)
        and query.root_id in (None, row.root_id)
        and query.run_id in (None, row.run_id)
        and query.role in (None, row.role)
        and (query.due_before is None or _is_due(row, query.due_before))
    )


def _is_due(row: QuestionRow, before: float) -> bool:
    return row.deadline is not None and row.deadline < before


def _lasts(kept: ExpiringValue, now: float) -> bool:
    return kept.expires_at is None or kept.expires_at > now


def _behind(stretch: Committed, after: int) -> Committed:
    """What of a stretch lies behind `after`."""
    left = min(stretch.position - after, stretch.last - stretch.first + 1)
    return replace(stretch, first=stretch.last + 1 - left)
