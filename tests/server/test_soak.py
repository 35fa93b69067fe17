"""Two hundred listeners, twenty of them deaf, while a hundred runs go on.

Everybody comes and goes at random places, and in the end everybody has heard everything once,
in order; what the server kept for them was bounded all the time.
"""

from __future__ import annotations

import asyncio
import gc
import random
import re
import tracemalloc
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chains import chain
from listeners import Deaf, seen
from server_scene import Scene, serving

from holdfast import Holdfast
from holdfast.server.settings import ServerSettings
from holdfast.server.streams.feed import Ring

LISTENERS = 200
DEAF = 20
RUNS = 100
STEPS = 6
SEED = 20260105
LARGE = 500_000

RECORD = re.compile(rb'^id: (\d+)\n.*?\n.*?"run_id": "(\w+)", "seq": (\d+)', re.M)


class Listener:
    """Reads, goes away at random, comes back with what it heard last."""

    def __init__(self, url: str, token: str, dice: random.Random) -> None:
        self._place = urlsplit(url)
        self._token = token
        self._dice = dice
        self.cursor = 0
        self.records: dict[bytes, list[int]] = {}
        self.count = 0
        self.connections = 0

    async def listen(self, until: asyncio.Event, last: list[int]) -> None:
        while not (until.is_set() and self.cursor >= last[0]):
            reader, writer = await asyncio.open_connection(
                self._place.hostname, self._place.port, limit=1 << 20
            )
            self.connections += 1
            try:
                await self._connected(reader, writer, until, last)
            finally:
                writer.transport.abort()

    async def _connected(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        until: asyncio.Event,
        last: list[int],
    ) -> None:
        writer.write(
            f"GET /events HTTP/1.1\r\nHost: {self._place.netloc}\r\n"
            f"Authorization: Bearer {self._token}\r\nLast-Event-ID: {self.cursor}\r\n\r\n".encode()
        )
        assert b" 200 " in await reader.readline()
        await reader.readuntil(b"\r\n\r\n")
        enough = self.count + self._dice.randrange(50, 1500)
        while self.count < enough and not (until.is_set() and self.cursor >= last[0]):
            size = int(await reader.readline(), 16)
            self._take((await reader.readexactly(size + 2))[:-2])

    def _take(self, chunk: bytes) -> None:
        """A chunk is whole frames."""
        for position, run, seq in RECORD.findall(chunk):
            assert int(position) > self.cursor
            self.cursor = int(position)
            self.records.setdefault(run, []).append(int(seq))
            self.count += 1


async def run_all(scene: Scene) -> None:
    async def one() -> None:
        instance = await scene.app.plans.start_plan_by_prompt("", "chain")
        assert await instance.wait_for_completion() == "done"

    for _ in range(RUNS // 10):
        await asyncio.gather(*(one() for _ in range(10)))


@pytest.mark.timeout(200)
async def test_a_crowd_of_listeners_hears_everything_once_and_costs_what_is_bounded(
    app: Holdfast,
) -> None:
    async def touch() -> dict[str, str]:
        return {"note": "x" * 300}

    app.tool(touch, idempotent=True)
    app.load_plan_text(chain(STEPS))
    dice = random.Random(SEED)
    settings = ServerSettings(heartbeat=0.5, stall_seconds=0.5)
    async with serving(app, settings) as scene:
        feed = scene.services.feed
        ring = feed.ring = Ring(most_entries=500, most_bytes=256 * 1024)
        _, token = await scene.services.tokens.issue("crowd", "service", ["viewer"], None)
        deaf = [await Deaf.at(scene.url, "/events?after=0", token) for _ in range(DEAF)]
        done, last = asyncio.Event(), [0]
        listeners = [
            Listener(scene.url, token, random.Random(dice.random()))
            for _ in range(LISTENERS - DEAF)
        ]
        async with asyncio.timeout(180), asyncio.TaskGroup() as group:
            for one in listeners:
                group.create_task(one.listen(done, last))
            await run_all(scene)
            last[0] = await app.journal.last_commit()
            done.set()
        await seen(lambda: scene.services.streams.dropped >= DEAF)
        assert len(ring) <= 500
        assert ring.bytes <= 256 * 1024
        for one in deaf:
            one.close()
        returned = [Listener(scene.url, token, dice) for _ in range(DEAF)]
        async with asyncio.timeout(60):
            await asyncio.gather(*(one.listen(done, last) for one in returned))

        versions = {row.run_id: await app.journal.version(row.run_id) for row in await app.runs()}
        expected = {run.encode(): [*range(1, last + 1)] for run, last in versions.items()}
        assert sum(versions.values()) == last[0]
        for one in listeners + returned:
            assert one.records == expected
        assert sum(one.connections for one in listeners) > LISTENERS
        assert feed.resyncs == 0
        await seen(lambda: scene.services.streams.clients == 0 and feed.clients == 0)


@pytest.mark.timeout(200)
async def test_large_records_pass_by_and_are_never_in_memory_together(tmp_path: Path) -> None:
    async def touch() -> dict[str, str]:
        return {"note": "x" * LARGE}

    app = Holdfast(tmp_path)
    app.tool(touch, idempotent=True)
    app.load_plan_text(chain(40))
    async with app, serving(app) as scene:
        instance = await app.plans.start_plan_by_prompt("", "chain")
        assert await instance.wait_for_completion() == "done"
        for path in ("/events?after=0", f"/runs/{instance.id}/events"):
            size = 0
            gc.collect()
            tracemalloc.start()
            try:
                async with scene.admin.stream("GET", path) as response:
                    async for part in response.aiter_bytes():
                        size += len(part)
                        if size > 40 * LARGE:
                            break
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert size > 40 * LARGE, path
            assert peak < 12 * LARGE, path
