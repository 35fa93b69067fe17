"""What sub-runs ask people: a parent's event says that a child run waits or goes on, and the events
of the child say what was asked, and who answered it how."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from holdfast.journal.codec import decode
from holdfast.journal.port import Journal, Record
from holdfast.model import events as e
from holdfast.model.rows import request_of

FURTHER_BACK: Final = 100
"""Events of a child run that are read before the one that its parent heard of."""

BelowEvent: TypeAlias = (
    e.QuestionOpened | e.QuestionAnswered | e.QuestionExpired | e.QuestionWithdrawn
)
BELOW: Final = (e.QuestionOpened, e.QuestionAnswered, e.QuestionExpired, e.QuestionWithdrawn)
_TYPES: Final = frozenset(one.__name__ for one in BELOW)
HEARD: Final = e.ChildHeard.__name__

Word: TypeAlias = tuple[str, int]
"""A word from a child run: its id, and the event of it that the word is about."""


def _kind(record: Record) -> str:
    """The event's class: a record's type also tells the version of its form."""
    return record.type.partition("@")[0]


def words_in(records: Iterable[Record]) -> list[e.ChildHeard]:
    """Reads no other record."""
    events = [decode(one) for one in records if _kind(one) == HEARD]
    return [one for one in events if isinstance(one, e.ChildHeard)]


@dataclass(slots=True)
class Below:
    """Reads the events of child runs; `heard` is how far each was read."""

    journal: Journal
    heard: dict[str, int] = field(default_factory=dict)

    async def told(self, words: Iterable[e.ChildHeard]) -> dict[Word, Sequence[BelowEvent]]:
        """By each word: what was asked and answered since the one before.

        Of an answer whose question was asked earlier, that question comes with it, as one that is
        known and not told (`firing` 0).
        """
        found: dict[Word, Sequence[BelowEvent]] = {}
        for word in words:
            found[word.child_id, word.seq] = await self._asked(word)
        return found

    async def _asked(self, word: e.ChildHeard) -> list[BelowEvent]:
        last = self.heard.get(word.child_id, 0)
        after = max(last, word.seq - FURTHER_BACK)
        self.heard[word.child_id] = max(last, word.seq)
        records = await self.journal.read(word.child_id, after, max(word.seq - after, 0))
        found: list[BelowEvent] = []
        known: set[str] = set()
        for record in records:
            if _kind(record) == HEARD:
                for events in (await self.told(words_in([record]))).values():
                    found += events
            elif _kind(record) in _TYPES:
                event = decode(record)
                assert isinstance(event, BELOW)
                found += [*await self._question(event, known), event]
        return found

    async def _question(self, event: BelowEvent, known: set[str]) -> list[e.QuestionOpened]:
        if isinstance(event, e.QuestionOpened):
            known.add(event.request.request_id)
            return []
        if event.question_id in known:
            return []
        known.add(event.question_id)
        row = await self.journal.question(event.question_id)
        return [] if row is None else [e.QuestionOpened(request_of(row), "", 0, "")]
