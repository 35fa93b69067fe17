"""The schemas of files: they take every file that is sound, and refuse what is misshapen.

Whatever the schema refuses the reader refuses too: an editor that marks a sound file as wrong is
worse than none. The other way round holds for shape only, since meaning is the checks' part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from ruamel.yaml import YAML

import holdfast.demo
from holdfast.errors import AuthorError, PlanRejected
from holdfast.source.agentfile import load_agents
from holdfast.source.check import Catalog
from holdfast.source.planfile import LISTENER as LISTENER_FILE
from holdfast.source.planfile import PLAN as PLAN_FILE
from holdfast.source.planfile import ListenerType, load_plan
from holdfast.source.schemas import agent_schema, plan_schema
from holdfast.work.http_tools import load_http_tools
from holdfast.work.tool_schema import tool_schema

TOP = Path(__file__).parents[2]
DEMO = Path(holdfast.demo.__file__).parent
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)

SCHEMAS = {"plan": plan_schema(), "tool": tool_schema(), "agent": agent_schema()}
JUDGES = {kind: jsonschema_rs.Draft202012Validator(schema) for kind, schema in SCHEMAS.items()}


def kind_of(document: Any) -> str:
    if isinstance(document, list) or ("tools" in document and "agent_id" not in document):
        return "tool"
    return "plan" if "plan_id" in document else "agent"


def documents() -> Iterator[Any]:
    pages = [*TOP.glob("docs/*.md"), *TOP.glob("README*.md")]
    blocks = [block for page in pages for block in BLOCK.findall(page.read_text(encoding="utf-8"))]
    files = [*DEMO.rglob("*.yaml"), *TOP.glob("examples/**/*.yaml")]
    assert len(blocks) >= 7
    assert len(files) >= 10
    for file in files:
        yield pytest.param(file.read_text(encoding="utf-8"), id=file.name)
    for number, block in enumerate(blocks):
        yield pytest.param(block, id=f"page block {number}")


@pytest.mark.parametrize("text", [*documents()])
def test_every_example_and_demo_file_is_taken(text: str) -> None:
    document = YAML(typ="safe", pure=True).load(text)
    kind = kind_of(document)
    assert [str(error) for error in JUDGES[kind].iter_errors(document)] == []


ASKING: dict[str, Any] = {
    "title": "T",
    "message": "M",
    "details": "D",
    "type": "Tool_Approval",
    "options": [
        {"id": "yes", "action": "Approve", "label": "Yes", "description": "d", "dangerous": True},
        {"option_id": "no", "action": "reject", "default": True, "metadata": {"x": 1}},
        {"option_id": "why", "action": "retry", "requires_input": True, "input_prompt": "Why?"},
    ],
    "required": True,
    "role": "manager",
    "timeout_seconds": 60,
    "default_option_id": "no",
    "reminders": [10, 20],
    "escalate": {"after": 30, "role": "boss"},
}
FORM: dict[str, Any] = {
    "count": {"type": "number", "integer": True, "label": "N", "validation": {"min": 1, "max": 5}},
    "kind": {"options": ["a", {"value": "b", "label": "B", "price": 3, "requires_input": True}]},
    "word": {"validation": {"type": "enum", "values": ["x", "y"]}, "default": "x"},
    "when": {"type": "date", "required": False, "validation": {"not_before": "2026-01-01"}},
    "data": {"type": "textarea", "json": "object", "nullable": True, "description": "d"},
    "plain": None,
}
LISTENER: dict[str, Any] = {
    "listener_id": "L001",
    "trigger_task_id": "001",
    "trigger_condition": "Running",
    "success_output": {"task_id": "001", "status": "Done"},
}
FULL: dict[str, Any] = {
    "success_output": {"task_id": "001", "status": "Done", "context": {"a": 1}},
    "failure_output": {"task_id": "001", "status": "Error"},
    "retry": {"attempts": 2, "initial": 0.5},
    "timeout": 30,
    "repeat": False,
    "priority": 5,
    "max_firings": 10,
}
ACTIONS: dict[str, dict[str, Any]] = {
    "tool": {"tool": "t", "args": {"a": "b"}, "fields": {"a": {"label": "A"}}, "approval": True},
    "code": {"code_snippet": "result = {}", "functions": ["t"], "retry": 2, **FULL},
    "human": {"form": FORM, "title": "T", "role": "manager"},
    "plan": {"plan_id": "other", "values": {"x": 1}},
    "agent": {"agent_id": "hr", "action_prompt": "do it"},
    "wait_until": {"clock": "09:00", "timezone": "Asia/Shanghai", "weekdays": ["mon", "fri"]},
}


def plan_with(kind: str, **others: Any) -> dict[str, Any]:
    return {
        "plan_id": "small",
        "main_task_id": "001",
        "tasks": [{"task_id": "001"}],
        "listeners": [{"listener_type": kind, **LISTENER, **ACTIONS[kind]}],
        **others,
    }


PLAN = plan_with(
    "plan",
    name="Whole",
    description="d",
    tasks=[{"task_id": "001", "name": "n", "prompt": "p"}],
    inputs=["name", "email"],
    verify=[{"tool": "query_t", "args": {"a": 1}, "expect": "result.ok == true"}],
    while_paused="hold",
)
AGENT: dict[str, Any] = {
    "id": "hr",
    "name": "HR",
    "system": "You are HR.",
    "description": "d",
    "model": "openai:x",
    "tools": ["make", "drop"],
    "agents": "mailer",
    "verification_tools": ["query_profile"],
    "approval": {"drop": {"mode": "require", "when": "id != 1", "otherwise": "disabled"}},
    "asks_people": True,
    "max_iterations": 5,
    "context_limit": 5000,
    "retry": 2,
}
AGENTS: dict[str, Any] = {
    "agents": [
        {"agent_id": "asker", "asking": ASKING},
        {"agent_id": "mailer", "approval": {"require_when": "n > 1"}},
        {"agent_id": "clerk", "approval": True},
    ]
}
TOOLS: dict[str, Any] = {
    "tools": [
        {
            "name": "grant",
            "description": "d",
            "endpoint": "http://127.0.0.1/tool",
            "method": "Post",
            "body": {"who": "{who}"},
            "headers": {"X-Key": "k"},
            "parameters": {"type": "object", "properties": {"who": {"type": "string"}}},
            "idempotent": True,
            "read_only": False,
            "approval": {"require_when": "who == 1"},
            "timeout": 3,
            "version": "1",
            "fields": {"who": {"label": "Who"}},
        },
        {"name": "other", "endpoint": "http://127.0.0.1", "envelope": "tool"},
    ]
}


def read_plan(document: Any) -> None:
    load_plan(json.dumps(document), "plan.yaml", Catalog())


def read_agents(document: Any) -> None:
    load_agents(json.dumps(document), agents=None)


def read_tools(document: Any) -> None:
    declared = document.get("tools") if isinstance(document, dict) else document
    if not isinstance(declared, list):
        raise AuthorError("no tools")
    load_http_tools(declared, {})


Reader = Callable[[Any], None]
KINDS = [
    pytest.param("plan", PLAN, read_plan, id="plan"),
    *(pytest.param("plan", plan_with(kind), read_plan, id=f"plan of {kind}") for kind in ACTIONS),
    pytest.param("agent", AGENT, read_agents, id="agent"),
    pytest.param("agent", AGENTS, read_agents, id="agents"),
    pytest.param("tool", TOOLS, read_tools, id="tool"),
]
ODD: tuple[Any, ...] = (None, "x", 2.5, True, [3], {"x": 1})


def is_read(read: Reader, document: Any) -> bool:
    try:
        read(document)
    except (PlanRejected, AuthorError):
        return False
    return True


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(document, dict | list):
        keys = list(document) if isinstance(document, dict) else range(len(document))
        for key in keys:
            yield from places(document[key], (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def variants(document: Any) -> Iterator[Any]:
    """The document with one thing about it changed: a value, a key too few, a key too many."""
    for path in places(document):
        for value in ODD if path else ():
            changed = deepcopy(document)
            at(changed, path[:-1])[path[-1]] = value
            yield changed
        if isinstance(at(document, path), dict):
            changed = deepcopy(document)
            at(changed, path)["zzz"] = 1
            yield changed
        if path and isinstance(path[-1], str):
            changed = deepcopy(document)
            del at(changed, path[:-1])[path[-1]]
            yield changed


@pytest.mark.parametrize(("kind", "document", "read"), KINDS)
def test_what_the_schema_refuses_the_reader_refuses_too(
    kind: str, document: Any, read: Reader
) -> None:
    assert is_read(read, document)
    refused = [each for each in variants(document) if not JUDGES[kind].is_valid(each)]
    assert JUDGES[kind].is_valid(document)
    assert len(refused) > 50
    assert [each for each in refused if is_read(read, each)] == []


MISTAKES: list[tuple[str, Any, tuple[Any, ...], Any]] = [
    ("plan", PLAN, ("bogus",), 1),
    ("plan", PLAN, ("tasks",), {"001": {}}),
    ("plan", PLAN, ("tasks", 0, "task_id"), None),
    ("plan", PLAN, ("while_paused",), "wait"),
    ("plan", PLAN, ("inputs",), [3]),
    ("plan", PLAN, ("inputs",), {"a": {"typo": "text"}}),
    ("plan", PLAN, ("inputs",), {"a": {"type": "telephone"}}),
    ("plan", PLAN, ("inputs",), {"a": {"validation": {"min": "1"}}}),
    ("plan", plan_with("tool"), ("listeners", 0, "listener_type"), "tol"),
    ("plan", plan_with("tool"), ("listeners", 0, "code_snippet"), "pass"),
    ("plan", plan_with("tool"), ("listeners", 0, "retry"), "often"),
    ("plan", plan_with("code"), ("listeners", 0, "tool"), "t"),
    ("plan", plan_with("human"), ("listeners", 0, "success_output", "status"), "done"),
    ("plan", plan_with("plan"), ("listeners", 0, "repeat"), "yes"),
    ("agent", AGENTS, ("agents", 0, "asking", "escalate"), {"after": 3}),
    ("agent", AGENTS, ("agents", 0, "asking", "options", 1, "action"), "refuse"),
    ("agent", AGENT, ("approval",), {"drop": "never"}),
    ("agent", AGENTS, ("agents", 1, "max_iterations"), "five"),
    ("agent", AGENTS, ("agents", 1), {"name": "without an id"}),
    ("tool", TOOLS, ("tools", 0, "methode"), "POST"),
    ("tool", TOOLS, ("tools", 0, "method"), "FETCH"),
    ("tool", TOOLS, ("tools", 0, "timeout"), 0),
    ("tool", TOOLS, ("tools", 0, "headers"), {"X": 1}),
    ("tool", TOOLS, ("tools", 1, "envelope"), "letter"),
    ("tool", TOOLS, ("tools", 1), {"endpoint": "http://127.0.0.1"}),
]


@pytest.mark.parametrize(
    ("kind", "document", "path", "value"), MISTAKES, ids=lambda each: str(each)[:30]
)
def test_files_with_mistakes_are_refused(
    kind: str, document: Any, path: tuple[Any, ...], value: Any
) -> None:
    wrong = deepcopy(document)
    at(wrong, path[:-1])[path[-1]] = value
    assert not JUDGES[kind].is_valid(wrong)


def test_the_plans_schema_has_the_readers_keys() -> None:
    definitions = SCHEMAS["plan"]["$defs"]
    assert list(definitions["plan"]["properties"]) == list(PLAN_FILE.known)
    assert {f"{kind}_listener" for kind in ListenerType} <= definitions.keys()
    for kind in ListenerType:
        assert {*LISTENER_FILE.known} <= definitions[f"{kind}_listener"]["properties"].keys()


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_itself_sound(kind: str) -> None:
    assert jsonschema_rs.meta.is_valid(SCHEMAS[kind])
    used = set(re.findall(r"#/\$defs/(\w+)", json.dumps(SCHEMAS[kind])))
    assert used == SCHEMAS[kind]["$defs"].keys()


def test_agents_stand_in_a_list_or_by_id_or_alone() -> None:
    alone = {"agent_id": "hr"}
    for document in (alone, {"agents": [alone]}, {"agents": {"hr": {"name": "HR"}}}):
        assert JUDGES["agent"].is_valid(document)
        assert is_read(read_agents, document)
