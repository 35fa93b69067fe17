"""A database that goes away, or whose answers are lost, under servers and workers as processes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from holdfast.model.run import RunStatus
from installation import SECRET_KEY, Installation, Started, becomes, begun, over
from lossy_proxy import LossyProxy
from postgresql_server import Server, migrated
from workshop import Workshop

pytestmark = pytest.mark.own_store  # about PostgreSQL, which it stops

MANY = 20


@pytest.fixture
def postgres() -> Iterator[Server]:
    """A server to be stopped."""
    with Server(fsync=False, max_connections=200) as server:
        yield server


@pytest.fixture
def exposed(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installation]:
    """An installation on that server."""
    monkeypatch.setenv("HOLDFAST_SECRET_KEY", SECRET_KEY)
    installation = Installation(postgres.create_database(migrated), Workshop(tmp_path), {})
    yield installation
    installation.close()


def status(started: Started, path: str) -> int:
    return httpx.get(f"{started.health}{path}").status_code


def start(client: httpx.Client, plan: str, key: str) -> httpx.Response:
    body = {"plan_id": plan, "values": {"part": key}}
    return client.post("/instances", json=body, headers={"Idempotency-Key": key})


async def test_while_the_database_is_away_nothing_is_acknowledged_and_then_all_goes_on(
    exposed: Installation, postgres: Server
) -> None:
    workshop, server, worker = exposed.workshop, exposed.server(), exposed.worker()
    with exposed.client(server, exposed.token()) as client:
        first = start(client, "weld", "first").json()["id"]
        await becomes(workshop.calls)
        postgres.stop()
        refused = start(client, "weld", "second")
        assert refused.status_code == 503
        assert refused.headers["content-type"] == "application/problem+json"
        assert int(refused.headers["Retry-After"]) >= 1
        assert client.get(f"/instances/{first}").status_code == 503
        ready = client.get("/readyz")
        assert (ready.status_code, ready.headers["content-type"]) == (
            503,
            "application/problem+json",
        )
        assert client.get("/healthz").status_code == status(worker, "/healthz") == 200
        await becomes(lambda: status(worker, "/readyz") == 503)
        workshop.let_go()
        postgres.start()
        await becomes(lambda: client.get("/readyz").status_code == 200)
        await becomes(lambda: status(worker, "/readyz") == 200)
        again = start(client, "weld", "second")
        assert again.status_code == 201, again.text
        async with exposed.decider() as app:
            for run_id in (first, again.json()["id"]):
                assert await over(app, run_id) is RunStatus.DONE
            assert len(await app.runs()) == 2
            assert await app.inbox() == []
    assert [(tool, part) for tool, part, _ in workshop.calls()] == [
        ("weld", "first"),
        ("weld", "second"),
    ]
    assert worker.process.poll() is None
    assert worker.stop()[0] == server.stop()[0] == 0


# -- a connection that is lost between the commit and its answer


@pytest.fixture
async def lossy(
    postgres: Server, exposed: Installation
) -> AsyncIterator[tuple[LossyProxy, dict[str, str]]]:
    """A way on which answers are lost, and the setting by which a process takes it."""
    name = exposed.database.split("/")[3].partition("?")[0]
    async with LossyProxy(postgres.url(name, tcp=True)) as proxy:
        yield proxy, {"HOLDFAST_DATABASE": proxy.url}


async def insist(client: httpx.AsyncClient, path: str, key: str, body: object) -> httpx.Response:
    """Sent again under its key for as long as nobody knows what became of it."""
    while True:
        headers = {"Idempotency-Key": key}
        answer = await client.post(path, json=body, headers=headers)
        if answer.status_code != 503:
            return answer
        await asyncio.sleep(0.05)


async def test_a_request_whose_commit_was_not_heard_of_is_carried_out_once(
    exposed: Installation, lossy: tuple[LossyProxy, dict[str, str]]
) -> None:
    proxy, through = lossy
    server = await asyncio.to_thread(exposed.server, **through)
    token, parts = exposed.token(), [f"part {number}" for number in range(MANY)]
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
        proxy.every = 20
        answers = await asyncio.gather(
            *(
                insist(
                    client, "/instances", part[5:], {"plan_id": "line", "values": {"part": part}}
                )
                for part in parts
            )
        )
        proxy.every = 0
        assert proxy.lost > 3
        assert {one.status_code for one in answers} == {201}
        assert len({one.json()["id"] for one in answers}) == MANY
    exposed.worker()
    async with exposed.decider() as app:
        rows = await app.runs()
        assert len(rows) == MANY
        for row in rows:
            assert await over(app, row.run_id) is RunStatus.DONE
    assert Counter(part for _, part, _ in exposed.workshop.calls()) == dict.fromkeys(parts, 6)


async def test_a_driver_whose_commit_was_not_heard_of_repeats_nothing(
    exposed: Installation, lossy: tuple[LossyProxy, dict[str, str]]
) -> None:
    proxy, through = lossy
    await asyncio.to_thread(exposed.worker, **through)
    parts = [f"part {number}" for number in range(MANY)]
    async with exposed.decider() as app:
        proxy.every = 20
        runs = await asyncio.gather(*(begun(app, "line", part) for part in parts))
        for run in runs:
            assert await over(app, run.id) is RunStatus.DONE
        assert proxy.lost > 10
        assert await app.inbox() == []
    assert Counter(part for _, part, _ in exposed.workshop.calls()) == dict.fromkeys(parts, 6)


async def test_an_answer_whose_commit_was_not_heard_of_counts_once(
    exposed: Installation, lossy: tuple[LossyProxy, dict[str, str]]
) -> None:
    proxy, through = lossy
    server = await asyncio.to_thread(exposed.server, **through)
    headers = {"Authorization": f"Bearer {exposed.token()}"}
    async with (
        exposed.decider() as app,
        httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client,
    ):
        worker = exposed.worker()
        runs = [await begun(app, "choose", f"part {number}") for number in range(MANY)]
        for run in runs:
            await app.engine.wait_for(run.id, lambda state: bool(state.questions), 60)
        proxy.every = 20
        answers = await asyncio.gather(
            *(
                insist(client, f"/interactions/{one.question_id}/answer", one.question_id, CHOSEN)
                for one in await app.inbox()
            )
        )
        proxy.every = 0
        assert proxy.lost > 3
        assert {one.status_code for one in answers} == {200}, [one.text for one in answers]
        for run in runs:
            assert await over(app, run.id) is RunStatus.DONE
    assert worker.process.poll() is None
    assert sorted(part for _, part, _ in exposed.workshop.calls()) == sorted(
        f"part {number}" for number in range(MANY)
    )


CHOSEN = {"data": {"colour": "red"}}
