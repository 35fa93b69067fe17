"""The runs of a home, read by what is committed of them, which another process may be writing.

Listing runs loads the journal alone; the machines are loaded where a run itself is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from holdfast.cli.shell import Settings
from holdfast.errors import CallerError
from holdfast.views import homes
from holdfast.views.reader import RunReader

if TYPE_CHECKING:
    from holdfast.cli.backend import Reader, Updates
    from holdfast.journal.port import Journal
    from holdfast.model.rows import QuestionQuery, RunQuery
    from holdfast.views.records import (
        CaseView,
        InteractionView,
        Raised,
        RunLine,
        RunView,
        TimelineEntry,
    )

V = TypeVar("V")

LOOK_AGAIN = 0.25
"""Seconds between two looks at a journal that another process writes."""

ANOTHER_PERSON = (
    "you proposed this repair: another person must approve it. In a home all are local: make them "
    "a token (`holdfast token create NAME --role approver`), serve the home (`holdfast serve`), "
    "and they may approve it there"
)
PATIENCE = 8
"""How many looks without news end the wait where no process drives the runs."""


class ViewReader:
    """Answers from the read model of this process, in the reader's language."""

    look_again = LOOK_AGAIN

    def __init__(self, views: RunReader, language: str = "en", by: str = "") -> None:
        self.views = views
        self._language = language
        self._by = by

    def _told(self, update: V) -> V:
        from holdfast.views.wire import in_language

        return in_language(update, self._language)

    async def runs(self, query: RunQuery) -> list[RunLine]:
        return await self.views.runs(query)

    async def run(self, run_id: str) -> RunView:
        return self._told(await self.views.run(run_id))

    async def questions(self, query: QuestionQuery) -> list[InteractionView]:
        return await self.views.questions(query)

    async def inbox(self, query: QuestionQuery) -> list[InteractionView]:
        found = await self.views.questions(query)
        return [replace(one, about=await self._about(one.root_id)) for one in found]

    async def _about(self, root_id: str) -> str:
        line = await self.views.line(root_id)
        return "" if line is None else line.about

    async def question(self, question_id: str) -> InteractionView | None:
        found = await self.views.question(question_id)
        return None if found is None else await self._for_us(found)

    async def open_questions(self, run_id: str) -> list[InteractionView]:
        return [await self._for_us(one) async for one in self.views.open_questions(run_id)]

    async def _for_us(self, asked: InteractionView) -> InteractionView:
        """All who use a home have one name, which may not approve what it proposed."""
        from holdfast.runtime.identity import LOCAL
        from holdfast.views.repairs import proposer

        by = await proposer(self.views, asked.run_id, asked.request) if asked.is_open else ""
        own = by and by == (self._by or LOCAL)
        return replace(asked, why_not_approve=ANOTHER_PERSON) if own else asked

    async def cases(self, run_id: str) -> list[CaseView]:
        from holdfast.views import repairs

        return [self._told(one) for one in repairs.cases(await self.views.at(run_id))]

    async def timeline(self, run_id: str) -> list[TimelineEntry]:
        return [self._told(one) for one in await self.views.timeline(run_id)]

    async def tracebacks(self, run_id: str) -> list[Raised]:
        return await self.views.tracebacks(run_id)

    async def graph(self, run_id: str, *, svg: bool) -> tuple[str, str]:
        from holdfast.views.drawings import plan_graph

        return plan_graph(await self.views.at(run_id), svg=svg)


class HomeReader(ViewReader):
    """A home that this process does not hold: news are looked for again and again."""

    def __init__(self, journal: Journal, path: homes.Place, language: str = "en") -> None:
        super().__init__(RunReader(journal), language)
        self._path = path

    def is_driven(self) -> bool:
        return homes.is_driven(self._path)

    async def is_newest(self, run_id: str, version: int) -> bool:
        return await self.views.version(run_id) == version

    async def follow(self, run_id: str, after: int = 0, *, views: bool = False) -> Updates:
        """Ends when for a while there was no news and no process drives the runs."""
        following, idle = await self.views.following(run_id, after), 0
        while idle < PATIENCE or self.is_driven():
            entries = await self.views.more(following)
            for entry in entries:
                yield self._told(entry)
            if entries and views:
                yield self._told(following.view(self.views.clock()))
            idle = 0 if entries else idle + 1
            await asyncio.sleep(LOOK_AGAIN)


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Reader]:
    if settings.server is not None:
        from holdfast.cli.opening import opened_backend

        async with opened_backend(settings) as backend:
            yield backend
        return
    path = journal_path(settings)
    async with homes.reading(path) as journal:
        yield HomeReader(journal, path, settings.language)


def journal_path(settings: Settings) -> homes.Place:
    """Where the journal of the home that was named lies."""
    if settings.app_name is None or (settings.home is not None and settings.app is None):
        return homes.place_of(settings.home)
    from holdfast.cli.opening import named_app

    path = homes.place_of_app(named_app(settings))
    if path is None:
        raise CallerError(f"{settings.app_name} keeps no journal that another process could read")
    return path
