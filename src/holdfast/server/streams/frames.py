"""Records, questions and alerts as event streams tell them.

A record's `data` is what is published of it, spliced in as it is: fields that have their default
are left out.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from typing import Final

from holdfast.i18n.catalogue import worded
from holdfast.model.rows import QuestionQuery, QuestionRow, request_of
from holdfast.repair.alerts import Alert
from holdfast.server.questions import card
from holdfast.server.streams.sse import Frame, spliced
from holdfast.views.published import StoredEvent, published
from holdfast.views.reader import RunReader

INTERACTION: Final = "INTERACTION"
MORE_QUESTIONS: Final = "MORE_QUESTIONS"
ALERT: Final = "alert"
MOST_QUESTIONS: Final = 1_000
"""Open questions of all runs that a newcomer is shown; the list of interactions has the rest."""

_OPEN: Final = frozenset({"open"})
_PAGE: Final = 100
_MOST_PAGES: Final = 20
"""How far a newcomer's questions are looked for among those that are not theirs to see."""


def told(run_id: str, record: StoredEvent, cursor: str | int) -> bytes:
    """A record as a frame; `cursor` is what a client comes back with."""
    kind, payload = published(record)
    head = json.dumps({"run_id": run_id, "seq": record.seq, "at": record.at, "type": kind})
    return spliced(kind, cursor, f'{head[:-1]}, "data": {payload}}}')


def moved(cursor: str | int) -> bytes:
    """Moves a client's cursor and shows it nothing."""
    return f"id: {cursor}\n\n".encode()


async def open_questions(
    reader: RunReader,
    query: QuestionQuery,
    shown_to: Callable[[QuestionRow], Awaitable[bool]],
    now: Callable[[], float],
    language: str,
) -> AsyncGenerator[Frame, None]:
    """The open questions of all runs that fit, the oldest first, in the reader's language.

    At most MOST_QUESTIONS are told, and as many pages looked through; then MORE_QUESTIONS says
    after which one `GET /interactions` lists the others.
    """
    query = replace(query, status=_OPEN, limit=_PAGE)
    count, last = 0, ""
    for _ in range(_MOST_PAGES):
        rows = await reader.question_rows(query)
        for row in rows:
            shown = await shown_to(row)
            if shown and count == MOST_QUESTIONS:
                yield Frame({"after": last}, MORE_QUESTIONS)
                return
            last = row.question_id
            if shown:
                count += 1
                yield asked(row, now(), language)
        if len(rows) < _PAGE:
            return
        query = replace(query, after=last)
        # A journal need never make us wait, and others want a turn.
        await asyncio.sleep(0)
    yield Frame({"after": last}, MORE_QUESTIONS)


def asked(row: QuestionRow, now: float, language: str) -> Frame:
    data = card(request_of(row), language) | {
        "runId": row.run_id,
        "rootId": row.root_id,
        "role": row.role,
        "openedAt": row.opened_at,
        "deadline": row.deadline,
        "serverTime": now,
    }
    return Frame(data, INTERACTION)


def alarm(alert: Alert, language: str) -> Frame:
    """An alert as an event; without an id it moves no cursor."""
    told = {
        "kind": alert.kind.value,
        "message": worded(alert.message, language),
        "about": alert.about,
        "run_id": alert.run_id or None,
        "at": alert.at,
    }
    return Frame(told, ALERT)
