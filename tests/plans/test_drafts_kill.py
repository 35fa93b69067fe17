"""kill -9 while a plan is drawn up, approved and run: one plan, no effect twice, and never more
requests than the budget allows."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from draft_child import REPORT, REQUEST, application
from drafting_office import Office, Person, see_through
from scenes import assert_sound

import warm
from holdfast.journal.codec import decode
from holdfast.model import events as e
from holdfast.model.rows import request_of
from holdfast.plans.draft_plan import DRAFTED, THINKING
from holdfast.work.drafting import MOST_REQUESTS

pytestmark = pytest.mark.own_store  # the process that is killed owns a home

POINTS = ("append.after", "append.before", "effect.after", "effect.before")
RUN = "inst_000001"


@dataclass(slots=True)
class Mortals:
    process: asyncio.subprocess.Process

    async def order(self, home: Path, **place: object) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        line = json.dumps({"home": str(home), **place})
        self.process.stdin.write(line.encode() + b"\n")
        return int(await self.process.stdout.readline())


@pytest.fixture
async def mortals() -> AsyncIterator[Mortals]:
    child = Path(__file__).parent / "draft_child.py"
    places = [str(child.parent), str(child.parents[1]), *sys.path]
    process = await warm.create_subprocess_exec(
        sys.executable,
        str(child),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
    )
    yield Mortals(process)
    assert process.stdin is not None
    process.stdin.close()
    assert await process.wait() == 0


def requests(home: Path) -> int:
    log = home / "requests"
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.mark.parametrize("point", POINTS)
async def test_one_plan_is_drawn_up_approved_and_run_wherever_the_kill_comes(
    mortals: Mortals, tmp_path: Path, point: str
) -> None:
    assert await mortals.order(tmp_path / "whole") == 0
    report = json.loads((tmp_path / "whole" / REPORT).read_text())
    assert report["status"] == "done"
    assert requests(tmp_path / "whole") == 2
    for nth in range(1, report["reached"][point] + 1):
        home = tmp_path / f"{point}.{nth}"
        # Two results may share an append or not: the last one may never come.
        assert await mortals.order(home, point=point, nth=nth) in (-signal.SIGKILL, 0), home
        async with application(home) as app:
            if not await app.runs():
                await app.plans.start_plan_by_prompt(REQUEST.text)
            instance = await app.instance(RUN)
            assert await see_through(app, instance, Person()) == "done", home
            children = [row for row in await app.runs() if row.parent_id == RUN]
            assert [row.name for row in children] == [DRAFTED], home
            for row in await app.runs():
                await assert_sound(app, row.run_id)
        effects = Office(home / "calls").effects()
        assert set(effects.values()) == {1}, (home, effects)
        assert set(effects) == set(REQUEST.tools), home
        assert requests(home) <= MOST_REQUESTS, home


async def test_a_process_that_dies_at_each_request_spends_no_more_than_the_budget(
    mortals: Mortals, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    for _ in range(MOST_REQUESTS):
        assert await mortals.order(home, fatal=True) == -signal.SIGKILL
    assert requests(home) == MOST_REQUESTS
    async with application(home) as app:
        instance = await app.instance(RUN)
        assert await instance.wait_until_settled(30) == "error"
        assert "quarantined" in (instance.error or "")
        await app.resume(RUN)
        assert await instance.wait_until_settled(30) == "pause"
        (row,) = await app.inbox()
        assert "asked 3 times, and may be asked no more" in request_of(row).message
        events = [decode(one) for one in await app.journal.read(RUN)]
        starts = [
            one
            for one in events
            if isinstance(one, e.ListenerStarted) and one.listener_id in THINKING
        ]
        assert len(starts) == MOST_REQUESTS + 1
    assert requests(home) == MOST_REQUESTS
    assert Office(home / "calls").calls() == []
