"""What is wrong with a run, and its repair, on the command line: at home, at a terminal, and over
a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cli_repair_scene import (
    ACCESS,
    GREET_FIRST,
    READ_ANOTHER,
    WILL,
    MockOffice,
    failed,
    flat,
    furnish,
    opened_office,
    patch,
)
from cli_scene import Command, Ending
from serving import served
from terminal import CTRL_C, DOWN, ENTER, Terminal

from holdfast.views.records import RunView
from holdfast.views.wire import from_json, to_json

REPAIRED = {"grant_access": 2, "create_employee_profile": 1, "send_email": 1}
OWN = "you proposed this repair: another person must approve it"


@pytest.fixture
def office(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockOffice]:
    furnish(place)
    with opened_office() as office:
        monkeypatch.setenv("OFFICE_URL", office.url)
        yield office


def question_of(holdfast: Command, run_id: str) -> str:
    [case] = [one for one in cases(holdfast, run_id) if one["question_id"]]
    return str(case["question_id"])


def cases(holdfast: Command, run_id: str) -> list[dict[str, object]]:
    return list(holdfast("diagnose", run_id, "--json").json["cases"])


def events(holdfast: Command, run_id: str) -> list[str]:
    return [one["type"] for one in holdfast("history", run_id, "--json").json]


# What is wrong.


def test_a_failed_run_is_diagnosed(holdfast: Command, office: MockOffice) -> None:
    run_id = failed(holdfast)
    ending = holdfast("diagnose", "1")
    shown = flat(ending.out)
    assert ending.code == 4
    assert f"{run_id} is error" in shown
    assert "case_1: L1 failed; a repair is proposed" in shown
    assert "cause: something else has to be done first (rule:precondition)" in shown
    assert 'event 3: {"event":"failed","listener":"L1"' in shown
    assert holdfast("history", "1", "--json").json[2]["type"] == "ListenerFailed"
    assert "proposal case_1_k1: create_employee_profile makes what L1 lacks" in shown
    assert "1. before L1 comes R1: calls create_employee_profile with" in shown
    assert "level: act (calls what acts, or brings in a new value)" in shown
    calls = [
        'R1 calls create_employee_profile (acts) with {"department":"Engineering"',
        'L1 calls grant_access (acts) with {"employee_id":"WZ001"}',
        'L2 calls send_email (acts) with {"content":"It is ‹L1.badge›"',
    ]
    places = [shown.index(f"{number}. {call}") for number, call in enumerate(calls, 1)]
    assert places == sorted(places)
    assert "the end: the run is done, and the goal is reached" in shown
    assert "should it fail again: calls R1, L1; the end: the run is error" in shown
    assert "asks the role approver" in shown
    question = question_of(holdfast, run_id)
    assert f"to answer: holdfast answer {question[:8]} --option apply --yes" in shown
    assert "a resume alone would run again: L1" in shown
    assert "to try again: holdfast resume inst_000001" in shown


def test_json_has_all_of_a_diagnosis_and_looking_changes_nothing(
    holdfast: Command, office: MockOffice
) -> None:
    run_id = failed(holdfast)
    before = events(holdfast, run_id)
    ending = holdfast("diagnose", run_id, "--json")
    told = ending.json
    assert ending.code == 4
    assert (told["status"], told["resume_runs"], told["patches"]) == ("error", ["L1"], [])
    [case] = told["cases"]
    assert (case["status"], case["cause"], case["role"]) == ("proposed", "precondition", "approver")
    assert case["diagnosis"]["source"] == "rule:precondition"
    assert [one["seq"] for one in case["diagnosis"]["evidence"]] == [3]
    proposal = case["proposal"]
    assert (proposal["patch_id"], proposal["level"]) == ("case_1_k1", "act")
    assert [one["step_id"] for one in proposal["success"]["calls"]] == ["R1", "L1", "L2"]
    assert [one["op"] for one in proposal["operations"]] == ["insert_before"]
    assert events(holdfast, run_id) == before


def test_a_command_whose_run_fails_says_what_is_proposed(
    holdfast: Command, office: MockOffice
) -> None:
    ending = holdfast("run", "access", "--values", json.dumps(WILL))
    assert ending.code == 3
    assert "planner  proposes a repair: create_employee_profile makes what L1 lacks" in ending.out
    assert "waits for: Repair L1?" in ending.out
    assert "what is wrong, and what may help: holdfast diagnose inst_000001" in ending.out


def test_a_run_without_failures_has_nothing_to_tell(holdfast: Command) -> None:
    done = holdfast("run", "greet", "--set", "name=x")
    assert done.code == 0
    ending = holdfast("diagnose", "1")
    told = "inst_000001 is done\n  nothing is known of it that a repair could mend\n"
    assert ending == Ending(0, told, "")
    holdfast("run", "ask")
    assert holdfast("diagnose", "2").code == 4
    holdfast("cancel", "2")
    assert holdfast("diagnose", "2").code == 5


def test_a_failure_that_nobody_knows_a_way_out_of_waits_for_a_resume(
    holdfast: Command, office: MockOffice
) -> None:
    failed(holdfast, "shape")
    ending = holdfast("diagnose", "1")
    shown = flat(ending.out)
    assert ending.code == 3
    assert "case_1: L1 failed; nothing is proposed" in shown
    assert "cause: the result has another shape than the plan reads (rule:result_shape)" in shown
    refused = holdfast("repair", "1")
    assert refused.code == 1
    assert "inst_000001 has no open proposal: `holdfast diagnose inst_000001` says" in refused.err


def test_what_failed_in_a_sub_run_is_found_from_the_run_above(
    holdfast: Command, office: MockOffice
) -> None:
    failed(holdfast, "outer")
    ending = holdfast("diagnose", "1")
    assert ending.code == 4
    assert "inst_000001.L1.1 case_1: L1 failed; a repair is proposed" in ending.out
    [case] = cases(holdfast, "1")
    assert case["instance_id"] == "inst_000001.L1.1"
    assert case["question_id"] is not None
    office.delay("create_employee_profile", 0.5)
    repaired = holdfast("repair", "1", "--yes")
    assert "R1 (create_employee_profile) succeeded" in repaired.out
    assert (repaired.code, repaired.out.endswith("inst_000001 is done\n")) == (0, True)
    assert office.counts() == REPAIRED
    assert holdfast("diagnose", "1").code == 0


HOSTILE = """
from holdfast import Holdfast
from holdfast.errors import PermanentError

