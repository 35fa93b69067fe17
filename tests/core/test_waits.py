"""Listeners that wait for a moment: a timer in the journal, and nothing in flight meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from machine import Machine
from small_plans import (
    ASK,
    CALL,
    KEYED,
    TRANSIENT,
    WILL,
    events,
    fail,
    on,
    reply,
    started,
    statuses,
    succeed,
)

from holdfast.core.run.state import next_moment
from holdfast.core.run.tables import StepStatus
from holdfast.drawing.graph import render_text
from holdfast.language.moments import utc_text
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.plan import WaitAction, WhilePaused

HOUR = 3600.0
START = 1_700_000_000.0


def waiting(action: WaitAction | None = None, **more: Any) -> Machine:
    """A run whose first listener waits, two hours if nothing else is said."""
    wait = action or WaitAction(after="2h")
    first = on("L001", "001 Running", wait, "002", context={"at": "{{result.until}}"})
    return started(first, on("L002", "002 Done", CALL, "001"), **more)


def later(machine: Machine, seconds: float) -> None:
    machine.now += seconds
    machine.submit(c.Tick())
    machine.start_ready()


def test_it_waits_on_a_timer_and_goes_on_when_the_moment_comes() -> None:
    machine = waiting()
    assert machine.state.steps["L001"].status is StepStatus.WAITING
    assert dict(machine.state.timers) == {"wait:L001": START + 2 * HOUR}
    assert not machine.flying
    assert statuses(machine)["002"] == "Pending"
    later(machine, 2 * HOUR - 1)
    assert machine.state.steps["L001"].status is StepStatus.WAITING
    later(machine, 1)
    succeed(machine)
    assert machine.state.task("002").context["at"] == utc_text(START + 2 * HOUR)
    assert not machine.state.timers
    succeed(machine)
    assert machine.state.status == "done"


def test_a_moment_that_has_passed_goes_on_at_once() -> None:
    machine = waiting(WaitAction(until="2001-01-01T00:00:00Z"))
    machine.start_ready()
    succeed(machine)
    assert statuses(machine)["002"] == "Done"
    assert [event.until for event in events(machine, e.WaitEnded)] == [
        datetime(2001, 1, 1, tzinfo=UTC).timestamp()
    ]


@pytest.mark.parametrize(
    ("action", "until"),
    [
        (WaitAction(until="2030-01-01T09:00:00+08:00"), "2030-01-01T01:00:00Z"),
        (WaitAction(until="2030-01-01T09:00:00", timezone="Asia/Shanghai"), "2030-01-01T01:00:00Z"),
        (WaitAction(until="{001.context.start_date}"), "2029-05-05T05:00:00Z"),
        (WaitAction(clock="09:00", weekdays=("fri",)), "2023-11-17T09:00:00Z"),
    ],
)
def test_the_moment_is_worked_out_when_it_starts(action: WaitAction, until: str) -> None:
    machine = Machine(waiting(action).plan)
    values = {"start_date": "2029-05-05T05:00:00Z"}
    machine.submit(c.StartRun("small", "go", values=values, by=WILL))
    machine.start_ready()
    assert utc_text(machine.state.timers["wait:L001"]) == until


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (WaitAction(until="{001.context.nowhere}"), "nowhere"),
        (WaitAction(until="{001.status}"), "Running is no moment"),
        (WaitAction(after="{001.status}"), "Running is no time to wait"),
    ],
)
def test_what_renders_to_no_moment_fails_the_listener(action: WaitAction, words: str) -> None:
    machine = waiting(action)
    [failed] = events(machine, e.ListenerFailed)
    assert words in failed.failure.message
    assert not machine.state.timers


def test_it_survives_a_crash_and_a_reload() -> None:
    machine = waiting()
    machine.crash()
    assert machine.state.steps["L001"].status is StepStatus.WAITING
    later(machine, 2 * HOUR)
    succeed(machine)
    assert statuses(machine)["002"] == "Done"


def test_it_is_skipped_while_it_waits() -> None:
    machine = waiting()
    machine.submit(c.Skip("L001", WILL))
    assert not machine.state.timers
    assert statuses(machine)["002"] == "Skipped"


def test_marking_its_task_done_ends_the_wait() -> None:
    machine = waiting()
    machine.submit(c.MarkDone("002", WILL))
    assert not machine.state.timers
    machine.start_ready()
    succeed(machine)
    assert machine.state.status == "done"


def test_a_cancelled_run_waits_for_nothing() -> None:
    machine = waiting()
    machine.submit(c.Cancel(WILL))
    assert machine.state.status == "cancelled"
    assert not machine.state.timers


def test_a_pause_holds_what_follows_and_not_the_clock() -> None:
    wait = on("L001", "001 Running", WaitAction(after="60"), "002")
    ask = on("L003", "001 Running", ASK, "003")
    last = on("L002", "002 003 Done", CALL, "001")
    machine = started(wait, ask, last, while_paused=WhilePaused.HOLD)
    later(machine, 61)
    assert machine.state.steps["L001"].status is StepStatus.READY
    reply(machine, data={"colour": "red"})
    machine.settle()
    assert machine.state.status == "done"


def test_a_resume_does_not_shorten_the_wait() -> None:
    wait = on("L001", "001 Running", WaitAction(after="1d"), "002")
    call = on("L003", "001 Running", CALL, "003")
    machine = started(wait, call, on("L002", "002 003 Done", CALL, "001"))
    fail(machine)
    machine.consult(0)
    assert machine.state.status == "error"
    machine.submit(c.Resume(WILL))
    assert machine.state.steps["L001"].status is StepStatus.WAITING
    machine.settle()
    assert machine.state.status == "done"


def test_a_drawing_says_that_it_waits() -> None:
    machine = waiting()
    drawn = render_text(machine.plan.plan, machine.state)
    assert "waiting for a moment" in drawn
    assert "2h" in drawn


def test_a_run_that_does_nothing_else_says_until_when_it_waits() -> None:
    machine = waiting()
    assert next_moment(machine.state) == START + 2 * HOUR
    later(machine, 2 * HOUR)
    assert next_moment(machine.state) is None
    succeed(machine)
    succeed(machine)
    assert (machine.state.status, next_moment(machine.state)) == ("done", None)


def test_one_that_does_more_only_runs() -> None:
    wait = on("L001", "001 Running", WaitAction(after="2h"), "002")
    machine = started(
        wait, on("L002", "001 Running", CALL, "003"), on("L003", "003 Done", ASK, "001")
    )
    assert (len(machine.flying), next_moment(machine.state)) == (1, None)
    succeed(machine)
    assert (machine.state.status, next_moment(machine.state)) == ("pause", None)


def test_one_that_is_about_to_try_again_does_not_say_that_it_waits() -> None:
    wait = on("L001", "001 Running", WaitAction(after="2h"), "002")
    machine = started(wait, on("L002", "001 Running", KEYED, "001"))
    fail(machine, TRANSIENT)
    assert machine.state.steps["L002"].status is StepStatus.BACKOFF
    assert (machine.state.status, next_moment(machine.state)) == ("running", None)
