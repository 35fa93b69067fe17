"""What was learned of failures, of a home or of a server.

Of a home its journal is read, also while another process drives its runs; the plans and tools that
stand here tell what lessons are about. To change something the home is taken for this.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from holdfast.cli.home_backend import as_this_user
from holdfast.cli.home_reader import journal_path
from holdfast.cli.opening import build_app
from holdfast.cli.shell import Settings
from holdfast.client import Client
from holdfast.errors import NotAllowed, NotFound
from holdfast.model.repair import LessonState
from holdfast.runtime.clock import SystemClock
from holdfast.runtime.experience import ExperienceKeeper
from holdfast.views.experience import ExperienceView, LessonView, Promotion, experience_view
from holdfast.views.lessons import Lessons, opened
from holdfast.views.wire import from_json


class LessonBook(Protocol):
    async def experience(self) -> ExperienceView: ...

    async def lessons(self) -> list[LessonView]:
        """By plan; of each the best first."""

    async def pin(self, lesson_id: str) -> LessonView: ...

    async def retire(self, lesson_id: str) -> LessonView: ...

    async def promoted(self, lesson_id: str) -> Promotion:
        """The plan with the lesson's repair in it; nothing is changed."""


async def lesson_id(book: LessonBook, name: str) -> str:
    """The id that was written, or the only one that begins so."""
    known = [one.lesson_id for one in await book.lessons()]
    found = [name] if name in known else [one for one in known if name and one.startswith(name)]
    if not found:
        raise NotFound(f"no lesson begins with {name!r}: `holdfast lessons` lists them")
    if len(found) > 1:
        ids = ", ".join(found[:5])
        raise NotAllowed(f"{len(found)} lessons begin with {name!r}: write more of it ({ids})")
    return found[0]


@dataclass(frozen=True, slots=True)
class HomeLessons:
    keeper: ExperienceKeeper
    known: Lessons

    async def experience(self) -> ExperienceView:
        return experience_view(self.keeper.experience, SystemClock.now())

    async def lessons(self) -> list[LessonView]:
        return list(await self.known.all())

    async def pin(self, lesson_id: str) -> LessonView:
        return await self._say(lesson_id, LessonState.PINNED)

    async def retire(self, lesson_id: str) -> LessonView:
        return await self._say(lesson_id, LessonState.RETIRED)

    async def promoted(self, lesson_id: str) -> Promotion:
        return await self.known.promoted(lesson_id)

    async def _say(self, lesson_id: str, state: LessonState) -> LessonView:
        with as_this_user():
            return await self.known.say(lesson_id, state)


@dataclass(frozen=True, slots=True)
class ServerLessons:
    client: Client
    language: str

    async def experience(self) -> ExperienceView:
        told = await self.client.experience.get(language=self.language)
        return from_json(ExperienceView, told)

    async def lessons(self) -> list[LessonView]:
        told = await self.client.lessons.list(language=self.language)
        return [from_json(LessonView, one) for one in told["lessons"]]

    async def pin(self, lesson_id: str) -> LessonView:
        told = await self.client.lessons.pin(lesson_id, language=self.language)
        return from_json(LessonView, told["lesson"])

    async def retire(self, lesson_id: str) -> LessonView:
        told = await self.client.lessons.retire(lesson_id, language=self.language)
        return from_json(LessonView, told["lesson"])

    async def promoted(self, lesson_id: str) -> Promotion:
        told = await self.client.lessons.promote(lesson_id, language=self.language)
        return from_json(Promotion, told)


@asynccontextmanager
async def lesson_book(settings: Settings, *, to_write: bool = False) -> AsyncIterator[LessonBook]:
    if settings.server is not None:
        from holdfast.cli.server_backend import connected

        async with connected(settings.server) as client:
            yield ServerLessons(client, settings.language)
        return
    app = build_app(settings)  # with its own environment: a lesson is of a tool's version
    async with opened(journal_path(settings), to_write=to_write) as (keeper, journal):
        yield HomeLessons(keeper, Lessons.of(app, keeper, journal))


async def rebuilt(settings: Settings) -> int:
    """Have everything learned again from the journals; how many runs were read."""
    async with opened(journal_path(settings), to_write=True) as (keeper, _):
        return await keeper.rebuild()
