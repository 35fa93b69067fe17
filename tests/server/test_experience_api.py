"""What was learned of failures over HTTP, what people make of lessons, and alerts as they come."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from hostile_scene import BY_ID
from kept_lessons import learned, recovered
from listeners import listening_to, seen
from server_scene import GRANT_ACCESS, Office, Scene, serving, settled, start

from holdfast import Client, Holdfast
from holdfast.core.storing import plan_digest
from holdfast.i18n.catalogue import worded
from holdfast.model.retry import Cause
from holdfast.repair import alerts
from holdfast.views.lessons import Lessons
from holdfast.views.stories.repairs import CAUSES

CHINESE = {"accept-language": "zh-CN,zh;q=0.9"}
NOW = 1_800_000_000.0


async def lesson_of(scene: Scene, wins: int = 3) -> str:
    """One of `grant_access`, as old as its wins."""
    return await learned(scene.app, "grant_access", "L001", BY_ID, wins)


async def shown(client: httpx.AsyncClient, path: str, **how: Any) -> dict[str, Any]:
    answer = await client.get(path, **how)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def told(client: httpx.AsyncClient, path: str, **how: Any) -> dict[str, Any]:
    answer = await client.post(path, **how)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


# How calls recover.


async def test_how_calls_recover_is_told_by_tool_and_failure(scene: Scene) -> None:
    await recovered(scene.app, "grant_access", 24, after=2.0)
    found = await shown(await scene.as_a("viewer"), "/experience")
    [curve] = found["curves"]
    assert (curve["tool"], curve["cause"], curve["cases"]) == ("grant_access", "outage", 24)
    assert curve["told"] == CAUSES[Cause.OUTAGE]
    assert [one["within"] for one in curve["chances"]] == [0.5, 2, 8, 30, 120, 600, 1800]
    chances = [one["chance"] for one in curve["chances"]]
    assert chances == sorted(chances)
    assert chances[1] > 0.9
    [took] = found["durations"]
    assert (took["tool"], took["calls"]) == ("grant_access", 24)
    assert 0.2 < took["usual"] < 0.6
    assert found["server_time"] >= curve["last_seen"]
    chinese = await shown(scene.admin, "/experience", headers=CHINESE)
    assert chinese["curves"][0]["told"] == worded(CAUSES[Cause.OUTAGE], "zh")


async def test_what_was_learned_of_all_runs_is_for_those_who_may_read_all(scene: Scene) -> None:
    await recovered(scene.app, "grant_access", 24, after=2.0)
    guest = await scene.somebody(grants={"apply_*": ["admin"]}, name="guest")
    refused = await guest.get("/experience")
    assert refused.status_code == 403
    assert "grant_access" not in refused.text


async def test_where_nothing_has_failed_nothing_is_known(scene: Scene) -> None:
    await start(scene)
    found = await shown(scene.admin, "/experience")
    assert (found["curves"], found["durations"]) == ([], [])
    assert (await shown(scene.admin, "/lessons"))["lessons"] == []


async def test_what_a_run_has_taught_is_there_at_once(scene: Scene, office: Office) -> None:
    office.failures = 1
    instance_id = await start(scene, "grant_access")
    assert await settled(scene, instance_id) == "error"
    await told(scene.admin, f"/instances/{instance_id}/resume")
    assert await settled(scene, instance_id) == "done"
    keeper = scene.app.engine.learning.keeper
    await seen(lambda: bool(keeper.experience.durations))
    [took] = (await shown(scene.admin, "/experience"))["durations"]
    assert (took["tool"], took["calls"], took["usual"]) == ("grant_access", 1, None)


# Lessons.


async def test_lessons_are_told_in_words_of_their_plan(scene: Scene) -> None:
    lesson_id = await lesson_of(scene)
    [lesson] = (await shown(await scene.as_a("viewer"), "/lessons"))["lessons"]
    assert (lesson["lesson_id"], lesson["plan_id"]) == (lesson_id, "grant_access")
    assert (lesson["tool"], lesson["listener_ids"]) == ("grant_access", ["L001"])
    assert (lesson["state"], lesson["wins"], lesson["losses"]) == ("proven", 3, 0)
    assert lesson["words"] == ['L001 passes employee = "WZ001" instead of "Will Zhang"']
    assert lesson["runs"] == ["inst_000003", "inst_000002", "inst_000001"]
    assert (lesson["level"], lesson["outdated"]) == ("act", False)
    chinese = await shown(scene.admin, "/lessons", headers=CHINESE)
    [view] = await Lessons.of(scene.app, scene.app.engine.learning.keeper).all()
    assert chinese["lessons"][0]["words"] == [worded(one, "zh") for one in view.words]


async def test_a_lesson_of_a_plan_that_has_changed_says_what_it_did(
    scene: Scene, app: Holdfast
) -> None:
    await lesson_of(scene)
    app.load_plan_text(GRANT_ACCESS.replace("Will Zhang", "the new one"))
    [lesson] = (await shown(scene.admin, "/lessons"))["lessons"]
    assert lesson["listener_ids"] == []
    assert lesson["words"] == ['the listener passes employee = "WZ001"']


async def test_lessons_of_plans_that_one_may_not_read_do_not_exist(scene: Scene) -> None:
    lesson_id = await lesson_of(scene)
    elsewhere = await scene.somebody(grants={"apply_*": ["admin"]}, name="elsewhere")
    assert (await shown(elsewhere, "/lessons"))["lessons"] == []
    for what in ("pin", "retire", "promote"):
        answer = await elsewhere.post(f"/lessons/{lesson_id}/{what}")
        assert answer.status_code == 404, answer.text
        viewer = await scene.as_a("viewer")
        answer = await viewer.post(f"/lessons/{lesson_id}/{what}")
        assert answer.status_code == 403
        assert "author" in answer.json()["detail"]
    author = await scene.somebody(grants={"grant_*": ["author"]}, name="the author")
    assert (await told(author, f"/lessons/{lesson_id}/pin"))["lesson"]["state"] == "pinned"


async def test_an_author_pins_and_retires_lessons_and_the_audit_knows(scene: Scene) -> None:
    lesson_id = await lesson_of(scene, wins=1)
    author = await scene.as_a("author")
    pinned = await told(author, f"/lessons/{lesson_id}/pin")
    assert pinned["lesson"]["state"] == "pinned"
    retired = await told(author, f"/lessons/{lesson_id}/retire")
    assert retired["lesson"]["state"] == "retired"
    assert (retired["lesson"]["wins"], retired["lesson"]["losses"]) == (1, 0)
    [lesson] = (await shown(author, "/lessons"))["lessons"]
    assert lesson["state"] == "retired"
    records = [one.record for one in await scene.app.journal.audit()]
    said = [(one.action, one.who, one.subject) for one in records if "lesson" in one.action]
    assert said == [
        ("pinned_lesson", "some author", lesson_id),
        ("retired_lesson", "some author", lesson_id),
    ]


@pytest.mark.parametrize("what", ["pin", "retire", "promote"])
async def test_a_lesson_that_is_not_there_is_404(scene: Scene, what: str) -> None:
    answer = await scene.admin.post(f"/lessons/{'0' * 16}/{what}")
    assert answer.status_code == 404
    assert "0" * 16 in answer.json()["detail"]
    answer = await scene.admin.post(f"/lessons/nothing/{what}")
    assert answer.status_code == 422


async def test_a_promoted_lesson_is_a_plan_that_can_be_registered(
    scene: Scene, app: Holdfast
) -> None:
    lesson_id = await lesson_of(scene)
    before = app.engine.definitions.current("grant_access")
    author = await scene.as_a("author")
    found = await told(author, f"/lessons/{lesson_id}/promote")
    assert (found["plan_id"], found["base"]) == ("grant_access", before.digest)
    assert found["listener_ids"] == ["L001"]
    assert found["operations"] == [{**BY_ID, "listener_id": "L001"}]
    assert found["words"] == ['L001 passes employee = "WZ001" instead of "Will Zhang"']
    assert app.engine.definitions.current("grant_access") is before, "nothing was registered"

    admin = scene.admin
    made = await admin.post("/plans", json={"source": found["source"]})
    assert made.status_code == 201, made.text
    assert made.json()["digest"] == found["digest"]
    plan = app.engine.definitions.current("grant_access").plan
    assert plan_digest(plan) == found["digest"]
    assert plan.listeners[0].action.args == {"employee": "WZ001"}  # type: ignore[union-attr]
    answer = await author.post(f"/lessons/{lesson_id}/promote")
    assert answer.status_code == 409
    assert "the plan grant_access has changed" in answer.json()["detail"]


async def test_every_listener_that_is_what_the_lesson_knows_is_changed(
    scene: Scene, app: Holdfast
) -> None:
    twice = GRANT_ACCESS.replace(
        "  - listener_id: L002",
        """  - listener_id: L003
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: grant_access
    args: {employee: Will Zhang}
    retry: {attempts: 1}
    success_output: {task_id: "002", status: Done}
  - listener_id: L002""",
    )
    app.load_plan_text(twice)
    lesson_id = await lesson_of(scene)
    found = await told(scene.admin, f"/lessons/{lesson_id}/promote")
    assert found["listener_ids"] == ["L001", "L003"]
    assert [one["listener_id"] for one in found["operations"]] == ["L001", "L003"]
    app.load_plan_text(found["source"])


async def test_a_lesson_of_a_plan_that_is_gone_is_promoted_nowhere(
    scene: Scene, app: Holdfast
) -> None:
    lesson_id = await lesson_of(scene)
    del app.engine.definitions._plans["grant_access"]
    answer = await scene.admin.post(f"/lessons/{lesson_id}/promote")
    assert answer.status_code == 404
    assert "the plan grant_access is not here any more" in answer.json()["detail"]
    [lesson] = (await shown(scene.admin, "/lessons"))["lessons"]
    assert lesson["listener_ids"] == []


async def test_a_lesson_that_calls_a_tool_that_is_gone_is_promoted_nowhere(
    scene: Scene, app: Holdfast
) -> None:
    other = {"op": "use_tool", "listener_id": "@listener", "tool": "let_in", "args": {}}
    lesson_id = await learned(app, "grant_access", "L001", other, 3)
    answer = await scene.admin.post(f"/lessons/{lesson_id}/promote")
    assert answer.status_code == 409
    assert answer.json()["detail"] == "there is no tool let_in any more"


async def test_the_client_has_a_method_for_each(scene: Scene) -> None:
    lesson_id = await lesson_of(scene)
    await recovered(scene.app, "grant_access", 1, after=2.0)
    _, secret = await scene.services.tokens.issue("author", "person", ["author"], None)
    async with Client(scene.url, secret) as client:
        assert len((await client.experience.get())["curves"]) == 1
        [lesson] = (await client.lessons.list(language="zh"))["lessons"]
        assert lesson["lesson_id"] == lesson_id
        assert (await client.lessons.pin(lesson_id))["lesson"]["state"] == "pinned"
        assert (await client.lessons.retire(lesson_id))["lesson"]["state"] == "retired"
        assert (await client.lessons.promote(lesson_id))["plan_id"] == "grant_access"


# Alerts.


def raise_alert(scene: Scene) -> None:
    told = alerts.outage("grant_access", 5, "inst_000005", NOW)
    scene.app.engine.learning._alert(told)


async def test_alerts_are_counted_by_kind(scene: Scene) -> None:
    raise_alert(scene)
    raise_alert(scene)
    lines = (await scene.admin.get("/metrics")).text.splitlines()
    assert "# TYPE holdfast_alerts_total counter" in lines
    assert 'holdfast_alerts_total{kind="outage"} 2' in lines
    assert 'holdfast_alerts_total{kind="lesson_retired"} 0' in lines


async def test_who_follows_everything_is_told_of_alerts_as_they_come(scene: Scene) -> None:
    viewer = await scene.as_a("viewer")
    async with asyncio.timeout(30), listening_to(viewer, "/events") as listener:
        await listener.block()
        raise_alert(scene)
        heard = (await listener.until("alert"))[-1]
        assert heard.id is None, "it stands in no journal, and moves no cursor"
        assert heard.data == {
            "kind": "outage",
            "message": "grant_access is out: 5 runs have failed alike within a minute; one goes on "
            "trying",
            "about": "grant_access",
            "run_id": "inst_000005",
            "at": NOW,
        }
        instance_id = await start(scene)
        told = await listener.until("RunStarted")
        assert told[-1].data["run_id"] == instance_id


async def test_alerts_are_not_for_who_sees_some_runs_only(scene: Scene) -> None:
    guest = await scene.somebody(grants={"apply_*": ["operator"]}, name="guest")
    async with asyncio.timeout(30), listening_to(guest, "/events") as listener:
        await listener.block()
        raise_alert(scene)
        await start(scene)
        assert "alert" not in {one.event for one in await listener.until("RunStarted")}


async def test_the_client_hears_of_alerts_between_events(scene: Scene) -> None:
    _, secret = await scene.services.tokens.issue("watch", "person", ["viewer"], None)
    async with (
        asyncio.timeout(30),
        Client(scene.url, secret) as client,
        aclosing(client.all_events()) as events,
    ):
        waiting = asyncio.ensure_future(anext(events))
        await seen(lambda: scene.services.feed.clients > 0)
        raise_alert(scene)
        event = await waiting
    assert (event.type, event.id, event.data["kind"]) == ("alert", None, "outage")


async def test_a_server_that_has_closed_is_told_of_no_more_alerts(app: Holdfast) -> None:
    async with serving(app) as scene:
        assert scene.services.feed.tell in app.engine.learning.listeners
    assert app.engine.learning.listeners == []