app = Holdfast("kept", max_retry_count=0)
FORGED = "out of\\x1b[2J order\\u202e\\nasks the role nobody\\n  to answer: run away [red]"


@app.tool
async def shaky() -> dict:
    raise PermanentError(FORGED + "-" * 200)


app.load_plans("calls")
"""

SHAKY = """
plan_id: shaky
name: Shaky
main_task_id: "001"
tasks: [{task_id: "001", name: Goal}]
listeners:
  - listener_id: L1
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: shaky
    retry: 1
    success_output: {task_id: "001", status: Done}
"""


def test_what_a_service_says_cannot_pass_for_ours(holdfast: Command, place: Path) -> None:
    (place / "calls").mkdir()
    (place / "calls" / "shaky.yaml").write_text(SHAKY, encoding="utf-8")
    (place / "hostile.py").write_text(HOSTILE, encoding="utf-8")
    assert holdfast("run", "shaky", "--app", "hostile:app").code == 3
    shown = holdfast("diagnose", "1", "--home", "kept").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[red]" in flat(shown)
    forged = [line for line in shown.splitlines() if "nobody" in line or "run away" in line]
    assert forged
    assert all(line.lstrip().startswith(("│", "event")) for line in forged), forged


# The open proposal.


def test_without_a_terminal_the_proposal_is_shown_and_nothing_is_asked(
    holdfast: Command, office: MockOffice
) -> None:
    run_id = failed(holdfast)
    before = events(holdfast, run_id)
    shown = holdfast("repair", "1")
    assert shown.code == 4
    assert "Repair L1?" in shown.out
    assert "rehearsed, with nothing called; it would go on so:" in shown.out
    assert "--option apply --yes" in shown.out
    rehearsed = holdfast("repair", "1", "--rehearse")
    assert (rehearsed.code, rehearsed.out) == (0, shown.out)
    told = holdfast("repair", "1", "--json")
    assert (told.code, told.json["status"]) == (4, "error")
    assert told.json["case"]["proposal"]["patch_id"] == "case_1_k1"
    assert told.json["question"]["question_id"] == told.json["case"]["question_id"]
    assert events(holdfast, run_id) == before


def test_with_yes_it_is_approved_and_the_run_ends(holdfast: Command, office: MockOffice) -> None:
    run_id = failed(holdfast)
    ending = holdfast("repair", "1", "--yes")
    assert ending.code == 0
    assert "local    repaired the plan of this run; runs first: R1" in ending.out
    assert ending.out.endswith("inst_000001 is done\n")
    assert office.counts() == REPAIRED
    told = holdfast("history", "1").out
    assert "R1 (create_employee_profile) succeeded" in told
    assert "R1 create_employee_profile is done" in told
    assert "planner  the repair has helped" in told
    assert "(unknown)" not in told
    graph = holdfast("graph", "1").out
    assert "R1 create_employee_profile  tool, done" in graph
    after = holdfast("diagnose", "1")
    assert after.code == 0
    assert "case_1: L1 failed; the repair has helped" in after.out
    assert "the plan of this run was changed by local (case_1_k1):" in after.out
    [changed] = holdfast("diagnose", run_id, "--json").json["patches"]
    assert (changed["patch_id"], changed["by"]) == ("case_1_k1", "local")
    [line] = holdfast("runs", "--json").json
    assert line["summary"]["done"] == 4


def test_a_terminal_asks_twice_and_sees_the_run_through(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    failed(holdfast)
    with Terminal("repair", "1", cwd=place) as terminal:
        terminal.wait_for("Repair L1?")
        terminal.wait_for("1. before L1 comes R1")
        terminal.wait_for("level: act")
        terminal.wait_for("R1 calls create_employee_profile (acts)")
        terminal.wait_for("Leave the plan as it is")
        terminal.wait_for("Description: Changes the plan of this run as shown, and goes on.")
        assert terminal.screen.count("Changes the plan of this run") == 1
        terminal.type(CTRL_C)
        terminal.wait_for("inst_000001 is error")
        assert terminal.end() == 3
    assert office.counts() == {"grant_access": 1}
    with Terminal("repair", "1", cwd=place) as terminal:
        terminal.wait_for("Leave the plan as it is")
        terminal.type(ENTER)
        terminal.wait_for("Are you sure?")
        terminal.type("y")
        terminal.wait_for("inst_000001 is done")
        assert terminal.end() == 0
    assert office.counts() == REPAIRED


def test_an_answer_shows_what_would_happen_and_may_refuse(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    run_id = failed(holdfast)
    question = question_of(holdfast, run_id)
    with Terminal("answer", question[:8], cwd=place) as terminal:
        terminal.wait_for("level: act")
        terminal.wait_for("rehearsed, with nothing called")
        terminal.wait_for("Leave the plan as it is")
        terminal.type(DOWN + ENTER)
        terminal.wait_for("Why not? (may be left empty)")
        terminal.type(ENTER)
        terminal.wait_for("inst_000001 is error")
        assert terminal.end() == 3
    assert office.counts() == {"grant_access": 1}
    told = holdfast("history", "1").out
    assert "left the plan as it is\n" in told
    assert "answered Repair L1? with “Leave the plan as it is”\n" in told
    assert "local refused what was proposed\n" in holdfast("diagnose", "1").out
    refused = holdfast("repair", "1", "--yes")
    assert (refused.code, "has no open proposal" in refused.err) == (1, True)


def test_the_inbox_lists_a_repair_and_shows_it_in_full(
    holdfast: Command, office: MockOffice
) -> None:
    run_id = failed(holdfast)
    question = question_of(holdfast, run_id)
    listed = holdfast("inbox").out
    assert "Repair L1?" in listed
    assert "apply / refuse" in listed
    shown = holdfast("inbox", question[:8]).out
    assert "level: act (calls what acts, or brings in a new value)" in shown
    assert "2. L1 calls grant_access (acts)" in shown
    assert "asks the role approver" in shown
    assert "case_id" not in shown
    done = holdfast("answer", question, "--option", "apply", "--yes")
    assert done.code == 0
    over = holdfast("inbox", question[:8]).out
    assert "rehearsed" not in over
    assert "answered, asked by inst_000001" in over


def test_several_answers_are_shown_with_what_they_would_do(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    runs = [failed(holdfast, id=one) for one in ("WZ001", "WZ002")]
    names = [question_of(holdfast, one)[:8] for one in runs]
    with Terminal("answer", *names, "--option", "apply", cwd=place, columns=160) as terminal:
        terminal.wait_for('L1 calls grant_access (acts) with {"employee_id":"WZ001"}')
        terminal.wait_for('L1 calls grant_access (acts) with {"employee_id":"WZ002"}')
        terminal.wait_for("Are you sure?")
        terminal.type("y")
        assert terminal.end() == 0


# A patch of one's own.


MISTAKES = """\
# what a person may get wrong
- op: set_args
  listener_id: L1
  sett: {employee_id: x}
