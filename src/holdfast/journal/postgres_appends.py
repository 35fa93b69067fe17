"""The statements of a batch of appends, on one connection.

A plain append is one statement, and so are plain appends of several runs: each happens on its own
condition, and where that fails nothing needs undoing. Anything more is a transaction, with at most
one statement for each table. There a run that has moved on is found by the first statements and
left out; whatever else does not come about as it should is `Irregular`: the transaction is rolled
back, and every append has one of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias

from holdfast.errors import HoldfastError, NameGone, NameTaken, Superseded, VersionConflict
from holdfast.journal import postgres_batches as batches
from holdfast.journal.port import Append, Attached, AuditRecord, RunRow, conflict
from holdfast.journal.postgres_batches import Given
from holdfast.journal.postgres_database import Connection, execute, load_statements

SQL: Final = load_statements("postgres_appends.sql")
MOST_ALONE: Final = 8
"""Up to so many records a plain append has a statement with a parameter for every value."""

EXPIRED_AT_ONCE: Final = 16

Outcome: TypeAlias = int | HoldfastError

_WRITTEN: Final = re.compile(r", written AS .*?\n\), noted AS .*?\n\)", re.DOTALL)


def _alone(name: str, first: int, count: int) -> bytes:
    """The statement of one append for so many records, whose values begin with a parameter."""
    text, rows = SQL[name].decode(), []
    for start in range(first, first + 5 * count, 5):
        types = ("bigint", "double precision", "text", "text", "bigint")
        rows.append(", ".join(f"${start + n}::{one}" for n, one in enumerate(types)))
    if not rows:
        text = _WRITTEN.sub("", text)
    return text.replace("/* records */", ", ".join(f"({row})" for row in rows)).encode()


_ONE: Final = [_alone("append_one", 6, n) for n in range(MOST_ALONE + 1)]
_ONE_WITH_ROW: Final = [_alone("append_one_with_row", 13, n) for n in range(MOST_ALONE + 1)]


class Irregular(Exception):
    """A transaction that must not be committed; `reason` is why, if there is one append in it."""

    def __init__(self, reason: HoldfastError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(slots=True)
class Work:
    """What came of a batch: an outcome for each append, and the job of a drive that waits."""

    outcomes: list[Outcome | None]
    deferred: int | None = None


@dataclass(slots=True)
class _Parts:
    """A batch taken apart; every part has its place among all."""

    moves: list[tuple[int, Append]] = field(default_factory=list)
    births: list[tuple[int, Append, RunRow]] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    """Which of the batch a part belongs to, by place."""
    attached: list[tuple[int, Attached]] = field(default_factory=list)

    @classmethod
    def of(cls, given: Sequence[Given]) -> _Parts:
        parts = cls()
        for owner, one in enumerate(given):
            if isinstance(one, Attached):
                parts.attached.append((owner, one))
            else:
                parts._add(owner, one)
        return parts

    def _add(self, owner: int, append: Append) -> None:
        place = len(self.owners)
        self.owners.append(owner)
        if append.expected == 0 and append.row is not None:
            self.births.append((place, append, append.row))
        else:
            self.moves.append((place, append))
        if append.attached.audit or append.attached != Attached():
            self.attached.append((owner, append.attached))
        for birth in append.child_appends:
            self._add(owner, birth)

    def without(self, owners: set[int]) -> None:
        """Leave out what has failed before anything of it was written."""
        self.moves = [one for one in self.moves if self.owners[one[0]] not in owners]
        self.births = [one for one in self.births if self.owners[one[0]] not in owners]
        self.attached = [one for one in self.attached if one[0] not in owners]

    @property
    def appends(self) -> Iterable[Append]:
        return chain((one[1] for one in self.moves), (one[1] for one in self.births))


async def append_alone(connection: Connection, append: Append) -> bool:
    """A plain append with few records; whether it happened."""
    statements = _ONE if append.row is None else _ONE_WITH_ROW
    statement = statements[len(append.records)]
    cursor = await connection.execute(statement, batches.scalars(append))
    return cursor.rowcount == 1


async def append_plain(connection: Connection, appends: Sequence[Append]) -> set[int]:
    """Plain appends of several runs; the places of those that happened."""
    return await _move(connection, list(enumerate(appends)))


async def _move(connection: Connection, appends: Sequence[tuple[int, Append]]) -> set[int]:
    values = batches.moves(appends)
    name = "append_many"
    if any(append.row is not None for _, append in appends):
        name = "append_many_with_rows"
        values += batches.move_rows(appends)
    rows = await execute(connection, SQL[name], values)
    ended = [a.drive.job for _, a in appends if a.drive is not None and a.ends_drive]
    if ended:
        happened = {place for (place,) in rows}
        jobs = [
            a.drive.job for place, a in appends if a.drive and a.ends_drive and place in happened
        ]
        await execute(connection, SQL["end_drives"], [jobs])
    return {place for (place,) in rows}


class Transaction:
    """One transaction for a batch, from its BEGIN to its COMMIT."""

    def __init__(
        self, connection: Connection, given: Sequence[Given], worker_id: int | None
    ) -> None:
        self._connection = connection
        self._given = given
        self._worker_id = worker_id
        self._parts = _Parts.of(given)
        self._work = Work([None] * len(given))

    async def run(self) -> Work:
        """Raises `Irregular` where it cannot be committed; then it is rolled back."""
        await self._connection.execute(b"BEGIN")
        asleep = await self._lock_sleepers()
        await self._append()
        await self._bear()
        await self._write_company()
        await attach(self._connection, [one for _, one in self._parts.attached])
        await self._defer(asleep)
        await self._connection.execute(b"COMMIT")
        for owner, given in enumerate(self._given):
            if self._work.outcomes[owner] is None:
                self._work.outcomes[owner] = version_after(given)
        return self._work

    async def _execute(self, name: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        return await execute(self._connection, SQL[name], parameters)

    async def _lock_sleepers(self) -> set[str]:
        """Runs that do not go on by themselves, of those that may from now on.

        They are locked: a driver that ends just now moves `active` and perhaps no version.
        """
        waking = sorted(a.run_id for _, a in self._parts.moves if batches.wakes(a))
        rows = await self._execute("lock_runs", [waking]) if waking else []
        return {run_id for run_id, active in rows if not active}

    async def _append(self) -> None:
        moves = self._parts.moves
        if not moves:
            return
        happened = await _move(self._connection, moves)
        missed = [(place, one) for place, one in moves if place not in happened]
        for place, append in missed:
            self._work.outcomes[self._parts.owners[place]] = conflict(append)
        if missed:
            self._parts.without({self._parts.owners[place] for place, _ in missed})

    async def _bear(self) -> None:
        births = self._parts.births
        if not births:
            return
        _refuse_twins(append for _, append, _ in births)
        rows = await self._execute("bear_many", batches.births(births))
        born = {place for (place,) in rows}
        missed = [(place, append) for place, append, _ in births if place not in born]
        for place, append in missed:
            owner = self._parts.owners[place]
            if self._parts.owners.count(owner) > 1:
                raise Irregular(conflict(append))
            self._work.outcomes[owner] = conflict(append)
        self._parts.without({self._parts.owners[place] for place, _ in missed})

    async def _write_company(self) -> None:
        appends = list(self._parts.appends)
        questions = [row for one in appends for row in one.questions]
        if questions:
            await self._execute("put_questions", batches.questions(questions))
        notices = [
            (one.target_id, one.source_id, one.seq, one.payload)
            for append in appends
            for one in append.notices
        ]
        if notices:
            await self._execute("leave_notices", batches.columns(notices, 4))
        heard = [(one.run_id, *name) for one in appends for name in one.heard]
        if heard:
            await self._execute("hear_notices", batches.columns(heard, 3))

    async def _defer(self, asleep: set[str]) -> None:
        """Jobs for what others are to drive, and for births that we drive ourselves."""
        births = self._parts.births
        own = [(a.drive.job, a.drive.attempt, a.run_id) for _, a, _ in births if a.drive]
        if own:
            await self._execute("begin_drives", [*batches.columns(own, 3), self._worker_id])
        runs = {a.run_id for _, a, row in births if row.active and a.drive is None}
        runs |= {a.run_id for _, a in self._parts.moves if a.run_id in asleep and batches.wakes(a)}
        runs |= {notice.target_id for a in self._parts.appends for notice in a.notices}
        if runs:
            rows = await self._execute("defer_drives", [sorted(runs)])
            self._work.deferred = max((job for (job,) in rows), default=None)


async def attach(connection: Connection, attached: Sequence[Attached]) -> None:
    """What is claimed, spent, dropped, kept and done, within a transaction."""
    await _spend(connection, attached)
    await _claim(connection, attached)
    claimed = {(value.kind, value.key) for one in attached for value in one.claimed}
    dropped = [name for one in attached for name in one.dropped if name not in claimed]
    if dropped:
        await execute(connection, SQL["drop_kept"], batches.columns(dropped, 2))
    kept = [value for one in attached for value in one.kept]
    if kept:
        await execute(connection, SQL["keep"], batches.kept(kept))
    audit = [record for one in attached for record in one.audit]
    if audit:
        now = max(float(one.at) for one in audit)
        await execute(connection, SQL["drop_expired"], [now, EXPIRED_AT_ONCE])
        deeds = ((place, *deed_values(one)) for place, one in enumerate(audit))
        await execute(connection, SQL["add_deeds"], batches.columns(deeds, 9))


async def _spend(connection: Connection, attached: Sequence[Attached]) -> None:
    spent = [(kind, key, float(one.at)) for one in attached for kind, key in one.spent]
    if spent:
        there = await execute(connection, SQL["spend"], batches.columns(spent, 3))
        for kind, key, _ in spent:
            if (kind, key) not in there:
                raise Irregular(NameGone(kind, key))
            there.remove((kind, key))


async def _claim(connection: Connection, attached: Sequence[Attached]) -> None:
    claimed = [(value, one.at) for one in attached for value in one.claimed]
    if claimed:
        once = {(value.kind, value.key): (value, at) for value, at in claimed}
        free = await execute(connection, SQL["claim"], batches.claimed(once.values()))
        for value, _ in claimed:
            if (value.kind, value.key) not in free:
                raise Irregular(NameTaken(value.kind, value.key))
            free.remove((value.kind, value.key))


def _refuse_twins(births: Iterable[Append]) -> None:
    born: set[str] = set()
    for birth in births:
        if birth.run_id in born:
            raise Irregular(conflict(birth))
        born.add(birth.run_id)


def version_after(given: Given) -> int:
    return given.expected + len(given.records) if isinstance(given, Append) else 0


def deed_values(record: AuditRecord) -> tuple[Any, ...]:
    return (
        float(record.at),
        record.who,
        record.action,
        record.subject,
        record.run_id,
        record.seen,
        record.origin,
        record.detail,
    )


async def told_apart(connection: Connection, given: Sequence[Given], work: Work) -> None:
    """Conflicts of drivers whose runs another has taken over are something else."""
    driven = {
        place: one
        for place, (one, outcome) in enumerate(zip(given, work.outcomes, strict=True))
        if isinstance(outcome, VersionConflict)
        and isinstance(one, Append)
        and one.drive is not None
        and one.expected > 0
    }
    if not driven:
        return
    rows = await execute(connection, SQL["drivers"], [[one.run_id for one in driven.values()]])
    drivers = {run_id: (job, attempt) for run_id, job, attempt in rows}
    for place, one in driven.items():
        drive, driver = one.drive, drivers.get(one.run_id)
        if drive is not None and driver is not None and driver != (drive.job, drive.attempt):
            work.outcomes[place] = Superseded(f"run {one.run_id} has another driver by now")
