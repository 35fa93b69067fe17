"""Processes made to be killed in the middle of the onboarding with agents.

Each line on stdin names a home and the fault point to die at. Everything is read once; then
each order forks a process of its own, which begins the onboarding on the real journal and goes
on until that point kills it. One line per order tells how that process ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.app import Holdfast
from holdfast.demo.colleagues import office_model
from holdfast.demo.onboarding import HERE, ONBOARDING_WITH_AGENTS, WILL_ZHANG
from holdfast.runs.handles import PlanInstance
from holdfast.runtime.executor import FaultPoints
from holdfast.source.check import syntax_problems
from holdfast.source.planfile import load_plan
from holdfast.testing.faults import CountFaults, KillAt

REPORT = "report.json"


class Furniture:
    """The office's tools, agents and plan, read once and put into any number of applications."""

    def __init__(self, url: str) -> None:
        self._model = Holdfast.in_memory()
        self._model.load_tools(HERE / "tools.yaml", {"OFFICE_URL": url})
        self._agents = self._model.load_agents(HERE / "agents.yaml")
        file = HERE / "agent_plans" / f"{ONBOARDING_WITH_AGENTS}.yaml"
        # Without the sandbox's own look at snippets: it starts threads, and we fork.
        catalog = replace(self._model.catalog(), snippet_checker=syntax_problems)
        self._plan = load_plan(file.read_text(encoding="utf-8"), file.name, catalog)

    def app(self, home: Path, faults: FaultPoints | None = None) -> Holdfast:
        app = Holdfast(home, faults=faults, model=office_model())
        for name in self._model.tools:
            app.tools.add(self._model.tools.get(name))
        for agent in self._agents:
            app.engine.definitions.add_agent(agent)
        app.add_plan(self._plan)
        return app

    async def close(self) -> None:
        """Close the connections that the tools have opened on this loop."""
        async with self._model:
            pass


async def begin(app: Holdfast) -> PlanInstance:
    return await app.plans.start_plan_by_prompt("入职", ONBOARDING_WITH_AGENTS, values=WILL_ZHANG)


async def live(furniture: Furniture, order: dict[str, Any]) -> None:
    counting = CountFaults()
    faults = KillAt(order["point"], order["nth"]) if "point" in order else counting
    home = Path(order["home"])
    async with furniture.app(home, faults) as app:
        status = await (await begin(app)).wait_until_settled(20)
    report = {"status": status, "reached": dict(counting.reached)}
    (home / REPORT).write_text(json.dumps(report))


def carry_out(furniture: Furniture, order: dict[str, Any]) -> int:
    """The exit status of the process that carried it out, negative for the signal it died of."""
    child = os.fork()
    if child == 0:
        asyncio.run(live(furniture, order))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    furniture = Furniture(sys.argv[1])
    for line in sys.stdin:
        print(carry_out(furniture, json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