- op: skipp
  listener_id: L1
- just text
- op: insert_before
  listener_id: L1
  task: {task_id: R1}
  listener: {listener_id: R1, listener_type: tool, tool: query_profile,
    args: {id: {001.context.id}}}
"""


@pytest.mark.parametrize("way", ["--rehearse", "--no-wait"])
def test_all_mistakes_of_a_patch_are_told_with_their_places(
    holdfast: Command, office: MockOffice, place: Path, way: str
) -> None:
    run_id = failed(holdfast)
    before = events(holdfast, run_id)
    (place / "mine.yaml").write_text(MISTAKES, encoding="utf-8")
    ending = holdfast("repair", "1", "--patch", "mine.yaml", way)
    assert (ending.code, ending.out) == (1, "")
    assert ending.err.splitlines() == [
        "error: 5 problems found",
        "  mine.yaml:2:3: operations[0]: needs one of set, drop",
        "  mine.yaml:4:9: operations[0].sett: unknown key: did you mean set?",
        '  mine.yaml:5:7: operations[1].op: there is no "skipp": did you mean skip?',
        '  mine.yaml:7:3: operations[2]: must be an object, not "just text"',
        '  mine.yaml:12:16: quote the template: "{001.context.id}"',
    ]
    told = holdfast("repair", "1", "--patch", "mine.yaml", way, "--json").json["error"]
    assert (told["kind"], len(told["problems"])) == ("PatchRejected", 5)
    assert told["problems"][0]["message"].startswith("mine.yaml:2:3: operations[0]: ")
    assert events(holdfast, run_id) == before


def test_a_broken_part_is_one_mistake(holdfast: Command, office: MockOffice, place: Path) -> None:
    failed(holdfast)
    (place / "mine.yaml").write_text(
        "- {op: skip, listener_id: {001.context.id}}\n- {op: skip}\n", encoding="utf-8"
    )
    ending = holdfast("repair", "1", "--patch", "mine.yaml")
    assert ending.err.splitlines()[1:] == [
        '  mine.yaml:1:27: quote the template: "{001.context.id}"',
        "  mine.yaml:2:3: operations[1].listener_id: is required",
    ]


def test_what_the_plan_itself_forbids_has_its_place_too(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    failed(holdfast)
    unknown = {"op": "use_tool", "listener_id": "L1", "tool": "grant_acess", "args": {}}
    extra = {"op": "set_args", "listener_id": "L2", "set": {"colour": "red"}}
    file = patch(place, {"operations": [unknown, extra]})
    ending = holdfast("repair", "1", "--patch", file, "--rehearse")
    assert ending.code == 1
    first, second = ending.err.splitlines()[1:]
    unknown_tool = "there is no tool 'grant_acess'; did you mean 'grant_access'?"
    assert first == f"  patch.json:1:17: operations[0] (use_tool): L1.tool: {unknown_tool}"
    assert second.startswith("  patch.json:1:93: operations[1] (set_args): L2.args")
    assert "colour" in second
    same = patch(place, [{"op": "set_args", "listener_id": "L2", "set": {"subject": "Badge"}}])
    nothing = holdfast("repair", "1", "--patch", same)
    assert nothing.err == "error: 1 problem found\n  the patch changes nothing\n"


NO_PATCH = {
    "prose.txt": ("this is no patch", "1:1: a patch is a list of operations, or a mapping"),
    "broken.json": ('[\n {"op": "skip",}\n]', "2:16: not valid JSON: "),
    "nothing.yaml": ("", "1:1: the file is empty; a list of operations was expected"),
    "none.json": ("[]", "1:1: operations: a patch has at least one operation"),
    "keys.json": ('{"operation": []}', "1:2: unknown key 'operation'; did you mean operations?"),
    "scalar.yaml": ("operations: 5", "1:13: operations must be a list"),
    "nan.json": (
        '[{"op": "set_args", "listener_id": "L2", "set": {"to": NaN}}]',
        "1:56: NaN is not a number that JSON knows",
    ),
    "twice.json": ('[{"op": "skip", "op": "skip", "listener_id": "L2"}]', "1:17: the key 'op'"),
    "half.json": (
        '[{"op": "set_args", "listener_id": "L2", "set": {"to": "\\ud83d"}}]',
        "1:56: half of a surrogate pair",
    ),
    "deep.json": ("[" * 3000 + "]" * 3000, "1:41: nested more than 40 levels deep"),
    "deep.yaml": ("[" * 3000, "1:41: nested more than 40 levels deep"),
    "long.json": (f'["{"x" * 500_000}"]', "1:1: larger than 500,000 bytes"),
    "many.json": (
        json.dumps([{"op": "skip", "listener_id": "L2"}] * 13),
        "1:1: operations: a patch has at most 12 operations; this has 13",
    ),
    "bytes.yaml": (b"\xff\xfe", "1:1: this is not UTF-8 text"),
}


def test_a_file_that_is_no_patch_is_refused_at_its_place(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    run_id = failed(holdfast)
    before = events(holdfast, run_id)
    for name, (text, complaint) in NO_PATCH.items():
        (place / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        ending = holdfast("repair", "1", "--patch", name)
        assert (ending.code, ending.out) == (1, ""), name
        assert ending.err.splitlines()[1].startswith(f"  {name}:{complaint}"), ending.err
    missing = holdfast("repair", "1", "--patch", "nowhere.json")
    assert missing.err == "error: nowhere.json: No such file or directory\n"
    assert "Is a directory" in holdfast("repair", "1", "--patch", "plans").err
    assert events(holdfast, run_id) == before


def test_json_and_yaml_say_the_same(holdfast: Command, office: MockOffice, place: Path) -> None:
    failed(holdfast)
    smile = [{"op": "set_args", "listener_id": "L2", "set": {"subject": '你好 😀 \\ "x"'}}]
    file = patch(place, smile)
    assert "\\ud83d\\ude00" in (place / file).read_text(encoding="utf-8")
    (place / "patch.yaml").write_text(
        "operations:\n- {op: set_args, listener_id: L2, set: {subject: '你好 😀 \\ \"x\"'}}\n",
        encoding="utf-8",
    )
    told = [
        holdfast("repair", "1", "--patch", one, "--rehearse", "--json").json["proposal"]
        for one in (file, "patch.yaml")
    ]
    assert told[0]["operations"] == told[1]["operations"] == smile
    assert told[0]["digest"] == told[1]["digest"]


def test_a_rehearsal_tells_what_a_patch_would_do_and_changes_nothing(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    run_id = failed(holdfast)
    before = events(holdfast, run_id)
    ending = holdfast("repair", "1", "--patch", patch(place, GREET_FIRST), "--rehearse")
    shown = flat(ending.out)
    assert ending.code == 0
    assert "what this would do to inst_000001; nothing is changed:" in shown
    assert '1. L2 passes subject = "Hello" instead of "Badge"' in shown
    assert 'warning: L2.subject = "Hello" is a new value' in shown
    assert "from: person (who proposed it may not approve it)" in shown
    assert "1. L1 calls grant_access (acts)" in shown
    assert events(holdfast, run_id) == before
    assert office.counts() == {"grant_access": 1}


def test_what_is_too_long_to_be_shown_is_said_to_be_cut(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    failed(holdfast)
    long = [{"op": "set_args", "listener_id": "L2", "set": {"content": "x" * 3_000}}]
    told = holdfast("repair", "1", "--patch", patch(place, long), "--rehearse").out
    assert "not all of it is shown here; to see it whole: the same with --json" in told
    asked = holdfast("repair", "1", "--patch", patch(place, long), "--listener", "L1").out
    assert "to see it whole: holdfast diagnose inst_000001 --json" in asked
    [_, case] = cases(holdfast, "1")
    assert case["proposal"]["operations"] == long  # type: ignore[index]


def test_what_reads_the_same_value_may_be_proposed_and_approved_at_once(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    run_id = failed(holdfast, "shape")
    file = patch(place, READ_ANOTHER)
    shown = holdfast("repair", "1", "--patch", file, "--rehearse").out
    assert "level: rename (the same values under other names" in shown
    assert "no tool is called" in shown
    done = holdfast("repair", "1", "--patch", file, "--reason", "it has another name", "--yes")
    assert done.code == 0, done
    assert "local    proposes a repair: it has another name" in holdfast("history", "1").out
    assert office.counts() == {"create_employee_profile": 1}
    assert [one["status"] for one in cases(holdfast, run_id)] == ["closed", "proven"]


def test_an_acting_patch_is_open_until_another_person_approves_it(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    run_id = failed(holdfast)
    file = patch(place, GREET_FIRST)
    ending = holdfast("repair", "1", "--patch", file, "--reason", "be polite", "--json")
    assert ending.code == 4
    assert ending.json["case"]["proposal"]["by"] == "local"
    # It changes what has not failed, so the proposal about what has stays open beside it.
    assert [one["status"] for one in cases(holdfast, run_id)] == ["proposed", "proposed"]
    several = holdfast("repair", "1", "--yes")
    assert several.code == 1
    assert "2 proposals are open: " in several.err
    assert "(inst_000001 L1)" in several.err
    assert "(inst_000001 as a whole)" in several.err
    shown = flat(holdfast("diagnose", "1").out)
    assert "case_2: a person wants another plan; a repair is proposed" in shown
    assert "asks the role approver, but not local, who proposed it" in shown
    refused = holdfast("repair", "1", "--listener", "", "--yes")
    assert refused.code == 1
    assert OWN in refused.err
    assert "In a home all are local: make them a token" in refused.err
    assert office.counts() == {"grant_access": 1}
    assert holdfast("repair", "1", "--listener", "L1", "--yes").code == 0
    assert office.counts() == REPAIRED
    assert [one["status"] for one in cases(holdfast, run_id)] == ["proven", "closed"]


def test_who_proposed_what_acts_is_told_what_is_left_to_them(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    run_id = failed(holdfast)
    lab = [{"op": "set_args", "listener_id": "L1", "set": {"area": "lab"}}]
    proposed = holdfast("repair", "1", "--patch", patch(place, lab))
    for ending in (proposed, holdfast("diagnose", "1"), holdfast("repair", "1")):
        shown = flat(ending.out)
        assert "asks the role approver, but not local, who proposed it" in shown
        assert "--option refuse" in shown
        assert "--option apply" not in shown
        assert f"{OWN}. In a home all are local: make them a token" in shown
    question = question_of(holdfast, run_id)
    told = holdfast("repair", "1", "--json").json
    for one in (told["case"], told["question"], holdfast("inbox", question, "--json").json):
        assert one["may_not_approve_because"].startswith(OWN)
        assert one["may_not_because"] is None
    resumed = holdfast("resume", "1", "--no-wait").out
    assert "--option apply" not in resumed


def test_a_terminal_asks_nobody_what_only_another_may_approve(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    failed(holdfast)
    lab = [{"op": "set_args", "listener_id": "L1", "set": {"area": "lab"}}]
    assert holdfast("repair", "1", "--patch", patch(place, lab)).code == 4
    question = question_of(holdfast, "1")
    for words, code in ((("repair", "1"), 4), (("answer", question[:8]), 3)):
        with Terminal(*words, cwd=place, columns=200) as terminal:
            terminal.wait_for("1. L1 passes area")
            terminal.wait_for("--option refuse")
            terminal.wait_for("another person must approve it")
            assert terminal.end() == code
    with Terminal("answer", question[:8], "--option", "refuse", cwd=place) as terminal:
        terminal.wait_for("Why not? (may be left empty)")
        terminal.type("  too early " + ENTER)
        terminal.wait_for("inst_000001 is error")
        assert terminal.end() == 3
    assert "left the plan as it is: too early\n" in holdfast("history", "1").out
    shown = holdfast("diagnose", "1").out
    assert "case_2: L1 failed; " in shown
    assert "\n  local refused what was proposed: too early\n" in shown


def test_a_patch_of_what_failed_takes_the_place_of_what_was_proposed(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    run_id = failed(holdfast)
    first = [{"op": "set_args", "listener_id": "L1", "set": {"area": "lab"}}]
    assert holdfast("repair", "1", "--patch", patch(place, first)).code == 4
    told = cases(holdfast, run_id)
    assert [one["status"] for one in told] == ["closed", "proposed"]
    assert [one["listener_id"] for one in told] == ["L1", "L1"]
    also = holdfast("repair", "1", "--patch", patch(place, GREET_FIRST), "--listener", "L1")
    assert also.code == 4
    assert [one["status"] for one in cases(holdfast, run_id)] == ["closed", "closed", "proposed"]


def test_a_run_is_brought_to_todays_version_of_its_plan(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    failed(holdfast)
    same = holdfast("repair", "1", "--to-current")
    assert (same.code, same.err) == (1, "error: inst_000001 has today's version of its plan\n")
    (place / "plans" / "access.yaml").write_text(
        ACCESS.replace("subject: Badge", "subject: Hello"), encoding="utf-8"
    )
    rehearsed = holdfast("repair", "1", "--to-current", "--rehearse", "--json")
    assert rehearsed.code == 0
    assert rehearsed.json["proposal"]["operations"] == GREET_FIRST
    proposed = holdfast("repair", "1", "--to-current")
    assert proposed.code == 4
    assert 'L2 passes subject = "Hello" instead of "Badge"' in proposed.out
    (place / "plans" / "access.yaml").write_text(
        ACCESS.replace("name: Mail", "name: Letter").replace("repair: {", "repair: {write: true, "),
        encoding="utf-8",
    )
    impossible = holdfast("repair", "1", "--to-current")
    assert impossible.code == 1
    assert impossible.err.startswith("error: 2 problems found\n")


# What is refused.


def test_what_cannot_be_repaired_is_said_with_the_reason(
    holdfast: Command, office: MockOffice, place: Path, desk: str
) -> None:
    run_id = failed(holdfast)
    file = patch(place, GREET_FIRST)
    for words, why in (
        (("diagnose", "99"), "there is no run inst_000099: `holdfast runs` lists them"),
        (("repair", "99"), "there is no run inst_000099: `holdfast runs` lists them"),
        (("repair", "99", "--patch", file), "there is no run inst_000099"),
        (("repair", "1", "--listener", "L7"), f"{run_id} has no open proposal about L7: "),
        (("repair", "1", "--patch", file, "--listener", "L7"), "plan access has no listener L7"),
    ):
        ending = holdfast(*words)
        assert (ending.code, ending.out) == (1, ""), words
        assert ending.err.startswith(f"error: {why}"), ending.err
    assert holdfast("repair", "1", "--yes").code == 0
    for words in (("--yes",), ("--rehearse",), ()):
        over = holdfast("repair", "1", *words)
        assert over.err == "error: inst_000001 is done: there is nothing to repair\n"
    for words in (("--rehearse",), ()):
        over = holdfast("repair", "1", "--patch", file, *words)
        told = "error: inst_000001 is done: its plan cannot be changed any more\n"
        assert (over.code, over.err) == (1, told)
    assert holdfast("chat", "hello", "--agent", "clerk", "--app", desk).code == 0
    for command in ("diagnose", "repair"):
        no_plan = holdfast(command, "chat_000001", "--app", desk)
        assert no_plan.code == 1
        assert "chat_000001 is no run of a plan" in no_plan.err


@pytest.mark.parametrize(
    "words",
    [
        ("--patch", "x.json", "--to-current"),
        ("--reason", "because"),
        ("--rehearse", "--yes"),
        ("--rehearse", "--yes", "--to-current"),
    ],
    ids=" ".join,
)
def test_options_that_do_not_go_together_are_wrong_usage(
    holdfast: Command, words: tuple[str, ...]
) -> None:
    ending = holdfast("repair", "1", *words)
    assert (ending.code, ending.out) == (2, "")
    assert ending.err.endswith("Try: holdfast repair --help\n")


def test_a_patch_is_judged_where_the_tools_are_known(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    failed(holdfast)
    (place / "tools.yaml").rename(place / "elsewhere.yaml")
    for words in (("--patch", patch(place, GREET_FIRST)), ("--yes",)):
        ending = holdfast("repair", "1", *words)
        assert ending.code == 1
        assert "needs the tools" in ending.err
        assert "not known here" in ending.err
    assert holdfast("diagnose", "1").code == 4


# Over a server.

Acts = Callable[..., Ending]


@pytest.fixture
def acts(
    place: Path, office: MockOffice, holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Acts]:
    """`acts("ann", "inbox")` is ann at her terminal."""
    tokens: dict[str, str] = {}

    def act(who: str, *arguments: str) -> Ending:
        monkeypatch.setenv("HOLDFAST_TOKEN", tokens[who])
        return holdfast(*arguments, "--url", server.url)

    for who, role in (("ann", "operator"), ("bob", "approver"), ("eve", "viewer")):
        made = holdfast("token", "create", who, "--role", role, "--json")
        tokens[who] = made.json["token"]
    with served(place) as server:
        yield act


def by(acts: Acts, who: str) -> Command:
    return lambda *arguments: acts(who, *arguments)


def test_a_server_tells_what_a_home_tells(acts: Acts, holdfast: Command) -> None:
    failed(by(acts, "ann"))
    for command in (("diagnose", "1"), ("repair", "1"), ("repair", "1", "--rehearse")):
        there, here = acts("eve", *command, "--json"), holdfast(*command[:2], "--home", ".holdfast")
        assert here.code in (1, 4), "the home is the server's, so only looking works there"
        if command[0] == "diagnose":
            may = acts("bob", *command, "--json")
            assert may == holdfast(*command, "--json", "--home", ".holdfast")
        assert there.json.get("case", {"status": "proposed"})["status"] == "proposed"
    shown = acts("eve", "repair", "1")
    assert shown.code == 4
    assert "2. L1 calls grant_access (acts)" in shown.out
    busy = holdfast("repair", "1", "--yes", "--home", ".holdfast")
    assert busy.code == 1
    assert "to go through it" in busy.err


def test_who_may_operate_proposes_and_who_approves_is_another(
    acts: Acts, office: MockOffice, place: Path
) -> None:
    run_id = failed(by(acts, "ann"))
    before = events(by(acts, "ann"), run_id)
    lab = [{"op": "set_args", "listener_id": "L1", "set": {"area": "lab"}}]
    file = patch(place, lab)
    for words in (("--rehearse",), ()):
        refused = acts("eve", "repair", "1", "--patch", file, *words)
        assert refused.code == 1
        assert "your roles do not permit you to operate for access" in refused.err
    rehearsed = acts("ann", "repair", "1", "--patch", file, "--rehearse")
    assert rehearsed.code == 0
    assert '1. L1 passes area = "lab" as well' in rehearsed.out
    assert events(by(acts, "ann"), run_id) == before
    proposed = acts("ann", "repair", "1", "--patch", file, "--reason", "the lab", "--yes")
    assert proposed.code == 1
    assert "this question is for the role approver" in proposed.err
    assert "The proposal is open: holdfast inbox " in proposed.err
    asks = "asks the role approver, but not ann, who proposed it"
    for who, command, told, offered in (
        ("bob", "diagnose", "--option apply --yes", True),
        ("bob", "repair", "--option apply --yes", True),
        ("ann", "diagnose", "you may not answer it: this question is for the role approver", False),
        ("eve", "diagnose", "you may not answer it: this question is for the role approver", False),
        ("eve", "repair", "you may not answer it: this question is for the role approver", False),
    ):
        shown = flat(acts(who, command, "1").out)
        assert asks in shown, (who, command)
        assert told in shown, (who, command)
        assert ("to answer: holdfast answer" in shown) is offered, (who, command)
    [case] = [one for one in cases(by(acts, "eve"), run_id) if one["question_id"]]
    assert case["may_not_because"] == "this question is for the role approver"
    approved = acts("bob", "repair", "1", "--yes")
    assert approved.code == 3
    assert "bob      repaired the plan of this run" in approved.out
    assert "planner  the repair has not helped: L1 (grant_access) failed" in approved.out
    assert acts("bob", "repair", "1", "--yes").code == 0
    assert office.counts() == {**REPAIRED, "grant_access": 3}


def test_a_server_refuses_a_patch_with_the_places_in_the_file(
    acts: Acts, place: Path, office: MockOffice
) -> None:
    failed(by(acts, "ann"))
    (place / "mine.yaml").write_text(MISTAKES, encoding="utf-8")
    for words in (("--rehearse",), ()):
        ending = acts("ann", "repair", "1", "--patch", "mine.yaml", *words)
        assert ending.code == 1
        assert ending.err.splitlines()[1:3] == [
            "  mine.yaml:2:3: operations[0]: needs one of set, drop",
            "  mine.yaml:4:9: operations[0].sett: unknown key: did you mean set?",
        ]
    same = acts("ann", "repair", "1", "--to-current")
    assert (same.code, same.err) == (1, "error: inst_000001 has today's version of its plan\n")
    unknown = acts("ann", "repair", "99")
    assert (unknown.code, unknown.err) == (
        1,
        "error: there is no run inst_000099: `holdfast runs` lists them\n",
    )


def test_a_run_of_an_older_server_is_read_without_its_cases(
    holdfast: Command, place: Path, office: MockOffice
) -> None:
    import asyncio

    from holdfast.cli.home_reader import reading
    from holdfast.cli.shell import Settings

    async def told() -> RunView:
        async with reading(Settings(home=place / ".holdfast")) as reader:
            return await reader.run("inst_000001")

    failed(holdfast)
    run = asyncio.run(told())
    assert run.plan is not None
    shown = to_json(run)
    for name in ("pinned", "cases", "patches"):
        del shown["plan"][name]
    older = replace(run, plan=replace(run.plan, pinned="", cases=(), patches=()))
    assert from_json(RunView, shown) == older
