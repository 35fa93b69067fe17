"""The show of `holdfast demo`: five runs that wait for a person, each in another way.

    failed       Will Zhang's onboarding: access control failed until the planner gave up
    onboarding   张三's onboarding: access control failed twice, and now a desk is asked for
    repair       Will Zhang's access: HR does not know the number, and a repair is proposed
    computer     a request that does not say which computer
    chat         the assistant wants to make a payment, and may not yet

All five are the visitor's own: the person who opens the link has started them. They are
played one after the other, so that every failure meets the run that it is meant for. Then
the office is mended, which lets a resume succeed, and it takes its time for each call, which
lets people see the run move.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.app import Holdfast
from holdfast.demo.colleagues import office_model
from holdfast.demo.office import Office
from holdfast.demo.onboarding import Request, Stage, furnish

ASSISTANT: Final = "assistant"
VISITOR: Final = "demo"
"""Who starts the runs, and who is signed in by the link: one person's story."""
PAYMENT: Final = "Please pay 420 to Will Zhang for the taxi."
THINKING: Final = 10.0
"""Seconds after which the show goes on without a proposal."""
UNHURRIED: Final = 0.4
"""Seconds that the office takes for each call once people look."""


@dataclass(frozen=True, slots=True)
class Show:
    """The runs that wait, by their ids."""

    failed: str
    onboarding: str
    repair: str
    computer: str
    chat: str


@asynccontextmanager
async def open_show(home: Path) -> AsyncIterator[Stage]:
    """The office opens, then the application on `home`, with everything that the office has."""
    async with Office.start() as office:
        app = Holdfast(home, max_retry_count=1, model=office_model())
        furnish(app, office.url, with_agents=True)
        async with app:
            yield Stage(app, office, by=VISITOR)


async def play(stage: Stage) -> Show:
    """Let the five runs come to where they wait, and mend the office."""
    failed = await stage.onboard({"grant_access": 6})
    onboarding = await stage.welcome({"grant_access": 2})
    repair = await _ask_for_repair(stage)
    computer = await stage.ask_for(Request.COMPUTER)
    chat = await _ask_to_pay(stage)
    await stage.office.reset_failures()
    await stage.office.configure_delays(dict.fromkeys(stage.tool_names(), UNHURRIED))
    return Show(failed.id, onboarding.id, repair, computer.id, chat)


async def _ask_for_repair(stage: Stage) -> str:
    """A run that gave up may still be thinking of what to propose."""
    access = await stage.let_in()
    await stage.app.engine.wait_for(access.id, lambda state: bool(state.open_questions), THINKING)
    return access.id


async def _ask_to_pay(stage: Stage) -> str:
    sessions = stage.app.sessions
    session = await sessions.open(ASSISTANT, by=stage.by)
    await sessions.say(session.id, PAYMENT, by=stage.by)
    await session.wait_until_settled()
    return session.id
