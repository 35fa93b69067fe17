"""Plans that a model would draw up, over HTTP: shown to those who may run any plan."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from server_scene import Office, Scene, furnish, serving

from holdfast import Holdfast
from holdfast.client import Client
from holdfast.errors import NotAllowed
from holdfast.i18n.catalogue import said
from holdfast.model.retry import RetryPolicy
from holdfast.repair.sketch import SKETCH_PLAN
from holdfast.testing.model_script import Entry, Script, call
from holdfast.testing.scripted_model import ScriptedModel
from holdfast.work.models import ModelClient

SKETCH = {
    "goal": "A computer for Will Zhang",
    "steps": [{"id": "s1", "tool": "apply_computer", "args": {"employee": "Will Zhang"}}],
}
WANTED = {"prompt": "A computer for Will Zhang", "values": {"desk": "A-12"}}
CHINESE = {"accept-language": "zh-CN,zh;q=0.9"}


class Drafting:
    """A server whose model says what a test tells it."""

    def __init__(self, scene: Scene, office: Office) -> None:
        self.scene, self.office = scene, office

    def says(self, *script: Entry) -> ScriptedModel:
        model = ScriptedModel(list(script))
        self.scene.app.models.default_model = model
        return model

    async def draft(self, role: str = "operator", **headers: str) -> Any:
        client = await self.scene.as_a(role)
        return await client.post("/plans/draft", json=WANTED, headers=headers)


@pytest.fixture
async def drafting() -> AsyncIterator[Drafting]:
    app = Holdfast.in_memory(model=ModelClient(retry=RetryPolicy(attempts=1)))
    office = furnish(app)
    async with serving(app) as scene:
        yield Drafting(scene, office)


async def test_a_draft_is_shown_whole_and_nothing_is_started(drafting: Drafting) -> None:
    model = drafting.says(call(SKETCH_PLAN, **SKETCH))
    answer = await drafting.draft()
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["reason"], told["requests"]) == ("", 1)
    assert told["usage"]["input_tokens"] > 0
    draft = told["draft"]
    assert draft["goal"] == "A computer for Will Zhang"
    assert draft["outline"].splitlines()[2:4] == [
        "It calls, in this order:",
        '1. s1: apply_computer {"employee":"Will Zhang"}',
    ]
    assert draft["definition"]["listeners"][0]["approval"] is True
    assert [one["tool"] for one in draft["rehearsal"]["calls"]] == ["apply_computer"]
    assert '{\\"desk\\":\\"A-12\\"}' in model.seen[0].asked
    runs = (await drafting.scene.admin.get("/runs")).json()["runs"]
    assert (runs, drafting.office.calls) == ([], [])


async def test_what_is_shown_can_be_registered_under_an_id_of_its_own(drafting: Drafting) -> None:
    drafting.says(call(SKETCH_PLAN, **SKETCH))
    definition = (await drafting.draft()).json()["draft"]["definition"]
    source = json.dumps({**definition, "plan_id": "a_computer"}, ensure_ascii=False)
    registered = await drafting.scene.admin.post("/plans", json={"source": source})
    assert registered.status_code == 201, registered.text


async def test_the_outline_is_in_the_readers_language(drafting: Drafting) -> None:
    drafting.says(*[call(SKETCH_PLAN, **SKETCH)] * 2)
    english = (await drafting.draft()).json()["draft"]["outline"]
    chinese = (await drafting.draft(**CHINESE)).json()["draft"]["outline"]
    assert chinese == said(english, "zh")
    assert "1. s1: apply_computer" in chinese


async def test_where_no_plan_comes_of_it_the_answer_says_why(drafting: Drafting) -> None:
    drafting.says("No.", "No.", "There is no tool for that.")
    told = (await drafting.draft()).json()
    assert told["draft"] is None
    assert told["reason"] == "The model says: “There is no tool for that.”"
    assert told["requests"] == 3


async def test_without_a_model_it_is_not_possible(drafting: Drafting) -> None:
    drafting.scene.app.models.default_model = None
    answer = await drafting.draft()
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("no model is named: set HOLDFAST_MODEL")


@pytest.mark.parametrize("role", ["viewer", "approver", "author"])
async def test_it_is_for_those_who_may_run_any_plan(drafting: Drafting, role: str) -> None:
    model = drafting.says(call(SKETCH_PLAN, **SKETCH))
    assert (await drafting.draft(role)).status_code == 403
    assert model.seen == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt": ""},
        {"prompt": 7},
        {"prompt": "x", "plan_id": "y"},
        {"prompt": "x" * 100_001},
        {"prompt": "x", "values": [1]},
    ],
)
async def test_what_is_no_request_is_refused(drafting: Drafting, body: dict[str, Any]) -> None:
    model = drafting.says(call(SKETCH_PLAN, **SKETCH))
    answer = await drafting.scene.admin.post("/plans/draft", json=body)
    assert answer.status_code == 422
    assert model.seen == []


async def test_the_client_has_it_too(drafting: Drafting) -> None:
    script: Script = [call(SKETCH_PLAN, **SKETCH)]
    drafting.says(*script)
    token = drafting.scene.admin.headers["authorization"].partition(" ")[2]
    async with Client(drafting.scene.url, token) as client:
        told = await client.plans.draft("A computer for Will Zhang", values={"desk": "A-12"})
        assert told["draft"]["goal"] == "A computer for Will Zhang"
        drafting.scene.app.models.default_model = None
        with pytest.raises(NotAllowed, match="no model is named"):
            await client.plans.draft("A computer for Will Zhang")


async def open_question(client: httpx.AsyncClient) -> dict[str, Any]:
    [found] = (await client.get("/interactions?status=open")).json()["interactions"]
    return dict(found)


async def test_an_instance_without_a_plan_id_has_one_drawn_up_and_an_approver_decides(
    drafting: Drafting,
) -> None:
    steps = [{**SKETCH["steps"][0], "args": {"employee": "Will Zhang", "computer_model": "X1"}}]
    drafting.says("None of them.", call(SKETCH_PLAN, **{**SKETCH, "steps": steps}))
    operator = await drafting.scene.as_a("operator")
    approver = await drafting.scene.as_a("approver")
    started = await operator.post("/instances", json={"prompt": "A computer, as agreed"})
    assert started.status_code == 201, started.text
    instance = await drafting.scene.app.instance(started.json()["id"])
    assert await instance.wait_until_settled(30) == "pause"
    question = await open_question(operator)
    path = f"/interactions/{question['requestId']}/answer"
    refused = await operator.post(path, json={"selectedOptionId": "confirm"})
    assert refused.status_code == 403, "it is for the role approver"
    assert (await approver.post(path, json={"selectedOptionId": "confirm"})).status_code == 200
    assert await instance.wait_until_settled(30) == "pause"
    consent = await open_question(approver)
    path = f"/interactions/{consent['requestId']}/answer"
    assert (await approver.post(path, json={"selectedOptionId": "approve"})).status_code == 200
    assert await instance.wait_for_completion(30) == "done"
    assert drafting.office.count("apply_computer") == 1
