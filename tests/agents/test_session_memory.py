"""What a session remembers over its process: the conversation, the approvals, the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from session_scenes import (
    Ledger,
    asked,
    assert_sound,
    begin,
    clerks_office,
    ended,
    open_requests,
    until,
)

from holdfast.agents.sessions import AgentSession
from holdfast.app import Holdfast
from holdfast.errors import AlreadyAnswered, InvalidAnswer, NotAllowed, NotFound
from holdfast.journal.snapshots import SCHEMA
from holdfast.model.interaction import InteractionResponse
from holdfast.model.message import ModelSaid, ToolReturned, UserSaid
from holdfast.testing.clock import ManualClock
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel


def as_told(seen: Seen) -> Entry:
    """`pay 5 to ann` is what the person says and what the model wants."""
    if seen.results:
        return "Done."
    wanted = [line.split() for line in seen.asked.splitlines()]
    return say("", *(call("pay", amount=int(one[1]), to=one[3]) for one in wanted))


def desk(home: Path, clock: ManualClock | None = None, **rules: Any) -> tuple[Holdfast, Ledger]:
    ledger = Ledger(home / "ledger.jsonl")
    app = Holdfast(home, model=ScriptedModel(as_told), clock=clock)

    @app.tool(approval="require")
    async def pay(amount: int, to: str) -> dict[str, Any]:
        ledger.note("pay", amount=amount, to=to)
        return {"paid": amount}

    app.agent("clerk", name="Clerk", tools=["pay"], **rules)
    return app, ledger


async def pays(app: Holdfast, session: AgentSession, text: str) -> bool:
    """Whether what is told runs without a further question; one that is asked is refused."""
    await app.sessions.say(session.id, text)
    asked_for = await session.wait_until_settled(30) == "pause"
    for request in await open_requests(app):
        await app.answer(request.request_id, option_id="reject", feedback="no")
    assert await ended(session) == "done"
    return not asked_for


async def test_a_reader_of_a_session_changes_nothing_of_it(tmp_path: Path) -> None:
    app, _ = desk(tmp_path)
    async with app:
        session = await begin(app, "pay 5 to ann")
        [wanted] = await asked(app, session.id, 1)
        spoken = [one for one in session.messages if isinstance(one, ModelSaid)]
        cast(dict[str, Any], spoken[0].calls[0].args)["amount"] = 5_000
        await app.answer(wanted.request_id, option_id="approve")
        assert await ended(session) == "done"
        session.result["tools"]["pay"]["paid"] = 5_000
        assert session.result["tools"]["pay"] == {"paid": 5}
        await assert_sound(app, session.id)


async def test_the_next_turn_after_a_restart_has_the_whole_conversation(tmp_path: Path) -> None:
    app, _ = clerks_office(tmp_path)
    async with app:
        session = await begin(app)
        pay, order = await asked(app, session.id, 2)
        await app.answer(pay.request_id, option_id="reject", feedback="too much", by="will.zhang")
        await app.answer(order.request_id, data={"color": "red"})
        assert await ended(session) == "done"
        before, usage = session.messages, session.usage
    app, ledger = clerks_office(tmp_path)
    async with app:
        session = await app.sessions.session(session.id)
        assert (session.messages, session.usage) == (before, usage)
        assert (session.status, session.answer) == ("done", "All done.")
        await app.sessions.say(session.id, "and now?")
        assert await ended(session) == "done"
        [seen] = app.models.default_model.seen  # type: ignore[union-attr]
        # On the wire the results stand in the order of their calls.
        assert sorted(seen.messages[: len(before)], key=repr) == sorted(before, key=repr)
        assert seen.messages[-1] == UserSaid("and now?")
        assert session.messages == [*before, UserSaid("and now?"), ModelSaid("You said: and now?")]
        returned = {one.tool: one for one in before if isinstance(one, ToolReturned)}
        assert returned["pay"].failed
        assert "too much" in str(returned["pay"].content)
        assert session.turn == 2
        await assert_sound(app, session.id)
    assert ledger.counts == {"look": 1, "order": 1}


async def test_a_message_while_a_turn_is_open_is_refused_and_changes_nothing(
    tmp_path: Path,
) -> None:
    app, _ = clerks_office(tmp_path)
    async with app:
        session = await begin(app)
        await asked(app, session.id, 2)
        version = session.version
        with pytest.raises(NotAllowed, match="waits for an answer"):
            await app.sessions.say(session.id, "hurry up")
    app, _ = clerks_office(tmp_path)
    async with app:
        with pytest.raises(NotAllowed, match="waits for an answer"):
            await app.sessions.say(session.id, "hurry up")
        assert (await app.engine.state(session.id)).version >= version
        said = [one for one in session.messages if isinstance(one, UserSaid)]
        assert said == [UserSaid("please")]


@pytest.mark.parametrize("text", ["", "  \n "])
async def test_a_message_needs_words(tmp_path: Path, text: str) -> None:
    app, _ = clerks_office(tmp_path)
    async with app:
        session = await app.sessions.open("clerk")
        with pytest.raises(InvalidAnswer):
            await app.sessions.say(session.id, text)
        assert session.turn == 0


async def test_a_remembered_approval_holds_for_its_pattern_over_a_restart(tmp_path: Path) -> None:
    app, _ = desk(tmp_path)
    async with app:
        session = await app.sessions.open("clerk", session_id="ann-chat")
        pattern = {"to": "ann*"}
        grant = await app.sessions.remember_approval(session.id, "pay", pattern=pattern, by="will")
        assert await pays(app, session, "pay 5 to anna")
        assert not await pays(app, session, "pay 5 to bob")
    app, ledger = desk(tmp_path)
    async with app:
        session = await app.sessions.session("ann-chat")
        assert [one.grant_id for one in session.approvals] == [grant.grant_id]
        assert await pays(app, session, "pay 7 to anne")
        await app.sessions.revoke_approval(session.id, grant.grant_id)
        assert not await pays(app, session, "pay 9 to anne")
        with pytest.raises(NotFound):
            await app.sessions.revoke_approval(session.id, grant.grant_id)
        other = await app.sessions.open("clerk")
        assert not await pays(app, other, "pay 1 to anna"), "it holds in its own session only"
        await assert_sound(app, session.id)
    assert [one["args"] for one in ledger.calls] == [
        {"amount": 5, "to": "anna"},
        {"amount": 7, "to": "anne"},
    ]


async def test_a_remembered_approval_is_used_up_over_a_restart(tmp_path: Path) -> None:
    app, _ = desk(tmp_path)
    async with app:
        session = await app.sessions.open("clerk")
        await app.sessions.remember_approval(session.id, "pay", uses=2)
        assert await pays(app, session, "pay 1 to ann")
    app, ledger = desk(tmp_path)
    async with app:
        session = await app.sessions.session(session.id)
        await app.sessions.say(session.id, "pay 2 to ann\npay 3 to ann")
        [left_over] = await asked(app, session.id)
        assert left_over.context["args"] == {"amount": 3, "to": "ann"}
        await app.answer(left_over.request_id, option_id="reject", feedback="no")
        assert await ended(session) == "done"
        assert [one.uses for one in session.approvals] == [0]
    assert [one["args"]["amount"] for one in ledger.calls] == [1, 2]


async def test_a_remembered_approval_lapses(tmp_path: Path, clock: ManualClock) -> None:
    app, _ = desk(tmp_path, clock)
    async with app:
        session = await app.sessions.open("clerk")
        await app.sessions.remember_approval(session.id, "pay", seconds=3600)
        clock.advance(3599)
        assert await pays(app, session, "pay 1 to ann")
    clock.advance(1)
    app, ledger = desk(tmp_path, clock)
    async with app:
        session = await app.sessions.session(session.id)
        assert not await pays(app, session, "pay 2 to ann")
    assert [one["args"]["amount"] for one in ledger.calls] == [1]


async def test_a_remembered_approval_does_not_outlive_the_version_of_its_tool(
    tmp_path: Path,
) -> None:
    app, _ = desk(tmp_path)
    async with app:
        session = await app.sessions.open("clerk")
        await app.sessions.remember_approval(session.id, "pay")
        assert await pays(app, session, "pay 1 to ann")
    ledger = Ledger(tmp_path / "ledger.jsonl")
    app = Holdfast(tmp_path, model=ScriptedModel(as_told))

    @app.tool(approval="require")
    async def pay(amount: int, to: str) -> dict[str, Any]:
        ledger.note("pay", "new", amount=amount, to=to)
        return {"paid": amount}

    async with app:
        session = await app.sessions.session(session.id)
        assert not await pays(app, session, "pay 2 to ann")
    assert [one["args"]["amount"] for one in ledger.calls] == [1]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"uses": 0}, InvalidAnswer),
        ({"seconds": 0}, InvalidAnswer),
        ({"pattern": {"from": "ann"}}, InvalidAnswer),
        ({"tool": "play"}, NotFound),
    ],
)
async def test_an_approval_that_could_never_be_used_is_not_remembered(
    tmp_path: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    app, _ = desk(tmp_path)
    async with app:
        session = await app.sessions.open("clerk")
        with pytest.raises(error):
            await app.sessions.remember_approval(session.id, **{"tool": "pay", **options})
        assert session.approvals == []


async def test_a_session_has_rules_of_its_own_over_a_restart(tmp_path: Path) -> None:
    app, _ = desk(tmp_path)
    rules = {
        "free": {"pay": "auto"},
        "closed": {"pay": "disabled"},
        "up-to-ten": {"pay": {"require_when": "amount > 10"}},
    }
    async with app:
        for session_id, rule in rules.items():
            await app.sessions.open("clerk", session_id=session_id, approval=rule)
    app, ledger = desk(tmp_path)
    async with app:
        assert await pays(app, await app.sessions.session("free"), "pay 50 to ann")
        assert await pays(app, await app.sessions.session("up-to-ten"), "pay 10 to ann")
        assert not await pays(app, await app.sessions.session("up-to-ten"), "pay 11 to ann")
        closed = await app.sessions.session("closed")
        assert await pays(app, closed, "pay 3 to ann"), "nobody is asked"
        assert closed.result["success"] is False
        assert "disabled" in str(closed.result["error"])
    assert [one["args"]["amount"] for one in ledger.calls] == [50, 10]


async def test_no_session_opens_what_the_agents_author_has_closed(tmp_path: Path) -> None:
    app, ledger = desk(tmp_path, approval={"pay": "disabled"})
    async with app:
        session = await app.sessions.open("clerk", approval={"pay": "auto"})
        assert await pays(app, session, "pay 1 to ann")
        assert session.result["success"] is False
    assert ledger.counts == {}


async def test_session_ids_of_ones_own(tmp_path: Path) -> None:
    app, _ = clerks_office(tmp_path)
    async with app:
        session = await app.sessions.open("clerk", session_id="wills-chat")
        assert session.id == "wills-chat"
        with pytest.raises(NotAllowed):
            await app.sessions.open("clerk", session_id="wills-chat")
    app, _ = clerks_office(tmp_path)
    async with app:
        with pytest.raises(NotAllowed):
            await app.sessions.open("clerk", session_id="wills-chat")
        for refused in ("chat_000007", "inst_000001", "a b", "_1", "", "x.c1.1", "x" * 65, "ä/.."):
            with pytest.raises(InvalidAnswer):
                await app.sessions.open("clerk", session_id=refused)
        assert (await app.sessions.open("clerk")).id == "chat_000001"


async def test_one_answer_to_exactly_the_questions_that_were_shown(tmp_path: Path) -> None:
    app, ledger = desk(tmp_path)
    async with app:
        session = await app.sessions.open("clerk")
        lines = [f"pay {amount} to ann" for amount in (1, 2, 3, 4)]
        await app.sessions.say(session.id, "\n".join(lines))
        one, two, three, four = (each.request_id for each in await asked(app, session.id, 4))
        await app.answer(four, option_id="reject", feedback="not this one", by="somebody")
        approve = InteractionResponse("", selected_option_id="approve")
        shown = [one, two, one, four, "nobody-asked-this"]
        outcomes = await app.sessions.answer_many(shown, approve, by="will.zhang")
        assert outcomes.keys() == {one, two, four, "nobody-asked-this"}
        assert (outcomes[one], outcomes[two]) == (None, None)
        assert isinstance(outcomes[four], AlreadyAnswered)
        assert isinstance(outcomes["nobody-asked-this"], NotFound)
        assert [each.request_id for each in await open_requests(app)] == [three]
        await app.answer(three, option_id="reject", feedback="nor this")
        assert await ended(session) == "done"
    assert sorted(each["args"]["amount"] for each in ledger.calls) == [1, 2]


async def test_a_long_session_is_taken_up_from_its_snapshot(tmp_path: Path) -> None:
    """With everything that a session may hold: a question, an approval, a sub-agent at work."""

    def script(seen: Seen) -> Entry:
        if seen.system == "boss":
            return "All done." if seen.results else say("", call("ask_clerk", task="go"), *seconds)
        return "Done." if seen.results else call("pay", amount=9, to="bob")

    seconds = (call("pay", amount=1, to="ann"), call("pay", amount=2, to="bob"))

    def office() -> tuple[Holdfast, Ledger]:
        app, ledger = desk(tmp_path)
        app.models.default_model = ScriptedModel(script)
        app.agent("boss", system_context="boss", tools=["pay"], agents=["clerk"])
        return app, ledger

    app, _ = office()
    async with app:
        session = await app.sessions.open("boss", approval={"pay": {"require_when": "amount > 0"}})
        pattern = {"to": "ann"}
        await app.sessions.remember_approval(session.id, "pay", pattern=pattern, uses=3)
        await app.sessions.say(session.id, "long words " * 20_000)
        await until(app, session.id, lambda one: one.paused_children == 1 and len(one.did) == 1)
    app, ledger = office()
    async with app:
        snapshot = await app.journal.snapshot(session.id, SCHEMA)
        assert snapshot is not None
        state = await assert_sound(app, session.id)
        assert snapshot.version <= state.version
        session = await app.sessions.session(session.id)
        assert [one.uses for one in session.approvals] == [2]
        for request in await open_requests(app):
            await app.answer(request.request_id, option_id="approve")
        assert await ended(session) == "done"
        await assert_sound(app, session.id)
    assert sorted(one["args"]["amount"] for one in ledger.calls) == [1, 2, 9]
