"""One run's events: from any place, live, with its questions, and to an end."""

from __future__ import annotations

import asyncio

import pytest
from chains import chain
from listeners import Heard, all_of, listening_to, recorded, seen
from server_scene import Scene, serving, settled, start

from holdfast import Holdfast
from holdfast.journal.port import Record
from holdfast.runtime.hub import PAGE
from holdfast.server.settings import ServerSettings
from holdfast.server.streams.frames import told

PARENT = """\
plan_id: parent
name: Has it done
main_task_id: "001"
tasks:
  - {task_id: "001", name: Has it done}
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: plan
    plan_id: apply_computer
    success_output: {task_id: "001", status: Done}
"""


async def finished(scene: Scene) -> tuple[str, int]:
    """A run that is over, and how many records it has."""
    run_id = await start(scene)
    params = {"provided_params": {"computer_model": "MacBook Pro"}}
    answer = await scene.admin.post(f"/instances/{run_id}/continue", json=params)
    assert answer.status_code == 200, answer.text
    assert await settled(scene, run_id) == "done"
    return run_id, await scene.app.journal.version(run_id)


def places(events: list[Heard]) -> list[int]:
    return [int(one.id) for one in events if one.id is not None]


async def test_a_finished_run_is_told_from_its_first_record_to_its_end(scene: Scene) -> None:
    run_id, last = await finished(scene)
    events = await all_of(scene.admin, f"/runs/{run_id}/events")
    assert places(events) == [*range(1, last + 1)]
    assert [one.event for one in events][:2] == ["RunStarted", "QuestionOpened"]
    assert events[0].data["type"] == "RunStarted"
    assert events[0].data["data"]["plan_id"] == "apply_computer"
    assert (events[-1].event, events[-1].id) == ("end", None)
    assert events[-1].data == {"run_id": run_id, "status": "done"}
    history = (await scene.admin.get(f"/runs/{run_id}/history")).json()["events"]
    assert [one.data for one in events[:-1]] == history


async def test_coming_back_at_every_place_misses_and_repeats_nothing(scene: Scene) -> None:
    run_id, last = await finished(scene)
    for cut in range(last):
        events = await all_of(scene.admin, f"/runs/{run_id}/events", last=cut)
        assert places(events) == [*range(cut + 1, last + 1)]
        asked = await all_of(scene.admin, f"/runs/{run_id}/events", after=cut)
        assert [one.fields for one in asked] == [one.fields for one in events]


async def test_whoever_comes_back_after_the_end_is_told_not_to(scene: Scene) -> None:
    run_id, last = await finished(scene)
    path = f"/runs/{run_id}/events"
    answer = await scene.admin.get(path, headers={"Last-Event-ID": str(last)})
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await scene.admin.get(path, params={"after": "now"})).status_code == 204


async def test_the_header_of_an_event_source_beats_the_address_it_first_asked_with(
    scene: Scene,
) -> None:
    run_id, last = await finished(scene)
    events = await all_of(scene.admin, f"/runs/{run_id}/events", last=last - 1, after=0)
    assert places(events) == [last]


async def test_a_newcomer_sees_what_is_asked_and_then_what_follows(scene: Scene) -> None:
    run_id = await start(scene)
    async with asyncio.timeout(30), listening_to(scene.admin, f"/runs/{run_id}/events") as one:
        question, *records = await one.until("QuestionOpened")
        assert (question.event, question.id) == ("INTERACTION", None)
        assert question.data["requestId"] == records[-1].data["data"]["request"]["request_id"]
        assert question.data["runId"] == run_id
        assert question.data["serverTime"] >= question.data["openedAt"]
        assert places(records) == [1, 2]
        params = {"provided_params": {"computer_model": "MacBook Pro"}}
        await scene.admin.post(f"/instances/{run_id}/continue", json=params)
        rest = await one.rest()
        assert places(rest) == [*range(3, 3 + len(rest) - 1)]
        assert rest[-1].event == "end"


