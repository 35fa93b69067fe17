"""What goes wrong while a failure is looked at costs the look, never the run."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from repair_scenes import REPAIRED, Staff, given_up

from holdfast import Holdfast, PlannerAgent
from holdfast.errors import JournalUnavailable, NotFound
from holdfast.runtime.relearning import lived_until

OpenApp = Callable[..., Awaitable[Holdfast]]


class Cut(PlannerAgent):
    """The journal is down at its first look."""

    looks = 0

    async def examine(self, *of: Any) -> Any:
        self.looks += 1
        if self.looks == 1:
            raise JournalUnavailable("the database is being restarted")
        return await super().examine(*of)

    async def _look(self, *of: Any) -> None:
        """So that the case is looked at afterwards."""


async def test_a_journal_that_is_down_is_waited_for(open_app: OpenApp) -> None:
    app = Staff().furnish(await open_app(planner_agent=Cut(max_retry_count=0)))
    [(run, question_id)] = await given_up(app, ["WZ001"])
    planner = app.planner_agent
    assert isinstance(planner, Cut)
    assert planner.looks == 2
    await app.answer(question_id, option_id="apply", by="will")
    assert await run.wait_for_completion(60) == "done"


async def test_what_cannot_be_learned_from_stops_no_run(
    open_app: OpenApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    staff = Staff()
    app = staff.furnish(await open_app())

    def broken(*of: Any) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(app.engine.learning.keeper, "note", broken)
    with caplog.at_level(logging.ERROR, "holdfast"):
        [(run, question_id)] = await given_up(app, ["WZ001"])
        await app.answer(question_id, option_id="apply", by="will")
        assert await run.wait_for_completion(60) == "done"
    assert staff.counts("WZ001") == REPAIRED
    assert f"nothing is learned of run {run.id}" in caplog.text


async def test_nor_does_what_was_learned_and_cannot_be_read(
    open_app: OpenApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Staff().furnish(await open_app(max_retry_count=1))
    repairer = app.planner_agent.repairer
    assert repairer is not None

    async def broken(*of: Any) -> Any:
        raise IndexError("a row of another length")

    monkeypatch.setattr("holdfast.plans.module._learns", lambda *of: True)
    monkeypatch.setattr(type(repairer), "worth_waiting", broken)
    [(run, _)] = await given_up(app, ["WZ001"])
    assert (await app.engine.state(run.id)).status == "error"


async def test_a_run_that_is_removed_while_it_is_read_teaches_nothing(open_app: OpenApp) -> None:
    app = Staff().furnish(await open_app())
    [(run, _)] = await given_up(app, ["WZ001"])
    beyond = await app.journal.version(run.id) + 1
    with pytest.raises(NotFound, match="removed while it was read"):
        await lived_until(app.journal, app.engine.definitions, run.id, beyond)
