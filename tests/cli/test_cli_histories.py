"""Whole histories, as people read them in a terminal and programs over HTTP: what a person said of
a call in doubt, tries that overlap, and what sub-runs asked."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cli_scene import CALL, OUTER, Command
from serving import Served, served

WORKS = """
import time
from pathlib import Path

from holdfast import Holdfast

HERE = Path(__file__).parent
app = Holdfast(HERE / "kept", max_retry_count=0)


@app.tool(timeout=0.2)
def post(who: str) -> dict:
    with (HERE / "posted").open("a", encoding="utf-8") as log:
        log.write(who)
    while not (HERE / "go").exists():
        time.sleep(0.02)
    return {"who": who}


app.load_plans(HERE / "calls")
"""

CHOICE = """
plan_id: ask
name: Ask
main_task_id: "001"
tasks: [{task_id: "001", name: Ask}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: human
    title: Which computer?
    role: it
    form: {model: {type: text, label: Model}, key: {type: secret, label: Key}}
    success_output: {task_id: "001", status: Done}
"""

UPPER = OUTER.replace("plan_id: outer", "plan_id: upper").replace(
    "    plan_id: ask\n", "    plan_id: outer\n"
)

ENDS = ["plan     L002 (code) started", "plan     L002 (code) succeeded"]


@pytest.fixture
def works(place: Path) -> str:
    calls = place / "calls"
    calls.mkdir()
    (calls / "post.yaml").write_text(CALL.format(tool="post"), encoding="utf-8")
    for name, text in (("ask", CHOICE), ("outer", OUTER), ("upper", UPPER)):
        (calls / f"{name}.yaml").write_text(text, encoding="utf-8")
    (place / "works.py").write_text(WORKS, encoding="utf-8")
    return "works:app"


@pytest.fixture
def server(
    place: Path, works: str, holdfast_process: Command, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    made = holdfast_process("token", "create", "will", "--role", "admin", "--app", works, "--json")
    assert made.code == 0, made
    monkeypatch.setenv("HOLDFAST_TOKEN", made.json["token"])
    with served(place, works) as running:
        yield running


@pytest.fixture
def there(server: Served, holdfast: Command) -> Command:
    return lambda *arguments: holdfast(*arguments, "--url", server.url)


Told = Callable[[str], list[str]]


@pytest.fixture
def told(server: Served, there: Command, holdfast: Command) -> Told:
    """A run's history without its times, which is the same at home and from a server."""

    def read(run: str) -> list[str]:
        lines = there("history", run).out.splitlines()
        assert lines == holdfast("history", run, "--home", "kept").out.splitlines()
        entries = timeline(server, run)
        found = [re.sub(r"^[-\d]+ [:\d]+  ", "", one) for one in lines]
        over_http = [line for one in entries for line in _lines(one)]
        assert over_http == found
        return found

    return read


def timeline(server: Served, run: str, language: str = "en") -> list[Any]:
    asked = {"Authorization": f"Bearer {os.environ['HOLDFAST_TOKEN']}", "Accept-Language": language}
    return list(httpx.get(f"{server.url}/runs/{run}/timeline", headers=asked).json()["entries"])


def in_chinese(server: Served, *types: str) -> list[str]:
    entries = [one for one in timeline(server, "inst_000001", "zh-CN") if one["type"] in types]
    return [text for one in entries for text in (one["what"], *one["moves"])]


def _lines(entry: Any) -> list[str]:
    if not entry["told"]:
        return []
    return [f"{entry['who']:<8} {entry['what']}", *(f"{'':<11}{one}" for one in entry["moves"])]


def test_a_history_is_told_in_the_language_of_the_locale(
    server: Served, there: Command, holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same at home and from a server; JSON is for programs, in every locale the same."""
    there("run", "ask")
    english = there("history", "1").out
    json_in_english = there("history", "1", "--json").json
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    told = there("history", "1").out
    assert "will     启动了 ask" in told
    assert "计划     询问角色“it”：Which computer? (Model，Key)" in told
    assert holdfast("history", "1", "--home", "kept").out == told
    assert there("history", "1", "--json").json == json_in_english
    assert there("runs").out.startswith("run "), "our tables and hints are English"
    monkeypatch.setenv("LC_ALL", "C")
    assert there("history", "1").out == english


def test_progress_is_told_in_the_language_of_the_locale(
    server: Served, there: Command, holdfast: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGUAGE", "de:zh")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    told = there("run", "ask").out
    assert "启动了 ask" in told
    assert "询问角色“it”：Which computer?" in told
    assert "inst_000001 is pause" in told, "our own sentences are English"
    seen = holdfast("watch", "1", "--home", "kept").out
    assert "启动了 ask" in seen


def in_doubt(there: Command) -> str:
    """A call that was sent and has not answered in time; its question."""
    asked = there("run", "call_post", "--set", "who=x", "--json").json
    [question] = asked["questions"]
    return str(question["question_id"])


BEGINS = [
    "will     started call_post",
    "           001 Call post is running",
    "plan     L001 (post) started",
    "           002 Called is running",
    "plan     L001 (post) was sent, but it is not known whether it happened: "
    "no answer within 0.2 s",
    "plan     asks a person: Did post happen?",
    "           002 Called is waiting (for a person)",
]


LATE = ["plan     L001 (post) answered too late; the result is kept, without effect"]


def test_what_a_person_said_of_a_call_is_no_further_try_of_it(
    there: Command, told: Told, server: Served, place: Path
) -> None:
    question = in_doubt(there)
    done = there("answer", question, "--option", "happened", "--data", "who=y")
    assert done.code == 0, done
    (place / "go").touch()
    while timeline(server, "inst_000001")[-1]["type"] != "LateResultKept":
        pass
    assert told("inst_000001") == [
        *BEGINS,
        "will     answered Did post happen? with “It happened”: who = y",
        "plan     L001 (post) takes up what will said of it",
        "           002 Called is running",
        "plan     L001 (post) counts as done: will said so",
        "           002 Called is done",
        *ENDS,
        "           001 Call post is done",
        "plan     the run is done",
        *LATE,
    ]
    succeeded = "L001 (post) 视为完成：will 已确认"
    assert succeeded in in_chinese(server, "ListenerSucceeded")
    assert (place / "posted").read_text("utf-8") == "张三"


def test_a_try_that_takes_the_result_of_an_earlier_one_says_so(
    there: Command, told: Told, server: Served, place: Path
) -> None:
    question = in_doubt(there)
    again = there("answer", question, "--option", "run_again", "--yes", "--json")
    assert again.json["status"] == "pause"
    (place / "go").touch()
    assert there("watch", "1").code == 0
    assert told("inst_000001") == [
        *BEGINS,
        "will     answered Did post happen? with “Run it again”",
        "plan     L001 (post) started, try 2",
        "           002 Called is running",
        *BEGINS[4:],
        "plan     an earlier try of L001 (post) has answered after all; its result is kept",
        "plan     no longer asks Did post happen?: the result arrived after all",
        "plan     L001 (post) succeeded with the result of that earlier try",
        "           002 Called is done",
        *ENDS,
        "           001 Call post is done",
        "plan     the run is done",
    ]
    assert in_chinese(server, "LateResultKept", "ListenerSucceeded")[:2] == [
        "L001 (post) 先前的一次尝试终于有了回复；结果已保留",
        "L001 (post) 成功，结果来自先前那次尝试",
    ]
    assert (place / "posted").read_text("utf-8") == "张三"


@pytest.mark.parametrize(("plan", "sub_plan"), [("outer", "ask"), ("upper", "outer")])
def test_what_a_sub_run_asked_and_who_answered_stands_in_the_history_above(
    there: Command, told: Told, server: Served, plan: str, sub_plan: str
) -> None:
    [question] = there("run", plan, "--json").json["questions"]
    values = ("--data", "model=ThinkPad", "--data", "key=sesame")
    assert there("answer", question["question_id"], *values).code == 0
    child = "inst_000001.L001.1"
    going_on = [f"plan     the sub-run {child} is {one}" for one in ("running", "done")]
    answer = "           will answered Which computer?: model = ThinkPad, key = (secret)"
    answered = [going_on[1], answer] if plan == "outer" else [going_on[0], answer, going_on[1]]
    assert told("inst_000001") == [
        f"will     started {plan}",
        "           001 Outer is running",
        f"plan     L001 (plan {sub_plan}) started as {child}",
        "           002 Asked is running",
        f"plan     the sub-run {child} waits for a person",
        "           asks the role it: Which computer? (Model, Key)",
        *answered,
        f"plan     L001 (plan {sub_plan}) takes up what its sub-run returned",
        f"plan     L001 (plan {sub_plan}) succeeded",
        "           002 Asked is done",
        *ENDS,
        "           001 Outer is done",
        "plan     the run is done",
    ]
    assert in_chinese(server, "ChildHeard")[1::2][:2] == [
        "询问角色“it”：Which computer? (Model，Key)",
        "will 回答了“Which computer?”：model = ThinkPad，key = （机密）",
    ]
