"""A conversation reads what it needs to begin with, and is told the rest as it is committed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from conversation_scenes import GOAL, ONCE, Coordinator, Llm

from holdfast import Holdfast
from holdfast.conversations import consumer as attendance
from holdfast.conversations.engine import ConversationEngine, EngineEvent, SubTask
from holdfast.errors import JournalUnavailable
from holdfast.journal.memory import MemoryJournal
from holdfast.journal.port import ANY_QUESTION, Append, QuestionQuery, QuestionRow, Record


class Counted(MemoryJournal):
    """Counts what a conversation may ask of it; an append may be carried out and not answered."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []
        self.appends: list[tuple[str, ...]] = []
        self.unanswered = 0

    async def append(self, append: Append) -> int:
        self.appends.append(tuple(kind for _, _, kind, _ in append.records))
        version = await super().append(append)
        if len(self.appends) == self.unanswered:
            raise JournalUnavailable("it may have happened, or not")
        return version

    async def read(
        self, run_id: str, after: int = 0, limit: int | None = None, most_text: int | None = None
    ) -> list[Record]:
        self.reads.append("read")
        return await super().read(run_id, after, limit, most_text)

    async def version(self, run_id: str) -> int:
        self.reads.append("version")
        return await super().version(run_id)

    async def questions(self, query: QuestionQuery = ANY_QUESTION) -> list[QuestionRow]:
        self.reads.append("questions")
        return await super().questions(query)


def tasks(count: int) -> list[dict[str, Any]]:
    return [{"id": f"n{one}", "type": "work", "priority": one} for one in range(count)]


async def work(task: SubTask) -> str:
    return "done"


async def consumed(journal: Counted, count: int, **options: Any) -> list[EngineEvent]:
    async with Holdfast(journal=journal) as app:
        journal.reads.clear()
        journal.appends.clear()
        engine = ConversationEngine(
            app=app, llm=Llm(tasks(count)), executors={"work": work}, retry=ONCE, **options
        )
        events: list[EngineEvent] = []
        while not events or events[-1].event_type != "engine_completed":
            with suppress(JournalUnavailable):
                async for event in engine.run(None if events else GOAL):
                    events.append(event)
        return events


@pytest.mark.parametrize("count", [1, 10])
async def test_one_read_whatever_the_number_of_tasks(count: int) -> None:
    journal = Counted()
    events = await consumed(journal, count)
    assert events[-1].event_type == "engine_completed"
    assert journal.reads == ["version"]


@pytest.mark.parametrize("coordinated", [False, True])
async def test_what_follows_without_a_task_in_between_is_one_append(coordinated: bool) -> None:
    """Where nobody coordinates, the context is known to be empty from the beginning."""
    journal = Counted()
    await consumed(journal, 2, coordinator=Coordinator() if coordinated else None)
    begun = ("ConversationOpened", "InputReceived", "PhaseChanged", "PhaseChanged", "WorkStarted")
    context = ("ContextReceived", "PhaseChanged", "WorkStarted")
    task = [("TaskChosen", "TaskStarted"), ("TaskFinished", "TaskCompleted")]
    assert journal.appends == [
        *([begun, context] if coordinated else [(*begun, *context)]),
        ("GoalDecomposed", "PhaseChanged", "TaskScheduled", "TaskScheduled", "PhaseChanged"),
        *task,
        task[0],
        (*task[1], "PhaseChanged", "EngineCompleted"),
    ]


async def test_more_than_may_wait_is_read_from_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = await consumed(Counted(), 5)
    monkeypatch.setattr(attendance, "MOST_TAKEN", 1)
    journal = Counted()
    assert told(await consumed(journal, 5)) == told(expected)
    assert "read" in journal.reads


@pytest.mark.parametrize("unanswered", [1, 2, 4])
async def test_what_was_committed_without_an_answer_is_told_all_the_same(unanswered: int) -> None:
    """It is in the journal, and was handed on by nobody."""
    expected = await consumed(Counted(), 1)
    journal = Counted()
    journal.unanswered = unanswered
    assert told(await consumed(journal, 1)) == told(expected)


async def test_a_task_whose_start_was_not_answered_is_started_again() -> None:
    expected = told(await consumed(Counted(), 1))
    journal = Counted()
    journal.unanswered = 3
    found = told(await consumed(journal, 1))
    place = found.index(("task_started", {"task_id": "n0"}))
    assert found.pop(place) == found[place]
    assert found == expected


def told(events: list[EngineEvent]) -> list[tuple[str, dict[str, Any]]]:
    return [(one.event_type, dict(one.data)) for one in events]
