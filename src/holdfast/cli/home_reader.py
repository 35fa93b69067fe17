"""Looking at runs: those of a home, by its committed events, or those of a server.

Listing the runs of a home takes its journal alone; what folds events into a state is imported
where a state is wanted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.home_journal import LOOK_AGAIN, PATIENCE, is_driven, reading_journal
from holdfast.cli.shell import Settings
from holdfast.errors import NotFound
from holdfast.journal.port import Journal, QuestionQuery, QuestionRow, RunQuery, RunRow

if TYPE_CHECKING:
    from holdfast.cli.backend import Heard, Reading
    from holdfast.core.run.state import RunState
    from holdfast.runtime.hub import Recorded
    from holdfast.runtime.registry import DefinitionRegistry
    from holdfast.runtime.tracebacks import Traceback


@dataclass(frozen=True)
class HomeReader:
    """A look at the runs of one home, which another process may drive."""

    journal: Journal
    home: Path

    look_again = LOOK_AGAIN

    @cached_property
    def library(self) -> DefinitionRegistry:
        from holdfast.runtime.registry import DefinitionRegistry

        return DefinitionRegistry(self.journal)

    def is_driven(self) -> bool:
        return is_driven(self.home)

    async def runs(self, query: RunQuery) -> list[RunRow]:
        return await self.journal.runs(query)

    async def version(self, run_id: str) -> int:
        return await self.journal.version(run_id)

    async def questions(self, query: QuestionQuery) -> list[QuestionRow]:
        return await self.journal.questions(query)

    async def question(self, question_id: str) -> QuestionRow | None:
        return await self.journal.question(question_id)

    async def about(self, row: QuestionRow) -> str:
        from holdfast.runtime.about import about_question

        return await about_question(self.journal, row)

    async def beginning(self, run_id: str) -> RunState:
        """The run before its first event."""
        from holdfast.runtime.machines import blank

        row = await self.journal.run(run_id)
        if row is None:
            raise NotFound(f"there is no run {run_id}: `holdfast runs` lists them")
        return blank(run_id, await self.library.by_digest(row.definition))

    async def records(self, run_id: str, after: int = 0) -> list[Recorded]:
        from holdfast.journal.codec import decode
        from holdfast.runtime.hub import Recorded

        records = await self.journal.read(run_id, after)
        return [Recorded(record.seq, record.at, decode(record)) for record in records]

    async def tracebacks(self, run_id: str) -> list[Traceback]:
        from holdfast.runtime.tracebacks import tracebacks_of

        return await tracebacks_of(self.journal, run_id, time.time())

    async def state(self, run_id: str) -> RunState:
        from holdfast.runtime.machines import replay

        state = await self.beginning(run_id)
        return replay(state, ((one.at, one.event) for one in await self.records(run_id)))

    async def listen(self, run_id: str, after: int = 0) -> Heard:
        """Ends when for a while nothing came and nobody is at work."""
        idle = 0
        while idle < PATIENCE or self.is_driven():
            records = await self.records(run_id, after)
            for recorded in records:
                after = recorded.seq
                yield recorded
            idle = 0 if records else idle + 1
            await asyncio.sleep(LOOK_AGAIN)


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Reading]:
    if settings.server is not None:
        from holdfast.cli.opening import opened_backend

        async with opened_backend(settings) as backend:
            yield backend
        return
    async with reading_journal(settings) as journal:
        yield HomeReader(journal, journal.path.parent)
