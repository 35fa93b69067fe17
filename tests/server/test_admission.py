"""Reads are admitted in turn, and leave runs their share of the loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest
from server_scene import Scene, start

from holdfast.journal.memory import MemoryJournal
from holdfast.runtime.hub import Hub
from holdfast.server.middleware.admission import (
    QUIET_SECONDS,
    SHARE,
    SLICE_SECONDS,
    Admission,
    Credit,
)
from holdfast.server.routing import GONE
from holdfast.server.serving import SWITCH_SECONDS, switching_often

LONG = 1e6


class Queue:
    """An admission whose clock and timers a test moves by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.hub = Hub(MemoryJournal())
        self.admission = Admission(self.hub, lambda: self.now)
        self.later: list[Callable[[], None]] = []
        self.answered: list[int] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "call_later", lambda _, call: self.later.append(call))

    def read(self, number: int, takes: float = 0.0) -> asyncio.Task[None]:
        async def one() -> None:
            await self.admission.turn()
            self.now += takes
            self.answered.append(number)

        return asyncio.create_task(one())

    def commit(self) -> None:
        for one in tuple(self.hub._onlookers):
            one()

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due, self.later[:] = self.later[:], []
        for call in due:
            call()
        await turns()


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def busy_queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    """Runs are at work, and the first reads have used up what they may take."""
    queue = Queue(monkeypatch)
    queue.read(0)
    await turns()
    queue.commit()
    queue.read(1, takes=0.010)
    await turns()
    assert queue.answered == [0, 1]
    return queue


async def test_credit_grows_with_time_up_to_a_slice() -> None:
    credit = Credit(0.0)
    credit.spend(0.1)
    owed = 0.1 - SLICE_SECONDS
    assert credit.missing(0.0) == pytest.approx(owed / SHARE)
    assert credit.missing(0.1) == pytest.approx(owed / SHARE - 0.1)
    assert credit.missing(LONG) == 0.0
    credit.spend(SLICE_SECONDS + 0.001)
    assert credit.missing(LONG) == pytest.approx(0.001 / SHARE)


async def test_a_read_waits_while_runs_have_not_had_their_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = await busy_queue(monkeypatch)
    queue.read(2)
    await turns()
    assert queue.answered == [0, 1]
    await queue.pass_time(0.012)
    queue.commit()
    assert queue.answered == [0, 1], "24 ms are owed for what the first ones took"
    await queue.pass_time(0.012)
    assert queue.answered == [0, 1, 2]


async def test_reads_follow_each_other_where_no_run_is_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = Queue(monkeypatch)
    for number in range(50):
        queue.read(number, takes=0.010)
    await turns(200)
    assert queue.answered == list(range(50))
    assert queue.later == []


async def test_a_run_that_has_gone_quiet_is_waited_for_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = await busy_queue(monkeypatch)
    queue.admission._credit.spend(LONG)
    queue.read(2)
    await turns()
    await queue.pass_time(QUIET_SECONDS)
    assert queue.answered == [0, 1, 2]


async def test_a_turn_of_the_loop_holds_a_slice_of_reads_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = Queue(monkeypatch)
    for number in range(100):
        queue.read(number, takes=0.003)
    counts = []
    for _ in range(300):
        before = len(queue.answered)
        await asyncio.sleep(0)
        counts.append(len(queue.answered) - before)
    assert queue.answered == list(range(100))
    assert max(counts[40:]) == 1, "once it is known what a read takes"


async def test_who_leaves_the_queue_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = await busy_queue(monkeypatch)
    gone, there = queue.read(2), queue.read(3)
    await turns()
    gone.cancel()
    await queue.pass_time(LONG)
    await there
    assert queue.answered == [0, 1, 3]


async def test_only_reads_wait(scene: Scene) -> None:
    instance_id = await start(scene)
    admission = scene.services.admission
    admission._credit.spend(LONG)
    admission._committed_at = admission._clock() + LONG
    read = asyncio.create_task(scene.admin.get("/runs"))
    assert (await scene.stranger.get("/healthz")).status_code == 200
    assert (await scene.stranger.get("/readyz")).status_code == 200
    continued = await scene.admin.post(
        f"/instances/{instance_id}/continue",
        json={"provided_params": {"computer_model": "MacBook Pro"}},
    )
    assert continued.status_code == 200
    assert not read.done()
    admission._committed_at = -LONG
    assert (await read).status_code == 200


async def test_who_has_left_before_their_turn_is_no_failure_of_ours(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    admission = scene.services.admission
    admission._credit.spend(LONG)
    admission._committed_at = admission._clock() + LONG
    read = asyncio.create_task(scene.admin.get("/runs"))
    while not admission._waiting:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0)
    read.cancel()
    await asyncio.wait([read])
    await scene.admin.get("/healthz")
    admission._committed_at = -LONG
    counts = scene.services.counts.requests
    while ("GET", "/runs", GONE) not in counts:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.001)
    assert not caplog.records


async def test_a_thread_that_computes_gives_the_loop_its_turn_soon() -> None:
    before = sys.getswitchinterval()
    with switching_often():
        assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS)
    assert sys.getswitchinterval() == before
