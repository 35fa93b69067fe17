"""The journal's port: what the runtime asks of a store, whichever store it is.

A run *is* its journal: a gapless, append-only sequence of records. An `Append` is
the only way to change anything. It carries everything that must become true
together: the records, the run's row in the projection, the questions that opened
or closed, the child runs that were born, the notices left for other runs and
those that were heard, and what is attached: who did it, and what is kept with it.
All of it commits, or none.

`expected` is the version (the last sequence number) that the decision was made
on; 0 creates the run. A run that has moved on raises `VersionConflict` and that
append alone fails, whatever it was committed together with.

When `append` returns, its records are on disk. When it raises
`JournalUnavailable` they may or may not be: "not acknowledged", never "did not
happen".

What follows the port is what all stores share: how the questions of a tree of runs are read, what
an append must satisfy (`check`), how run ids are numbered, and how audit records are chained.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Final, NamedTuple, Protocol, TypeAlias

from holdfast.errors import InternalError, NameGone, NameTaken, VersionConflict
from holdfast.language.strict import digest
from holdfast.model.record import record
from holdfast.model.rows import ANY_QUESTION as ANY_QUESTION
from holdfast.model.rows import ANY_RUN as ANY_RUN
from holdfast.model.rows import DAMAGED_RUN as DAMAGED_RUN
from holdfast.model.rows import NOTHING as NOTHING
from holdfast.model.rows import Attached as Attached
from holdfast.model.rows import AuditEntry as AuditEntry
from holdfast.model.rows import AuditRecord as AuditRecord
from holdfast.model.rows import ExpiringValue as ExpiringValue
from holdfast.model.rows import QuestionQuery as QuestionQuery
from holdfast.model.rows import QuestionRow as QuestionRow
from holdfast.model.rows import Removal as Removal
from holdfast.model.rows import RunQuery as RunQuery
from holdfast.model.rows import RunRow as RunRow
from holdfast.model.run import is_below
from holdfast.model.values import Json


class Record(NamedTuple):
    """One event as it is stored: `type` and `payload` belong to the codec."""

    seq: int
    at: float
    type: str
    payload: str


Written: TypeAlias = tuple[int, float, str, str]
"""A record on its way to the store, where nothing is read by name; making a plain tuple costs a
tenth."""


@record
class OutboxMessage:
    """A message from one run to another: `(source_id, seq)` makes it unique."""

    target_id: str
    source_id: str
    seq: int
    payload: str


NOT_OPEN = (
    "is not open: start the application first, with `async with app:`, or in a web application "
    "with FastAPI(lifespan=app.lifespan)"
)
"""Said of a journal that is asked for anything before its application is opened, or after."""


@record
class Committed:
    """A stretch of one run's records, at its place among all commits of the journal.

    Positions rise in the order in which records were committed, one by one within a stretch:
    `position` is that of the stretch's last record, and where to go on from. Where a run was
    removed there is a hole; no position is given twice. Appends that one run made in a row may
    come as one stretch.
    """

    position: int
    run_id: str
    first: int
    last: int


@record
class Drive:
    """Who drives a run of a shared journal: a job of the dispatcher, and which attempt at it."""

    job: int
    attempt: int


@record
class Append:
    """Everything that becomes true together.

    `row` is the run's row after these records, or None when nothing in it but
    the version has changed (the common case, and the cheap one).

    In a shared journal the driver of a run says so with `drive`: where another has taken the run
    over since, that append raises `Superseded`. A birth with `drive` makes it the driver at once,
    under a job of its own (`reserve_jobs`); `ends_drive` removes that job with the append.
    """

    run_id: str
    expected: int
    records: Sequence[Written]
    row: RunRow | None = None
    questions: Sequence[QuestionRow] = ()
    child_appends: Sequence[Append] = ()
    notices: Sequence[OutboxMessage] = ()
    heard: Sequence[tuple[str, int]] = ()
    attached: Attached = NOTHING
    drive: Drive | None = None
    ends_drive: bool = False


@record
class Snapshot:
    """A disposable cache of a run's state, never ahead of the journal."""

    run_id: str
    version: int
    schema: int
    payload: str


@record
class StoredDefinition:
    """A plan's body, stored by content: the digest is its name."""

    digest: str
    kind: str
    name: str
    body: str
    stored_at: float
    meta: Mapping[str, Json] = field(default_factory=dict)


