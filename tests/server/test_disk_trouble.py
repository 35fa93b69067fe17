"""The disk is full, the database may only be read, or the audit cannot be written.

Whatever would change something is answered 503 and has not happened; what is only read is
served; and everything goes on by itself when there is room again. The troubles are made on
the journal's own connection, a bound on its pages and `query_only`, and so hold for root too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from chat_scene import RESPONSE, STREAM, rested
from hostile_scene import Ground, standing_ground
from server_scene import settled, start

from holdfast import Holdfast
from holdfast.journal import writer
from holdfast.journal.database import Connection, connect
from holdfast.journal.sqlite import SqliteJournal
from holdfast.runtime import clock as clocks
from holdfast.runtime import turns
from holdfast.server import readiness as probe

APPROVE = {"selectedOptionId": "approve"}
MODEL = {"computer_model": "MacBook Pro"}
MOST_PAGES = 2**30
FILLER = "x" * 9_000


class Store:
    """A database whose writer can be brought into trouble."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connections: list[Connection] = []

    def connect(self, path: Path) -> Connection:
        self.connections.append(connect(path))
        return self.connections[-1]

    def _pragma(self, text: str) -> Any:
        return self.connections[0].execute(f"PRAGMA {text}").fetchall()

    def full(self) -> None:
        [[pages]] = self._pragma("page_count")
        self._pragma(f"max_page_count = {pages}")

    def read_only(self) -> None:
        self._pragma("query_only = ON")

    def well(self) -> None:
        self._pragma(f"max_page_count = {MOST_PAGES}")
        self._pragma("query_only = OFF")


Trouble = Callable[[Store], None]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "journal.db")


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "RETRY_JOURNAL", 0.01)
    monkeypatch.setattr(clocks, "_RETRY_AFTER", 0.01)
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.0)
    monkeypatch.setattr(writer, "PROBE_SECONDS", 0.0)


@pytest.fixture
async def ground(store: Store) -> AsyncIterator[Ground]:
    app = Holdfast(store.path.parent, journal=SqliteJournal(store.path, connect=store.connect))
    async with app, standing_ground(app) as ground:
        try:
            yield ground
        finally:
            store.well()


async def use_up(ground: Ground) -> None:
    """Pages that are free within the file are used before it must grow: large ones, then small."""
    for grants in (99, 30, 0):
        for number in range(200):
            roles = {f"{number}-{one}": ["x"] for one in range(grants)}
            body = {"name": f"filler {number}", "grants": roles}
            if (await ground.scene.admin.post("/tokens", json=body)).status_code == 503:
                break
        else:
            raise AssertionError("the disk is never full")


@pytest.fixture(params=[Store.full, Store.read_only], ids=["full", "read only"])
def trouble(request: pytest.FixtureRequest) -> Trouble:
    made: Trouble = request.param
    return made


async def begins(trouble: Trouble, store: Store, ground: Ground) -> None:
    trouble(store)
    await use_up(ground)


def assert_not_acknowledged(answer: httpx.Response, store: Store) -> None:
    assert answer.status_code == 503, (answer.request.url, answer.text)
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    for inside in (str(store.path), "sqlite", "disk", "readonly"):
        assert inside not in answer.text


async def test_nothing_is_acknowledged_and_nothing_has_happened(
    trouble: Trouble, store: Store, ground: Ground
) -> None:
    """Where the disk is full, what is small may still find room in a page: these are large."""
    instance_id, failed_id = await ground.waiting(), await ground.failed()
    consent, locked = await ground.approval(), await ground.locked()
    conversation_id, chat = await ground.achieved(), await ground.chat()
    await begins(trouble, store, ground)
    before = await ground.standing()
    approve = {**APPROVE, "feedback": FILLER}
    for path, body in (
        ("/instances", {"plan_id": "apply_computer", "prompt": FILLER}),
        (f"/instances/{instance_id}/cancel", {"reason": FILLER}),
        (f"/instances/{failed_id}/skip", {"listener_id": "L001", "reason": FILLER}),
        (f"/interactions/{consent['requestId']}/answer", approve),
        (RESPONSE, {"requestId": consent["requestId"], **approve}),
        ("/interactions/answers", {"requestIds": [consent["requestId"]], **approve}),
        (f"/interactions/{locked['requestId']}/secrets/code", {"value": FILLER}),
        (STREAM, {"message": FILLER, "sessionId": chat}),
        (f"/conversations/{conversation_id}/messages", {"input": FILLER}),
        ("/tokens", {"name": "more", "roles": [f"{one}" + "x" * 50 for one in range(50)]}),
    ):
        answer = await ground.scene.admin.post(path, json=body)
        assert_not_acknowledged(answer, store)
    assert await ground.standing() == before


