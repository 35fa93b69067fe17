"""Finds a question by its id, or by the beginning of it."""

from __future__ import annotations

from holdfast.cli.backend import Reader
from holdfast.errors import NotAllowed, NotFound
from holdfast.model.rows import QuestionQuery
from holdfast.views.records import InteractionView


async def find_question(reader: Reader, name: str) -> InteractionView:
    """The question of that id, or the only one whose id begins so; open ones come first."""
    exact = await reader.question(name)
    if exact is not None:
        return exact
    found: list[InteractionView] = []
    for status in ("open", "answered", "expired", "withdrawn"):
        query = QuestionQuery(status=frozenset({status}), limit=100_000)
        asked = await reader.questions(query)
        found = [one for one in asked if name and one.question_id.startswith(name)]
        if found:
            break
    if not found:
        raise NotFound(f"no question begins with {name!r}: `holdfast inbox` lists the open ones")
    if len(found) > 1:
        ids = ", ".join(one.question_id for one in found[:5])
        raise NotAllowed(f"{len(found)} questions begin with {name!r}: write more of it ({ids})")
    return await reader.question(found[0].question_id) or found[0]