class Journal(Protocol):
    @property
    def shared(self) -> bool:
        """Whether other processes may append to it too; then it is a
        `holdfast.journal.shared.SharedJournal`."""

    @property
    def epoch(self) -> int:
        """Rises whenever appends were refused because the store failed.

        State from before must be read again: what was refused may or may not have happened.
        """

    async def open(self) -> None:
        """Make the store ready, or say why not (HomeBusy, JournalDamaged, JournalTooNew)."""

    async def close(self) -> None:
        """Finish what was accepted, then let go of the store. Harmless twice."""

    def append(self, append: Append) -> Awaitable[int]:
        """Commit durably; the run's new version."""

    async def read(
        self,
        run_id: str,
        after: int = 0,
        limit: int | None = None,
        most_text: int | None = None,
    ) -> list[Record]:
        """The run's records with `seq > after`, in order.

        With `most_text` the one that brings the payloads to that many characters is the last:
        records can be large, and a page of them must not be.
        """

    async def version(self, run_id: str) -> int:
        """The run's last sequence number; 0 when there is no such run."""

    async def run(self, run_id: str) -> RunRow | None: ...

    async def runs(self, query: RunQuery = ANY_RUN) -> list[RunRow]: ...

    async def active_runs(self) -> list[str]:
        """The ids of all runs that a restart must load."""

    async def due_runs(self, now: float, limit: int = 100) -> list[str]:
        """Runs whose `wake_at` has come, the earliest first."""

    async def run_counts(self) -> Mapping[tuple[str, str], int]:
        """How many runs there are of each kind and status."""

    async def question_counts(self) -> Mapping[tuple[str, str], int]:
        """How many questions there are of each status and type."""

    async def next_wake(self, after: float | None = None) -> float | None:
        """The earliest `wake_at` of all, or of those later than `after`."""

    async def question(self, question_id: str) -> QuestionRow | None: ...

    async def questions(self, query: QuestionQuery = ANY_QUESTION) -> list[QuestionRow]:
        """Oldest first."""

    async def notices(self, target_id: str | None = None) -> list[OutboxMessage]:
        """Notices not yet heard, of one run or of all, in order."""

    async def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it if it is not ahead of the journal; only the newest is kept."""

    async def snapshot(self, run_id: str, schema: int) -> Snapshot | None: ...

    async def store_definition(self, definition: StoredDefinition) -> None:
        """Harmless when that digest is stored already."""

    async def definition(self, digest: str) -> StoredDefinition | None: ...

    async def definitions(self, kind: str, name: str) -> list[StoredDefinition]:
        """All that were ever stored under a name, the newest first."""

    async def attach(self, attached: Attached) -> None:
        """Commit what belongs to no run."""

    async def kept(self, kind: str, key: str, now: float) -> ExpiringValue | None:
        """What is kept under a name, unless it has expired."""

    async def all_kept(self, kind: str, now: float) -> list[ExpiringValue]:
        """Everything of one kind that has not expired, in order of the keys."""

    async def audit(self, after: int = 0, limit: int = 1000) -> list[AuditEntry]:
        """The audit chain from the entry after `after`, in order."""

    async def commits(self, after: int = 0, limit: int = 1000) -> list[Committed]:
        """What was committed after a position, in order: at most so many stretches."""

    async def last_commit(self) -> int:
        """The newest position that was given; 0 when nothing was ever committed."""

    async def forgotten(self) -> int:
        """Up to which position it is not known any more what was committed; 0 if all is known."""

    async def next_number(self, series: str) -> int:
        """The next number for run ids `{series}_{number}`, from 1.

        Never given twice by a store while anything has it open, and never that of a run that
        exists; costs no commit that anything waits for.
        """


class PrunedJournal(Journal, Protocol):
    """A journal that finished runs can be removed from."""

    async def remove(self, removals: Sequence[Removal], attached: Attached = NOTHING) -> list[str]:
        """Remove whole trees with their questions and snapshots, all of them or none.

        None where one has moved on, is not `FINISHED`, goes on by itself, has a timer, asks
        something, has a notice to hear or left, or has runs that are not named. The roots of
        those; empty when all are gone, together with `attached`.
        """

    async def reclaim(self) -> bool:
        """Do a bounded part of what removals have left to do, so that space is given back; whether
        more is left."""


OPEN: Final = frozenset({"open"})

QUESTIONS_PAGE: Final = 200
"""Questions that are read at once."""


async def questions_below(
    journal: Journal,
    run_id: str,
    root_id: str,
    status: frozenset[str] = OPEN,
    after: str | None = None,
) -> AsyncGenerator[QuestionRow, None]:
    """All questions of a run and of those below it, the oldest first, however many; with `after`
    those asked after that one."""
    query = QuestionQuery(status=status, root_id=root_id, after=after, limit=QUESTIONS_PAGE)
    while True:
        rows = await journal.questions(query)
        for row in rows:
            if is_below(row.run_id, run_id):
                yield row
        if len(rows) < QUESTIONS_PAGE:
            return
        query = replace(query, after=rows[-1].question_id)
        # A journal need never make us wait, and others want a turn.
        await asyncio.sleep(0)


def check(append: Append) -> None:
    """Raise `InternalError` for an append that no store may accept: a mistake of ours, found before
    anything is written, so that a journal never holds a gap or a run without a row."""
    seq, row = append.expected, append.row
    if seq == 0 and (row is None or not append.records):
        raise InternalError(f"run {append.run_id} cannot be created without a row and a record")
    for one in append.records:
        seq += 1
        if one[0] != seq:
            raise InternalError(f"run {append.run_id}: record {one[0]} stands where {seq} belongs")
    if row is not None and row.run_id != append.run_id:
        raise InternalError(f"run {append.run_id} was given the row of {row.run_id}")
    if append.questions or append.notices or append.child_appends:
        _check_company(append)
    if append.attached.claimed or append.attached.spent:
        check_names(append.attached)


def check_names(attached: Attached) -> None:
    """NameTaken or NameGone where one name is claimed or spent twice."""
    claimed = [(one.kind, one.key) for one in attached.claimed]
    if len(set(claimed)) < len(claimed):
        raise NameTaken(*_twice(claimed))
    if len(set(attached.spent)) < len(attached.spent):
        raise NameGone(*_twice(attached.spent))


def _twice(names: Sequence[tuple[str, str]]) -> tuple[str, str]:
    return Counter(names).most_common(1)[0][0]


def conflict(append: Append) -> VersionConflict:
    """The error of an append that another has overtaken."""
    if append.expected == 0:
        return VersionConflict(f"run {append.run_id} exists already")
    return VersionConflict(f"run {append.run_id} is no longer at version {append.expected}")


def _check_company(append: Append) -> None:
    for question in append.questions:
        if question.run_id != append.run_id:
            raise InternalError(f"run {append.run_id} cannot ask for {question.run_id}")
    for notice in append.notices:
        if notice.source_id != append.run_id:
            raise InternalError(f"run {append.run_id} cannot speak for {notice.source_id}")
    for birth in append.child_appends:
        if birth.expected != 0:
            raise InternalError(f"run {birth.run_id} is born at {birth.expected} instead of 0")
        if birth.attached.claimed or birth.attached.spent:
            raise InternalError(f"run {birth.run_id} is born with claims: those are its parent's")
        check(birth)


SHORTEST_NUMBER: Final = 6
LONGEST_NUMBER: Final = 18
"""Digits in a number: larger ones simply grow longer, as far as a database counts."""


class Numbers:
    """The counters of one open journal, one per series: `inst_000001`, `inst_000002` and so on.

    A number is only a proposal until the run is created, so it needs no place on disk: the counter
    starts behind the highest run that exists and rises in memory.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def knows(self, series: str) -> bool:
        return series in self._last

    def begin(self, series: str, highest: int) -> None:
        """Start a series behind the highest number in use."""
        self._last[series] = max(highest, self._last.get(series, 0))

    def next(self, series: str) -> int:
        self._last[series] += 1
        return self._last[series]

    def note(self, append: Append) -> None:
        """Remember the number of a run whose id was not given by `next`."""
        series, number = split_run_id(append.run_id)
        if number is not None and series in self._last:
            self._last[series] = max(self._last[series], number)


