"""A process whose planner's hook takes it down: `python hooked_child.py HOME`.

Each call of the hook is noted in the home before it does so, where no kill can undo it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Final

from repair_scenes import ACCESS, WHO, Staff

from holdfast import Holdfast, PlannerAgent
from holdfast.plans.hooks import Case

HOOKED: Final = "hooked"
RUN: Final = "inst_000001"
TWICE: Final = ACCESS.replace("repair: {", "repair: {most: {requests: 2}, ")


class Fatal(PlannerAgent):
    def __init__(self, home: Path) -> None:
        super().__init__(max_retry_count=0)
        self.home = home

    async def diagnose(self, case: Case) -> None:
        with (self.home / HOOKED).open("ab", buffering=0) as noted:
            noted.write(f"{case.case_id}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)


def fatal(home: Path) -> Holdfast:
    app = Staff().furnish(Holdfast(home, planner_agent=Fatal(home)))
    app.load_plan_text(TWICE)
    return app


async def main(home: Path) -> None:
    async with fatal(home) as app:
        if not await app.journal.version(RUN):
            values = {"id": "WZ001", "name": WHO}
            await app.plans.start_plan_by_prompt("", "access", values=values)
        while not await app.inbox():  # noqa: ASYNC110 - until it is proposed, or the process is gone
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
