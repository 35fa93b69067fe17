"""Threads for calls that block: one that hangs holds up nobody, and no process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest

from holdfast.work import threads
from holdfast.work.threads import Threads, in_own_thread

PATIENCE = 30
SPOKEN: ContextVar[str] = ContextVar("spoken", default="nobody")

HANGING = """
import asyncio, threading
from holdfast.work.threads import in_own_thread

async def main():
    begun = threading.Event()
    def hang():
        begun.set()
        threading.Event().wait()
    call = asyncio.ensure_future(in_own_thread(hang))
    while not begun.is_set():
        await asyncio.sleep(0.01)
    if {cancelled}:
        call.cancel()

asyncio.run(main())
print("over")
"""


class Booth:
    """Calls that block until they are let go."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.open = threading.Event()
        self._one_more = threading.Semaphore(0)

    def work(self, number: int) -> int:
        self.begun.append(number)
        self._one_more.release()
        assert self.open.wait(PATIENCE)
        return number

    async def has_begun(self, count: int) -> None:
        for _ in range(count):
            assert await asyncio.to_thread(self._one_more.acquire, timeout=PATIENCE)


async def test_many_calls_that_block_go_on_at_once() -> None:
    booth = Booth()
    calls = [asyncio.ensure_future(in_own_thread(booth.work, one)) for one in range(40)]
    await booth.has_begun(40)
    booth.open.set()
    assert await asyncio.gather(*calls) == list(range(40))


async def test_beyond_the_most_they_wait_and_what_is_called_off_never_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "POOL", Threads(2))
    booth = Booth()
    calls = [asyncio.ensure_future(in_own_thread(booth.work, one)) for one in range(4)]
    await booth.has_begun(2)
    calls[2].cancel()
    await asyncio.wait([calls[2]])
    booth.open.set()
    assert await asyncio.gather(calls[0], calls[1], calls[3]) == [0, 1, 3]
    assert sorted(booth.begun) == [0, 1, 3]


async def test_a_thread_is_used_again_and_ends_when_it_has_been_idle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = Threads(idle_seconds=0.05)
    monkeypatch.setattr(threads, "POOL", pool)
    first = await in_own_thread(threading.current_thread)
    await asyncio.to_thread(first.join, PATIENCE)
    assert not first.is_alive()
    assert await in_own_thread(threading.current_thread) is not first
    monkeypatch.setattr(threads, "POOL", Threads())
    found = {await in_own_thread(threading.get_ident) for _ in range(20)}
    assert len(found) < 20


async def test_what_it_raises_and_who_calls_arrive() -> None:
    SPOKEN.set("Will Zhang")
    assert await in_own_thread(SPOKEN.get) == "Will Zhang"
    with pytest.raises(ZeroDivisionError):
        await in_own_thread(lambda: 1 / 0)


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_process_ends_although_a_call_hangs(cancelled: bool) -> None:
    code = HANGING.format(cancelled=cancelled)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")


def test_a_result_that_comes_after_the_loop_is_closed_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    pool = Threads(idle_seconds=0.05)
    monkeypatch.setattr(threads, "POOL", pool)
    booth = Booth()
    at_work: list[threading.Thread] = []

    def work() -> int:
        at_work.append(threading.current_thread())
        return booth.work(1)

    async def begin() -> None:
        call = asyncio.ensure_future(in_own_thread(work))
        await booth.has_begun(1)
        call.cancel()

    asyncio.run(begin())
    booth.open.set()
    at_work[0].join(PATIENCE)
    assert not at_work[0].is_alive()
    assert raised == []
