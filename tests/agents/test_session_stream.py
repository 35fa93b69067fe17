"""Following a session: live words first, then what is recorded, from any place and to the end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from session_scenes import (
    PATIENCE,
    Ledger,
    add_clerk,
    asked,
    begin,
    clerks_office,
    ended,
    over_the_wire,
    slow_speaker,
)

from holdfast.agents.sessions import AgentEventType as T
from holdfast.agents.sessions import AgentExecutionEvent
from holdfast.app import Holdfast
from holdfast.core.run.state import RunState
from holdfast.core.run.tables import StepStatus
from holdfast.testing.model_script import call, say


async def followed(
    app: Holdfast, session_id: str, after: int | None = 0
) -> list[AgentExecutionEvent]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in app.sessions.subscribe(session_id, after)]


async def test_words_arrive_live_before_the_recorded_reply(tmp_path: Path) -> None:
    async with slow_speaker() as (url, next_call):
        app = Holdfast(tmp_path, model=over_the_wire(url))
        add_clerk(app, Ledger(tmp_path / "ledger.jsonl"))
        async with app:
            session = await begin(app)
            conversation = await next_call()
            async with aclosing(app.sessions.subscribe(session.id)) as events:
                heard = [await anext(events), await anext(events)]
                assert [one.type for one in heard] == [T.STARTED, T.THINKING]
                for word in ("Good ", "morning, ", "Will"):
                    await conversation.speak(word)
                    live = await anext(events)
                    assert (live.type, live.seq, live.data) == (T.THINKING, None, {"delta": word})
                await conversation.finish()
                rest = [event async for event in events]
            assert [one.type for one in rest] == [T.PROGRESS, T.COMPLETED, T.DONE]
            assert rest[1].data["answer"] == "Good morning, Will"
            assert all(one.seq is not None for one in rest[:-1])


async def test_a_reply_that_breaks_off_takes_its_words_back(tmp_path: Path) -> None:
    async with slow_speaker() as (url, next_call):
        app = Holdfast(tmp_path, model=over_the_wire(url))
        add_clerk(app, Ledger(tmp_path / "ledger.jsonl"))
        async with app:
            session = await begin(app)
            conversation = await next_call()
            async with aclosing(app.sessions.subscribe(session.id)) as events:
                assert [(await anext(events)).type for _ in range(2)] == [T.STARTED, T.THINKING]
                await conversation.speak("Good evening")
                assert (await anext(events)).data == {"delta": "Good evening"}
                conversation.break_off()
                assert (await anext(events)).data == {"restart": True}
                conversation = await next_call()
                await conversation.speak("Good morning")
                assert (await anext(events)).data == {"delta": "Good morning"}
                await conversation.finish()
                rest = [event async for event in events]
            assert [one.type for one in rest] == [T.PROGRESS, T.COMPLETED, T.DONE]
            assert session.answer == "Good morning"


async def a_finished_session(app: Holdfast) -> str:
    session = await begin(app)
    pay, order = await asked(app, session.id, 2)
    await app.answer(order.request_id, data={"color": "red"})
    await app.answer(pay.request_id, option_id="reject", feedback="too much")
    assert await ended(session) == "done"
    await app.sessions.say(session.id, "and now?")
    assert await ended(session) == "done"
    return session.id


async def test_from_any_place_a_follower_misses_and_repeats_nothing(tmp_path: Path) -> None:
    app, _ = clerks_office(tmp_path)
    async with app:
        session_id = await a_finished_session(app)
        *whole, last = await followed(app, session_id)
        assert last.type is T.DONE
        numbers = [one.seq for one in whole if one.seq is not None]
        assert len(numbers) == len(whole)
        assert numbers == sorted(set(numbers))
        version = (await app.engine.state(session_id)).version
        for after in range(version + 1):
            *rest, done = await followed(app, session_id, after)
            assert rest == [one for one in whole if one.seq is not None and one.seq > after], after
            assert done == last


async def test_a_follower_who_comes_back_after_a_restart_goes_on_where_it_was(
    tmp_path: Path,
) -> None:
    app, _ = clerks_office(tmp_path)
    seen: list[AgentExecutionEvent] = []
    async with app:
        session = await begin(app)
        async with aclosing(app.sessions.subscribe(session.id)) as events:
            async for event in events:
                seen += [event] if event.seq is not None else []
                if event.type is T.INTERACTION:
                    break
    app, _ = clerks_office(tmp_path)
    async with app:
        session = await app.sessions.session(session.id)
        pay, order = await asked(app, session.id, 2)
        await app.answer(order.request_id, data={"color": "red"})
        await app.answer(pay.request_id, option_id="approve")
        assert await ended(session) == "done"
        rest = await followed(app, session.id, seen[-1].seq)
        assert [*seen, *rest] == await followed(app, session.id)


async def test_a_newcomer_is_shown_what_is_open_and_then_what_happens(tmp_path: Path) -> None:
    app, _ = clerks_office(tmp_path)
    async with app:
        session = await begin(app)
        questions = await asked(app, session.id, 2)
        async with aclosing(app.sessions.subscribe(session.id, None)) as events:
            opened = [await anext(events), await anext(events)]
            assert [one.type for one in opened] == [T.INTERACTION] * 2
            assert {one.data["requestId"] for one in opened} == {
                one.request_id for one in questions
            }
            pay, order = questions
            await app.answer(pay.request_id, option_id="approve")
            await app.answer(order.request_id, data={"color": "red"})
            async with asyncio.timeout(PATIENCE):
                rest = [event async for event in events]
        assert rest[-1].type is T.DONE
        recorded = [one for one in rest if one.seq is not None]
        assert all(one.type is not T.INTERACTION for one in recorded), "they were shown already"
        tools = [one.data["tool"] for one in recorded if one.type is T.TOOL]
        assert sorted(one for one in tools if one != "look") == ["order", "pay"]


async def test_several_followers_see_the_same_and_each_ends_with_done(tmp_path: Path) -> None:
    app, _ = clerks_office(tmp_path)
    async with app:
        session = await begin(app)
        followers = [asyncio.create_task(followed(app, session.id)) for _ in range(5)]
        pay, order = await asked(app, session.id, 2)
        await app.answer(pay.request_id, option_id="approve")
        await app.answer(order.request_id, data={"color": "red"})
        stories = await asyncio.gather(*followers)
        recorded = [[one for one in story if one.seq is not None] for story in stories]
        assert all(one == recorded[0] for one in recorded)
        for story in stories:
            assert [one.type for one in story].count(T.DONE) == 1
            assert story[-1].type is T.DONE
            assert story[-1].data == {"status": "done", "turn": 1}


async def test_the_stream_of_a_failed_or_cancelled_session_ends_with_done_too(
    tmp_path: Path,
) -> None:
    app, _ = clerks_office(tmp_path, script=[])
    async with app:
        session = await begin(app)
        *_, error, done = await followed(app, session.id)
        assert error.type is T.ERROR
        assert "the script is over" in str(error.data["message"])
        assert done.data["status"] == "error"
        await app.sessions.cancel(session.id, by="will.zhang")
        *_, cancelled, done = await followed(app, session.id)
        assert cancelled.data["cancelled_by"] == "will.zhang"
        assert done.data["status"] == "cancelled"


def nothing_runs(state: RunState) -> bool:
    return all(step.status is not StepStatus.RUNNING for step in state.steps.values())


async def test_a_follower_that_leaves_leaves_nothing_behind(tmp_path: Path) -> None:
    app, _ = clerks_office(tmp_path)
    async with app:
        session = await begin(app)
        await asked(app, session.id, 2)
        await app.engine.wait_for(session.id, nothing_runs)
        before = asyncio.all_tasks()
        async with aclosing(app.sessions.subscribe(session.id)) as events:
            await anext(events)
        assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()


async def test_a_proposed_call_is_told_like_one_that_the_model_wanted(tmp_path: Path) -> None:
    app, ledger = clerks_office(tmp_path)
    async with app:
        session = await app.sessions.open("clerk")
        shown = await app.sessions.pause_for_tool_approval(
            session.id, "mine", "look", {"city": "Rome"}
        )
        assert ledger.counts == {}
        await app.answer(shown.request_id, option_id="approve")
        assert await ended(session) == "done"
        told = await followed(app, session.id)
        assert told[0].type is T.STARTED
        [tool] = [one for one in told if one.type is T.TOOL]
        assert (tool.data["tool"], tool.data["call_id"]) == ("look", "mine")
    assert ledger.counts == {"look": 1}


async def test_each_reply_that_acts_names_its_calls(tmp_path: Path) -> None:
    script = [say("One.", call("look", city="Rome")), say("Two.", call("look", city="Oslo")), "Ok."]
    app, _ = clerks_office(tmp_path, script=script)
    async with app:
        session = await begin(app)
        assert await ended(session) == "done"
        told = await followed(app, session.id)
        acting = [one.data for one in told if one.type is T.ACTING]
        assert [one["text"] for one in acting] == ["One.", "Two."]
        iterations = [one.data["iteration"] for one in told if one.type is T.THINKING and one.seq]
        assert iterations == [1, 2, 3]
