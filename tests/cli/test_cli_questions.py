"""Questions on the command line: found, answered, and never by accident."""

from __future__ import annotations

from pathlib import Path

from cli_scene import OUTER, Command

FITTING = '{"count": 2, "agreed": true, "kinds": ["b"]}'


def asked(holdfast: Command) -> str:
    return str(holdfast("run", "ask", "--json").json["questions"][0]["question_id"])


def test_the_inbox_shows_what_waits_and_is_empty_afterwards(holdfast: Command) -> None:
    question = asked(holdfast)
    assert question[:8] in holdfast("inbox").out
    [row] = holdfast("inbox", "--json").json
    assert row["question_id"] == question
    assert holdfast("answer", question, "--data", FITTING).code == 0
    assert holdfast("inbox").out == "nothing waits for a person\n"
    assert holdfast("inbox", "--json").json == []


def test_the_beginning_of_an_id_is_enough_when_it_is_unique(holdfast: Command) -> None:
    question = asked(holdfast)
    ending = holdfast("answer", question[:6], "--data", FITTING, "--json")
    assert (ending.code, ending.json["status"]) == (0, "done")


def test_an_ambiguous_beginning_is_refused(holdfast: Command) -> None:
    for _ in range(17):
        asked(holdfast)
    heads = [row["question_id"][0] for row in holdfast("inbox", "--json").json]
    twice = next(head for head in heads if heads.count(head) > 1)
    ending = holdfast("answer", twice, "--data", FITTING)
    assert ending.code == 1
    assert f"questions begin with '{twice}': write more of it" in ending.err


def test_an_unknown_question_is_refused(holdfast: Command) -> None:
    asked(holdfast)
    ending = holdfast("answer", "zzz", "--data", FITTING, "--json")
    assert ending.code == 1
    assert ending.json["error"] == {
        "kind": "NotFound",
        "message": "no question begins with 'zzz': `holdfast inbox` lists the open ones",
    }


def test_without_a_terminal_nothing_is_asked(holdfast: Command) -> None:
    ending = holdfast("answer", asked(holdfast))
    assert ending.code == 1
    assert "count: this is required" in ending.err


def test_a_second_different_answer_says_who_was_first(holdfast: Command) -> None:
    question = asked(holdfast)
    holdfast("answer", question, "--data", FITTING)
    assert holdfast("answer", question, "--data", FITTING).code == 0
    ending = holdfast("answer", question, "--data", FITTING, "--set", "count=3")
    assert ending.code == 1
    assert "was already answered by local" in ending.err


def test_no_wait_answers_and_returns(holdfast: Command) -> None:
    ending = holdfast("answer", asked(holdfast), "--data", FITTING, "--no-wait", "--json")
    assert ending.code == 0
    assert ending.json["questions"] == []


def test_a_dangerous_option_needs_yes(holdfast_process: Command, application: str) -> None:
    run = holdfast_process("run", "call_pay", "--app", application, "--json")
    assert run.code == 4, run
    [question] = run.json["questions"]
    assert question["context"]["args"] == {"who": "张三"}
    common = ("--app", application, "--json")
    refused = holdfast_process("answer", question["question_id"], "--option", "approve", *common)
    assert refused.code == 1
    assert "is dangerous: say --yes if you mean it" in refused.json["error"]["message"]
    assert "Runs pay with these arguments." in refused.json["error"]["message"]
    offered = {one["option_id"]: one["consequence"] for one in question["options"]}
    assert offered["approve"] == "Runs pay with these arguments."
    assert offered["reject"] == "Does not run pay."
    agreed = holdfast_process(
        "answer", question["question_id"], "--option", "approve", "--yes", *common
    )
    assert (agreed.code, agreed.json["status"]) == (0, "done")


def test_a_rejection_needs_words_and_leaves_the_run_waiting_for_a_resume(
    holdfast_process: Command, application: str
) -> None:
    common = ("--app", application)
    run = holdfast_process("run", "call_pay", *common, "--json")
    [question] = run.json["questions"]
    reject = ("answer", question["question_id"], "--option", "reject", *common)
    assert "Why not?" in holdfast_process(*reject).err
    rejected = holdfast_process(*reject, "--feedback", "too much")
    assert rejected.code == 3
    assert "to try again: holdfast resume inst_000001 --app works:app" in rejected.out


def test_a_sub_plans_question_drives_the_whole_run_on(holdfast: Command, place: Path) -> None:
    (place / "plans" / "outer.yaml").write_text(OUTER, encoding="utf-8")
    paused = holdfast("run", "outer", "--json")
    assert paused.code == 4
    [question] = paused.json["questions"]
    assert question["instance_id"] == "inst_000001.L001.1"
    answered = holdfast("answer", question["question_id"], "--data", FITTING, "--json")
    assert (answered.code, answered.json["status"]) == (0, "done")
    assert answered.json["instance_id"] == "inst_000001"
    assert len(holdfast("runs", "--json").json) == 1


CHOICES = """
plan_id: choices
name: Choices
main_task_id: "001"
tasks: [{task_id: "001", name: Goal}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: "001.status == Running"
    listener_type: human
    form:
      model:
        type: select
        label: 电脑型号
        options:
          - {value: air, label: MacBook Air, price: 7999}
          - {value: custom, label: 其他, requires_input: true}
      parts:
        type: multiselect
        required: false
        options: [{value: dock, label: dock}, {value: own, label: Own, requires_input: true}]
      why: {type: text, label: Why, visible_if: "values.model == 'air'"}
      day: {type: date, label: Day, required: false}
    success_output: {task_id: "001", status: Done}
"""


def test_a_form_says_what_its_fields_take(holdfast: Command, place: Path) -> None:
    (place / "plans" / "choices.yaml").write_text(CHOICES, encoding="utf-8")
    paused = holdfast("run", "choices").out
    [asked] = holdfast("inbox", "--json").json
    shown = holdfast("inbox", asked["question_id"]).out
    for row in (
        "  model: 电脑型号; one of\n",
        "    - air (MacBook Air  7999)\n",
        """    - 其他: --set 'model:={"text":"…","value":"custom"}'\n""",
        "  parts: optional; some of, with commas\n",
        "    - dock\n",
        """    - Own: --set 'parts:=[{"text":"…","value":"own"}]'\n""",
        "  why: Why; only if values.model == 'air'; text\n",
        "  day: Day; optional; YYYY-MM-DD\n",
    ):
        assert row in paused
        assert row in shown


def test_the_command_shown_names_no_field_that_may_be_refused(
    holdfast: Command, place: Path
) -> None:
    (place / "plans" / "choices.yaml").write_text(CHOICES, encoding="utf-8")
    assert "--set model=…\n" in holdfast("run", "choices").out
    own = 'model:={"text":"Framework 13","value":"custom"}'
    [asked] = holdfast("inbox", "--json").json
    assert holdfast("answer", asked["question_id"], "--set", own).code == 0
