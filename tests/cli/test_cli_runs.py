"""Runs on the command line: started, paused, continued, listed, told."""

from __future__ import annotations

from pathlib import Path

from cli_scene import Command


def test_a_plan_runs_to_its_end_and_says_so(holdfast: Command) -> None:
    ending = holdfast("run", "greet", "--set", "name=张三", "--prompt", "问候")
    assert ending.code == 0
    assert "started greet: 问候" in ending.out
    assert "001 Greet is done" in ending.out
    assert ending.out.rstrip().endswith("inst_000001 is done")


def test_a_plan_file_runs_without_being_in_the_plans_directory(
    holdfast: Command, place: Path
) -> None:
    (place / "plans" / "greet.yaml").rename(place / "elsewhere.yaml")
    ending = holdfast("run", "elsewhere.yaml", "--values", '{"name": "张三"}', "--json")
    assert (ending.code, ending.json["status"]) == (0, "done")


def test_a_pause_ends_the_command_with_4_and_says_how_to_answer(holdfast: Command) -> None:
    ending = holdfast("run", "ask")
    assert ending.code == 4
    assert "asks a person: 张三的信息 (数量, 同意, 种类, 口令)" in ending.out
    assert "to answer: holdfast answer " in ending.out


def test_a_pause_in_json_carries_the_question_with_its_fields(holdfast: Command) -> None:
    ending = holdfast("run", "ask", "--json")
    assert ending.code == 4
    [question] = ending.json["questions"]
    assert question["title"] == "张三的信息"
    assert question["fields"]["count"]["validation"] == {"min": 1.0, "max": 5.0}
    assert ending.json["tasks"] == {"001": "Running", "002": "Pending"}


def test_continue_reads_each_value_as_its_field_wants_it(holdfast: Command) -> None:
    holdfast("run", "ask")
    pairs = ("--set", "count=3", "--set", "agreed=yes", "--set", "kinds=a,b")
    ending = holdfast("continue", "inst_000001", *pairs)
    assert ending.code == 0
    assert "answered 张三的信息: count = 3, agreed = yes, kinds = a, b" in ending.out


def test_a_value_may_be_given_as_json(holdfast: Command) -> None:
    holdfast("run", "ask")
    pairs = ("--set", "count:=3", "--set", "agreed:=false", "--set", 'kinds:=["b"]')
    assert "count = 3, agreed = no, kinds = b" in holdfast("continue", "1", *pairs).out


def test_values_that_do_not_fit_change_nothing_and_are_explained_by_field(
    holdfast: Command,
) -> None:
    holdfast("run", "ask")
    before = holdfast("history", "1", "--json").json
    ending = holdfast("continue", "1", "--set", "count=9", "--json")
    assert ending.code == 1
    assert set(ending.json["error"]["fields"]) == {"count", "agreed", "kinds"}
    assert holdfast("history", "1", "--json").json == before


def test_a_refusal_is_one_line_on_stderr(holdfast: Command) -> None:
    holdfast("run", "ask")
    ending = holdfast("continue", "1", "--set", "count=9")
    assert ending.out == ""
    assert ending.err.startswith("error: ")
    assert "count: give between 1" in ending.err
    assert ending.err.count("\n") == 1


def test_continue_without_values_says_again_what_is_needed(holdfast: Command) -> None:
    holdfast("run", "ask")
    ending = holdfast("continue", "1")
    assert ending.code == 4
    assert "waits for: 张三的信息" in ending.out


def test_a_run_that_was_started_without_waiting_goes_on_later(holdfast: Command) -> None:
    started = holdfast("run", "ask", "--no-wait", "--json")
    assert started.code == 0
    assert started.json["instance_id"] == "inst_000001"
    assert holdfast("continue", "1").code == 4


def test_cancel_ends_a_run_and_its_later_fate_is_5(holdfast: Command) -> None:
    holdfast("run", "ask")
    ending = holdfast("cancel", "1", "--reason", "no longer needed", "--json")
    assert (ending.code, ending.json["status"]) == (0, "cancelled")
    assert "cancelled the run: no longer needed" in holdfast("history", "1").out
    assert holdfast("watch", "1").code == 5
    assert holdfast("cancel", "1").code == 1


def test_resume_of_a_run_that_did_not_fail_is_refused(holdfast: Command) -> None:
    holdfast("run", "greet", "--set", "name=张三")
    ending = holdfast("resume", "1")
    assert ending.code == 1
    assert ending.err == "error: Resume is not possible: inst_000001 is done\n"


def test_runs_are_listed_newest_first_and_filtered(holdfast: Command) -> None:
    holdfast("run", "ask")
    holdfast("run", "greet", "--set", "name=张三")
    everything = holdfast("runs", "--json").json
    assert [row["instance_id"] for row in everything] == ["inst_000002", "inst_000001"]
    [paused] = holdfast("runs", "--status", "pause", "--json").json
    assert (paused["plan_id"], paused["summary"]["waiting"]) == ("ask", 1)
    assert "inst_000001" not in holdfast("runs", "--plan", "greet").out
    assert len(holdfast("runs", "--limit", "1", "--json").json) == 1