def split_run_id(run_id: str) -> tuple[str, int | None]:
    """The series and number in a run id; no number when it does not end in one."""
    series, _, digits = run_id.rpartition("_")
    if len(digits) >= SHORTEST_NUMBER and digits.isascii() and digits.isdigit():
        return series, int(digits)
    return run_id, None


AUDIT_START: Final = ""
"""The digest before the first entry."""

_AUDIT_FIELDS = tuple(one.name for one in fields(AuditRecord))


def link(previous: str, number: int, record: AuditRecord) -> str:
    """The digest of the entry that follows the one whose digest is `previous`.

    It covers the record, its number and the entry before: to change, remove or move an entry breaks
    the chain from there on, and to mend the rest of it changes the newest digest, which may have
    been noted elsewhere. Of what is cut off at the end only such a note tells.
    """
    told: dict[str, Json] = {name: getattr(record, name) for name in _AUDIT_FIELDS}
    told["at"] = float(record.at)  # a database gives 5 back as 5.0
    return digest({"number": number, "previous": previous, "deed": told})


def verify(entries: Iterable[AuditEntry], last: AuditEntry | None = None) -> str | None:
    """What is wrong with the chain, or None; `last` is where the part before has ended."""
    number, previous = (last.number, last.digest) if last is not None else (0, AUDIT_START)
    for entry in entries:
        number += 1
        if entry.number != number:
            return f"entry {number} is missing: entry {entry.number} stands in its place"
        if entry.previous != previous:
            return f"entry {number} does not follow the entry before it"
        if link(previous, number, entry.record) != entry.digest:
            return f"entry {number} has been changed since it was written"
        previous = entry.digest
    return None
