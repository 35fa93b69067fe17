"""Models over the real wire that break off, refuse, talk nonsense or are not there at all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from session_scenes import (
    PATIENCE,
    Ledger,
    add_clerk,
    asked,
    assert_sound,
    begin,
    ended,
    history,
    of_kind,
    over_the_wire,
    slow_speaker,
    until,
)

from holdfast.agents.sessions import AgentSession
from holdfast.app import Holdfast
from holdfast.model import agent_events as r
from holdfast.model.message import ModelSaid, ToolReturned
from holdfast.testing.model_peer import ModelPeer
from holdfast.testing.model_script import Script, call, call_badly, cut, fail, garble, say, slow


@asynccontextmanager
async def clerk_on(home: Path, script: Script) -> AsyncIterator[tuple[Holdfast, ModelPeer, Ledger]]:
    """The clerk, whose model is a real HTTP server that plays `script`."""
    async with ModelPeer(script) as peer:
        app, ledger = office(home, peer.url)
        async with app:
            yield app, peer, ledger


def office(home: Path, url: str) -> tuple[Holdfast, Ledger]:
    ledger = Ledger(home / "ledger.jsonl")
    app = Holdfast(home, model=over_the_wire(url))
    add_clerk(app, ledger, system_context="You are the clerk.")
    return app, ledger


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def results(app: Holdfast, session: AgentSession) -> list[r.StepEnded]:
    return of_kind(await history(app, session.id), r.StepEnded)


async def test_a_whole_turn_over_the_wire(tmp_path: Path) -> None:
    wanted = say("One moment.", call("look", city="Paris"), call("pay", amount=5))
    async with clerk_on(tmp_path, [wanted, "All done."]) as (app, peer, ledger):
        session = await begin(app, "How is Paris?")
        [question] = await asked(app, session.id)
        await app.answer(question.request_id, option_id="approve", data={"amount": 6})
        assert await ended(session) == "done"
        assert session.answer == "All done."
        assert session.usage.input_tokens > 0
        first, last = peer.seen
        assert (first.system, first.asked) == ("You are the clerk.", "How is Paris?")
        assert first.streamed
        assert {one.name for one in first.tools} == {"look", "pay", "order"}
        told = {one.tool: str(one.content) for one in last.results}
        assert "true" in told["look"].lower()
        assert "6" in told["pay"]
        assert 'pay was called with {"amount":6}' in last.asked, "the model knows of the change"
    assert ledger.counts == {"look": 1, "pay": 1}


async def test_a_stream_that_breaks_off_is_begun_again(tmp_path: Path) -> None:
    script = [cut("Hello, Will Zhang, this will not"), "Hello again."]
    async with clerk_on(tmp_path, script) as (app, peer, _):
        session = await begin(app)
        assert await ended(session) == "done"
        assert session.answer == "Hello again."
        assert len(peer.seen) == 2
        assert [one for one in session.messages if isinstance(one, ModelSaid)] == [
            ModelSaid("Hello again.")
        ]


async def test_a_call_that_breaks_off_in_the_stream_is_never_made(tmp_path: Path) -> None:
    script = [cut(call("look", city="Paris")), cut(call("look", city="Rome"), quietly=True), "No."]
    async with clerk_on(tmp_path, script) as (app, _, ledger):
        session = await begin(app)
        assert await ended(session) == "done"
        assert session.answer == "No."
        assert await results(app, session) == []
    assert ledger.counts == {}


async def test_a_storm_of_429_gives_up_in_words_and_a_resume_goes_on(tmp_path: Path) -> None:
    storm = [fail(429, "slow down", retry_after=0) for _ in range(3)]
    script = [say("", call("look", city="Paris")), *storm, "All done."]
    async with clerk_on(tmp_path, script) as (app, peer, ledger):
        session = await begin(app)
        assert await ended(session) == "error"
        assert "the model could not be asked" in session.error
        assert "429: slow down" in session.error
        assert "after 3 attempts" in session.error
        assert len(peer.seen) == 4
        await app.sessions.resume(session.id)
        assert await ended(session) == "done"
        assert (session.answer, session.error) == ("All done.", "")
        assert session.model_requests == 2
        await assert_sound(app, session.id)
    assert ledger.counts == {"look": 1}, "what was done before the storm is not done again"


async def test_after_a_storm_a_person_may_also_say_something_else(tmp_path: Path) -> None:
    script = [*(fail(429, retry_after=0) for _ in range(3)), "Better."]
    async with clerk_on(tmp_path, script) as (app, peer, _):
        session = await begin(app)
        assert await ended(session) == "error"
        await app.sessions.say(session.id, "are you well?")
        assert await ended(session) == "done"
        assert (session.answer, session.turn) == ("Better.", 2)
        assert peer.seen[-1].asked == "are you well?"


async def test_server_errors_and_nonsense_are_waited_out(tmp_path: Path) -> None:
    async with clerk_on(tmp_path, [fail(500), fail(503), "Fine."]) as (app, peer, _):
        session = await begin(app)
        assert await ended(session) == "done"
        assert (session.answer, len(peer.seen)) == ("Fine.", 3)


async def test_a_garbled_answer_counts_as_an_attempt(tmp_path: Path) -> None:
    async with clerk_on(tmp_path, [garble(), "Fine."]) as (app, _, _):
        session = await begin(app)
        assert await ended(session) == "done"
        assert session.answer == "Fine."


async def test_a_wrong_key_is_said_at_once_with_its_remedy(tmp_path: Path) -> None:
    async with clerk_on(tmp_path, [fail(401, "no such key")]) as (app, peer, _):
        session = await begin(app)
        assert await ended(session) == "error"
        assert "check the key" in session.error
        assert len(peer.seen) == 1, "the same request would be refused again"


async def test_an_empty_reply_is_an_error_that_a_resume_mends(tmp_path: Path) -> None:
    async with clerk_on(tmp_path, ["", "Sorry."]) as (app, _, _):
        session = await begin(app)
        assert await ended(session) == "error"
        assert "the model gave no answer" in session.error
        await app.sessions.resume(session.id)
        assert await ended(session) == "done"
        assert session.answer == "Sorry."


async def test_malformed_arguments_never_reach_the_tool_and_the_model_may_try_again(
    tmp_path: Path,
) -> None:
    broken = [call_badly("look", text) for text in ('{"city": "Par', "[1, 2]", '{"city": NaN}')]
    script = [say("", *broken), say("", call("look", city="Paris")), "Sunny."]
    async with clerk_on(tmp_path, script) as (app, peer, ledger):
        session = await begin(app)
        assert await ended(session) == "done"
        *refused, done = await results(app, session)
        assert [one.how for one in refused] == ["refused"] * 3
        assert all("not a JSON object" in one.content["error"] for one in refused)
        assert done.how == "done"
        assert len(peer.seen[1].results) == 3
    assert ledger.counts == {"look": 1}


async def test_arguments_of_the_wrong_type_are_told_to_the_model(tmp_path: Path) -> None:
    script = [say("", call("look", city=["Paris"])), "Oh."]
    async with clerk_on(tmp_path, script) as (app, _, ledger):
        session = await begin(app)
        assert await ended(session) == "done"
        [end] = await results(app, session)
        assert end.how == "failed"
        assert "wrong arguments" in end.content["error"]
    assert ledger.counts == {}


async def test_a_tool_that_the_model_made_up_is_refused_with_those_that_exist(
    tmp_path: Path,
) -> None:
    script = [say("", call("transfer_all_money", to="me"), call("look", city="Paris")), "Oh."]
    async with clerk_on(tmp_path, script) as (app, _, ledger):
        session = await begin(app)
        assert await ended(session) == "done"
        ends = {one.step_id: one for one in await results(app, session)}
        assert ends["c1"].how == "refused"
        assert "there is no tool 'transfer_all_money'" in ends["c1"].content["error"]
        assert "look, pay, order" in ends["c1"].content["error"]
        assert ends["c2"].how == "done", "its neighbour is not held up"
    assert ledger.counts == {"look": 1}


async def test_a_model_that_never_stops_calling_is_stopped_and_may_be_resumed(
    tmp_path: Path,
) -> None:
    async with ModelPeer(lambda seen: call("look", city=f"city {seen.number}")) as peer:
        ledger = Ledger(tmp_path / "ledger.jsonl")
        app = Holdfast(tmp_path, model=over_the_wire(peer.url))
        add_clerk(app, ledger, max_iterations=3)
        async with app:
            session = await begin(app)
            assert await ended(session) == "error"
            assert "max_iterations" in session.error
            assert ledger.counts == {"look": 3}
            await app.sessions.resume(session.id)
            await until(app, session.id, lambda state: state.requests == 6)
            assert await ended(session) == "error"
    assert ledger.counts == {"look": 6}


async def test_a_model_that_is_not_there_is_said_so_and_asked_again_when_it_is(
    tmp_path: Path,
) -> None:
    app, _ = office(tmp_path, f"http://127.0.0.1:{free_port()}/v1")
    async with app:
        session = await begin(app)
        assert await ended(session) == "error"
        assert "the model could not be asked" in session.error
        assert "after 3 attempts" in session.error
    wanted = say("", call("look", city="Paris"))
    async with clerk_on(tmp_path, [wanted, "All done."]) as (app, _, ledger):
        session = await app.sessions.session("chat_000001")
        assert session.status == "error"
        await app.sessions.resume(session.id)
        assert await ended(session) == "done"
    assert ledger.counts == {"look": 1}


async def test_no_model_at_all_is_said_with_its_remedy(tmp_path: Path) -> None:
    app = Holdfast(tmp_path, model=over_the_wire("http://127.0.0.1:1/v1"))
    app.models.default_model = None
    app.agent("clerk")
    async with app:
        session = await begin(app)
        assert await ended(session) == "error"
        assert "HOLDFAST_MODEL" in session.error


async def test_cancelling_while_the_model_thinks_ends_at_once_and_hangs_up(
    tmp_path: Path,
) -> None:
    async with slow_speaker() as (url, next_call):
        app, _ = office(tmp_path, url)
        async with app:
            session = await begin(app)
            conversation = await next_call()
            await conversation.speak("Let me think about")
            async with asyncio.timeout(PATIENCE):
                await app.sessions.cancel(session.id, by="will.zhang")
                assert await session.wait_for_completion() == "cancelled"
                await conversation.hung_up()
            assert of_kind(await history(app, session.id), r.ModelReplied) == []
            await assert_sound(app, session.id)


async def test_closing_while_the_model_thinks_hangs_up_and_asks_again_after_the_restart(
    tmp_path: Path,
) -> None:
    async with slow_speaker() as (url, next_call):
        app, _ = office(tmp_path, url)
        async with app:
            session = await begin(app)
            conversation = await next_call()
            await conversation.speak("Let me think about")
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 5, "a reply is not worth the grace"
        await conversation.hung_up()
    async with clerk_on(tmp_path, ["Here I am."]) as (app, _, _):
        session = await app.sessions.session(session.id)
        assert await ended(session) == "done"
        assert session.answer == "Here I am."
        await assert_sound(app, session.id)


async def test_a_slow_model_holds_up_no_other_session(tmp_path: Path) -> None:
    def patience_or_not(seen: object) -> object:
        return slow(60, "late") if seen.asked == "slowly" else "quick"  # type: ignore[attr-defined]

    async with clerk_on(tmp_path, patience_or_not) as (app, peer, _):  # type: ignore[arg-type]
        slow_one = await begin(app, "slowly")
        await peer.asked.wait()
        quick_one = await begin(app, "quickly")
        assert await ended(quick_one) == "done"
        assert slow_one.status == "running"
        await app.sessions.cancel(slow_one.id)
        assert await ended(slow_one) == "cancelled"


async def test_the_whole_conversation_reaches_the_model_in_the_next_turn(tmp_path: Path) -> None:
    script = [say("", call("look", city="Paris")), "Sunny.", "As I said: sunny."]
    async with clerk_on(tmp_path, script) as (app, peer, _):
        session = await begin(app, "How is Paris?")
        assert await ended(session) == "done"
        await app.sessions.say(session.id, "Again?")
        assert await ended(session) == "done"
        user, wanted, returned, answer, again = peer.seen[-1].messages
        assert (user.text, again.text) == ("How is Paris?", "Again?")  # type: ignore[union-attr]
        assert isinstance(wanted, ModelSaid)
        assert isinstance(returned, ToolReturned)
        assert answer == ModelSaid("Sunny.")
