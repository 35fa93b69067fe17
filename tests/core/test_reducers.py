"""`apply` alone: it decides nothing, bends nothing, and leaves the state before as it was."""

from __future__ import annotations

import pytest
from machine import Machine
from small_plans import ASK, CALL, CODE, WILL, compiled, on, question, started, succeed

from holdfast.core.plan.decide import replay
from holdfast.core.plan.state import PlanState
from holdfast.errors import IllegalTransition
from holdfast.journal.snapshots import dump_state
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.plan import TaskStatus

CHAIN = (on("L001", "001 Running", CALL, "002"), on("L002", "002 Done", ASK, "001"))


def paused() -> Machine:
    machine = started(*CHAIN)
    succeed(machine)
    return machine


def test_the_state_before_an_event_stays_as_it_was() -> None:
    machine = started(*CHAIN)
    before = machine.state
    written = dump_state(before)
    succeed(machine)
    assert machine.state != before
    assert dump_state(before) == written


def test_every_event_is_the_next_version_at_its_time() -> None:
    state = paused().state
    after = replay(state, [(5.0, e.LateResultKept("L001", 1))])
    assert (after.version, after.updated_at) == (state.version + 1, 5.0)
    assert after.steps == state.steps


@pytest.mark.parametrize(
    "event",
    [
        e.ListenerSucceeded("L001", 1),
        e.StepWoken("L001", 1),
        e.StepReleased("L002", 1),
        e.RunResumed(WILL),
        e.RunCompleted(),
        e.RunCancelled(),
        e.RunStarted("small", "", "", ""),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_that_does_not_fit_raises_instead_of_bending_the_state(event: e.PlanEvent) -> None:
    state = paused().state
    with pytest.raises(IllegalTransition):
        replay(state, [(0.0, event)])


def test_a_move_that_the_task_table_does_not_have_raises() -> None:
    machine = started(on("L001", "001 Running", CODE, "001"))
    machine.settle()
    assert machine.state.main_task.status is TaskStatus.DONE
    edited = e.TasksEdited(WILL, "by hand", (e.Move("001", TaskStatus.RETRYING),))
    with pytest.raises(IllegalTransition, match="Done cannot become Retrying"):
        replay(machine.state, [(0.0, edited)])


def test_a_question_closes_once() -> None:
    machine = paused()
    asked = question(machine).request_id
    closed = replay(machine.state, [(0.0, e.QuestionWithdrawn(asked, "why not"))])
    with pytest.raises(IllegalTransition):
        replay(closed, [(0.0, e.QuestionExpired(asked))])


def test_a_trace_tells_the_newest_first_and_skips_what_is_no_move() -> None:
    machine = started(*CHAIN)
    machine.submit(c.EditContext("001", {"x": 1}, WILL))
    succeed(machine)
    machine.submit(c.MarkDone("001", WILL))
    trace = [(entry.status.value, entry.reason) for entry in machine.state.main_task.trace]
    assert trace == [("Done", f"marked done by {WILL}"), ("Running", "start")]


def test_continue_lasts_until_the_next_event() -> None:
    machine = paused()
    asked = question(machine).request_id
    machine.submit(c.Answer(asked, WILL, None, {"colour": "red"}))
    assert machine.state.status == "continue"
    machine.start_ready()
    assert machine.state.status == "running"


def test_what_was_never_touched_is_not_stored() -> None:
    state = PlanState("r", plan=compiled(*CHAIN))
    assert state.task("002").status is TaskStatus.NOT_STARTED
    assert not len(state.tasks)
    assert not len(state.steps)
