"""Conversations over HTTP: the server pursues a goal, whoever goes away, and after a restart."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import forget
from server_scene import Scene, serving

from holdfast import Holdfast
from holdfast.core.conversation.state import ConversationState
from holdfast.core.run.state import RunState
from holdfast.runtime.machines import as_conversation
from holdfast.testing.model_script import Entry, Seen, call
from holdfast.testing.scripted_model import ScriptedModel

PATIENCE = 30.0
GOAL = {"input": "帮我分析销售数据"}
TASKS = [
    {"id": "load", "description": "load", "type": "work", "priority": 1},
    {
        "id": "sum",
        "description": "sum",
        "type": "work",
        "priority": 2,
        "dependencies": ["load"],
    },
]


def plans_two_tasks(seen: Seen) -> Entry:
    return call("plan_tasks", tasks=TASKS)


class Shop:
    """Where the tasks are done; each ends only when it is let through."""

    def __init__(self) -> None:
        self.done = 0
        self.begun = asyncio.Event()
        self.through = asyncio.Event()

    async def work(self, task: str = "") -> dict[str, Any]:
        self.begun.set()
        await self.through.wait()
        self.done += 1
        return {"did": self.done}


def furnish(app: Holdfast, *, idempotent: bool = True, approval: str = "auto") -> Shop:
    shop = Shop()
    app.tool(shop.work, idempotent=idempotent, approval=approval)
    app.models.default_model = ScriptedModel(plans_two_tasks)
    return shop


@pytest.fixture
def shop(app: Holdfast) -> Shop:
    return furnish(app)


@pytest.fixture
async def scene(app: Holdfast, shop: Shop) -> AsyncIterator[Scene]:
    async with serving(app) as scene:
        yield scene


async def until(scene: Scene, run_id: str, state: str) -> ConversationState:
    def there(run: RunState) -> bool:
        return as_conversation(run).phase == state

    found = as_conversation(await scene.app.engine.wait_for(run_id, there, PATIENCE))
    assert found.phase == state, (found.phase, found.error)
    return found


async def begin(scene: Scene, **given: Any) -> str:
    answer = await scene.admin.post("/conversations", json={**GOAL, **given})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def begun(shop: Shop) -> None:
    async with asyncio.timeout(PATIENCE):
        await shop.begun.wait()


async def test_a_goal_is_pursued_without_anybody_watching(scene: Scene, shop: Shop) -> None:
    shop.through.set()
    run_id = await begin(scene)
    assert run_id == "conv_000001"
    await until(scene, run_id, "completed")
    shown = (await scene.admin.get(f"/conversations/{run_id}")).json()
    assert (shown["status"], shown["state"], shown["progress"]) == ("done", "completed", 1.0)
    assert [(one["id"], one["status"]) for one in shown["tasks"]] == [
        ("load", "completed"),
        ("sum", "completed"),
    ]
    assert shown["tasks"][1]["result"] == {"did": 2}
    assert shown["started_by"] == "some admin"
    [listed] = (await scene.admin.get("/conversations")).json()["conversations"]
    assert (listed["id"], listed["completed_tasks"]) == (run_id, 2)


async def test_the_next_goal_waits_for_the_one_before(scene: Scene, shop: Shop) -> None:
    run_id = await begin(scene)
    await begun(shop)
    path = f"/conversations/{run_id}/messages"
    assert (await scene.admin.post(path, json={"input": "another"})).status_code == 409
    shop.through.set()
    await until(scene, run_id, "completed")
    again = await scene.admin.post(path, json={"input": "another"})
    assert again.status_code == 200, again.text
    await scene.app.engine.wait_for(run_id, lambda state: state.status == "done", PATIENCE)
    shown = (await scene.admin.get(f"/conversations/{run_id}")).json()
    assert (shown["turn"], shown["input"], shop.done) == (2, "another", 4)


async def test_a_pause_holds_until_the_resume(scene: Scene, shop: Shop) -> None:
    run_id = await begin(scene)
    await begun(shop)
    paused = await scene.admin.post(f"/conversations/{run_id}/pause")
    assert paused.json()["state"] == "paused"
    shop.through.set()
    await scene.app.engine.wait_for(
        run_id, lambda state: not state.in_flight and shop.done == 1, PATIENCE
    )
    shown = (await scene.admin.get(f"/conversations/{run_id}")).json()
    assert (shown["state"], shown["completed_tasks"], shop.done) == ("paused", 0, 1)
    assert (await scene.admin.post(f"/conversations/{run_id}/pause")).status_code == 409
    assert (await scene.admin.post(f"/conversations/{run_id}/resume")).status_code == 200
    await until(scene, run_id, "completed")
    assert shop.done == 2
    assert (await scene.admin.post(f"/conversations/{run_id}/resume")).status_code == 409


async def test_a_cancelled_conversation_does_nothing_more(scene: Scene, shop: Shop) -> None:
    run_id = await begin(scene)
    await begun(shop)
    body = {"reason": "not needed"}
    assert (await scene.admin.post(f"/conversations/{run_id}/cancel", json=body)).status_code == 200
    shop.through.set()
    await scene.app.engine.wait_for(run_id, lambda state: state.status == "cancelled", PATIENCE)
    assert shop.done <= 1
    more = await scene.admin.post(f"/conversations/{run_id}/messages", json={"input": "go on"})
    assert more.status_code == 409


async def test_after_a_failure_the_next_goal_starts_over(scene: Scene, shop: Shop) -> None:
    shop.through.set()
    scene.app.models.default_model = ScriptedModel(["I would rather not."] * 9)
    run_id = await begin(scene)
    await until(scene, run_id, "error")
    scene.app.models.default_model = ScriptedModel(plans_two_tasks)
    again = await scene.admin.post(f"/conversations/{run_id}/messages", json=GOAL)
    assert again.status_code == 200, again.text
    await until(scene, run_id, "completed")
    assert shop.done == 2


async def test_a_goal_under_one_key_is_pursued_once(scene: Scene, shop: Shop) -> None:
    shop.through.set()
    key = {"Idempotency-Key": "goal-1"}
    answers = [await scene.admin.post("/conversations", json=GOAL, headers=key) for _ in range(3)]
    assert {one.json()["id"] for one in answers} == {"conv_000001"}
    await until(scene, "conv_000001", "completed")
    assert shop.done == 2


async def test_an_answer_that_was_lost_is_given_from_the_conversation_as_it_is(
    scene: Scene, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(scene.services.requests), "_keep", forget)
    shop.through.set()
    for path in ("/conversations", "/conversations/conv_000001/messages"):
        key = {"Idempotency-Key": "lost-1"}
        first = await scene.admin.post(path, json=GOAL, headers=key)
        await scene.app.engine.wait_for(
            "conv_000001", lambda state: state.status == "done", PATIENCE
        )
        again = await scene.admin.post(path, json=GOAL, headers=key)
        assert (again.status_code, again.json()["id"]) == (first.status_code, "conv_000001")
        assert again.json()["state"] == "completed"
    assert shop.done == 4


async def test_names_are_given_once(scene: Scene, shop: Shop) -> None:
    shop.through.set()
    assert await begin(scene, id="sales") == "sales"
    taken = await scene.admin.post("/conversations", json={**GOAL, "id": "sales"})
    assert taken.status_code == 409
    for name in ("conv_000009", "../sales", ""):
        refused = await scene.admin.post("/conversations", json={**GOAL, "id": name})
        assert refused.status_code == 422, name
    assert (await scene.admin.post("/conversations", json={"input": " "})).status_code == 422
    assert (await scene.admin.get("/conversations/marketing")).status_code == 404


async def test_who_may_do_what(scene: Scene, shop: Shop) -> None:
    run_id = await begin(scene)
    viewer = await scene.as_a("viewer")
    assert (await viewer.post("/conversations", json=GOAL)).status_code == 403
    for deed in ("pause", "resume", "cancel"):
        assert (await viewer.post(f"/conversations/{run_id}/{deed}")).status_code == 403
    assert (await viewer.get(f"/conversations/{run_id}")).status_code == 200
    guest = await scene.somebody(grants={"clerk": ["admin"]}, name="guest")
    assert (await guest.get(f"/conversations/{run_id}")).status_code == 404
    assert (await guest.get("/conversations")).json()["conversations"] == []
    shop.through.set()


async def test_a_snapshot_is_what_another_engine_needs(scene: Scene, shop: Shop) -> None:
    shop.through.set()
    run_id = await begin(scene)
    await until(scene, run_id, "completed")
    snapshot = (await scene.admin.get(f"/conversations/{run_id}/snapshot")).json()
    assert (snapshot["state"], snapshot["progress"]) == ("completed", 1.0)
    assert [one["id"] for one in snapshot["tasks"]] == ["load", "sum"]


async def test_the_work_of_a_runner_is_put_down_to_no_caller(scene: Scene, shop: Shop) -> None:
    shop.through.set()
    run_id = await begin(scene)
    await until(scene, run_id, "completed")
    deeds = [one.record for one in await scene.app.journal.audit() if one.record.run_id == run_id]
    assert [(one.who, one.action) for one in deeds] == [
        ("some admin", "started"),
        ("some admin", "said"),
    ]


async def test_one_that_waits_for_people_is_let_go_of_and_goes_on_with_the_answer(
    tmp_path: Path,
) -> None:
    """Not even a restart in between is noticed; whoever only waits occupies nobody."""
    request_id = ""
    for life in range(2):
        app = Holdfast(tmp_path)
        shop = furnish(app, approval="require")
        shop.through.set()
        async with serving(app) as scene:
            if not life:
                await begin(scene)
            await let_go(scene)
            if not life:
                [question] = (await scene.admin.get("/interactions")).json()["interactions"]
                request_id = question["requestId"]
                continue
            path = f"/interactions/{request_id}/answer"
            answer = await scene.admin.post(path, json={"selectedOptionId": "approve"})
            assert answer.status_code == 200, answer.text
            await scene.app.engine.wait_for(
                "conv_000001", lambda state: as_conversation(state).completed == 1, PATIENCE
            )
            assert shop.done == 1


async def let_go(scene: Scene) -> None:
    """Until the one conversation waits for a person, and nobody pursues it."""
    await scene.app.engine.wait_for("conv_000001", lambda state: state.status == "pause", PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while len(scene.services.supervisor):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)


async def test_a_server_takes_up_what_another_left(tmp_path: Path) -> None:
    app = Holdfast(tmp_path)
    first = furnish(app)
    async with serving(app) as scene:
        run_id = await begin(scene)
        paused_id = await begin(scene)
        await begun(first)
        await until(scene, paused_id, "executing")
        await scene.admin.post(f"/conversations/{paused_id}/pause")
    assert first.done == 0
    app = Holdfast(tmp_path)
    second = furnish(app)
    second.through.set()
    async with serving(app) as scene:
        await until(scene, run_id, "completed")
        assert second.done == 2
        assert (await until(scene, paused_id, "paused")).completed == 0
        assert (await scene.admin.post(f"/conversations/{paused_id}/resume")).status_code == 200
        await until(scene, paused_id, "completed")
        assert second.done == 4
        assert len(scene.services.supervisor) <= 1


@pytest.mark.own_store  # a worker goes on with it when the server has closed
async def test_what_cannot_be_repeated_is_waited_for_when_the_server_closes(
    tmp_path: Path,
) -> None:
    app = Holdfast(tmp_path)
    shop = furnish(app, idempotent=False)
    async with app:
        async with serving(app) as scene:
            run_id = await begin(scene)
            await begun(shop)
            closing = asyncio.create_task(scene.services.supervisor.close())
            await asyncio.sleep(0)
            shop.through.set()
            await closing
        assert shop.done == 1
        state = as_conversation(await app.engine.state(run_id))
        assert not state.open_questions
        assert state.in_flight == 0


@pytest.mark.parametrize("key", ["conv*", "conversation", "c*", "plan:*", "agent:*"])
async def test_a_grant_for_plans_covers_no_conversation(key: str, scene: Scene, shop: Shop) -> None:
    path = f"/conversations/{await begin(scene)}"
    other = await scene.somebody(grants={key: ["admin"]}, name="other")
    assert (await other.get(path)).status_code == 404
    assert (await other.get("/conversations")).json()["conversations"] == []
    assert (await other.post("/conversations", json=GOAL)).status_code == 403
    granted = await scene.somebody(grants={"conversation:*": ["operator"]}, name="granted")
    assert (await granted.get(path)).status_code == 200
    shop.through.set()
