"""Everything that a journal holds goes over into an empty one of another store, row by row.

A row is the same in every store: `PARTS` says in which order which rows go, and by which of their
values they are ordered. Numbers of rows, positions and the links of the audit's chain are taken as
they are, so that lists keep their order, cursors that clients hold go on, and a head that was noted
elsewhere proves the chain. What a store has for itself (checksums, places, who drives, slots) the
other makes anew.

Batches are transactions of their own. Until the end the target carries a mark, with which no
process opens it. The mark says where the copy is from and how that stood, so that a copy that was
interrupted goes on behind the last row of each part.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from hashlib import sha256
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from holdfast.errors import JournalDamaged, NotAllowed
from holdfast.i18n.message import msg
from holdfast.model.record import record

ROWS_AT_ONCE: Final = 1_000
TEXT_AT_ONCE: Final = 4_000_000
"""Tuning: a transaction has at most so many rows, and about so many characters."""

Row: TypeAlias = tuple[Any, ...]
Key: TypeAlias = tuple[Any, ...]
Progress: TypeAlias = Callable[[str, int, int], None]


class Part(NamedTuple):
    """Rows of one kind; their first values are the key, which lies behind `start`."""

    name: str
    start: Key


BEFORE_ALL: Final = -(1 << 63)

PARTS: Final = (
    Part("definitions", ("",)),
    Part("runs", (0,)),
    Part("events", (BEFORE_ALL,)),
    Part("questions", (0,)),
    Part("notices", (0,)),
    Part("snapshots", (0,)),
    Part("kept", ("", "")),
    Part("audit", (0,)),
    Part("series", ("",)),
)
"""definitions: digest, kind, name, body, stored_at, meta.
runs: number, run_id, version, and the rest of a `RunRow`.
events: position, run's number, seq, run_id, at, type, payload. A position that is not known, which
comes before all others, is made of the run's number and seq.
questions: number, and a `QuestionRow`. notices: number, and an `OutboxMessage`.
snapshots: run's number, run_id, version, schema, payload. kept: an `ExpiringValue`.
audit: an `AuditEntry`. series: name, last."""


@record
class Standing:
    """How far a journal is: its newest position, up to where commits are forgotten, the head of the
    audit's chain, the highest number that a run's row was given, and how many runs there are."""

    last_commit: int
    forgotten: int
    audit_head: str
    last_run: int
    runs: int


def damaged(what: str, place: str) -> JournalDamaged:
    return JournalDamaged(
        msg(
            "{what} in {place} has changed since it was written: "
            "`holdfast doctor --integrity` tells what else is damaged. Restore a backup, then "
            "copy that",
            what=what,
            place=place,
        )
    )


class Source(Protocol):
    """A journal that nothing else writes to meanwhile."""

    place: str

    async def standing(self) -> Standing: ...

    def rows(self, part: Part, after: Key) -> AsyncGenerator[Row, None]:
        """The rows behind a key, each checked (JournalDamaged)."""

    async def confirm(self, standing: Standing) -> None:
        """NotAllowed where anything has gone on since."""


class Target(Protocol):
    """A journal in which nothing is, or an unfinished copy."""

    place: str

    async def mark(self) -> tuple[str, str] | None:
        """Of an unfinished copy: where it is from, and how that stood."""

    async def begin(self, source: str, standing: str) -> None:
        """Mark it, where nothing is in it; NotAllowed otherwise."""

    async def last(self, part: Part) -> Key:
        """The key of the last row, or where the part starts."""

    async def put(self, part: Part, rows: Sequence[Row]) -> None:
        """Add rows, all of them or none."""

    def rows(self, part: Part, after: Key) -> AsyncGenerator[Row, None]: ...

    async def finish(self, standing: Standing) -> None:
        """Take the mark away: from now on it is a journal like any other."""


async def transfer(
    source: Source, target: Target, standing: Standing, progress: Progress
) -> Mapping[str, int]:
    """Begin a copy or go on with one; the target keeps its mark. How many rows went over."""
    told = json.dumps(asdict(standing))
    mark = await target.mark()
    if mark is None:
        await target.begin(source.place, told)
    elif mark != (source.place, told):
        raise NotAllowed(
            msg(
                "{target} is an unfinished copy of {source}, which is another or has moved on "
                "since: remove that copy, then copy again",
                target=target.place,
                source=mark[0],
            )
        )
    copied: dict[str, int] = {}
    for part in PARTS:
        done = 0
        async for batch in _batches(source, part, await target.last(part)):
            await target.put(part, batch)
            done += len(batch)
            progress(f"{part.name} copied", done, _total(part, standing, done))
        if done:
            copied[part.name] = done
            progress(f"{part.name} copied", done, done)
    return copied


def _total(part: Part, standing: Standing, done: int) -> int:
    """Of records it is known how many there may be, of others not before the end."""
    known = {"events": standing.last_commit, "runs": standing.runs}.get(part.name, 0)
    return max(known, done + 1)


async def _batches(source: Source, part: Part, after: Key) -> AsyncGenerator[list[Row], None]:
    batch: list[Row] = []
    text = 0
    async with aclosing(source.rows(part, after)) as rows:
        async for row in rows:
            batch.append(row)
            text += sum(len(value) for value in row if isinstance(value, str))
            if len(batch) >= ROWS_AT_ONCE or text >= TEXT_AT_ONCE:
                yield batch
                batch, text = [], 0
    if batch:
        yield batch


async def unlike(source: Source, target: Target, progress: Progress) -> list[str]:
    """The parts that are not the same in both; all rows of both are read."""
    different = []
    for part in PARTS:
        one = await _digest(source, part, progress)
        other = await _digest(target, part, progress)
        if one != other:
            different.append(part.name)
    return different


async def _digest(of: Source | Target, part: Part, progress: Progress) -> tuple[int, str]:
    made, count = sha256(), 0
    async with aclosing(of.rows(part, part.start)) as rows:
        async for row in rows:
            made.update(json.dumps(row).encode())
            count += 1
            progress(f"{part.name} compared", count, count + 1)
    progress(f"{part.name} compared", count, count)
    return count, made.hexdigest()
