"""The seeds' stage: an application on a real SQLite file, the office's tools, and its plans.

The demo plans are the seeds' scenarios; only their pauses between attempts are made short.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import holdfast.demo
from holdfast import Holdfast, PlanModule, PlannerAgent
from holdfast.core.plan.decide import blank, replay
from holdfast.demo.office import Office
from holdfast.journal.codec import decode

DEMO = Path(holdfast.demo.__file__).parent

OpenApp: TypeAlias = Callable[..., Awaitable[Holdfast]]


@pytest.fixture
async def app(open_app: OpenApp, office: Office, tmp_path: Path) -> Holdfast:
    return staged(await open_app(tmp_path / "home"), office)


@pytest.fixture
def plan_module(app: Holdfast) -> PlanModule:
    return app.plans


@pytest.fixture
def planner_agent(app: Holdfast) -> PlannerAgent:
    return app.planner_agent


@pytest.fixture
def stage(office: Office) -> Callable[[Holdfast], Holdfast]:
    """Gives another application the same tools and plans."""
    return lambda app: staged(app, office)


@pytest.fixture
def statuses_of() -> Callable[[Holdfast, str], Awaitable[list[str]]]:
    """Every status that an instance has passed through: a fold of its journal."""

    async def fold(app: Holdfast, run_id: str) -> list[str]:
        state = blank(run_id, (await app.engine.state(run_id)).plan)
        passed = [state.status.value]
        for record in await app.journal.read(run_id):
            state = replay(state, [(record.at, decode(record))])
            if state.status != passed[-1]:
                passed.append(state.status.value)
        return passed

    return fold


@pytest.fixture
def will_zhang() -> dict[str, Any]:
    """The main task's context of the seeds' onboarding."""
    return {
        "id": "WZ001",
        "name": "Will Zhang",
        "email": "will.zhang@example.com",
        "department": "Engineering",
    }


def staged(app: Holdfast, office: Office) -> Holdfast:
    app.load_tools(DEMO / "tools.yaml", {"OFFICE_URL": office.url})
    for file in sorted((DEMO / "plans").glob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        app.load_plan_text(text.replace("initial: 0.05", "initial: 0.001"), file.name)
    return app
