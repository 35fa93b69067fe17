"""What was learned of failures, and lessons."""

from __future__ import annotations

from holdfast.client.resource import Answer, Resource, answered
from holdfast.client.transport import path_of


class Experience(Resource):
    async def get(self, *, language: str | None = None) -> Answer:
        """How calls that fail recover, and how long calls take."""
        return answered(await self._transport.get_in(language, "/experience"))


class Lessons(Resource):
    async def list(self, *, language: str | None = None) -> Answer:
        return answered(await self._transport.get_in(language, "/lessons"))

    async def pin(self, lesson_id: str, *, language: str | None = None) -> Answer:
        """Keep a lesson, whatever becomes of it."""
        return await self._do(lesson_id, "pin", language)

    async def retire(self, lesson_id: str, *, language: str | None = None) -> Answer:
        """Offer a lesson no more."""
        return await self._do(lesson_id, "retire", language)

    async def promote(self, lesson_id: str, *, language: str | None = None) -> Answer:
        """Its plan with the repair in it; nothing is registered."""
        return await self._do(lesson_id, "promote", language)

    async def _do(self, lesson_id: str, what: str, language: str | None) -> Answer:
        path = path_of("lessons", lesson_id, what)
        return answered(await self._transport.post_in(language, path))
