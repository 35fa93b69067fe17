"""An application and the office in one time: a run is played until nothing moves by itself.

Both clocks stand still while anything is under way. When nothing is, a person answers what is open,
and only where nobody does is time put on, to the next moment that a run waits for. The office's
clock goes first, so that whatever the application does then meets an office that is as late.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from bench.repair.door import Door
from bench.repair.person import Answering
from bench.repair.scenario import DONE, WAITS
from holdfast import Holdfast
from holdfast.demo import onboarding
from holdfast.demo.office import Office
from holdfast.journal.port import QuestionRow
from holdfast.model.rows import QuestionQuery, RunQuery
from holdfast.testing.clock import ManualClock
from holdfast.work.models import ModelClient

HANGS: Final = "hangs"
PATIENCE: Final = 120.0
"""Real seconds for what is under way to come to rest: a model over the network takes its time."""
LONGEST: Final = 4 * 3600.0
"""Seconds by the clock that are played: whatever waits by itself waits an hour at most."""
MOST_TURNS: Final = 200
"""Answers and waits."""
_NAP: Final = 0.002
_TOOLS: Final = Path(onboarding.__file__).parent / "tools.yaml"


class Playing:
    """One application on a home of its own, its office, and the people who are asked."""

    def __init__(self, app: Holdfast, office: Office, door: Door, clock: ManualClock) -> None:
        self.app, self.office, self.door, self.clock = app, office, door, clock
        self.began = clock.now()
        self.door_opens = 0.0

    @property
    def passed(self) -> float:
        """Seconds by the clock since the beginning."""
        return self.clock.now() - self.began

    async def play(self, people: Answering) -> str:
        """Until the end: `done`, or how else it came to rest."""
        try:
            for _ in range(MOST_TURNS):
                await self._at_rest()
                if not await self._answered(people) and not await self._waited():
                    return await self._end()
        except TimeoutError:
            pass
        return HANGS

    async def _at_rest(self) -> None:
        """Nothing is under way, and no timer is about to ring."""
        async with asyncio.timeout(PATIENCE):
            while await self._moves():  # noqa: ASYNC110 - a journal calls nobody
                await asyncio.sleep(_NAP)

    async def _moves(self) -> bool:
        """What is read one after the other tells of one moment only where nothing was committed
        meanwhile: a run that is woken has no timer any more, and was not active before."""
        journal = self.app.journal
        before = await journal.last_commit()
        if await journal.active_runs() or await journal.notices():
            return True
        wake = await journal.next_wake()
        due = wake is not None and wake <= self.clock.now()
        return due or await journal.last_commit() != before

    async def _answered(self, people: Answering) -> bool:
        """Whether a person has said anything, or is about to."""
        for row in await self.questions(frozenset({"open"})):
            if takes := people.considers(row):
                await self._advance(takes)
                return True
            if await people.answer(row):
                return True
        return False

    async def _waited(self) -> bool:
        """Whether there was a moment to wait for."""
        wake = await self.app.journal.next_wake()
        if wake is None or wake > self.began + LONGEST:
            return False
        await self._advance(wake - self.clock.now())
        return True

    async def _advance(self, seconds: float) -> None:
        if 0 < self.door_opens <= self.passed + seconds:
            await self.door.open()
        await self.office.advance(max(seconds, 0.0))
        self.clock.advance(seconds)

    async def _end(self) -> str:
        """Of the runs that nobody else waits for."""
        runs = await self.app.runs(RunQuery(roots_only=True))
        ends = {run.status for run in runs}
        if ends <= {"done"}:
            return DONE
        return WAITS if ends <= {"done", "error", "pause"} else ", ".join(sorted(ends))

    async def questions(self, status: frozenset[str] | None = None) -> list[QuestionRow]:
        return await self.app.journal.questions(QuestionQuery(status=status, limit=1000))

    async def events(self) -> list[tuple[str, Mapping[str, Any]]]:
        """What all runs' journals say: each event's name, and what it says."""
        told = []
        for run in await self.app.runs(RunQuery(limit=1000)):
            for record in await self.app.journal.read(run.run_id):
                told.append((record.type.partition("@")[0], json.loads(record.payload)))
        return told


@asynccontextmanager
async def opened(
    home: Path, office: Office, models: ModelClient, **options: Any
) -> AsyncIterator[Playing]:
    """A fresh office, and an application that has no tools yet."""
    await office.reset()
    clock = ManualClock()
    async with Door(office.url) as door:
        app = Holdfast(
            home, database="", clock=clock, model=models, tune_collector=False, **options
        )
        async with app:
            yield Playing(app, office, door, clock)


def load_tools(playing: Playing, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """The office's tools as they are declared, but for the changes."""
    declared = YAML(typ="safe", pure=True).load(_TOOLS.read_text(encoding="utf-8"))["tools"]
    tools = [{**one, **changes.get(one["name"], {})} for one in declared]
    file = playing.app.home / "tools.json"
    file.write_text(json.dumps({"tools": tools}), encoding="utf-8")
    urls = {"OFFICE_URL": playing.office.url, "DOOR_URL": playing.door.url}
    playing.app.load_tools(file, urls, replace=True)
