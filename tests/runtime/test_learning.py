"""Alerts are told, calls that need not wait are woken, and what other processes learn is read."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from scenes import until

from holdfast import Alert, AlertKind, Holdfast
from holdfast.errors import JournalUnavailable
from holdfast.i18n.message import msg
from holdfast.journal.memory import MemoryJournal
from holdfast.model.retry import Failure, FailureKind
from holdfast.repair.alerts import outage
from holdfast.repair.budgets import Call
from holdfast.repair.facts import Tried
from holdfast.runtime import alerting
from holdfast.runtime.background import BackgroundTasks
from holdfast.runtime.experience import ExperienceKeeper
from holdfast.runtime.learning import LOOK_SECONDS, Learning
from holdfast.runtime.log_lines import LIBRARIES, configure
from holdfast.testing.clock import ManualClock

pytestmark = pytest.mark.own_store

DOWN = Failure(FailureKind.TRANSIENT, "down", code="TransientError")


def alert(tool: str = "pay", run_id: str = "inst_000005") -> Alert:
    return outage(tool, 5, run_id, 1_800_000_000.0)


def raise_alert(app: Holdfast, told: Alert) -> None:
    app.engine.learning._alert(told)


async def test_functions_of_both_kinds_are_told_of_alerts(app: Holdfast) -> None:
    heard: list[tuple[str, Alert]] = []

    @app.on_alert
    async def on_the_loop(told: Alert) -> None:
        heard.append(("async", told))

    @app.on_alert
    def in_a_thread(told: Alert) -> None:
        assert threading.current_thread() is not threading.main_thread()
        heard.append(("plain", told))

    raise_alert(app, alert())
    await until(lambda: len(heard) == 2)
    assert sorted(heard) == [("async", alert()), ("plain", alert())]
    assert app.engine.learning.alerts[AlertKind.OUTAGE] == 1


async def test_a_function_that_takes_its_time_hears_of_each_in_order_and_holds_nothing_up(
    app: Holdfast,
) -> None:
    heard: list[str] = []
    gate = asyncio.Event()

    @app.on_alert
    async def slow(told: Alert) -> None:
        await gate.wait()
        heard.append(told.about)

    for tool in ("one", "two", "three"):
        raise_alert(app, alert(tool))

    @app.tool
    async def work() -> dict[str, Any]:
        return {}

    app.load_plan_text(PLAN)
    instance = await app.plans.start_plan_by_prompt("", "work")
    assert await instance.wait_for_completion(30) == "done"
    assert heard == []
    gate.set()
    await until(lambda: len(heard) == 3)
    assert heard == ["one", "two", "three"]


PLAN = """
plan_id: work
main_task_id: "001"
tasks: [{task_id: "001"}]
listeners:
  - listener_id: L001
    trigger_task_id: "001"
    trigger_condition: Running
    listener_type: tool
    tool: work
    success_output: {task_id: "001", status: Done}
