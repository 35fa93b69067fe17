"""Conversations without a terminal: plain lines or JSON, and nothing ever waits for a key."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from cli_scene import Command, Ending

from holdfast import Holdfast
from holdfast.model import commands as c

Converse = Command


@pytest.fixture
def converse(holdfast: Command, goals: str) -> Converse:
    def run(*arguments: str) -> Ending:
        return holdfast("converse", *arguments, "--app", goals)

    return run


@pytest.fixture
def also(holdfast: Command, goals: str) -> Command:
    """Any other command on the same home."""

    def run(*arguments: str) -> Ending:
        return holdfast(*arguments, "--app", goals)

    return run


def kinds(ending: Ending) -> list[str]:
    return [event["event_type"] for event in ending.events]


def the_question(also: Command) -> dict[str, Any]:
    [asked] = also("inbox", "--json").json
    return dict(asked)


def test_a_goal_becomes_tasks_that_are_done_and_tells_their_results(converse: Converse) -> None:
    ending = converse("帮我分析销售数据")
    assert ending.code == 0
    for moment in (
        "local    wants: 帮我分析销售数据",
        "engine   makes tasks of the goal",
        "has 3 tasks: collect (收集销售数据)",
        'task collect returned: {"month":"2025-10","total":4200}',
        "task report is completed",
        "conv_000001 is done",
        "  report: 写报告: 完成\n  │ (whole)\n",
        "to say more: holdfast converse --id conv_000001 --app goals:app 'GOAL'",
    ):
        assert moment in ending.out
    assert "  trend: " not in ending.out


def test_in_json_every_event_is_one_line_and_nothing_else_is_said(converse: Converse) -> None:
    ending = converse("帮我分析销售数据", "--json")
    assert (ending.code, ending.err) == (0, "")
    assert [set(event) for event in ending.events] == [
        {"event_type", "data", "seq", "at", "conversation_id"}
    ] * len(ending.events)
    assert kinds(ending)[:5] == [
        "state_changed",
        "state_changed",
        "context_received",
        "state_changed",
        "task_decomposed",
    ]
    last = ending.events[-1]
    assert last["event_type"] == "engine_completed"
    assert last["data"] == {"total_tasks": 3, "completed_tasks": 3}
    assert last["conversation_id"] == "conv_000001"
    numbers = [event["seq"] for event in ending.events]
    assert numbers == sorted(set(numbers))


def test_a_task_that_asks_ends_the_command_with_the_way_to_answer(
    converse: Converse, also: Command
) -> None:
    ending = converse("order")
    assert ending.code == 4
    assert "task thanks is completed" in ending.out
    assert "conv_000001 is pause" in ending.out
    question_id = the_question(also)["question_id"]
    assert f"to answer: holdfast answer {question_id[:8]} --set count=… --app" in ending.out

    answered = also("answer", question_id, "--set", "count=2")
    assert answered.code == 0
    assert 'task order returned: {"ordered":["tea","tea"]}' in answered.out
    assert "  bill: Write a bill: 完成" in answered.out
    assert answered.out.count("Say thanks") == 1, "what was done is told, and not done again"


def test_an_approval_of_a_task_runs_it_once(converse: Converse, also: Command, place: Path) -> None:
    assert converse("pay", "--json").events[-1]["event_type"] == "interaction"
    question_id = the_question(also)["question_id"]
    refused = also("answer", question_id, "--option", "approve")
    assert (refused.code, "--yes" in refused.err) == (1, True)
    assert also("answer", question_id, "--option", "approve", "--yes").code == 0
    assert (place / "paid").read_text(encoding="utf-8") == "5\n"


def test_a_question_of_an_agent_below_is_that_of_the_conversation(
    converse: Converse, also: Command, place: Path
) -> None:
    ending = converse("delegate", "--json")
    assert ending.code == 4
    below = ending.events[-1]
    assert (below["event_type"], below["seq"]) == ("interaction", None)
    assert below["data"]["requestId"] == the_question(also)["question_id"]
    done = also("answer", the_question(also)["question_id"], "--option", "approve", "--yes")
    assert (done.code, "conv_000001 is done" in done.out) == (0, True)
    assert (place / "paid").read_text(encoding="utf-8") == "7\n"


def test_several_questions_are_answered_together(converse: Converse, also: Command) -> None:
    converse("pay")
    converse("pay")
    ids = [row["question_id"] for row in also("inbox", "--json").json]
    ending = also("answer", *ids, "--option", "approve", "--yes")
    assert ending.code == 0
    assert "conv_000001 is done" in ending.out
    assert "conv_000002 is done" in ending.out


def test_a_completed_conversation_takes_the_next_goal(converse: Converse, also: Command) -> None:
    converse("帮我分析销售数据")
    second = converse("order", "--id", "1", "--json")
    assert second.code == 4
    assert second.events[0]["data"] == {"from": "completed", "to": "idle"}
    [row] = also("runs", "--json").json
    assert (row["title"], row["summary"]["turn"]) == ("order", 2)


def test_an_unfinished_one_goes_on_without_words_and_takes_no_others(
    converse: Converse, also: Command
) -> None:
    converse("order")
    other = converse("pay", "--id", "conv_000001")
    assert other.code == 1
    [waiting] = converse("--id", "1", "--json").events
    assert (waiting["event_type"], waiting["data"]["title"]) == ("interaction", "Task order")
    printed = "`holdfast converse --id conv_000001 --app goals:app`"
    assert f"conv_000001 is still at order: {printed}" in other.err
    question_id = the_question(also)["question_id"]
    noted = also("answer", question_id, "--set", "count=1", "--no-wait")
    assert (noted.code, "to go on: holdfast converse --id conv_000001" in noted.out) == (0, True)
    went_on = converse("--id", "conv_000001")
    assert (went_on.code, "conv_000001 is done" in went_on.out) == (0, True)
    again = converse("--id", "conv_000001")
    assert (again.code, "say what is wanted next" in again.err) == (1, True)


def test_a_failed_one_takes_the_next_words_and_the_model_hears_what_was_done(
    converse: Converse, place: Path
) -> None:
    failed = converse("break")
    assert failed.code == 3
    assert "out of order" in failed.out
    assert "to try again: holdfast resume conv_000001 --app goals:app --failed retry" in failed.out
    assert "to say something else: holdfast converse --id conv_000001" in failed.out
    silent = converse("--id", "1")
    assert (silent.code, "say how to go on: --failed retry, --failed skip" in silent.err) == (
        1,
        True,
    )
    (place / "mended").touch()
    mended = converse("break", "--id", "1")
    assert (mended.code, "the next turn is told what was done" in mended.err) == (0, True)


def test_a_failed_one_goes_on_as_it_is_told_and_only_so(
    converse: Converse, also: Command, place: Path
) -> None:
    converse("break")
    asked = also("resume", "conv_000001")
    ways = "--failed retry, --failed skip, --failed stop"
    assert (asked.code, ways in asked.err) == (1, True)
    bare = also("resume", "conv_000001", "--failed")
    assert (bare.code, ways in bare.err) == (1, True)
    (place / "mended").touch()
    assert "leave the new one out" in converse("more", "--id", "1", "--failed", "retry").err
    assert (
        "holdfast resume conv_000001 --failed stop" in converse("--id", "1", "--failed", "stop").err
    )
    going = also("resume", "conv_000001", "--failed", "retry")
    assert (going.code, '{"mended":true}' in going.out) == (0, True)
    assert (
        "no conversation that has failed" in also("resume", "conv_000001", "--failed", "skip").err
    )


@pytest.mark.parametrize(
    ("choice", "told"), [("retry", "tried again"), ("skip", "it goes on without: ")]
)
def test_converse_goes_on_after_a_failure_too(
    converse: Converse, place: Path, choice: str, told: str
) -> None:
    converse("break")
    (place / "mended").touch()
    going = converse("--id", "1", "--failed", choice)
    assert (going.code, told in going.err) == (0, True)
    assert "conv_000001 is done" in going.out, "it is driven to its end"


def test_a_failed_one_that_fails_again_says_so(converse: Converse) -> None:
    converse("break")
    again = converse("--id", "1", "--failed", "retry")
    assert (again.code, "conv_000001 is error" in again.out) == (3, True)


async def _hold(place: Path) -> None:
    async with Holdfast(place / "kept") as app:
        await app.engine.submit("conv_000001", c.Hold())


def test_one_that_is_paused_and_asks_is_no_longer_paused_once_it_goes_on(
    converse: Converse, also: Command, place: Path
) -> None:
    converse("order")
    asyncio.run(_hold(place))
    assert "to go on: holdfast converse --id" in also("watch", "conv_000001").out
    going = converse("--id", "1")
    assert (going.code, "to go on:" in going.out) == (4, False)


def test_what_is_skipped_is_told_as_skipped_and_why(converse: Converse, also: Command) -> None:
    converse("break")
    skipped = also("resume", "conv_000001", "--failed", "skip")
    assert skipped.code == 0
    assert "skipped (it failed: " in skipped.out
    assert '{"' not in skipped.out
    assert "0/1 tasks, 1 skipped" in also("runs").out
    told = also("history", "conv_000001").out
    assert "tasks done: 0, skipped: 1 (mend)" in told
    assert "task mend is skipped" in told
    assert "task mend is completed" not in told


def test_a_turn_that_failed_may_be_ended(converse: Converse, also: Command) -> None:
    converse("break")
    ended = also("resume", "conv_000001", "--failed", "stop", "--json")
    assert (ended.code, ended.json["phase"]) == (0, "idle")


def test_tasks_are_shown_before_they_run_where_that_is_wished(
    converse: Converse, also: Command
) -> None:
    shown = converse("帮我分析销售数据", "--confirm-tasks")
    assert shown.code == 4
    asked = the_question(also)
    assert '"dependencies"' not in shown.out
    for line in asked["details"].split("\n"):
        assert shown.out.count(f"│ {line}") == 1
    assert (asked["title"], asked["about"]) == ("Run these tasks?", "帮我分析销售数据")
    assert also("answer", asked["question_id"], "--option", "run").code == 0


def test_a_failure_may_be_a_question_instead(
    converse: Converse, also: Command, place: Path
) -> None:
    assert converse("break", "--on-failure", "ask").code == 4
    (place / "mended").touch()
    ending = also("answer", the_question(also)["question_id"], "--option", "run_again")
    assert (ending.code, '{"mended":true}' in ending.out) == (0, True)


def test_tasks_that_go_in_a_circle_end_in_an_error_with_its_phase(converse: Converse) -> None:
    ending = converse("circle", "--json")
    assert ending.code == 3
    assert ending.events[-1]["event_type"] == "engine_error"
    assert ending.events[-1]["data"]["phase"] == "decomposing"


def test_without_a_model_the_goal_is_one_task_and_that_is_said(holdfast: Command) -> None:
    ending = holdfast("converse", "帮我分析销售数据")
    assert ending.code == 0
    assert "the goal becomes one task, and is not done" in ending.err
    assert "has 1 task: task_1 (帮我分析销售数据)" in ending.out


def test_tasks_for_a_model_are_not_done_without_one(
    converse: Converse, also: Command, holdfast: Command
) -> None:
    converse("order")
    question_id = the_question(also)["question_id"]
    noted = holdfast("answer", question_id, "--set", "count=1", "--home", "kept", "--anyway")
    assert "to go on: holdfast converse --id conv_000001" in noted.out
    here = holdfast("converse", "--id", "1", "--home", "kept")
    assert (here.code, "needs the tool order, not known here" in here.err) == (1, True)
    assert converse("--id", "1").code == 0


def test_rules_and_documents_reach_the_model(converse: Converse, place: Path) -> None:
    (place / "handbook").mkdir()
    (place / "handbook" / "sales.md").write_text("# 销售\n\n销售数据在每月五日汇总。")
    (place / "handbook" / "odd.txt").write_bytes(b"\xff\xfe")
    ending = converse("帮我分析销售数据", "--knowledge", "handbook", "--rule", "只用中文")
    assert ending.code == 0
    assert "has the context: rules 1, passages 1, tools 7" in ending.out
    assert "odd.txt is left out" in ending.err
    prompts = (place / "prompts").read_text(encoding="utf-8")
    assert "只用中文" in prompts
    assert "每月五日汇总" in prompts


def test_documents_that_are_not_there_are_refused(converse: Converse) -> None:
    ending = converse("x", "--knowledge", "nowhere")
    assert (ending.code, "nowhere is no directory" in ending.err) == (1, True)


def test_a_conversation_may_have_a_name_of_its_own(converse: Converse, also: Command) -> None:
    assert converse("pay", "--id", "sales", "--max-parallel", "2").code == 4
    assert converse("--id", "sales").code == 4
    other = converse("--id", "sales", "--max-parallel", "3")
    assert "sales was begun with --max-parallel 2: leave --max-parallel out" in other.err
    unknown = converse("--id", "nobody")
    assert "there is no conversation nobody" in unknown.err
    given_out = converse("x", "--id", "conv_000009")
    assert (given_out.code, "which are given out" in given_out.err) == (1, True)


def test_nothing_to_say_is_wrong_usage(converse: Converse) -> None:
    ending = converse()
    assert (ending.code, "say what is wanted" in ending.err) == (2, True)


def test_a_chat_is_no_conversation(converse: Converse, also: Command) -> None:
    also("chat", "hello", "--agent", "clerk")
    ending = converse("x", "--id", "chat_000001")
    assert (ending.code, "is not a conversation" in ending.err) == (1, True)


def test_a_damaged_home_is_said_to_be(place: Path, holdfast: Command) -> None:
    (place / "kept").mkdir()
    (place / "kept" / "holdfast.db").write_bytes(b"no database at all" * 100)
    ending = holdfast("converse", "x", "--home", "kept", "--json")
    assert ending.code == 1
    assert "holdfast.db" in ending.json["error"]["message"]


def test_every_other_command_knows_conversations(converse: Converse, also: Command) -> None:
    converse("帮我分析销售数据")
    converse("order")
    assert "conversation" in also("runs").out
    rows = also("runs", "--kind", "conversation", "--json").json
    assert [(row["instance_id"], row["kind"]) for row in rows] == [
        ("conv_000002", "conversation"),
        ("conv_000001", "conversation"),
    ]
    assert also("runs", "--kind", "chat", "--json").json == []
    assert "wants: 帮我分析销售数据" in also("history", "conv_000001").out
    assert also("history", "conv_000001", "--json").json[0]["type"] == "ConversationOpened"
    assert (also("watch", "conv_000001").code, also("watch", "conv_000002").code) == (0, 4)
    assert "conv_000002" in also("watch").out
    assert "Needed to go on: Count" in also("inbox", the_question(also)["question_id"]).out
    assert "is not an instance of a plan" in also("graph", "conv_000001").err
    assert "converse --id conv_000002" in also("resume", "conv_000002").err
    values = also("continue", "conv_000002", "--set", "count=1")
    assert "conv_000002 is no run of a plan" in values.err
    assert also("continue", "conv_000002").code == 4
    standing = also("continue", "conv_000001", "--json").json
    assert standing["conversation_id"] == "conv_000001"
    assert [task["status"] for task in standing["tasks"]] == ["completed"] * 3


def test_a_cancelled_one_is_over(converse: Converse, also: Command) -> None:
    converse("delegate")
    cancelled = also("cancel", "conv_000001", "--reason", "enough")
    assert (cancelled.code, "conv_000001 is cancelled" in cancelled.out) == (0, True)
    assert also("inbox", "--json").json == []
    ending = converse("more", "--id", "1")
    assert (ending.code, "conv_000001 is cancelled" in ending.err) == (1, True)
    assert also("watch", "conv_000001").code == 5
