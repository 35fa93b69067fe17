"""The page on failures and repairs: its plan, its examples, its operations and its tables."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from holdfast.core.repair.operations import patched, read_operations
from holdfast.core.repair.records import Operation
from holdfast.core.repair.rehearsal import MOST_STARTS
from holdfast.model.message import ModelReply, ToolCall, Usage
from holdfast.model.plan import Plan
from holdfast.model.repair import (
    LONGEST_DIAGNOSIS,
    MOST_CASES,
    MOST_NEW_LISTENERS,
    MOST_OPERATIONS,
    MOST_PATCHES,
    MOST_REQUESTS,
    MOST_REQUESTS_OF_A_CASE,
    MOST_TOKENS,
    CaseStatus,
    Diagnosis,
    Evidence,
    Level,
    PlanPatch,
    Proposal,
    RepairLimits,
    RepairMode,
    RepairPolicy,
    Verdict,
)
from holdfast.model.retry import Cause
from holdfast.repair.checks import MOST_VALUES, MOST_VALUES_OF_A_MODEL
from holdfast.repair.contract import DIAGNOSE, Asked, Chosen, read_reply
from holdfast.repair.evidence import MOST_EVIDENCE
from holdfast.repair.experience import MOST_CURVES, MOST_LESSONS, MOST_TOOLS
from holdfast.repair.replies import LARGEST_REPLY
from holdfast.repair.rules import MOST_CANDIDATES
from holdfast.repair.sketch import MOST_CHECKS, MOST_STEPS
from holdfast.repair.words import described
from holdfast.source.check import Catalog
from holdfast.source.planfile import load_plan
from holdfast.work import drafting
from holdfast.work.diagnosing import LONGEST_REQUEST

PAGE = (Path(__file__).parents[2] / "docs" / "planner.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(?:```|~~~)(\w+)\n(.*?)^(?:```|~~~)$", re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| `([\w.]+)` \|", re.MULTILINE)


def section(title: str) -> str:
    return re.split(r"^## ", PAGE.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[
        0
    ]


def blocks(language: str, text: str = PAGE) -> list[str]:
    return [body for kind, body in BLOCK.findall(text) if kind == language]


def rows(title: str) -> list[str]:
    return ROW.findall(section(title))


def plan() -> Plan:
    return load_plan(blocks("yaml")[0], "planner.md", Catalog())


def examples() -> list[tuple[str, str]]:
    """Each with what the page says that it prints."""
    found = BLOCK.findall(PAGE)
    after = [*found[1:], ("", "")]
    said = [(one[1], two) for one, two in zip(found, after, strict=True) if one[0] == "python"]
    assert all(kind == "text" for _, (kind, _) in said), "an example goes without its output"
    return [(script, printed) for script, (_, printed) in said]


def test_the_examples_print_what_stands_below_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "access_and_mail.yaml").write_text(blocks("yaml")[0], encoding="utf-8")
    together: dict[str, Any] = {"__name__": "__main__"}
    for script, printed in examples():
        exec(compile(script, "<example>", "exec"), together)
        assert capsys.readouterr().out == printed


def test_the_policy_is_one_that_a_plan_may_have() -> None:
    [policy] = blocks("yaml", section("A policy for a plan"))
    text = re.sub(r"^repair: .*\n", policy, blocks("yaml")[0], flags=re.MULTILINE)
    read = load_plan(text, "planner.md", Catalog()).repair
    assert read.mode is RepairMode.AUTO
    assert read.most.requests == 4


def test_every_key_of_the_policy_is_told_of_in_order() -> None:
    keys = [one.name for one in fields(RepairPolicy) if one.name != "most"]
    most = [f"most.{one.name}" for one in fields(RepairLimits)]
    assert rows("A policy for a plan") == [*keys, *most]


def operations() -> list[Any]:
    return list(json.loads(blocks("json", section("Eight operations"))[0]))


def test_each_operation_has_an_example_that_people_read_so() -> None:
    told = [described(plan(), [one]) for one in operations()]
    [text] = blocks("text", section("Eight operations"))
    assert [words for [words] in told] == text.splitlines()
    for one in operations():
        assert patched(plan(), read_operations([one])) != plan()


def test_every_operation_is_told_of() -> None:
    names = [re.sub(r"(?<!^)(?=[A-Z])", "_", one.__name__).lower() for one in get_args(Operation)]
    assert sorted(rows("Eight operations")) == sorted(names)
    assert set(names) == {one["op"] for one in operations()}


def test_every_cause_status_and_level_is_told_of_in_order() -> None:
    assert rows("What a failure says") == [one.value for one in Cause]
    assert rows("When a run gives up") == [one.value for one in CaseStatus]
    assert rows("Levels, and who may approve") == [one.value for one in Level]


def test_fourteen_touches_are_forbidden() -> None:
    told = re.findall(r"^(\d+)\. ", section("What no model may do"), re.MULTILINE)
    assert told == [str(number) for number in range(1, 15)]


def test_a_model_may_answer_as_the_page_says() -> None:
    [answer] = blocks("json", section("Models"))
    seen = (Evidence(1, '{"event":"run started"}'), Evidence(3, '{"event":"failed"}'))
    patch = PlanPatch("k1", "base", ({"op": "skip", "listener_id": "L002"},))
    offered = (Proposal(patch, Verdict("digest")),)
    known = Diagnosis(Cause.PRECONDITION, "")
    asked = Asked("inst_000001", "case_1", 1, seen, known, lambda *_: (), offered)
    call = ToolCall("call_1", DIAGNOSE, json.loads(answer))
    read = read_reply(ModelReply("", (call,), Usage(), "any"), asked, "")
    assert isinstance(read, Chosen), read
    assert read.diagnosis.evidence == seen[1:]


LIMITS = {
    "a patch": (MOST_OPERATIONS, MOST_NEW_LISTENERS, MOST_VALUES, MOST_VALUES_OF_A_MODEL),
    "a run": (MOST_PATCHES, MOST_CASES, MOST_REQUESTS, MOST_TOKENS),
    "a case": (MOST_CANDIDATES, MOST_EVIDENCE, MOST_REQUESTS_OF_A_CASE, LONGEST_DIAGNOSIS),
    "a request": (LONGEST_REQUEST, LARGEST_REPLY),
    "a rehearsal": (MOST_STARTS,),
    "a plan from a prompt": (MOST_STEPS, MOST_CHECKS, drafting.MOST_REQUESTS),
    "what is kept": (MOST_CURVES, MOST_TOOLS, MOST_LESSONS),
}


def test_the_limits_are_those_of_the_code() -> None:
    told = re.findall(r"^\| ([a-z ]+) \| (.+) \|$", section("Limits"), re.MULTILINE)
    numbers = {what: re.findall(r"\d[\d,]*", said) for what, said in told}
    assert numbers == {what: [f"{one:,g}" for one in known] for what, known in LIMITS.items()}
