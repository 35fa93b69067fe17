"""Two servers of one database as processes: what is sent to both at once happens once."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import httpx
import pytest

from installation import Installation, Started

MANY = 20
BODY = {"plan_id": "line"}


@pytest.fixture
def servers(installation: Installation) -> list[Started]:
    return [installation.server("--trusted-proxy", "127.0.0.1") for _ in range(2)]


async def clients(
    stack: AsyncExitStack, servers: list[Started], token: str = ""
) -> list[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return [
        await stack.enter_async_context(
            httpx.AsyncClient(base_url=one.url, headers=headers | {"Origin": one.url}, timeout=60)
        )
        for one in servers
    ]


async def test_as_many_runs_begin_as_there_are_keys(
    installation: Installation, servers: list[Started]
) -> None:
    token = installation.token()
    async with AsyncExitStack() as stack, installation.decider() as app:
        both = await clients(stack, servers, token)
        keys = [f"key-{number}" for number in range(MANY)]
        answers = await asyncio.gather(
            *(
                one.post("/instances", json=BODY, headers={"Idempotency-Key": key})
                for key in keys
                for one in both
            )
        )
        assert {one.status_code for one in answers} == {201}
        begun = [one.json()["id"] for one in answers]
        assert begun[::2] == begun[1::2], "both servers tell of the same run"
        assert len(set(begun)) == len(await app.runs()) == MANY


async def test_one_key_sent_many_times_begins_one_run(
    installation: Installation, servers: list[Started]
) -> None:
    token = installation.token()
    async with AsyncExitStack() as stack, installation.decider() as app:
        both = await clients(stack, servers, token)
        answers = await asyncio.gather(
            *(
                one.post("/instances", json=BODY, headers={"Idempotency-Key": "one"})
                for _ in range(MANY)
                for one in both
            )
        )
        assert {one.status_code for one in answers} == {201}
        assert len({one.json()["id"] for one in answers}) == len(await app.runs()) == 1


async def test_each_link_signs_in_once(installation: Installation, servers: list[Started]) -> None:
    async def use(server: httpx.AsyncClient, link: str, number: int) -> int:
        """By people at machines of their own, so that no refusal counts against another."""
        headers = {"X-Forwarded-For": f"192.0.2.{number}"}
        return (await server.post("/login", data={"token": link}, headers=headers)).status_code

    async with AsyncExitStack() as stack:
        admin, _ = await clients(stack, servers, installation.token())
        links = [
            (await admin.post("/tokens/link", json={"name": f"person {number}"})).json()["token"]
            for number in range(MANY)
        ]
        both = await clients(stack, servers)
        pairs = await asyncio.gather(
            *(
                asyncio.gather(*(use(one, link, number) for one in both))
                for number, link in enumerate(links)
            )
        )
        assert [sorted(pair) for pair in pairs] == [[303, 401]] * MANY
        told = (await admin.get("/tokens")).json()["tokens"]
        assert sum(one["form"] == "session" for one in told) == MANY