async def test_from_now_on_means_the_open_questions_and_only_what_comes(scene: Scene) -> None:
    run_id = await start(scene)
    path = f"/runs/{run_id}/events"
    async with asyncio.timeout(30), listening_to(scene.admin, path, after="now") as one:
        assert (await one.event()).event == "INTERACTION"
        assert (await one.block()).fields == {"id": "2"}
        await scene.admin.post(f"/instances/{run_id}/cancel", json={"reason": "no more"})
        rest = await one.rest()
        assert places(rest)[0] == 3
        assert rest[-1].data["status"] == "cancelled"


async def test_a_failed_run_is_not_over_and_its_resume_is_heard(
    scene: Scene, office: object
) -> None:
    office.failures = 1  # type: ignore[attr-defined]
    run_id = await start(scene, "grant_access")
    assert await settled(scene, run_id) == "error"
    async with asyncio.timeout(30), listening_to(scene.admin, f"/runs/{run_id}/events") as one:
        before = await one.until("ListenerFailed")
        await scene.admin.post(f"/instances/{run_id}/resume")
        rest = await one.rest()
    assert places(before + rest) == [*range(1, len(before + rest))]
    assert rest[-1].data["status"] == "done"


async def test_questions_of_runs_below_are_shown_live_and_again_to_who_comes_back(
    scene: Scene,
) -> None:
    scene.app.load_plan_text(PARENT)
    answer = await scene.admin.post("/instances", json={"plan_id": "parent"})
    run_id = answer.json()["id"]
    path = f"/runs/{run_id}/events"
    async with asyncio.timeout(30), listening_to(scene.admin, path, last=0) as one:
        events = await one.until("INTERACTION")
        question = events[-1].data
        assert question["runId"].startswith(f"{run_id}.")
    await settled(scene, run_id)
    async with asyncio.timeout(30), listening_to(scene.admin, path, last=1) as one:
        again = [heard for heard in await one.until("INTERACTION") if heard.id is None]
        assert [heard.data["requestId"] for heard in again] == [question["requestId"]]
        body = {"data": {"computer_model": "MacBook Pro"}}
        answer = await scene.admin.post(f"/interactions/{question['requestId']}/answer", json=body)
        assert answer.status_code == 200, answer.text
        rest = await one.rest()
        assert [heard for heard in rest if heard.event == "INTERACTION"] == []
        assert rest[-1].event == "end"


async def test_a_models_words_are_live_and_move_no_cursor(scene: Scene) -> None:
    run_id = await start(scene)
    path = f"/runs/{run_id}/events"
    async with asyncio.timeout(30), listening_to(scene.admin, path) as one:
        await one.until("QuestionOpened")
        scene.app.engine.hub.speak(run_id, 3, "Hel")
        scene.app.engine.hub.speak(run_id, 3, None)
        said = [await one.event(), await one.event()]
        assert [(heard.event, heard.id) for heard in said] == [("Spoken", None)] * 2
        assert [heard.data["text"] for heard in said] == ["Hel", None]


async def test_a_long_run_is_read_page_by_page(scene: Scene) -> None:
    async def touch() -> dict[str, bool]:
        return {"ok": True}

    scene.app.tool(touch)
    scene.app.load_plan_text(chain(PAGE + 20))
    run_id = await start(scene, "chain")
    assert await settled(scene, run_id) == "done"
    version = await scene.app.journal.version(run_id)
    assert version > 2 * PAGE
    limits: list[int | None] = []
    read = scene.app.journal.read

    async def watched(
        run: str, after: int = 0, limit: int | None = None, most_text: int | None = None
    ) -> object:
        limits.append(limit)
        return await read(run, after, limit, most_text)

    scene.app.journal.read = watched  # type: ignore[method-assign, assignment]
    events = await all_of(scene.admin, f"/runs/{run_id}/events")
    assert places(events) == [*range(1, version + 1)]
    assert set(limits) == {PAGE}


