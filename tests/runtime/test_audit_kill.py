"""kill -9 at every append while somebody acts: deed, claim and secret are there with what
was done, or none of it is."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest
from audit_child import REPORT, SECRET, furnished

import warm
from holdfast.app import Holdfast
from holdfast.journal.codec import decode
from holdfast.journal.port import verify
from holdfast.model import events as e

pytestmark = pytest.mark.own_store  # the process that is killed owns a home

RUN = "inst_000001"


class Mortals:
    """The process whose children will die."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def order(self, home: Path, **place: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"home": str(home), **place})
        self._process.stdin.write(line.encode() + b"\n")
        return int(await self._process.stdout.readline())

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert await self._process.wait() == 0


async def hire() -> Mortals:
    child = str(Path(__file__).parent / "audit_child.py")
    pipe = asyncio.subprocess.PIPE
    return Mortals(
        await warm.create_subprocess_exec(sys.executable, child, stdin=pipe, stdout=pipe)
    )


async def look(app: Holdfast) -> tuple[bool, bool]:
    """Whether the run was started and answered, having seen that the books say the same."""
    events = [decode(record) for record in await app.journal.read(RUN)]
    started = bool(events)
    answered = any(isinstance(event, e.QuestionAnswered) for event in events)
    entries = await app.journal.audit()
    assert verify(entries) is None
    assert [entry.record.action for entry in entries] == ["started"] * started + [
        "answered"
    ] * answered
    now = app.engine.clock.now()
    assert (await app.journal.kept("request", "start", now) is not None) == started
    assert (await app.journal.kept("request", "answer", now) is not None) == answered
    assert await app.journal.kept("secret", "s", now) == (SECRET if answered else None)
    return started, answered


async def test_the_books_agree_with_the_run_wherever_the_kill_comes(tmp_path: Path) -> None:
    mortals = await hire()
    assert await mortals.order(tmp_path / "whole") == 0
    reached = json.loads((tmp_path / "whole" / REPORT).read_text())
    seen = set()
    for point in ("append.before", "append.after"):
        for nth in range(1, reached[point] + 1):
            home = tmp_path / f"{point}.{nth}"
            # Appends may share a turn or not: the last one may never come.
            assert await mortals.order(home, point=point, nth=nth) in (-signal.SIGKILL, 0)
            async with furnished(home) as app:
                seen.add(await look(app))
    assert seen == {(False, False), (True, False), (True, True)}
    await mortals.end()