def test_columns_line_up_under_wide_characters(holdfast: Command) -> None:
    from rich.cells import cell_len

    holdfast("run", "ask")
    holdfast("run", "greet", "--set", "name=张三")
    holdfast("run", "greet")
    lines = holdfast("inbox").out.splitlines()[:3]
    marks = ("wants", "数量", "姓名")
    pairs = zip(lines, marks, strict=True)
    starts = {cell_len(line[: line.index(mark)]) for line, mark in pairs}
    assert len(starts) == 1


def test_a_home_without_runs_says_how_to_start_one(holdfast: Command) -> None:
    for command in (("runs",), ("inbox",), ("watch",), ("history", "1"), ("graph", "inst_000001")):
        ending = holdfast(*command)
        assert ending.code == 1
        assert (
            ending.err == "error: .holdfast holds no runs yet: start one with `holdfast run PLAN`\n"
        )


def test_the_home_may_be_named_before_or_after_the_command(holdfast: Command, place: Path) -> None:
    assert holdfast("--home", "kept", "run", "ask").code == 4
    assert (place / "kept" / "holdfast.db").is_file()
    ending = holdfast("runs", "--home", "kept", "--json")
    assert len(ending.json) == 1
    assert holdfast("--json", "runs", "--home", "kept").json == ending.json


def test_the_way_to_go_on_repeats_the_options(holdfast: Command) -> None:
    ending = holdfast("run", "ask", "--home", "my home")
    assert "--set kinds=… --home 'my home'\n" in ending.out


def test_unknown_runs_and_plans_are_named(holdfast: Command) -> None:
    holdfast("run", "ask")
    assert holdfast("history", "9").err == (
        "error: there is no run inst_000009: `holdfast runs` lists them\n"
    )
    assert (
        holdfast("cancel", "inst_000009").err
        == "error: there is no run inst_000009: `holdfast runs` lists them\n"
    )
    assert holdfast("run", "nope").err == "error: there is no plan 'nope' (known: ask, greet)\n"
    assert "nope.yaml: No such file" in holdfast("run", "nope.yaml").err


def test_inputs_that_do_not_fit_start_nothing(holdfast: Command) -> None:
    ending = holdfast("run", "greet", "--set", "times=99", "--json")
    assert ending.code == 1
    assert list(ending.json["error"]["fields"]) == ["times"]
    assert holdfast("runs", "--json").json == []


def test_history_tells_who_did_what_in_order(holdfast: Command) -> None:
    holdfast("run", "ask")
    holdfast("continue", "1", "--set", "count=1", "--set", "agreed=no", "--set", "kinds=a")
    told = [line.split("  ", 1)[1].strip() for line in holdfast("history", "1").out.splitlines()]
    assert told == [
        "local    started ask",
        "001 主任务 is running",
        "plan     asks a person: 张三的信息 (数量, 同意, 种类, 口令)",
        "002 填表 (form) is waiting (for a person)",
        "local    answered 张三的信息: count = 1, agreed = no, kinds = a",
        "plan     L001 (human) started",
        "002 填表 (form) is running",
        "plan     L001 (human) succeeded",
        "002 填表 (form) is done",
        "plan     L002 (code) started",
        "plan     L002 (code) succeeded",
        "001 主任务 is done",
        "plan     the run is done",
    ]


def test_history_in_json_is_the_journal(holdfast: Command) -> None:
    holdfast("run", "ask")
    events = holdfast("history", "1", "--json").json
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "RunStarted"
    assert events[0]["data"]["plan_id"] == "ask"


def test_what_others_wrote_cannot_steer_the_terminal(holdfast: Command) -> None:
    ending = holdfast("run", "greet", "--set", "name=x", "--prompt", "\x1b[2J\u202egone [red]")
    assert "started greet: \\u001b[2J\\u202egone [red]" in ending.out


def test_watching_a_run_that_rests_tells_its_events_and_ends(holdfast: Command) -> None:
    holdfast("run", "ask")
    ending = holdfast("watch", "1")
    assert ending.code == 4
    assert "asks a person" in ending.out
    lines = holdfast("watch", "1", "--json").out.splitlines()
    assert len(lines) == len(holdfast("history", "1", "--json").json)


def test_watching_all_runs_ends_when_none_moves(holdfast: Command) -> None:
    holdfast("run", "ask")
    holdfast("run", "greet", "--set", "name=张三")
    ending = holdfast("watch")
    assert ending.code == 0
    assert ending.out.splitlines()[0].startswith("inst_000001")
    assert len(holdfast("watch", "--json").out.splitlines()) == 2


def test_history_ends_with_what_tools_raised(holdfast: Command, application: str) -> None:
    failed = holdfast("run", "call_shaky", "--app", application)
    assert failed.code != 0
    lines = holdfast("history", "1", "--app", application).out.splitlines()
    began = lines.index("")
    assert lines[began + 1].endswith("L001 (shaky) raised this at try 1:")
    assert lines[began + 2] == "│ Traceback (most recent call last):"
    assert '│     raise RuntimeError("out of order")' in lines
    assert lines[-1] == "│ RuntimeError: out of order"
    told = holdfast("history", "1", "--app", application, "--json").out
    assert "Traceback" not in told
