"""Finding a question by its id, or by the beginning of it."""

from __future__ import annotations

from holdfast.cli.backend import Reading
from holdfast.errors import NotAllowed, NotFound
from holdfast.journal.port import QuestionQuery, QuestionRow


async def find_question(reader: Reading, name: str) -> QuestionRow:
    """The question of that id, or the only one whose id begins so; open ones come first."""
    exact = await reader.question(name)
    if exact is not None:
        return exact
    found: list[QuestionRow] = []
    for status in ("open", "answered", "expired", "withdrawn"):
        rows = await reader.questions(QuestionQuery(status=frozenset({status}), limit=100_000))
        found = [row for row in rows if name and row.question_id.startswith(name)]
        if found:
            break
    if not found:
        raise NotFound(f"no question begins with {name!r}: `holdfast inbox` lists the open ones")
    if len(found) > 1:
        ids = ", ".join(row.question_id for row in found[:5])
        raise NotAllowed(f"{len(found)} questions begin with {name!r}: write more of it ({ids})")
    return found[0]
