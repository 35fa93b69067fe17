"""Housekeeping: finished runs are found, written out and removed, whole trees at a time.

A tree is a root run with all runs that work for it. It goes only if the journal finds, in the
transaction that removes it, that it still stands where it was read, and that nothing waits for it.
Runs that are in use here are left, too. Each removal has its audit record, in the same transaction:
how much went, why, and a digest of it all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, Protocol, cast

from holdfast.errors import NotAllowed, NotFound, OperatorError
from holdfast.forms.secrets import references_in
from holdfast.i18n.message import msg, term
from holdfast.journal.port import (
    Attached,
    AuditRecord,
    Journal,
    PrunedJournal,
    QuestionQuery,
    Removal,
    RunQuery,
    RunRow,
)
from holdfast.journal.vault import ENTERED
from holdfast.journal.vault import KIND as SECRET
from holdfast.language.strict import canonical_json
from holdfast.model.run import FINISHED, RunStatus
from holdfast.runtime.identity import LOCAL, Identity, current

PAGE: Final = 100
RECORDS: Final = 200
AT_ONCE: Final = 20
"""Tuning: how many rows, and how many records, are read before others have a turn, and how many
trees go in one transaction."""

NEWEST: Final = "newest_session"
"""The kind under which a server keeps which session a person spoke in last."""

REST: Final = 0.005
"""Seconds between two transactions."""

SETTLED: Final = frozenset({RunStatus.DONE.value, RunStatus.CANCELLED.value})
"""What retention removes, unless it is told otherwise: one in `error` may be resumed."""


class Clock(Protocol):
    def now(self) -> float: ...


class Actors(Protocol):
    def set_aside(self, run_ids: Collection[str]) -> AbstractContextManager[set[str]]: ...


@dataclass(frozen=True, slots=True)
class Finished:
    """Root runs that ended before a moment."""

    before: float
    name: str | None = None
    statuses: frozenset[str] = SETTLED


@dataclass(frozen=True, slots=True)
class Why:
    """What the audit says of a removal: `action`, whom or what it is about, and more."""

    action: str
    subject: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    person: str = ""
    """Whose it was: what is kept under that name goes too."""


@dataclass(frozen=True, slots=True)
class Removed:
    """How much is gone, and the roots of trees that are not, for they are in use again."""

    roots: tuple[str, ...]
    runs: int
    records: int
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """A root run and all runs below it, each at the version that was read."""

    rows: tuple[RunRow, ...]
    versions: Mapping[str, int]

    @property
    def root(self) -> RunRow:
        return self.rows[0]

    @property
    def is_finished(self) -> bool:
        return all(
            row.status in FINISHED and not row.active and row.wake_at is None for row in self.rows
        )


@dataclass(slots=True)
class _Read:
    """What is gathered of a tree while it is read."""

    digest: Any = field(default_factory=sha256)
    secrets: set[str] = field(default_factory=set)
    records: int = 0


class Housekeeper:
    """`actors` are those of an engine that drives the runs; without one nothing moves them."""

    def __init__(self, journal: Journal, clock: Clock, actors: Actors | None = None) -> None:
        self._journal = journal
        self._clock = clock
        self._actors = actors

    async def finished(
        self, wanted: Finished, before: str | None = None, limit: int = PAGE
    ) -> tuple[list[RunRow], str | None]:
        """Of a page of root runs, the newest first, those that are wanted; and where to go on."""
        query = RunQuery(
            status=wanted.statuses & FINISHED,
            name=wanted.name,
            roots_only=True,
            before=before,
            limit=limit,
        )
        rows = await self._journal.runs(query)
        found = [row for row in rows if row.updated_at < wanted.before and not row.active]
        await asyncio.sleep(0)  # a journal need never make us wait, and others want a turn
        return found, rows[-1].run_id if len(rows) == limit else None

    async def naming(
        self, name: str, before: str | None = None, limit: int = PAGE
    ) -> tuple[list[tuple[RunRow, bool]], str | None]:
        """Of a page of root runs those in which a person acted, and whether all of each is
        finished; and where to go on."""
        rows = await self._journal.runs(RunQuery(roots_only=True, before=before, limit=limit))
        found = []
        for row in rows:
            tree = await self.tree(row.run_id)
            if await self._names(tree, name):
                found.append((row, tree.is_finished))
            await asyncio.sleep(0)
        return found, rows[-1].run_id if len(rows) == limit else None

    async def tree(self, root_id: str) -> Tree:
        root = await self._journal.run(root_id)
        if root is None:
            raise _no_tree(root_id)
        return await self._tree_below(root)

    async def _tree_below(self, root: RunRow) -> Tree:
        if root.parent_id is not None:
            raise _no_tree(root.run_id)
        rows = [root]
        for row in rows:  # it grows while it is walked
            rows += [one async for one in self._children(row.run_id)]
        versions = {row.run_id: await self._journal.version(row.run_id) for row in rows}
        return Tree(tuple(rows), versions)

    async def lines_of(self, root_id: str) -> AsyncIterator[str]:
        """A tree as JSON Lines: each run, then its events and its questions."""
        async for line in self._lines(await self.tree(root_id), _Read()):
            yield line

    async def remove(self, root_ids: Sequence[str], why: Why, digest: str | None = None) -> Removed:
        """Remove these trees, at most `AT_ONCE`; with `digest` only if that is theirs, as they
        were written out."""
        journal = self._pruned()
        with self._set_aside(root_ids) as busy:
            trees: list[Tree] = []
            left = [one for one in root_ids if one in busy]
            for root_id in dict.fromkeys(root_ids):
                if root_id not in busy and (root := await self._journal.run(root_id)) is not None:
                    trees.append(await self._tree_below(root))
            return await self._remove(journal, trees, left, why, digest)

    async def reclaim(self) -> None:
        """Give back the space of what was removed, little by little."""
        journal = self._pruned()
        more = True
        while more:
            more = await journal.reclaim()
            await asyncio.sleep(REST)

    async def _remove(
        self,
        journal: PrunedJournal,
        trees: Sequence[Tree],
        left: list[str],
        why: Why,
        digest: str | None,
    ) -> Removed:
        left += [tree.root.run_id for tree in trees if not tree.is_finished]
        below = [run_id for tree in trees for run_id in tree.versions]
        read: dict[str, _Read] = {}
        with self._set_aside([one for one in below if one not in self._roots(trees)]) as busy:
            going = [one for one in trees if one.is_finished and not busy & one.versions.keys()]
            left += [one.root.run_id for one in trees if one not in going and one.is_finished]
            for tree in going:
                read[tree.root.run_id] = await self._read(tree)
            while going:
                found = digest_of(read[one.root.run_id].digest.hexdigest() for one in going)
                if digest is not None and found != digest:
                    message = msg("these runs are not what was written out: they have moved on")
                    raise NotAllowed(message)
                record = self._record(why, going, read, found)
                removals = [_removal(one, read[one.root.run_id]) for one in going]
                dropped = await self._kept_for(why.person)
                refused = await journal.remove(removals, Attached([record], dropped=dropped))
                if not refused:
                    break
                left += refused
                going = [one for one in going if one.root.run_id not in refused]
        return Removed(
            tuple(one.root.run_id for one in going),
            sum(len(one.rows) for one in going),
            sum(read[one.root.run_id].records for one in going),
            tuple(left),
        )

    async def _kept_for(self, person: str) -> list[tuple[str, str]]:
        """Secrets that a person entered and never sent, and which session was theirs."""
        if not person:
            return []
        entered = await self._journal.all_kept(ENTERED, self._clock.now())
        theirs = [(ENTERED, one.key) for one in entered if one.key.endswith(f" {person}")]
        return [*theirs, (NEWEST, person)]

    @staticmethod
    def _roots(trees: Sequence[Tree]) -> set[str]:
        return {tree.root.run_id for tree in trees}

    def _record(
        self, why: Why, trees: Sequence[Tree], read: Mapping[str, _Read], digest: str
    ) -> AuditRecord:
        acting = current() or Identity(LOCAL)
        detail = {
            **why.detail,
            "trees": len(trees),
            "runs": sum(len(tree.rows) for tree in trees),
            "records": sum(read[tree.root.run_id].records for tree in trees),
            "digest": digest,
            **({"via": acting.via} if acting.via else {}),
        }
        return AuditRecord(
            at=self._clock.now(),
            who=acting.who,
            action=why.action,
            subject=why.subject,
            origin=acting.origin,
            detail=canonical_json(detail),
        )

    async def _read(self, tree: Tree) -> _Read:
        read = _Read()
        async for line in self._lines(tree, read):
            read.digest.update(line.encode())
        return read

    async def _lines(self, tree: Tree, read: _Read) -> AsyncIterator[str]:
        for row in tree.rows:
            yield _line({"run": asdict(row)})
            async for record in self._records(row.run_id, tree.versions[row.run_id]):
                read.records += 1
                read.secrets |= references_in(record.payload)
                head = _line({"run_id": row.run_id, "seq": record.seq, "at": record.at})[:-2]
                yield f'{head}, "type": {json.dumps(record.type)}, "event": {record.payload}}}\n'
            async for line in self._questions(row.run_id):
                yield line

    async def _records(self, run_id: str, version: int) -> AsyncIterator[Any]:
        for after in range(0, version, RECORDS):
            for record in await self._journal.read(run_id, after, min(RECORDS, version - after)):
                yield record
            await asyncio.sleep(0)

    async def _questions(self, run_id: str) -> AsyncIterator[str]:
        query = QuestionQuery(run_id=run_id, limit=PAGE)
        while rows := await self._journal.questions(query):
            for row in rows:
                yield _line({"question": asdict(row)})
            if len(rows) < PAGE:
                return
            query = replace(query, after=rows[-1].question_id)
            await asyncio.sleep(0)

    async def _children(self, run_id: str) -> AsyncIterator[RunRow]:
        query = RunQuery(parent_id=run_id, limit=PAGE)
        while rows := await self._journal.runs(query):
            for row in rows:
                yield row
            if len(rows) < PAGE:
                return
            query = replace(query, before=rows[-1].run_id)
            await asyncio.sleep(0)

    async def _names(self, tree: Tree, name: str) -> bool:
        quoted = (json.dumps(name), json.dumps(name, ensure_ascii=False))
        for row in tree.rows:
            async for record in self._records(row.run_id, tree.versions[row.run_id]):
                if any(one in record.payload for one in quoted) and _acted(record.payload, name):
                    return True
        return False

    def _set_aside(self, run_ids: Collection[str]) -> AbstractContextManager[set[str]]:
        return nullcontext(set()) if self._actors is None else self._actors.set_aside(run_ids)

    def _pruned(self) -> PrunedJournal:
        if not hasattr(self._journal, "remove"):
            raise OperatorError(msg("runs cannot be removed from this journal yet"))
        return cast(PrunedJournal, self._journal)


def _no_tree(root_id: str) -> NotFound:
    return NotFound(msg("there is no {kind} {name}", kind=term("run"), name=root_id))


def digest_of(digests: Iterator[str] | Sequence[str]) -> str:
    """Of several trees, each with a digest of its lines."""
    return sha256("".join(digests).encode()).hexdigest()


def _removal(tree: Tree, read: _Read) -> Removal:
    return Removal(tree.versions, [(SECRET, one) for one in sorted(read.secrets)])


def _line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _acted(payload: str, name: str) -> bool:
    """Whether an event was this person's doing, or says that they want or wrote something."""
    event = json.loads(payload)
    return event.get("by") == name or name in event.get("authors", ()) or _within(event, name)


def _within(event: Mapping[str, Any], name: str) -> bool:
    wanted = event.get("wanted_by")
    return isinstance(wanted, dict) and (name in wanted or name in wanted.values())
