"""An engine goes on after a failure: `resume(failed=…)`, in one loop or after it."""

from __future__ import annotations

from typing import Any

import pytest
from conversation_scenes import GOAL, ONCE, Ledger, Llm, heard, kinds, named, through_json

from holdfast.conversations.engine import ConversationEngine, EngineState, SubTask
from holdfast.conversations.engine import EngineEventType as T
from holdfast.errors import CallerError, NotAllowed, PermanentError

TASKS = [
    {"id": "pay", "type": "pay"},
    {"id": "mail", "type": "mail", "dependencies": ["pay"]},
    {"id": "report", "type": "pay", "dependencies": ["mail"]},
]


class Office:
    """Its mail server is down until somebody mends it."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.llm = Llm(TASKS)
        self.down = True

    async def mail(self, task: SubTask) -> str:
        self.ledger.note(task.id)
        if self.down:
            raise PermanentError("the mail server is down")
        return "sent"

    def engine(self, **options: Any) -> ConversationEngine:
        executors: dict[str, Any] = {"pay": self.ledger.work, "mail": self.mail}
        once = ["pay", "mail"]
        return ConversationEngine(
            llm=self.llm, executors=executors, once=once, retry=ONCE, **options
        )


async def failed(office: Office) -> ConversationEngine:
    engine = office.engine()
    assert kinds(await heard(engine.run(GOAL)))[-1] == "engine_error"
    assert engine.state is EngineState.ERROR
    return engine


async def test_retry_runs_what_is_left_and_nothing_that_was_done() -> None:
    office = Office()
    engine = await failed(office)
    assert engine.resume() is False, "the seed's resume is for a pause"
    office.down = False
    assert engine.resume(failed="retry") is True
    assert engine.state is EngineState.RECEIVING
    events = await heard(engine.run())
    phases = [(one["from"], one["to"]) for one in named(events, T.STATE_CHANGED)]
    assert phases[:3] == [
        ("error", "idle"),
        ("idle", "receiving"),
        ("receiving", "context_fetching"),
    ]
    assert kinds(events)[-1] == "engine_completed"
    assert office.ledger.counts == {"pay": 1, "mail": 2, "report": 1}
    assert len(office.llm.heard) == 1, "no model was asked again"


async def test_a_consumer_may_go_on_in_its_own_loop() -> None:
    office = Office()
    engine = office.engine()
    seen = []
    async for event in engine.run(GOAL):
        seen.append(event.event_type)
        if event.event_type is T.ENGINE_ERROR:
            office.down = False
            assert engine.resume(failed="retry")
    assert seen[-1] is T.ENGINE_COMPLETED
    assert office.ledger.counts["pay"] == 1


async def test_skip_goes_on_without_it_and_what_depends_on_it() -> None:
    office = Office()
    engine = await failed(office)
    assert engine.resume(failed="skip")
    events = await heard(engine.run())
    why = {
        "mail": "it failed: the mail server is down",
        "report": "it depends on mail, which failed",
    }
    told = {one["task_id"]: one for one in named(events, T.TASK_COMPLETED)}
    for task_id, reason in why.items():
        assert (told[task_id]["skipped"], told[task_id]["reason"]) == (True, reason)
        assert told[task_id]["result"] == {"skipped": True, "by": "local", "reason": reason}
    [counts] = named(events, T.ENGINE_COMPLETED)
    assert counts == {"total_tasks": 3, "completed_tasks": 1, "skipped_tasks": 2}
    assert (engine.completed_tasks, engine.skipped_tasks, engine.total_tasks) == (1, 2, 3)
    assert engine.current_progress == 1 / 3
    assert [one.status for one in engine.tasks] == ["completed", "skipped", "skipped"]
    assert "skipped (it failed: the mail server is down)" in engine.final_answer
    assert "{" not in engine.final_answer.partition("skipped")[2]
    assert office.ledger.counts == {"pay": 1, "mail": 1}


async def test_stop_ends_the_turn_and_the_next_one_is_told_what_was_done() -> None:
    office = Office()
    engine = await failed(office)
    assert engine.resume(failed="stop")
    assert engine.state is EngineState.IDLE
    with pytest.raises(NotAllowed, match="nothing left"):
        await heard(engine.run())
    office.llm.tasks = [{"id": "mail", "type": "mail"}]
    office.down = False
    assert kinds(await heard(engine.run("Send the mail")))[-1] == "engine_completed"
    [told] = office.llm.heard[-1]["history"]
    assert list(told["results"]) == ["pay"]
    assert [one["id"] for one in told["unfinished"]["done"]] == ["pay"]
    assert office.ledger.counts == {"pay": 1, "mail": 2}


async def test_a_snapshot_in_error_goes_on_in_another_engine() -> None:
    office = Office()
    body = through_json((await failed(office)).create_snapshot())
    office.down = False
    other = office.engine()
    other.restore_from_snapshot(body)
    assert other.state is EngineState.ERROR
    assert other.resume(failed="retry")
    assert kinds(await heard(other.run()))[-1] == "engine_completed"
    assert office.ledger.counts == {"pay": 1, "mail": 2, "report": 1}


async def test_only_the_three_choices_are_taken_and_only_after_an_error() -> None:
    office = Office()
    engine = office.engine()
    assert engine.resume(failed="retry") is False
    with pytest.raises(CallerError, match="failed is one of retry, skip, stop, not 'again'"):
        engine.resume(failed="again")
    engine = ConversationEngine(llm=Llm("no list"))
    await heard(engine.run(GOAL))
    with pytest.raises(NotAllowed, match="none to skip"):
        engine.resume(failed="skip")
    assert engine.state is EngineState.ERROR
