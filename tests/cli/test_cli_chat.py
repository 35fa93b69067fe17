"""Chats from scripts: one turn per process, and nothing ever waits for a key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_scene import Command, Ending

Chat = Callable[..., Ending]


@pytest.fixture
def at_desk(holdfast: Command, desk: str) -> Chat:
    """Any command, with the application that has the agents."""
    return lambda *arguments: holdfast(*arguments, "--app", desk)


@pytest.fixture
def chat(at_desk: Chat) -> Chat:
    return lambda *arguments: at_desk("chat", *arguments, "--agent", "clerk")


def questions(at_desk: Chat) -> list[Any]:
    found: list[Any] = at_desk("inbox", "--json").json
    return found


def paid(place: Path) -> list[str]:
    file = place / "paid"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def test_a_message_is_one_turn_and_the_answer_is_all_that_is_printed(chat: Chat) -> None:
    assert chat("hello") == Ending(0, "You said: hello\n", "")


def test_a_chat_goes_on_in_a_second_process(
    at_desk: Chat, chat: Chat, holdfast_process: Command, desk: str
) -> None:
    chat("hello", "--by", "will")
    again = holdfast_process("chat", "again", "--session", "1", "--app", desk)
    assert again.out == "You said: again\n"
    [row] = at_desk("runs", "--json").json
    assert (row["instance_id"], row["kind"], row["agent_id"]) == ("chat_000001", "chat", "clerk")
    assert row["summary"]["turn"] == 2
    told = at_desk("history", "chat_000001").out
    assert "will     said: hello" in told
    assert "agent    answered: You said: again" in told


def test_an_approval_ends_the_command_with_4_and_the_ways_to_answer(
    at_desk: Chat, chat: Chat, place: Path
) -> None:
    asked = chat("please pay")
    assert asked.code == 4
    assert "    tool: pay\n      2 arguments:\n" in asked.out
    assert '\n      │ amount = 5\n      │ to = "张三"\n' in asked.out
    [question] = questions(at_desk)
    name = question["question_id"][:8]
    assert f"holdfast answer {name} --option approve --yes --app desk:app" in asked.out
    assert f"holdfast answer {name} --option reject --feedback '…' --app desk:app" in asked.out
    assert paid(place) == []
    answered = at_desk("answer", name, "--option", "approve", "--yes", "--json")
    assert (answered.code, answered.json["answer"]) == (0, "Done: pay {'paid': 5}")
    assert paid(place) == ["5 张三"]


def test_an_approval_may_change_the_arguments(at_desk: Chat, chat: Chat, place: Path) -> None:
    chat("pay")
    [question] = questions(at_desk)
    approve = ("answer", question["question_id"], "--option", "approve", "--yes")
    refused = at_desk(*approve, "--data", "amount=many")
    assert refused.code == 1
    assert "amount" in refused.err
    assert at_desk(*approve, "--data", "amount=9", "--data", '{"to": "Will"}').code == 0
    assert paid(place) == ["9 Will"]


def test_a_rejected_call_never_runs_and_the_agent_hears_why(
    at_desk: Chat, chat: Chat, place: Path
) -> None:
    chat("pay")
    [question] = questions(at_desk)
    reject = ("answer", question["question_id"], "--option", "reject")
    assert "Why not?" in at_desk(*reject).err
    rejected = at_desk(*reject, "--feedback", "too much")
    assert rejected.code == 0
    assert "too much" in rejected.out
    assert paid(place) == []


def test_json_gives_every_event_as_a_line_and_ends_with_done(chat: Chat, at_desk: Chat) -> None:
    events = chat("pay", "--json").events
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["STARTED", "THINKING"]
    assert kinds[-2:] == ["INTERACTION", "DONE"]
    said = "".join(event["data"].get("delta", "") for event in events)
    assert said == "Let me pay."
    assert events[-1]["data"] == {"status": "pause", "turn": 1}
    [question] = questions(at_desk)
    assert events[-2]["data"]["requestId"] == question["question_id"]
    at_desk("answer", question["question_id"], "--option", "approve", "--yes", "--no-wait")
    later = at_desk("chat", "--session", "1", "--json").events
    assert later[-1]["data"]["status"] == "done"


def test_a_sub_agents_question_shows_the_chat_that_the_person_knows(
    at_desk: Chat, place: Path
) -> None:
    events = at_desk("chat", "delegate", "--agent", "chief", "--json").events
    assert [event["type"] for event in events[-2:]] == ["INTERACTION", "DONE"]
    assert events[-2]["data"]["context"]["tool"] == "pay"
    [question] = questions(at_desk)
    assert (question["root_id"], question["instance_id"]) == ("chat_000001", "chat_000001.c1.1")
    listed = at_desk("inbox").out
    assert "chat_000001 " in listed
    assert "chat_000001.c1.1" not in listed
    answered = at_desk("answer", question["question_id"][:8], "--option", "approve", "--yes")
    assert answered.code == 0
    assert "chat_000001 is done" in answered.out
    assert paid(place) == ["5 张三"]


def test_missing_arguments_are_asked_for_and_given_by_name(at_desk: Chat, chat: Chat) -> None:
    asked = chat("order")
    [question] = questions(at_desk)
    assert "--set item=… --set count=…" in asked.out
    given = ("--data", "item=tea", "--data", "count=2")
    answered = at_desk("answer", question["question_id"], *given, "--json")
    assert answered.json["answer"] == "Done: order {'ordered': ['tea', 'tea']}"


def test_a_models_words_are_only_ever_quoted(at_desk: Chat, chat: Chat) -> None:
    asked = chat("which")
    assert "    in its own words:\n    │ Which?\n    │ Run pay?\n" in asked.out
    [question] = questions(at_desk)
    answered = at_desk("answer", question["question_id"], "--option", "choice_2", "--json")
    assert "blue" in answered.json["answer"]


def test_several_questions_take_one_answer_and_each_has_its_outcome(
    at_desk: Chat, chat: Chat, place: Path
) -> None:
    chat("pay twice")
    chat("pay")
    first, second, other = [row["question_id"] for row in questions(at_desk)]
    many = ("answer", first, second, "nosuch", "--option", "approve")
    assert "say --yes if you mean it" in at_desk(*many).err
    assert paid(place) == []
    ending = at_desk(*many, "--yes", "--json")
    assert ending.code == 1
    assert [one["answered"] for one in ending.json] == [True, True, False]
    assert ending.json[2]["error"]["kind"] == "NotFound"
    assert sorted(paid(place)) == ["5 nobody", "7 nobody"]
    assert [row["question_id"] for row in questions(at_desk)] == [other]
    again = at_desk("answer", other, first, "--option", "reject", "--feedback", "no")
    assert again.code == 1
    assert "already answered by local" in again.out
    assert "chat_000002 is done" in again.out


def test_several_questions_need_to_be_told_what(at_desk: Chat, chat: Chat) -> None:
    chat("pay twice")
    ids = [row["question_id"] for row in questions(at_desk)]
    assert at_desk("answer", *ids).code == 2


def test_a_question_that_was_withdrawn_says_so(at_desk: Chat, chat: Chat, place: Path) -> None:
    chat("pay")
    [question] = questions(at_desk)
    cancelled = at_desk("cancel", "chat_000001", "--reason", "enough", "--json")
    assert (cancelled.code, cancelled.json["status"]) == (0, "cancelled")
    late = at_desk("answer", question["question_id"], "--option", "approve", "--yes")
    assert late.code == 1
    assert "is withdrawn; nothing was changed" in late.err
    assert "withdrawn, asked by chat_000001" in at_desk("inbox", question["question_id"]).out
    assert paid(place) == []


def test_the_inbox_knows_role_deadline_reminders_and_escalation(at_desk: Chat) -> None:
    at_desk("chat", "pay", "--agent", "teller")
    [question] = at_desk("inbox", "--role", "cashier", "--json").json
    assert (question["role"], question["escalate_to"], question["reminded"]) == (
        "cashier",
        "boss",
        0,
    )
    assert question["drafts"] == {}
    assert at_desk("inbox", "--role", "boss").out == "nothing waits for a person in the role boss\n"
    assert "1 h 59 min left" in at_desk("inbox").out
    shown = at_desk("inbox", question["question_id"][:8]).out
    assert "asks the role cashier" in shown
    assert "then it expires" in shown
    assert "it asks the role boss" in shown
    assert "reminders: 0 of 1" in shown
    assert "amount = 5" in shown


def test_a_draft_is_shown_to_whoever_looks(chat: Chat, at_desk: Chat, place: Path) -> None:
    from holdfast import Holdfast

    chat("order")
    [question] = questions(at_desk)

    async def begin() -> None:
        async with Holdfast(place / "kept") as app:
            await app.keep_draft(question["question_id"], {"item": "tea"}, by="will")

    asyncio.run(begin())
    assert questions(at_desk)[0]["drafts"] == {"will": {"item": "tea"}}
    assert 'will has begun: {"item":"tea"}' in at_desk("inbox", question["question_id"]).out


def test_answering_without_the_runs_tools_is_refused_with_their_names(
    chat: Chat, at_desk: Chat, holdfast: Command, place: Path
) -> None:
    chat("pay")
    [question] = questions(at_desk)
    elsewhere = (
        "answer",
        question["question_id"],
        "--home",
        "kept",
        "--option",
        "approve",
        "--yes",
    )
    refused = holdfast(*elsewhere)
    assert refused.code == 1
    assert "chat_000001 needs the tools pay, order, slow, not known here" in refused.err
    assert len(questions(at_desk)) == 1
    assert "needs the tools" in holdfast("resume", "chat_000001", "--home", "kept").err
    assert holdfast(*elsewhere, "--anyway").code != 1
    assert paid(place) == []


def test_a_plans_missing_tools_are_named_too(
    holdfast_process: Command, application: str, place: Path
) -> None:
    run = holdfast_process("run", "call_pay", "--app", application, "--json")
    [question] = run.json["questions"]
    refused = holdfast_process(
        "answer", question["question_id"], "--home", "kept", "--option", "approve", "--yes"
    )
    assert refused.code == 1
    assert "inst_000001 needs the tool pay, not known here" in refused.err


def test_a_home_without_agents_says_how_to_declare_one(holdfast: Command) -> None:
    ending = holdfast("chat", "hello")
    assert ending.code == 1
    assert ending.err.startswith("error: no agent is declared here: write one into agents.yaml")


def test_several_agents_must_be_told_apart(at_desk: Chat) -> None:
    ending = at_desk("chat", "hello")
    assert ending.code == 1
    assert "name one with --agent: chief, clerk, teller" in ending.err
    assert "did you mean 'clerk'?" in at_desk("chat", "hello", "--agent", "clark").err


def test_without_a_terminal_a_chat_needs_a_message(at_desk: Chat) -> None:
    assert at_desk("chat", "--agent", "clerk").code == 2


def test_an_unknown_session_is_named(at_desk: Chat, chat: Chat) -> None:
    chat("hello")
    assert "leave --session out" in at_desk("chat", "hello", "--session", "9").err
    wrong = at_desk("chat", "hello", "--session", "1", "--agent", "chief")
    assert "chat_000001 is a chat with clerk" in wrong.err


def test_without_a_model_the_chat_ends_in_error_and_says_what_to_set(
    holdfast: Command, place: Path
) -> None:
    (place / "agents.yaml").write_text("agent_id: guide\nname: Guide\n", encoding="utf-8")
    ending = holdfast("chat", "hello")
    assert ending.code == 3
    assert "set HOLDFAST_MODEL" in ending.out
    assert "to try again: holdfast resume chat_000001" in ending.out
    assert "to say something else: holdfast chat --session chat_000001" in ending.out
    assert holdfast("resume", "chat_000001").code == 3


def test_agents_stand_in_several_files_and_a_broken_one_is_told_only_to_who_chats(
    holdfast: Command, place: Path
) -> None:
    (place / "agents").mkdir()
    (place / "agents" / "a.yaml").write_text("agent_id: a\nagents: [b]\n", encoding="utf-8")
    (place / "agents" / "b.yaml").write_text("agent_id: b\n", encoding="utf-8")
    assert "name one with --agent: a, b" in holdfast("chat", "hello").err
    (place / "agents" / "c.yaml").write_text("agent_id: c\nbogus: 1\n", encoding="utf-8")
    assert "agents/c.yaml:2:1" in holdfast("chat", "hello", "--agent", "c").err
    run = holdfast("run", "greet", "--set", "name=张三")
    assert run.code == 0
    assert run.err.startswith("warning: agents/c.yaml is left out")


def test_runs_are_told_apart_by_kind(at_desk: Chat, chat: Chat, holdfast: Command) -> None:
    chat("hello")
    common = ("--home", "kept")
    holdfast("run", "greet", "--set", "name=张三", *common)
    kinds = [row["kind"] for row in holdfast("runs", "--json", *common).json]
    assert sorted(kinds) == ["chat", "plan"]
    [one] = holdfast("runs", "--kind", "chat", "--json", *common).json
    assert one["title"] == "Clerk"
    assert "inst_000001" not in holdfast("runs", "--agent", "clerk", *common).out
    assert holdfast("runs", "--agent", "clerk", "--plan", "greet", *common).code == 2


def test_watching_and_continuing_a_chat(at_desk: Chat, chat: Chat) -> None:
    chat("pay")
    watched = at_desk("watch", "chat_000001")
    assert watched.code == 4
    assert "asks a person: Run pay?" in watched.out
    assert at_desk("continue", "chat_000001").code == 4
    assert (
        "is no run of a plan: answer its questions"
        in at_desk("continue", "chat_000001", "--set", "amount=3").err
    )
    assert at_desk("graph", "chat_000001").code == 1


def test_lists_say_what_a_chat_is_about(at_desk: Chat, chat: Chat) -> None:
    chat("please pay")
    assert "clerk: please pay" in at_desk("runs").out.lower()
    [question] = questions(at_desk)
    assert question["about"] == "please pay"
    assert "please pay" in at_desk("inbox").out


def test_under_four_eyes_nobody_speaks_under_another_name(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_FOUR_EYES", "1")
    refused = chat("hello", "--by", "will")
    assert refused.code == 1
    assert "Leave --by away" in refused.err
    assert chat("hello").code == 0
