"""Drives runs that the dispatcher hands to this process, as far as it has what they need."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from holdfast.errors import NotFound
from holdfast.journal.port import Drive
from holdfast.runs.required_tools import own_tools
from holdfast.runtime.drives import HandedBack
from holdfast.runtime.engine import Engine

MOST_TRIES: Final = 5
"""How often a run that needs a tool which is not here is left to other workers; then it is driven
all the same, and a person sees what is missing."""

TRY_SECONDS: Final = 1.0


class RunDriver:
    def __init__(self, engine: Engine, tools: Container[str]) -> None:
        self._engine = engine
        self._tools = tools

    async def drive(self, run_id: str, drive: Drive) -> None:
        try:
            state = await self._engine.state(run_id)
        except NotFound:
            return  # it was removed
        missing = [one for one in own_tools(state) if one not in self._tools]
        if missing and drive.attempt < MOST_TRIES:
            reason = f"this process has no tool {', '.join(dict.fromkeys(missing))}"
            raise HandedBack(run_id, reason, TRY_SECONDS * 2**drive.attempt)
        await self._engine.drive(run_id, drive)

    def holds(self, job: int) -> bool:
        return self._engine.holds(job)
