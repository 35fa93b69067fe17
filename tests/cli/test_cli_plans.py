"""Plans on the command line: checked and drawn."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from cli_scene import CALL, OUTER, Command

TOOLS = """
tools:
  - name: fetch
    endpoint: "${NOWHERE_URL}/tool"
    parameters: {type: object, properties: {who: {type: string}}, required: [who]}
"""


def test_a_sound_directory_has_no_problems(holdfast: Command) -> None:
    assert holdfast("check", "plans").out == "2 plans: no problems\n"
    assert holdfast("check", "plans", "--json").json == {"ok": True, "plans": 2, "problems": []}


def test_every_problem_is_said_with_its_place(holdfast: Command, place: Path) -> None:
    plan = (place / "plans" / "ask.yaml").read_text(encoding="utf-8")
    broken = plan.replace("min: 1, max: 5", "minimum: 1").replace('"002"\n', '"007"\n')
    (place / "plans" / "ask.yaml").write_text(broken, encoding="utf-8")
    ending = holdfast("check", "plans")
    assert ending.code == 1
    *places, count = ending.out.splitlines()
    assert all(line.startswith("plans/ask.yaml:") for line in places)
    assert len(places) >= 2
    assert count == f"{len(places)} problems"
    found = holdfast("check", "plans/ask.yaml", "--json")
    assert found.code == 1
    assert all(one["line"] > 0 for one in found.json["problems"])


def test_calls_are_checked_only_where_tools_are_known(holdfast: Command, place: Path) -> None:
    (place / "call.yaml").write_text(CALL.format(tool="fetch"), encoding="utf-8")
    (place / "other.yaml").write_text(CALL.format(tool="fetsch"), encoding="utf-8")
    assert holdfast("check", "other.yaml").code == 0
    (place / "tools.yaml").write_text(TOOLS, encoding="utf-8")
    assert holdfast("check", "call.yaml").code == 0
    assert "fetsch" in holdfast("check", "other.yaml").out


def test_files_that_are_no_plans_are_problems_not_tracebacks(
    holdfast: Command, place: Path
) -> None:
    (place / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    assert "binary.yaml:1:1: this is not UTF-8 text" in holdfast("check", "binary.yaml").out
    (place / "empty").mkdir()
    assert "holds no plans" in holdfast("check", "empty").err
    assert "missing.yaml: No such file" in holdfast("check", "missing.yaml").err


BAD = "plan_id: bad\nbogus: 1\n"


def test_a_broken_plan_is_refused_with_all_its_problems(holdfast: Command, place: Path) -> None:
    (place / "plans" / "bad.yaml").write_text(BAD, encoding="utf-8")
    ending = holdfast("run", "bad", "--json")
    assert ending.code == 1
    assert ending.json["error"]["kind"] == "PlanRejected"
    assert {one["file"] for one in ending.json["error"]["problems"]} == {"plans/bad.yaml"}


def test_a_broken_plan_stops_no_other_and_is_named_in_a_warning(
    holdfast: Command, place: Path
) -> None:
    holdfast("run", "ask")
    (place / "plans" / "bad.yaml").write_text(BAD, encoding="utf-8")
    started = holdfast("run", "greet", "--set", "name=张三", "--json")
    assert (started.code, started.json["status"]) == (0, "done")
    assert started.err.startswith("warning: plans/bad.yaml is left out: plans/bad.yaml:")
    assert holdfast("cancel", "1").code == 0


def test_what_needs_a_broken_plan_is_left_out_with_it(holdfast: Command, place: Path) -> None:
    (place / "plans" / "outer.yaml").write_text(OUTER, encoding="utf-8")
    (place / "plans" / "ask.yaml").write_text(BAD.replace("bad", "ask"), encoding="utf-8")
    ending = holdfast("run", "outer")
    assert ending.code == 1
    assert "there is no plan 'ask'" in ending.err
    assert "warning: plans/ask.yaml is left out" in ending.err


def test_a_plan_is_drawn_as_text_and_as_svg(holdfast: Command, place: Path) -> None:
    assert "填表 (form)" in holdfast("graph", "ask").out
    drawn = holdfast("graph", "plans/ask.yaml", "--format", "svg").out
    assert ElementTree.fromstring(drawn).tag.endswith("svg")
    assert holdfast("graph", "ask", "-o", "ask.svg").out == "ask.svg has the graph of ask\n"
    assert (place / "ask.svg").read_text(encoding="utf-8").strip() == drawn.strip()


def test_a_run_is_drawn_with_the_status_of_its_tasks(holdfast: Command) -> None:
    holdfast("run", "greet", "--set", "name=张三")
    drawn = holdfast("graph", "1", "--json").json
    assert drawn["format"] == "text"
    assert drawn["graph"] != holdfast("graph", "greet", "--json").json["graph"]


def test_a_name_that_is_neither_plan_nor_run_is_refused(holdfast: Command) -> None:
    ending = holdfast("graph", "nope")
    assert ending.code == 1
    assert (
        "there is no plan 'nope' (known: ask, greet); a run is named as inst_000001" in ending.err
    )


def test_tools_that_cannot_be_read_are_refused_in_one_line(holdfast: Command, place: Path) -> None:
    for text in (b"a: [", b"tools: 5", b"", b"\xff\xfe"):
        (place / "tools.yaml").write_bytes(text)
        ending = holdfast("run", "ask")
        assert ending.code == 1
        assert ending.err.startswith("error: tools.yaml ")
        assert ending.err.count("\n") == 1


def test_the_schemas_of_files_are_printed_or_written(holdfast: Command, place: Path) -> None:
    plan = holdfast("schema", "plan")
    assert plan.code == 0
    assert plan.json == holdfast("schema", "plan", "--json").json
    assert plan.json["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    every = holdfast("schema").json
    assert list(every) == ["plan", "tool", "agent"]
    assert every["plan"] == plan.json
    written = holdfast("schema", "agent", "-o", "agent.json")
    assert written.out == "agent.json has the schema of agent files\n"
    assert json.loads((place / "agent.json").read_text(encoding="utf-8")) == every["agent"]
    assert holdfast("schema", "-o", "all.json", "--json").json == {"file": "all.json"}
    assert holdfast("schema", "skill").code == 2