@pytest.mark.parametrize(
    ("cursor", "status"),
    [("-1", 422), ("1.5", 422), ("soon", 422), ("٣", 422), ("9" * 30, 422), ("3", 409)],
)
async def test_a_place_that_the_run_does_not_have_is_refused(
    scene: Scene, cursor: str, status: int
) -> None:
    run_id = await start(scene)
    answer = await scene.admin.get(f"/runs/{run_id}/events", params={"after": cursor})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


async def test_only_who_may_see_a_run_hears_of_it(scene: Scene) -> None:
    run_id, last = await finished(scene)
    path = f"/runs/{run_id}/events"
    assert (await scene.stranger.get(path)).status_code == 401
    other = await scene.somebody(grants={"grant_access": ["viewer"]})
    assert (await other.get(path)).status_code == 404
    assert (await scene.admin.get("/runs/inst_999999/events")).status_code == 404
    granted = await scene.somebody(grants={"apply_*": ["viewer"]})
    assert len(recorded(await all_of(granted, path))) == last


async def test_a_revoked_token_ends_its_streams(app: Holdfast, office: object) -> None:
    settings = ServerSettings(heartbeat=0.05)
    async with serving(app, settings) as scene:
        run_id = await start(scene)
        made, token = await scene.services.tokens.issue("passing", "person", ["viewer"], None)
        guest = await scene.with_token(token)
        async with asyncio.timeout(30), listening_to(guest, f"/runs/{run_id}/events") as one:
            await one.until("QuestionOpened")
            answer = await scene.admin.delete(f"/tokens/{made.id}")
            assert answer.status_code == 204, answer.text
            assert [heard.event for heard in await one.rest()] == ["bye"]
        await seen(lambda: scene.services.streams.clients == 0)


def test_a_record_of_an_earlier_version_is_told_in_todays_words() -> None:
    old = Record(7, 1.5, "ListenerWoken", '{"listener_id": "L001"}')
    heard = Heard.parse(told("inst_000001", old, 7).decode().removesuffix("\n\n"))
    assert (heard.id, heard.event) == ("7", "StepWoken")
    assert heard.data == {
        "run_id": "inst_000001",
        "seq": 7,
        "at": 1.5,
        "type": "StepWoken",
        "data": {"step_id": "L001"},
    }


async def test_of_a_draft_others_hear_only_that_it_was_kept(scene: Scene) -> None:
    run_id = await start(scene)
    found = await scene.admin.get("/interactions", params={"run": run_id})
    [question] = found.json()["interactions"]
    path = f"/interactions/{question['requestId']}/draft"
    operator, viewer = await scene.as_a("operator"), await scene.as_a("viewer")
    kept = await operator.put(path, json={"data": {"computer_model": "half typed"}})
    assert kept.status_code == 200, kept.text
    theirs = {"question_id": question["requestId"], "by": "some operator"}

    for client in (viewer, operator, scene.admin):
        history = (await client.get(f"/runs/{run_id}/history")).json()["events"]
        assert (history[-1]["type"], history[-1]["data"]) == ("DraftKept", theirs)
        for stream in (f"/runs/{run_id}/events", "/events"):
            async with asyncio.timeout(30), listening_to(client, stream, 0) as listener:
                events = await listener.until("DraftKept")
            assert events[-1].data["data"] == theirs


@pytest.mark.parametrize("path", ["/runs/{id}/events", "/events"])
async def test_open_questions_are_told_in_the_readers_language(scene: Scene, path: str) -> None:
    run_id = await start(scene)
    scene.admin.headers["Accept-Language"] = "zh"
    path = path.format(id=run_id)
    async with asyncio.timeout(30), listening_to(scene.admin, path) as one:
        [*_, question] = await one.until("INTERACTION")
        assert question.data["title"] == "apply_computer 还缺少信息"
        told = [option["consequence"] for option in question.data["options"]]
        assert told == ["以此处提供的内容继续执行 apply_computer。"]
