"""What was sent is what is judged: an option is named, and a blank is an edit like any other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from server_scene import Scene, serving, settled, start

from holdfast import Holdfast
from holdfast.errors import OutcomeUnknown

PAYING = """\
plan_id: paying
name: Pay somebody
main_task_id: "001"
tasks: [{{task_id: "001"}}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: {tool}
    args: {{to: ann, amount: 5}}
    success_output: {{task_id: "001", status: Done}}
"""


class Bank:
    def __init__(self) -> None:
        self.paid: list[dict[str, Any]] = []

    async def pay(
        self, to: str, amount: int, note: str | None = "hello", tags: list[str] | None = None
    ) -> dict[str, Any]:
        """Pay somebody."""
        self.paid.append({"to": to, "amount": amount, "note": note, "tags": tags})
        return {"paid": amount}

    async def wire(self, to: str, amount: int) -> dict[str, Any]:
        """Pay somebody, and hear nothing."""
        self.paid.append({"to": to, "amount": amount})
        raise OutcomeUnknown("the line went dead")


@pytest.fixture
def bank(app: Holdfast) -> Bank:
    bank = Bank()
    app.tool(bank.pay, approval="require")
    app.tool(bank.wire)
    for tool in ("pay", "wire"):
        source = PAYING.format(tool=tool).replace("plan_id: paying", f"plan_id: {tool}ing")
        app.load_plan_text(source)
    return bank


@pytest.fixture
async def scene(app: Holdfast, bank: Bank) -> AsyncIterator[Scene]:
    async with serving(app) as scene:
        yield scene


async def asked(scene: Scene, plan_id: str) -> tuple[str, str]:
    """The run that waits, and where its one question is answered."""
    run_id = await start(scene, plan_id)
    assert await settled(scene, run_id) == "pause"
    found = await scene.admin.get("/interactions", params={"run": run_id, "status": "open"})
    [question] = found.json()["interactions"]
    return run_id, str(question["requestId"])


NAMELESS: list[dict[str, Any]] = [
    {},
    {"data": {}},
    {"data": {"result": "it was paid"}},
    {"data": {"result": ""}},
    {"feedback": "it was paid"},
    {"data": {"to": "bob"}},
]


@pytest.mark.parametrize("plan_id", ["wireing", "paying"])
@pytest.mark.parametrize("body", NAMELESS)
async def test_no_data_says_whether_a_call_is_made_or_was(
    scene: Scene, bank: Bank, plan_id: str, body: dict[str, Any]
) -> None:
    run_id, question_id = await asked(scene, plan_id)
    paid = list(bank.paid)
    for path, more in (
        (f"/interactions/{question_id}/answer", {}),
        ("/api/agent/chat/react/interaction_response", {"requestId": question_id}),
    ):
        refused = await scene.admin.post(path, json={**body, **more})
        assert refused.status_code == 422, refused.text
    several = {"requestIds": [question_id], **body}
    told = await scene.admin.post("/interactions/answers", json=several)
    assert [one["status"] for one in told.json()["outcomes"]] == [422]
    values = {"provided_params": body.get("data", {})}
    went_on = await scene.admin.post(f"/instances/{run_id}/continue", json=values)
    assert went_on.status_code in (409, 422), went_on.text
    assert (await scene.admin.get(f"/interactions/{question_id}")).json()["status"] == "open"
    assert bank.paid == paid


async def test_what_is_named_is_taken(scene: Scene) -> None:
    run_id, question_id = await asked(scene, "wireing")
    happened = {"selectedOptionId": "happened", "data": {"result": "it was paid"}}
    taken = await scene.admin.post(f"/interactions/{question_id}/answer", json=happened)
    assert taken.status_code == 200, taken.text
    assert await settled(scene, run_id) == "done"


@pytest.mark.parametrize(
    "data",
    [
        {"amount": None},
        {"amount": ""},
        {"amount": " "},
        {"amount": []},
        {"amount": False},
        {"amount": {}},
        {"to": None},
        {"to": []},
        {"to": {}},
        {"to": 0},
        {"tags": ""},
        {"tags": 5},
        {"whom": ""},
        {"to": "bob", "whom": None},
    ],
)
async def test_an_edit_that_does_not_fit_pays_nothing(
    scene: Scene, bank: Bank, data: dict[str, Any]
) -> None:
    _, question_id = await asked(scene, "paying")
    body = {"selectedOptionId": "approve", "data": data}
    refused = await scene.admin.post(f"/interactions/{question_id}/answer", json=body)
    assert refused.status_code == 422, refused.text
    wrong = [name for name in data if (name, data[name]) != ("to", "bob")]
    assert list(refused.json()["fields"]) == wrong
    several = await scene.admin.post(
        "/interactions/answers", json={"requestIds": [question_id], **body}
    )
    assert [one["status"] for one in several.json()["outcomes"]] == [422]
    assert bank.paid == []


@pytest.mark.parametrize(
    "data",
    [
        {"to": ""},
        {"to": "  "},
        {"amount": 0},
        {"note": ""},
        {"note": None},
        {"tags": []},
        {"tags": '["tea"]'},
        {"to": "", "amount": 0},
    ],
)
async def test_an_edit_that_fits_is_what_is_paid(
    scene: Scene, bank: Bank, data: dict[str, Any]
) -> None:
    run_id, question_id = await asked(scene, "paying")
    body = {"selectedOptionId": "approve", "data": data}
    taken = await scene.admin.post(f"/interactions/{question_id}/answer", json=body)
    assert taken.status_code == 200, taken.text
    assert await settled(scene, run_id) == "done"
    sent = {**data, "tags": ["tea"]} if data.get("tags") else data
    assert bank.paid == [{"to": "ann", "amount": 5, "note": "hello", "tags": None, **sent}]