"""


async def test_a_function_that_fails_is_told_of_the_next_alert_all_the_same(
    app: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    @app.on_alert
    def broken(told: Alert) -> None:
        heard.append(told.about)
        raise RuntimeError("the pager is off")

    raise_alert(app, alert("one"))
    raise_alert(app, alert("two"))
    await until(lambda: len(heard) == 2)
    await until(lambda: "two is out" in caplog.text and caplog.text.count("the pager is off") == 2)
    assert "broken failed, told of: one is out" in caplog.text


async def test_of_more_alerts_than_can_be_told_the_newest_are(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(alerting, "MOST_WAITING", 2)
    heard: list[str] = []

    @app.on_alert
    async def told_of(told: Alert) -> None:
        heard.append(told.about)

    for tool in ("one", "two", "three"):
        raise_alert(app, alert(tool))
    await until(lambda: len(heard) == 2)
    assert heard == ["two", "three"]
    assert "told_of is not told: one is out" in caplog.text


async def test_a_listener_that_fails_disturbs_neither_the_others_nor_who_raises(
    app: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Alert] = []

    def broken(told: Alert) -> None:
        raise RuntimeError("deaf")

    app.engine.learning.listeners += [broken, heard.append]
    raise_alert(app, alert())
    assert heard == [alert()]
    assert "a listener to alerts failed" in caplog.text


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root, libraries = logging.getLogger(), [logging.getLogger(one) for one in LIBRARIES]
    before = root.level, [one.level for one in libraries]
    stream = io.StringIO()
    handler = configure("info", "json", stream)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before[0])
    for library, level in zip(libraries, before[1], strict=True):
        library.setLevel(level)


async def test_a_log_line_says_which_kind_of_alert_it_is(app: Holdfast, lines: io.StringIO) -> None:
    raise_alert(app, alert())
    raise_alert(app, Alert(AlertKind.SLOW_CALL, msg("the tool is away"), "pay", 0.0))
    told = [json.loads(one) for one in lines.getvalue().splitlines()]
    [first, second] = [one for one in told if "alert" in one]
    assert (first["level"], first["alert"], first["run"]) == ("warning", "outage", "inst_000005")
    assert first["message"].startswith("pay is out: 5 runs have failed alike")
    assert second["alert"] == "slow_call"
    assert "run" not in second


class Woken:
    """What learns, beside a clock that is turned by hand."""

    def __init__(self) -> None:
        self.clock, self.background = ManualClock(), BackgroundTasks()
        self.journal = MemoryJournal()
        self.steps: list[tuple[str, str]] = []
        self.learning = self.another()

    def another(self) -> Learning:
        def wake(run_id: str, step_id: str) -> None:
            self.steps.append((run_id, step_id))

        return Learning(self.journal, self.clock, self.background, wake)

    async def turn(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.fixture
async def scene() -> AsyncIterator[Woken]:
    woken = Woken()
    await woken.journal.open()
    yield woken
    await woken.learning.close()
    await woken.journal.close()


def fail_together(keeper: ExperienceKeeper, runs: int) -> None:
    for number in range(runs):
        keeper.hold("pay", DOWN, Call(f"inst_{number}", "L001"))


def recovered(keeper: ExperienceKeeper) -> Tried:
    [fingerprint] = keeper.loads._by_tool["pay"].outages
    return Tried("pay", fingerprint, "outage", 0, 9.0, True, "inst_4", "L001", 1_800_000_000.0)


async def test_calls_that_waited_in_an_outage_go_on_one_after_the_other(scene: Woken) -> None:
    keeper = await scene.learning.experience()
    fail_together(keeper, 8)
    keeper._take([recovered(keeper)])
    await scene.turn(0.0)
    assert scene.steps == [("inst_5", "L001")]
    await scene.turn(0.4)
    assert len(scene.steps) == 1
    await scene.turn(0.1)
    assert scene.steps == [("inst_5", "L001"), ("inst_6", "L001")]
    await scene.turn(60.0)
    assert len(scene.steps) == 3


async def test_closing_does_not_wait_for_calls_that_would_be_woken(scene: Woken) -> None:
    keeper = await scene.learning.experience()
    fail_together(keeper, 8)
    keeper._take([recovered(keeper)])
    await scene.learning.close()
    await scene.turn(60.0)
    assert scene.steps == []
    assert not scene.learning._waking
    assert not scene.background.running


async def test_what_others_have_learned_is_read_once_a_minute(scene: Woken) -> None:
    ours, theirs = scene.learning, scene.another()
    await ours.look()
    assert not ours._is_open, "where nothing was in trouble nothing is read"
    await ours.experience()
    await theirs.experience()
    fail_together(theirs.keeper, 5)
    theirs.keeper._take([recovered(theirs.keeper)])
    await theirs.keeper.save()
    await ours.look()
    await scene.turn(LOOK_SECONDS - 0.1)
    await ours.look()
    assert not ours.keeper.experience.curves
    await scene.turn(0.1)
    await ours.look()
    assert ours.keeper.experience == theirs.keeper.experience
    await theirs.close()


async def test_two_servers_of_one_database_learn_from_each_other(database: str) -> None:
    """The sweeps of the follower do so; asked for what is newest, it is read at once."""
    async with (
        Holdfast(database=database, drives=False) as one,
        Holdfast(database=database, drives=False) as other,
    ):
        assert one.engine.follower is not None
        assert one.engine.learning.look in one.engine.follower.sweeps
        keeper = await one.engine.learning.experience()
        known = await other.engine.learning.experience()
        fail_together(known, 5)
        known._take([recovered(known)])
        await known.save()
        assert not keeper.experience.curves
        assert (await one.engine.learning.newest()).experience == known.experience


async def test_a_home_need_not_be_looked_at_again(app: Holdfast) -> None:
    keeper = await app.engine.learning.newest()
    assert app.engine.follower is None
    assert keeper is app.engine.learning.keeper


async def test_experience_that_cannot_be_read_is_read_with_the_next_trouble(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def down(*_: object) -> None:
        raise JournalUnavailable("the disk is gone")

    learning = app.engine.learning
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO):
        patch.setattr(app.journal, "all_kept", down)
        await learning._open()
    assert "what is known of failures is read later: the disk is gone" in caplog.text
    assert not learning._is_open
    await learning._open()
    assert learning._is_open
