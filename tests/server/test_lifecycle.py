"""Cancelling and resuming: the same for every kind of run, and under the older paths."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
from chat_scene import forget
from hostile_scene import Ground, standing_ground

from holdfast import Holdfast
from holdfast.server.middleware.idempotency import REPLAYED
from holdfast.server.routes.lifecycle import ALIASES, Alias

RUNS, *OLDER = ALIASES
KINDS = [one.noun for one in OLDER]

Make = Callable[[Ground], Awaitable[str]]

CANCELLABLE: dict[str, Make] = {
    "instance": Ground.waiting,
    "chat": Ground.chat,
    "conversation": Ground.pursued,
}
RESUMABLE: dict[str, Make] = {
    "instance": Ground.failed,
    "chat": lambda ground: ground.chat("break"),
    "conversation": Ground.held,
}
PATHS = {one.noun: one.path for one in OLDER}


@pytest.fixture
async def ground(app: Holdfast) -> AsyncIterator[Ground]:
    async with standing_ground(app) as ground:
        yield ground


def at(alias: Alias, run_id: str, verb: str) -> str:
    return f"{alias.path.format(**{alias.parameter: run_id})}/{verb}"


def under(path: str, run_id: str) -> str:
    return path.partition("{")[0] + run_id


async def shown(ground: Ground, path: str, run_id: str) -> httpx.Response:
    return await ground.scene.admin.get(under(path, run_id))


@pytest.mark.parametrize("alias", OLDER, ids=KINDS)
@pytest.mark.parametrize("verb", ["cancel", "resume"])
async def test_an_older_path_answers_with_the_run_as_its_kind_is_shown(
    alias: Alias, verb: str, ground: Ground
) -> None:
    make = CANCELLABLE if verb == "cancel" else RESUMABLE
    run_id = await make[alias.noun](ground)
    answer = await ground.scene.admin.post(at(alias, run_id, verb))
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == (await shown(ground, alias.path, run_id)).json().keys()
    if verb == "cancel":
        assert answer.json()["status"] in ("cancelling", "cancelled")
    else:
        assert answer.json()["status"] not in ("error", "pause")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["cancel", "resume"])
async def test_runs_of_every_kind_are_cancelled_and_resumed_in_one_way(
    kind: str, verb: str, ground: Ground
) -> None:
    run_id = await (CANCELLABLE if verb == "cancel" else RESUMABLE)[kind](ground)
    answer = await ground.scene.admin.post(at(RUNS, run_id, verb))
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == (await shown(ground, "/runs/{run_id}", run_id)).json().keys()
    if verb == "cancel":
        assert answer.json()["status"] in ("cancelling", "cancelled")
    else:
        assert answer.json()["status"] not in ("error", "pause")


@pytest.mark.parametrize("alias", OLDER, ids=KINDS)
@pytest.mark.parametrize("verb", ["cancel", "resume"])
async def test_an_older_path_finds_runs_of_its_kind_alone(
    alias: Alias, verb: str, ground: Ground
) -> None:
    other = "chat" if alias.noun != "chat" else "instance"
    run_id = await CANCELLABLE[other](ground)
    before = await ground.standing()
    answer = await ground.scene.admin.post(at(alias, run_id, verb))
    assert answer.status_code == 404
    assert await ground.standing() == before


@pytest.mark.parametrize("alias", ALIASES, ids=["run", *KINDS])
async def test_a_reason_is_recorded(alias: Alias, ground: Ground) -> None:
    kind = "instance" if alias is RUNS else alias.noun
    run_id = await CANCELLABLE[kind](ground)
    await ground.scene.admin.post(at(alias, run_id, "cancel"), json={"reason": "not wanted"})
    history = (await ground.scene.admin.get(f"/runs/{run_id}/history")).json()["events"]
    [asked] = [one["data"] for one in history if one["type"].startswith("CancelRequested")]
    assert asked["reason"] == "not wanted"


@pytest.mark.parametrize("alias", ALIASES, ids=["run", *KINDS])
async def test_a_cancel_whose_answer_was_lost_is_answered_again(
    alias: Alias, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ground.scene.services.requests, "_keep", forget)
    run_id = await CANCELLABLE["instance" if alias is RUNS else alias.noun](ground)
    named = {"Idempotency-Key": "once"}
    path = at(alias, run_id, "cancel")
    first = await ground.scene.admin.post(path, headers=named)
    again = await ground.scene.admin.post(path, headers=named)
    assert again.status_code == 200, again.text
    assert again.headers[REPLAYED] == "true"
    assert again.json().keys() == first.json().keys()


async def test_how_to_go_on_after_a_failure_is_said_of_conversations_alone(ground: Ground) -> None:
    run_id = await ground.failed()
    before = await ground.standing()
    answer = await ground.scene.admin.post(f"/runs/{run_id}/resume", json={"failed": "retry"})
    assert answer.status_code == 422
    assert answer.json()["fields"].keys() == {"failed"}
    assert await ground.standing() == before


async def test_what_cannot_be_resumed_is_refused_under_every_path(ground: Ground) -> None:
    for alias in OLDER:
        run_id = await CANCELLABLE[alias.noun](ground)
        for one in (RUNS, alias):
            await ground.scene.admin.post(at(one, run_id, "cancel"))
            answer = await ground.scene.admin.post(at(one, run_id, "resume"))
            assert answer.status_code == 409, (one.path, answer.text)
