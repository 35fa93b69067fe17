"""More open questions in one tree than are read, or shown, at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from chat_scene import asks_to_pay, employ
from listeners import listening_to
from server_scene import Scene, serving

from holdfast import Holdfast
from holdfast.testing.journal_samples import birth

MANY = 1001


@pytest.fixture
async def scene(app: Holdfast) -> AsyncIterator[Scene]:
    employ(app)
    async with serving(app) as scene:
        yield scene


async def ask(scene: Scene, question_id: str, run_id: str, count: int) -> list[str]:
    """As many questions as that one in a run below its own; their ids, the oldest first."""
    row = await scene.app.journal.question(question_id)
    assert row is not None
    names = [f"{run_id}-{number:04}" for number in range(count)]
    asked = [
        replace(row, question_id=one, run_id=run_id, body=row.body.replace(question_id, one))
        for one in names
    ]
    born = birth(run_id, root_id=row.root_id, parent_id=row.run_id)
    await scene.app.journal.append(replace(born, questions=asked))
    return names


async def test_a_session_shows_a_thousand_and_says_where_the_others_are(scene: Scene) -> None:
    first = await asks_to_pay(scene)
    session_id = first["runId"]
    names = await ask(scene, first["requestId"], f"{session_id}.many", MANY)
    chat = (await scene.admin.get(f"/chats/{session_id}")).json()
    shown = [one["requestId"] for one in chat["interactions"]]
    assert shown == [first["requestId"], *names][:1000]
    left = await scene.admin.get(
        "/interactions", params={"run": session_id, "after": chat["interactionsNext"]}
    )
    assert [one["requestId"] for one in left.json()["interactions"]] == names[999:]


async def test_a_session_with_few_questions_leads_nowhere(scene: Scene) -> None:
    first = await asks_to_pay(scene)
    chat = (await scene.admin.get(f"/chats/{first['runId']}")).json()
    assert chat["interactionsNext"] is None


async def test_a_run_s_stream_tells_all_open_questions_and_later_ones_once(scene: Scene) -> None:
    first = await asks_to_pay(scene)
    run_id = first["runId"]
    names = await ask(scene, first["requestId"], f"{run_id}.many", MANY)
    async with (
        asyncio.timeout(60),
        listening_to(scene.admin, f"/runs/{run_id}/events") as newcomer,
    ):
        heard = [await newcomer.event() for _ in range(MANY + 1)]
        assert [one.data["requestId"] for one in heard] == [first["requestId"], *names]
        await newcomer.until("QuestionOpened")
        later = await ask(scene, first["requestId"], f"{run_id}.more", 2)
        scene.app.engine.hub._ask_below(f"{run_id}.more")
        again = [await newcomer.event() for _ in later]
        assert [one.data["requestId"] for one in again] == later
