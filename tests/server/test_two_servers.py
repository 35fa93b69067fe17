"""Two servers of one store: what one process used to keep in memory holds for both.

`servers` are two of one application, and two of two applications on one database.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeAlias

import httpx
import psycopg
import pytest
from fastapi import Request, Response
from server_scene import GRANT_ACCESS, Scene, furnish, serving

from holdfast import Holdfast, errors
from holdfast.model.rows import Attached
from holdfast.runtime.audit import REQUEST
from holdfast.runtime.identity import Claim
from holdfast.server.auth.principal import Principal
from holdfast.server.streams.newest import Newest

Both: TypeAlias = tuple[Scene, Scene]

MANY = 20


@asynccontextmanager
async def two_of(database: str | None, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Both]:
    """Only the first drives runs, where they are of two applications."""
    if database is None:
        apps = [Holdfast.in_memory()] * 2
    else:
        monkeypatch.setenv("HOLDFAST_SECRET_KEY", b64encode(b"k" * 32).decode())
        apps = [Holdfast(database=database, drives=drives) for drives in (True, False)]
    async with AsyncExitStack() as stack:
        for app in dict.fromkeys(apps):
            app.planner_agent.max_retry_count = 0
            furnish(app)
            await stack.enter_async_context(app)
        first, second = [await stack.enter_async_context(serving(app)) for app in apps]
        yield first, second


@pytest.fixture(params=["one application", "PostgreSQL"])
async def servers(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Both]:
    shared = request.param == "PostgreSQL"
    database = request.getfixturevalue("database") if shared else None
    async with two_of(database, monkeypatch) as both:
        yield both


@pytest.fixture
async def one_database(database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Both]:
    """Two servers of two applications, both spoken to by the same person."""
    async with two_of(database, monkeypatch) as both:
        first, second = both
        second.admin.headers["Authorization"] = first.admin.headers["Authorization"]
        yield both


async def at_both(
    servers: Both, method: str, path: str, key: str = "", body: Any = None
) -> list[httpx.Response]:
    """One request, sent to both at once."""
    headers = {"Idempotency-Key": key} if key else {}
    first, second = servers
    mine: Sequence[Awaitable[httpx.Response]] = [
        scene.admin.request(method, f"{scene.url}{path}", json=body, headers=headers)
        for scene in (first, second)
    ]
    return list(await asyncio.gather(*mine))


@pytest.fixture
async def one_admin(servers: Both) -> Both:
    """Both are spoken to by the same person."""
    first, second = servers
    second.admin.headers["Authorization"] = first.admin.headers["Authorization"]
    return servers


async def test_of_one_request_sent_to_both_at_once_one_is_carried_out(one_admin: Both) -> None:
    body = {"plan_id": "apply_computer"}
    answers = await asyncio.gather(
        *(at_both(one_admin, "POST", "/instances", f"key-{n}", body) for n in range(MANY))
    )
    for pair in answers:
        assert [one.status_code for one in pair] == [201, 201], [one.text for one in pair]
        assert len({one.json()["id"] for one in pair}) == 1
        assert sorted("idempotency-replayed" in one.headers for one in pair) == [False, True]
    assert len({pair[0].json()["id"] for pair in answers}) == MANY
    assert len(await one_admin[0].app.runs()) == MANY
    deeds = await one_admin[0].app.journal.audit()
    assert Counter(one.record.action for one in deeds)["started"] == MANY


async def test_a_token_asked_for_at_both_is_issued_once_and_told_to_both(one_admin: Both) -> None:
    for n in range(5):
        pair = await at_both(one_admin, "POST", "/tokens", f"k{n}", {"name": f"ci {n}"})
        assert [one.status_code for one in pair] == [201, 201], [one.text for one in pair]
        assert pair[0].content == pair[1].content
        told = (await one_admin[0].admin.get("/tokens")).text
        assert told.count(f'"ci {n}"') == 1


async def test_an_answer_that_another_server_is_about_to_keep_is_waited_for(
    one_database: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = one_database
    kept, let, waiting = first.app.journal.attach, asyncio.Event(), asyncio.Event()

    async def attach(attached: Attached) -> None:
        if any('"answer"' in one.body for one in attached.kept):
            waiting.set()
            await let.wait()
        await kept(attached)

    async def issue(scene: Scene) -> httpx.Response:
        body, headers = {"name": "ci"}, {"Idempotency-Key": "k1"}
        return await scene.admin.post("/tokens", json=body, headers=headers)

    monkeypatch.setattr(first.app.journal, "attach", attach)
    issuing = asyncio.create_task(issue(first))
    await waiting.wait()
    again = asyncio.create_task(issue(second))
    done, _ = await asyncio.wait((again,), timeout=0.2)
    assert not done
    let.set()
    assert (await issuing).content == (await again).content
    assert (await again).headers["idempotency-replayed"] == "true"


async def test_what_claims_nothing_is_answered_alike_by_both(servers: Both) -> None:
    async def asked(scene: Scene, words: bytes) -> Response:
        async def serve(claim: Claim) -> Response:
            served.append(words)
            if len(served) == 2:
                both_serve.set()
            await both_serve.wait()
            return Response(words)

        told = scope | {"app": scene.services}
        request = Request(told, body)
        return await scene.services.requests.once(request, who, serve, None, scene.services)

    async def body() -> dict[str, object]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    served: list[bytes] = []
    both_serve = asyncio.Event()
    who = Principal("will", "Will", "person", frozenset(), {})
    headers = [(b"idempotency-key", b"k1")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/x",
        "query_string": b"",
        "headers": headers,
    }
    pair = await asyncio.gather(
        *(asked(scene, words) for scene, words in zip(servers, (b"one", b"two"), strict=True))
    )
    assert sorted(served) == [b"one", b"two"]
    assert pair[0].body == pair[1].body
    assert (await asked(servers[0], b"three")).body == pair[0].body


async def test_another_request_under_the_same_key_is_refused_at_the_other(one_admin: Both) -> None:
    first, second = one_admin
    headers = {"Idempotency-Key": "k1"}
    bodies = [{"plan_id": "apply_computer"}, {"plan_id": "grant_access"}]
    pair = await asyncio.gather(
        *(
            scene.admin.post("/instances", json=body, headers=headers)
            for scene, body in zip((first, second), bodies, strict=True)
        )
    )
    assert sorted(one.status_code for one in pair) == [201, 422]
    assert len(await first.app.runs()) == 1
    assert len(await first.app.journal.all_kept(REQUEST, 0.0)) == 1


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/instances/%00", None),
        ("GET", "/runs/inst_000001%00/events", None),
        ("GET", "/instances?name=%00", None),
        ("GET", "/interactions?run_id=a%00b", None),
        ("GET", "/plans/%00", None),
        ("POST", "/instances", {"plan_id": "a\0"}),
        ("POST", "/instances", {"plan_id": "apply_computer", "values": {"name": "\0"}}),
        ("POST", "/instances", {"plan_id": "apply_computer", "values": {"\0": "name"}}),
        ("POST", "/tokens", {"name": "a\0"}),
        ("POST", "/plans", {"source": 'plan_id: "a\\0"'}),
        ("POST", "/instances/%00/cancel", {"reason": "enough"}),
        ("DELETE", "/tokens/%00", None),
    ],
)
async def test_the_character_that_no_database_keeps_is_refused_at_the_border(
    servers: Both, method: str, path: str, body: Any
) -> None:
    for scene in servers:
        answer = await scene.admin.request(method, f"{scene.url}{path}", json=body)
        assert answer.status_code in (400, 404, 422), answer.text
        assert "U+0000" in answer.text or "visible characters" in answer.text
    for path in ("/console/runs/%00", "/console/static/%00", "/login?token=%00", "/x%00"):
        answer = await servers[1].admin.get(f"{servers[1].url}{path}")
        assert answer.status_code < 500, path


async def test_a_link_used_many_times_at_both_signs_in_once(servers: Both) -> None:
    _, link = await servers[0].services.tokens.new_link()

    async def use(scene: Scene) -> int:
        answer = await scene.stranger.post("/login", data={"token": link})
        return answer.status_code

    told = await asyncio.gather(*(use(scene) for scene in servers for _ in range(MANY // 2)))
    assert told.count(303) == 1
    assert set(told) <= {303, 401, 429}
    sessions = [one for one in await servers[0].services.tokens.list() if one.form == "session"]
    assert len(sessions) == 1


async def test_many_links_used_at_both_sign_in_once_each(servers: Both) -> None:
    links = [(await servers[0].services.tokens.new_link(f"person {n}"))[1] for n in range(MANY)]

    async def use(scene: Scene, link: str) -> bool:
        with suppress(errors.Unauthenticated):
            await scene.services.tokens.redeem(link)
            return True
        return False

    told = await asyncio.gather(*(use(scene, link) for link in links for scene in servers))
    assert [sum(told[n : n + 2]) for n in range(0, 2 * MANY, 2)] == [1] * MANY
    deeds = await servers[0].app.journal.audit()
    assert Counter(one.record.action for one in deeds)["signed_in"] == MANY


async def test_a_plan_registered_at_one_is_started_and_shown_at_the_other(
    one_database: Both,
) -> None:
    first, second = one_database
    source = GRANT_ACCESS.replace("plan_id: grant_access", "plan_id: fresh")
    for n in range(5):
        mine = source.replace("fresh", f"fresh_{n}")
        made = await first.admin.post("/plans", json={"source": mine})
        assert made.status_code == 201, made.text
        shown = await second.admin.get(f"/plans/fresh_{n}")
        assert shown.status_code == 200, shown.text
        started = await second.admin.post("/instances", json={"plan_id": f"fresh_{n}"})
        assert started.status_code == 201, started.text
        assert shown.json()["registered_by"] == made.json()["registered_by"]


async def test_a_new_version_registered_at_one_is_what_the_other_starts(one_database: Both) -> None:
    first, second = one_database
    for n in range(3):
        source = GRANT_ACCESS.replace("Access for a colleague", f"Version {n}")
        made = await first.admin.post("/plans", json={"source": source})
        assert made.status_code == 201, made.text
        started = await second.admin.post("/instances", json={"plan_id": "grant_access"})
        row = await second.app.journal.run(started.json()["id"])
        assert row is not None
        assert row.definition == made.json()["digest"]


async def test_other_servers_hear_of_a_plan_without_being_asked_for_it(one_database: Both) -> None:
    first, second = one_database
    source = GRANT_ACCESS.replace("plan_id: grant_access", "plan_id: fresh")
    assert (await first.admin.post("/plans", json={"source": source})).status_code == 201
    async with asyncio.timeout(30):
        while "fresh" not in second.app.engine.definitions.plan_ids():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_nothing_is_read_of_plans_while_none_was_registered(
    one_database: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = one_database
    read: list[str] = []

    async def all_kept(kind: str, now: float) -> list[Any]:
        read.append(kind)
        return []

    await second.services.plans.refresh()
    with monkeypatch.context() as patched:
        patched.setattr(second.app.journal, "all_kept", all_kept)
        await second.services.plans.refresh()
        assert (await second.admin.get("/plans/nowhere")).status_code == 404
    assert "plan" not in read
    assert (await first.admin.post("/plans", json={"source": GRANT_ACCESS})).status_code == 201
    await second.services.plans.refresh()
    assert second.services.plans.origin("grant_access").registered


async def sweep(both: Both) -> None:
    """What each server does every second."""
    for scene in both:
        follower = scene.app.engine.follower
        assert follower is not None
        for one in follower.sweeps:
            await one()


async def test_what_one_refused_counts_at_the_other(one_database: Both) -> None:
    first, second = one_database
    for _ in range(6):
        assert (await first.stranger.post("/login", data={"token": "link_x"})).status_code == 401
    await sweep(one_database)
    for _ in range(4):
        assert (await second.stranger.post("/login", data={"token": "link_x"})).status_code == 401
    assert (await second.stranger.post("/login", data={"token": "link_x"})).status_code == 429
    await sweep((second, first))
    assert (await first.stranger.post("/login", data={"token": "link_x"})).status_code == 429
    assert (await second.admin.get("/instances")).status_code == 200


async def test_refusals_that_could_not_be_told_are_told_later(
    one_database: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = one_database

    async def away(attached: Attached) -> None:
        raise errors.JournalUnavailable("the database is away")

    with monkeypatch.context() as lost:
        lost.setattr(first.app.journal, "attach", away)
        for _ in range(10):
            refused = await first.stranger.post("/login", data={"token": "link_x"})
            assert refused.status_code == 401
        with pytest.raises(errors.JournalUnavailable):
            await sweep(one_database)
    await sweep(one_database)
    assert (await second.stranger.post("/login", data={"token": "link_x"})).status_code == 429


async def test_refusals_are_written_only_where_there_were_some(
    one_database: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = one_database
    written: list[Attached] = []
    attach = first.app.journal.attach

    async def counted(attached: Attached) -> None:
        written.append(attached)
        await attach(attached)

    await sweep(one_database)
    monkeypatch.setattr(first.app.journal, "attach", counted)
    await first.admin.get("/instances")
    await sweep(one_database)
    assert not any(one.kind == "refused" for each in written for one in each.kept)
    for _ in range(5):
        await first.stranger.post("/login", data={"token": "link_x"})
    await sweep(one_database)
    once = sum(one.kind == "refused" for each in written for one in each.kept)
    assert once > 0
    await sweep(one_database)
    await sweep(one_database)
    assert sum(one.kind == "refused" for each in written for one in each.kept) == once


async def test_who_follows_their_newest_session_hears_of_one_at_the_other_server(
    one_database: Both,
) -> None:
    first, second = one_database
    told: list[Newest | None] = []
    leave = second.services.newest.watch("will", lambda: told.append(None))
    await sweep(one_database)
    told.clear()
    await sweep(one_database)
    assert told == []
    await first.services.newest.note("will", Newest("sess_000001", 1))
    await sweep(one_database)
    assert told == [None]
    assert await second.services.newest.of("will") == Newest("sess_000001", 1)
    leave()


async def test_servers_seal_what_was_appended_though_nothing_is_read(
    one_database: Both, database: str
) -> None:
    response = await one_database[0].admin.post("/instances", json={"plan_id": "apply_computer"})
    assert response.status_code == 201
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        placed = 0
        while not placed:
            cursor = await connection.execute("SELECT position FROM seal")
            [(placed,)] = await cursor.fetchall()
            await asyncio.sleep(0.05)
    assert placed >= 2, "the run's first events have their places"
