"""Patch files that are no good, on the command line: each is refused with what is wrong, and the
run's journal is as long as before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_repair_scene import MockOffice, failed, furnish, opened_office, patch
from cli_scene import Command

NEW = {
    "listener_id": "R1",
    "trigger_task_id": "001",
    "trigger_condition": "Running",
    "listener_type": "tool",
    "tool": "create_employee_profile",
    "args": {"name": "{001.context.name}"},
    "success_output": {"task_id": "R1", "status": "Done"},
}
TASK = {"task_id": "R1", "name": "R1"}


def mail(value: Any) -> list[dict[str, Any]]:
    return [{"op": "set_args", "listener_id": "L2", "set": {"subject": value}}]


def added(listener: dict[str, Any], *tasks: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"op": "add", "tasks": [TASK, *tasks], "listeners": [{**NEW, **listener}]}]


SECOND = {**NEW, "listener_id": "R2", "success_output": {"task_id": "R2", "status": "Done"}}
CIRCLE = [
    {
        "op": "add",
        "tasks": [TASK, {"task_id": "R2", "name": "R2"}],
        "listeners": [
            {**NEW, "trigger_task_id": "R2", "trigger_condition": "Done"},
            {**SECOND, "trigger_task_id": "R1", "trigger_condition": "Done"},
        ],
    }
]

WRONG: dict[str, tuple[Any, str]] = {
    "operation": ([{"op": "unset", "listener_id": "L2"}], "operations[0].op"),
    "listener": ([{"op": "skip", "listener_id": "L9"}], "there is no listener 'L9'"),
    "id taken": (added({"listener_id": "L2"}), "the listener_id L2 is taken"),
    "empty": ([], "a patch has at least one operation"),
    "thirteen": (mail("Hello") * 13, "at most 12 operations; this has 13"),
    "circle": (CIRCLE, "can never fire"),
    "unreachable": (
        [{"op": "add", "tasks": [{"task_id": "R9", "name": "R9"}]}],
        "nothing ever reaches task R9",
    ),
    "result": (mail("{{result.name}}"), "result"),
    "context": (mail("{002.context.colour}"), "002.context.colour"),
    "base": ({"operations": mail("Hello"), "base": "5f0c"}, "unknown key 'base'"),
    "deep": (mail(json.loads("[" * 60 + "]" * 60)), "nested"),
    "NaN": (mail(float("nan")), "NaN"),
    "surrogate": (mail("\ud800"), "surrogate"),
    "10 MB": (mail("x" * 10_000_000), "larger than"),
}


@pytest.fixture
def office(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MockOffice]:
    furnish(place)
    with opened_office() as office:
        monkeypatch.setenv("OFFICE_URL", office.url)
        yield office


def test_each_is_told_what_is_wrong_with_it_and_nothing_is_changed(
    holdfast: Command, office: MockOffice, place: Path
) -> None:
    run_id = failed(holdfast)
    before, calls = holdfast("history", run_id, "--json").json, office.counts()
    for what, (operations, told) in WRONG.items():
        file = patch(place, operations)
        for rehearsed in ((), ("--rehearse",)):
            ending = holdfast("repair", "1", "--patch", file, *rehearsed)
            assert ending.code == 1, (what, ending)
            assert told in ending.err, (what, ending.err)
            assert len(ending.err) < 3_000, what
            assert "Traceback" not in ending.err, what
    assert holdfast("history", run_id, "--json").json == before
    assert office.counts() == calls