async def test_a_database_that_may_only_be_read_takes_not_the_smallest_thing(
    store: Store, ground: Ground
) -> None:
    instance_id, failed_id = await ground.waiting(), await ground.failed()
    question, consent = await ground.question(instance_id), await ground.approval()
    token_id = await ground.spare_token()
    store.read_only()
    before = await ground.standing()
    for method, path, body in (
        ("POST", f"/plans/{instance_id}/continue", MODEL),
        ("POST", f"/instances/{instance_id}/continue", {"provided_params": MODEL}),
        ("POST", f"/instances/{failed_id}/resume", None),
        ("PUT", f"/interactions/{question['requestId']}/draft", {"data": MODEL}),
        ("POST", "/chats", {"agentId": "clerk"}),
        ("POST", "/conversations", {"input": "sell"}),
        ("POST", STREAM, {"message": "hello"}),
        ("POST", f"/chats/{consent['runId']}/approvals", {"tool": "pay"}),
        ("POST", "/tokens/link", {"name": "more"}),
        ("DELETE", f"/tokens/{token_id}", None),
        ("POST", "/login", {"token": ground.tokens["viewer"]}),
    ):
        answer = await ground.scene.admin.request(method, path, json=body)
        assert_not_acknowledged(answer, store)
        assert "set-cookie" not in answer.headers
    assert await ground.standing() == before


async def test_what_is_only_read_is_served(trouble: Trouble, store: Store, ground: Ground) -> None:
    instance_id, consent = await ground.waiting(), await ground.approval()
    await begins(trouble, store, ground)
    for path in (
        "/me",
        "/plans",
        "/plans/apply_computer/graph.svg",
        "/instances",
        f"/instances/{instance_id}",
        f"/runs/{instance_id}/history",
        "/interactions",
        f"/interactions/{consent['requestId']}",
        f"/chats/{consent['runId']}",
        "/audit",
        "/audit/verify",
        "/tokens",
        "/metrics",
        "/healthz",
    ):
        answer = await ground.scene.admin.get(path)
        assert answer.status_code == 200, (path, answer.text)
    assert (await ground.scene.stranger.get("/readyz")).status_code == 503
    store.well()
    assert (await ground.scene.stranger.get("/readyz")).status_code == 200


