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
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple, Protocol, TypeAlias

from holdfast.model.attached import NOTHING as NOTHING
from holdfast.model.attached import Attached as Attached
from holdfast.model.attached import AuditEntry as AuditEntry
from holdfast.model.attached import AuditRecord as AuditRecord
from holdfast.model.attached import ExpiringValue as ExpiringValue
from holdfast.model.record import record
from holdfast.model.rows import ANY_QUESTION as ANY_QUESTION
from holdfast.model.rows import ANY_RUN as ANY_RUN
from holdfast.model.rows import DAMAGED_RUN as DAMAGED_RUN
from holdfast.model.rows import QuestionQuery as QuestionQuery
from holdfast.model.rows import QuestionRow as QuestionRow
from holdfast.model.rows import RunQuery as RunQuery
from holdfast.model.rows import RunRow as RunRow
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
    """A word from one run to another: `(source_id, seq)` makes it unique."""

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
class Append:
    """Everything that becomes true together.

    `row` is the run's row after these records, or None when nothing in it but
    the version has changed (the common case, and the cheap one).
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
    def epoch(self) -> int:
        """Rises whenever appends were refused because the store failed.

        Whoever holds state from before must read it again: what was refused may or
        may not have happened.
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
        """The chain of deeds from the one after `after`, in order."""

    async def commits(self, after: int = 0, limit: int = 1000) -> list[Committed]:
        """What was committed after a position, in order: at most so many stretches."""

    async def last_commit(self) -> int:
        """The newest position that was given; 0 when nothing was ever committed."""

    async def forgotten(self) -> int:
        """Nobody can tell any more what was committed up to this position, 0 for all known."""

    async def next_number(self, series: str) -> int:
        """The next number for run ids `{series}_{number}`, from 1.

        Never given twice by one open journal, and never that of a run that exists;
        costs no commit.
        """
