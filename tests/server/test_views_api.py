"""Runs as the read model has them, over HTTP: folded here, so that a client decodes no event."""

from __future__ import annotations

import pytest
from listeners import Listener, all_of, listening_to
from server_scene import Scene, start
from test_run_events import PARENT, finished

from holdfast import Holdfast
from holdfast.model.run import RunStatus
from holdfast.views.reader import RunReader
from holdfast.views.records import RunView, TimelineEntry
from holdfast.views.wire import from_json


async def test_a_run_is_read_as_a_view(scene: Scene) -> None:
    run_id = await start(scene)
    told = (await scene.admin.get(f"/runs/{run_id}/view")).json()
    view = from_json(RunView, {**told, "of_a_later_version": 1})
    assert view == await RunReader.of(scene.app).run(run_id)
    assert (view.status, view.rests) == (RunStatus.PAUSE, True)
    assert view.plan is not None
    assert view.plan.context["paused_listener_id"] == f"{run_id}_L001"


async def test_a_timeline_that_is_over_is_not_read_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that comes back after the end is sent away without a look at the records."""

    async def following(*_: object) -> None:
        raise AssertionError("nothing is to be read")

    run_id, last = await finished(scene)
    monkeypatch.setattr(RunReader, "following", following)
    path = f"/runs/{run_id}/timeline/stream?after={last}"
    assert (await scene.admin.get(path)).status_code == 204


async def test_a_view_is_in_the_readers_language(scene: Scene) -> None:
    """Its words are; what a program compares, and what people wrote, is the same for all."""
    run_id = await start(scene)
    path, chinese = f"/runs/{run_id}/view", {"accept-language": "zh-CN,zh;q=0.9"}
    english, told = [(await scene.admin.get(path, headers=one)).json() for one in ({}, chinese)]
    assert [one["words"] for one in english["plan"]["tasks"]] == ["waiting", "waiting"]
    assert [one["words"] for one in told["plan"]["tasks"]] == ["等待中", "等待中"]
    assert [one["words"] for one in told["plan"]["steps"]] == ["等待中"]
    for view in (english, told):
        for one in (*view["plan"]["tasks"], *view["plan"]["steps"]):
            del one["words"]
    assert told == english
    async with scene.admin.stream(
        "GET", f"/runs/{run_id}/timeline/stream?views=true", headers=chinese
    ) as response:
        heard = await Listener(response).until("view")
    assert [one["words"] for one in heard[-1].data["plan"]["tasks"]] == ["等待中", "等待中"]


async def test_its_timeline_comes_in_pages(scene: Scene) -> None:
    run_id, last = await finished(scene)
    seen, after = list[TimelineEntry](), 0
    while after is not None:
        params = {"after": after, "limit": 3}
        page = (await scene.admin.get(f"/runs/{run_id}/timeline", params=params)).json()
        seen += [from_json(TimelineEntry, one) for one in page["entries"]]
        after = page["next"]
    assert [one.seq for one in seen] == [*range(1, last + 1)]
    whole = (await scene.admin.get(f"/runs/{run_id}/timeline")).json()["entries"]
    assert [one["what"] for one in whole] == [one.what for one in seen]
    assert (seen[-1].status, seen[-1].rests) == (RunStatus.DONE, True)
    history = (await scene.admin.get(f"/runs/{run_id}/history")).json()["events"]
    assert [one.data for one in seen] == [one["data"] for one in history]


async def test_a_timeline_is_in_the_readers_language(scene: Scene) -> None:
    run_id, last = await finished(scene)
    path, chinese = f"/runs/{run_id}/timeline", {"accept-language": "zh-CN,zh;q=0.9"}
    english = (await scene.admin.get(path)).json()["entries"]
    entries = (await scene.admin.get(path, headers=chinese)).json()["entries"]
    assert [(one["who"], one["what"]) for one in (english[1], entries[1])] == [
        ("plan", "asks a person: apply_computer needs more (电脑型号)"),
        ("计划", "询问人员：apply_computer 还缺少信息 (电脑型号)"),
    ]
    assert entries[1]["moves"] == ["002 Ordered：等待中 (等待人工处理)"]
    assert [one["data"] for one in entries] == [one["data"] for one in english]
    async with scene.admin.stream("GET", f"{path}/stream", headers=chinese) as response:
        live = await Listener(response).rest()
    told = [one.data for one in live if one.event == "entry"]
    assert [(one["seq"], one["what"]) for one in told] == [
        (one["seq"], one["what"]) for one in entries
    ]
    assert len(told) == last


async def test_a_finished_run_is_told_live_to_its_end(scene: Scene) -> None:
    run_id, last = await finished(scene)
    path = f"/runs/{run_id}/timeline/stream"
    events = await all_of(scene.admin, path, views="true")
    entries = [from_json(TimelineEntry, one.data) for one in events if one.event == "entry"]
    assert [int(one.id or 0) for one in events if one.event == "entry"] == [*range(1, last + 1)]
    assert [one.seq for one in entries] == [*range(1, last + 1)]
    [view] = [from_json(RunView, one.data) for one in events if one.event == "view"]
    assert (view.version, view.status) == (last, RunStatus.DONE)
    assert events[-1].event == "end"
    again = await all_of(scene.admin, path, last=last - 1)
    assert [one.event for one in again] == ["entry", "end"]
    assert (await scene.admin.get(path, params={"after": last})).status_code == 204


async def test_a_follower_hears_of_the_questions_of_runs_below(scene: Scene, app: Holdfast) -> None:
    app.load_plan_text(PARENT)
    run_id = await start(scene, "parent")
    async with listening_to(scene.admin, f"/runs/{run_id}/timeline/stream") as heard:
        events = await heard.until("INTERACTION")
    assert events[-1].data["runId"] == f"{run_id}.L001.1"


async def test_who_may_not_read_a_run_gets_no_view_of_it(scene: Scene) -> None:
    run_id = await start(scene)
    stranger = await scene.somebody(grants={"viewer": ["grant_access"]})
    for path in ("view", "timeline", "timeline/stream"):
        assert (await stranger.get(f"/runs/{run_id}/{path}")).status_code == 404