async def test_it_is_not_ready_from_the_first_failed_commit_until_there_is_room(
    trouble: Trouble, store: Store, ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = partial(ground.scene.stranger.get, "/readyz")
    monkeypatch.setattr(probe, "PROBE_SECONDS", 3600.0)
    assert (await ready()).status_code == 200
    await begins(trouble, store, ground)
    assert (await ready()).status_code == 503, "what it said a moment ago is no longer true"
    monkeypatch.setattr(probe, "PROBE_SECONDS", 0.0)
    for _ in range(3):
        small = await ground.scene.admin.post("/tokens/link", json={"name": "small"})
        assert small.status_code in (200, 201, 503)
        assert (await ready()).status_code == 503, "a small commit may find room, a run does not"
    store.well()
    assert (await ready()).status_code == 200


async def test_with_room_again_the_same_request_is_carried_out_once(
    trouble: Trouble, store: Store, ground: Ground
) -> None:
    consent = await ground.approval()
    approve = {**APPROVE, "feedback": FILLER}
    begin = {"plan_id": "grant_access", "prompt": FILLER}
    asks = [
        (f"/interactions/{consent['requestId']}/answer", approve, {"Idempotency-Key": "a"}),
        ("/instances", begin, {"Idempotency-Key": "b"}),
    ]
    await begins(trouble, store, ground)
    for path, body, key in asks:
        answer = await ground.scene.admin.post(path, json=body, headers=key)
        assert_not_acknowledged(answer, store)
    store.well()
    for path, body, key in asks * 2:
        answer = await ground.scene.admin.post(path, json=body, headers=key)
        assert answer.status_code in (200, 201), answer.text
    await rested(ground.scene, consent["runId"])
    [line] = (await ground.scene.admin.get("/instances")).json()["instances"]
    assert await settled(ground.scene, line["id"]) == "done"
    assert ground.world.till.paid == [5]
    assert ground.world.office.count("grant_access") == 1


async def test_a_link_that_could_not_be_used_is_good_afterwards(
    store: Store, ground: Ground
) -> None:
    link = {"token": await ground.link()}
    store.read_only()
    assert_not_acknowledged(await ground.scene.stranger.post("/login", json=link), store)
    store.well()
    assert (await ground.scene.stranger.post("/login", json=link)).status_code == 200
    assert (await ground.scene.stranger.post("/login", json=link)).status_code == 401


async def test_what_was_under_way_goes_on_by_itself_and_is_not_done_twice(
    trouble: Trouble, store: Store, ground: Ground
) -> None:
    conversation_id = await ground.pursued()
    await begins(trouble, store, ground)
    ground.world.shop.through.set()
    shown = await ground.scene.admin.get(f"/conversations/{conversation_id}")
    assert shown.json()["state"] == "executing" or trouble is Store.full
    store.well()
    await ground.scene.app.engine.wait_for(
        conversation_id, lambda state: state.status == "done", 30
    )
    assert ground.world.shop.done == 1


@pytest.fixture
def hidden_audit(store: Store) -> Callable[[bool], None]:
    """Takes the audit's table away, and brings it back."""

    def hide(hidden: bool) -> None:
        names = ("audit", "taken_away")
        old, new = names if hidden else reversed(names)
        with closing(sqlite3.connect(store.path, timeout=10)) as other:
            other.execute(f"ALTER TABLE {old} RENAME TO {new}")

    return hide


async def test_what_cannot_be_audited_is_not_done(
    store: Store, ground: Ground, hidden_audit: Callable[[bool], None]
) -> None:
    consent, token_id = await ground.approval(), await ground.spare_token()
    tokens = len((await ground.scene.admin.get("/tokens")).json()["tokens"])
    version = await ground.scene.app.journal.version(consent["runId"])
    answer = f"/interactions/{consent['requestId']}/answer"
    hidden_audit(True)
    for method, path, body in (
        ("POST", answer, APPROVE),
        ("POST", "/instances", {"plan_id": "apply_computer"}),
        ("POST", "/tokens", {"name": "more", "roles": ["admin"]}),
        ("DELETE", f"/tokens/{token_id}", None),
        ("POST", f"/chats/{consent['runId']}/cancel", None),
    ):
        refused = await ground.scene.admin.request(method, path, json=body)
        assert refused.status_code == 503, refused.text
    assert await ground.scene.app.journal.version(consent["runId"]) == version
    assert (await ground.scene.admin.get("/instances")).json()["instances"] == []
    assert len((await ground.scene.admin.get("/tokens")).json()["tokens"]) == tokens
    assert ground.world.done() == (0, 0, 0, 0)
    hidden_audit(False)
    assert (await ground.scene.admin.post(answer, json=APPROVE)).status_code == 200
    await rested(ground.scene, consent["runId"])
    assert ground.world.till.paid == [5]
    assert (await ground.scene.admin.get("/audit/verify")).json()["ok"] is True
    await start(ground.scene)
    assert len((await ground.scene.admin.get("/instances")).json()["instances"]) == 1
