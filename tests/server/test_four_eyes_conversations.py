"""Four eyes in conversations: who spoke, answered or had it go on does not approve its calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from four_eyes_scene import APPROVE, FOUR_EYES, Four, people
from server_scene import serving

from holdfast import Holdfast
from holdfast.core.run.state import RunState
from holdfast.errors import PermanentError
from holdfast.testing.model_script import Entry, Seen, call, say
from holdfast.testing.scripted_model import ScriptedModel

PATIENCE = 30.0
MAIL = {"id": "mail", "description": "Mail", "type": "mail"}
PAY = {"id": "pay", "description": "Pay", "type": "pay", "args": {"amount": 5}}
TASKS: dict[str, list[dict[str, Any]]] = {
    "pay": [PAY],
    "lack": [{**PAY, "args": {}}],
    "mail": [MAIL, {**PAY, "dependencies": ["mail"]}],
    "both": [MAIL, PAY],
}


class Till:
    def __init__(self, app: Holdfast) -> None:
        self.paid: list[int] = []
        self.down = True
        app.tool(self.pay, approval="require")
        app.tool(self.mail)
        app.models.default_model = ScriptedModel(self.answers)

    def pay(self, amount: int) -> dict[str, Any]:
        self.paid.append(amount)
        return {"paid": amount}

    def mail(self) -> dict[str, Any]:
        if self.down:
            raise PermanentError("the mail server is down")
        return {"sent": True}

    def answers(self, seen: Seen) -> Entry:
        if any(one.name == "plan_tasks" for one in seen.tools):
            return call("plan_tasks", tasks=TASKS[seen.asked.split()[-1]])
        return say("Done.")


@pytest.fixture
def till(app: Holdfast) -> Till:
    return Till(app)


@pytest.fixture
async def four(app: Holdfast, till: Till) -> AsyncIterator[Four]:
    async with serving(app, FOUR_EYES) as scene:
        yield await people(scene)


async def pursue(four: Four, who: httpx.AsyncClient, goal: str, **more: Any) -> str:
    started = await who.post("/conversations", json={"input": goal, **more})
    assert started.status_code == 201, started.text
    return str(started.json()["id"])


async def until(four: Four, run_id: str, there: Callable[[RunState], bool]) -> None:
    state = await four.scene.app.engine.wait_for(run_id, there, PATIENCE)
    assert there(state), state.status


async def asked(four: Four, run_id: str, kind: str = "TOOL_APPROVAL") -> dict[str, Any]:
    """The question of this type, once it is asked, as ann sees it."""

    def waits(state: RunState) -> bool:
        questions = (state.questions[one] for one in state.open_questions)
        return any(one.request.type == kind for one in questions)

    await until(four, run_id, waits)
    return await four.open(run_id, kind)


async def answer(
    who: httpx.AsyncClient, question: dict[str, Any], **body: Any
) -> tuple[int, dict[str, Any]]:
    given = await who.post(f"/interactions/{question['requestId']}/answer", json=body)
    return given.status_code, given.json()


async def alone(four: Four, till: Till, run_id: str, why: str) -> None:
    """Ann does not get it through, and is told why; bob, who had no say in it, does."""
    question = await asked(four, run_id)
    assert question["mayAnswer"] is False
    assert "ann" in question["wantedBy"]
    told = f"{why}, and so want this call: another person must approve it"
    assert question["mayNotBecause"] == told
    status, problem = await answer(four.ann, question, **APPROVE)
    assert status == 403
    assert told in problem["message"]
    assert till.paid == []
    assert (await answer(four.bob, question, **APPROVE))[0] == 200
    await until(four, run_id, lambda _: bool(till.paid))


async def test_who_pursues_a_goal_does_not_approve_its_calls(four: Four, till: Till) -> None:
    run_id = await pursue(four, four.ann, "pay")
    await alone(four, till, run_id, "you started this run")
    assert till.paid == [5]


async def test_who_sends_a_further_message_does_not_approve(four: Four, till: Till) -> None:
    run_id = await pursue(four, four.will, "mail")
    await until(four, run_id, lambda one: one.status == "error")
    said = await four.ann.post(f"/conversations/{run_id}/messages", json={"input": "pay"})
    assert said.status_code == 200, said.text
    await alone(four, till, run_id, "you spoke in this run")


async def test_who_fills_in_a_tasks_form_does_not_approve(four: Four, till: Till) -> None:
    run_id = await pursue(four, four.will, "lack")
    form = await asked(four, run_id, "MISSING_INFO")
    assert (await answer(four.ann, form, data={"amount": 900}))[0] == 200
    why = "you answered a question of this run with more than a yes or no"
    await alone(four, till, run_id, why)
    assert till.paid == [900]


async def test_who_confirms_the_tasks_does_not_approve_one(four: Four, till: Till) -> None:
    """There was another way to let them run: to have them changed."""
    run_id = await pursue(four, four.will, "pay", confirm_tasks=True)
    tasks = await asked(four, run_id, "USER_CHOICE")
    assert (await answer(four.ann, tasks, selectedOptionId="run"))[0] == 200
    why = "you answered a question of this run with more than a yes or no"
    await alone(four, till, run_id, why)


async def test_who_edits_a_tasks_call_does_not_approve_it(four: Four, till: Till) -> None:
    run_id = await pursue(four, four.will, "pay")
    first = await asked(four, run_id)
    assert (await answer(four.ann, first, **APPROVE, data={"amount": 900}))[0] == 200
    why = "you answered a question of this run with more than a yes or no"
    await alone(four, till, run_id, why)
    assert till.paid == [900]


@pytest.mark.parametrize(("goal", "failed"), [("mail", "retry"), ("both", "skip")])
async def test_who_has_a_failed_turn_go_on_does_not_approve(
    four: Four, till: Till, goal: str, failed: str
) -> None:
    run_id = await pursue(four, four.will, goal)
    await until(four, run_id, lambda one: one.status == "error")
    till.down = False
    resumed = await four.ann.post(f"/conversations/{run_id}/resume", json={"failed": failed})
    assert resumed.status_code == 200, resumed.text
    await alone(four, till, run_id, "you had this run go on")


async def test_who_resumes_a_paused_one_does_not_approve(four: Four, till: Till) -> None:
    run_id = await pursue(four, four.will, "pay")
    await asked(four, run_id)
    for path in ("pause", "resume"):
        done = await four.ann.post(f"/conversations/{run_id}/{path}")
        assert done.status_code == 200, done.text
    await alone(four, till, run_id, "you had this run go on")
