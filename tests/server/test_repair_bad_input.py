"""Patches that are no good, over HTTP: each is refused with what is wrong where, rehearsed or not,
and the journal is as long as before."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from server_scene import Office, Scene, settled, start

FAILED = "L001"
TWICE = {"op": "set_args", "listener_id": FAILED, "set": {"employee": "WZ001"}}


def added(*names: str, **listener: Any) -> dict[str, Any]:
    """Listeners that order a computer, each with its task; `listener` changes the first."""
    usual = {
        "trigger_task_id": "001",
        "trigger_condition": "Running",
        "listener_type": "tool",
        "tool": "apply_computer",
        "args": {"employee": "WZ001", "computer_model": "ThinkPad X1"},
    }
    listeners = [
        {**usual, "listener_id": one, "success_output": {"task_id": one, "status": "Done"}}
        for one in names
    ]
    listeners[0] |= listener
    tasks = [{"task_id": one, "name": one} for one in names]
    return {"op": "add", "tasks": tasks, "listeners": listeners}


def circle() -> dict[str, Any]:
    """Each waits for the other."""
    both = added("R1", "R2", trigger_task_id="R2", trigger_condition="Done")
    both["listeners"][1] |= {"trigger_task_id": "R1", "trigger_condition": "Done"}
    return both


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


WRONG: dict[str, tuple[list[Any], str]] = {
    "an operation that there is not": (
        [{"op": "unset", "listener_id": FAILED}],
        "operations[0].op",
    ),
    "a listener that there is not": (
        [{"op": "skip", "listener_id": "L009"}],
        "operations[0].listener_id: there is no listener 'L009'",
    ),
    "a tool that there is not": (
        [{"op": "use_tool", "listener_id": FAILED, "tool": "grant_acess", "args": {}}],
        "there is no tool 'grant_acess'; did you mean 'grant_access'?",
    ),
    "an id that is taken": (
        [added("L002")],
        "operations[0].listeners[0].listener_id: the listener_id",
    ),
    "an id that is taken in the patch": ([added("R1"), added("R1")], "R1 is taken"),
    "nothing": ([], "operations: a patch has at least one operation"),
    "what is so already": (
        [{"op": "set_args", "listener_id": FAILED, "set": {"employee": "Will Zhang"}}],
        "the patch changes nothing",
    ),
    "thirteen operations": ([TWICE] * 13, "at most 12 operations; this has 13"),
    "nine listeners": (
        [added(*(f"R{number}" for number in range(9)))],
        "at most 8 listeners; this adds 9",
    ),
    "a circle": ([circle()], "can never fire"),
    "a task that nothing reaches": (
        [{"op": "add", "tasks": [{"task_id": "R9", "name": "Lonely"}]}],
        "nothing ever reaches task R9",
    ),
    "a result that cannot be there": (
        [{"op": "set_args", "listener_id": FAILED, "set": {"employee": "{{result.name}}"}}],
        "result",
    ),
    "a task's context that cannot be there": (
        [{"op": "set_args", "listener_id": FAILED, "set": {"employee": "{002.context.name}"}}],
        "002.context.name",
    ),
    "a goal that nothing reaches any more": (
        [{"op": "skip", "listener_id": "L002"}],
        "the plan cannot finish",
    ),
    "no objects": (["skip", None, 7, [TWICE]], "operations[0]"),
}


async def journaled(scene: Scene) -> int:
    return await scene.app.journal.last_commit()


async def failed(scene: Scene, office: Office) -> str:
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    assert await settled(scene, instance_id) == "error"
    return instance_id


async def sent(scene: Scene, instance_id: str, body: bytes | str, **query: str) -> httpx.Response:
    return await scene.admin.post(
        f"/instances/{instance_id}/patches",
        content=body,
        params=query,
        headers={"content-type": "application/json"},
    )


@pytest.mark.parametrize("what", WRONG)
async def test_a_wrong_patch_is_told_what_is_wrong_with_it_and_nothing_is_changed(
    scene: Scene, office: Office, what: str
) -> None:
    operations, told = WRONG[what]
    instance_id = await failed(scene, office)
    before, calls = await journaled(scene), len(office.calls)
    body = json.dumps({"operations": operations})
    refused = await sent(scene, instance_id, body)
    assert refused.status_code == 422, refused.text
    problems = [one["message"] for one in refused.json()["problems"]]
    assert any(told in one for one in problems), problems

    rehearsed = await sent(scene, instance_id, body, rehearse="true")
    assert rehearsed.status_code == 422, rehearsed.text
    assert rehearsed.json()["problems"] == refused.json()["problems"]
    assert (await journaled(scene), len(office.calls)) == (before, calls)
    assert (await scene.admin.get(f"/instances/{instance_id}")).json()["status"] == "error"


def about(value: str) -> str:
    """A patch in JSON, with this spelling of a value."""
    return (
        f'{{"operations": [{{"op": "set_args", "listener_id": "{FAILED}", '
        f'"set": {{"employee": {value}}}}}]}}'
    )


NO_JSON: dict[str, bytes | str] = {
    "half a surrogate pair": about('"\\ud800"'),
    "half a surrogate pair as a name": about('{"\\udfff": 1}'),
    "NaN": about("NaN"),
    "infinity": about("-Infinity"),
    "a number beyond all": about("1e999"),
    "a hundred levels": about(nested(100)),
    "as many levels as nobody reads": about(nested(100_000)),
    "a million characters": about(json.dumps("x" * 1_000_000)),
    "ten megabytes": about(json.dumps("x" * 10_000_000)),
    "another base": '{"operations": [{"op": "skip", "listener_id": "L001"}], "base": "5f0c"}',
    "a list": "[]",
    "prose": "please skip it",
    "half of it": '{"operations": [{"op": "skip",',
    "nothing": "",
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("how", [{}, {"rehearse": "true"}], ids=["proposed", "rehearsed"])
@pytest.mark.parametrize("what", NO_JSON)
async def test_what_cannot_be_read_is_refused_and_nothing_is_changed(
    scene: Scene, office: Office, what: str, how: dict[str, str]
) -> None:
    instance_id = await failed(scene, office)
    before = await journaled(scene)
    refused = await sent(scene, instance_id, NO_JSON[what], **how)
    if how and refused.status_code == 200:
        assert refused.json()["proposal"]["problems"]
    else:
        assert refused.status_code in (400, 413, 422), refused.text
        assert refused.json()["detail"]
    assert len(refused.content) < 10_000
    assert await journaled(scene) == before
    assert (await scene.admin.get("/interactions")).json()["interactions"] == []
