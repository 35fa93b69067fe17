"""What people do to a run by hand: skip, mark done, edit, run again."""

from __future__ import annotations

import pytest
from machine import Machine
from small_plans import (
    ASK,
    CALL,
    CODE,
    COLOUR,
    PERMANENT,
    TRANSIENT,
    WILL,
    compiled,
    events,
    fail,
    give_up,
    on,
    only,
    question,
    reply,
    started,
    statuses,
    succeed,
)

from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer, NotAllowed, NotFound
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.plan import Check

CHAIN = (
    on("L001", "001 Running", CALL, "002"),
    on("L002", "002 Done", CALL, "003"),
    on("L003", "003 Done", CODE, "001"),
)
SIDE = on("L009", "001 Running", CALL, "009")


class TestSkipping:
    def test_a_failed_listener_is_passed_over_and_its_task_skipped(self) -> None:
        machine = started(
            on("L001", "001 Running", CALL, "002"), on("L002", "002 Skipped", CODE, "001")
        )
        give_up(machine)
        machine.submit(c.Skip("L001", WILL, "done by phone"))
        assert machine.state.failed == ()
        assert machine.state.status == "error", "a person decides when it goes on"
        machine.submit(c.Resume(WILL))
        machine.settle()
        assert machine.state.status == "done"

    def test_one_that_waits_for_its_next_attempt_loses_its_timer(self) -> None:
        machine = started(*CHAIN, SIDE)
        one, _ = machine.flying.values()
        machine.report(one, TRANSIENT)
        machine.submit(c.Skip(one.work.step_id, WILL))
        assert not len(machine.state.timers)

    def test_one_that_asks_takes_its_question_back(self) -> None:
        machine = started(on("L001", "001 Running", ASK, None), SIDE)
        asked = question(machine).request_id
        machine.submit(c.Skip("L001", WILL))
        assert machine.state.questions[asked].status == "withdrawn"
        assert machine.state.status == "running"

    def test_one_that_runs_or_has_not_fired_cannot_be_skipped(self) -> None:
        machine = started(*CHAIN)
        with pytest.raises(NotAllowed, match="L001 is running"):
            machine.submit(c.Skip("L001", WILL))
        with pytest.raises(NotAllowed, match="L002 has not fired"):
            machine.submit(c.Skip("L002", WILL))
        with pytest.raises(NotFound):
            machine.submit(c.Skip("L404", WILL))

    def test_one_that_the_planner_thinks_about_can_be_skipped(self) -> None:
        machine = started(*CHAIN)
        fail(machine)
        machine.submit(c.Skip("L001", WILL))
        assert not machine.consult(3).events, "the verdict comes too late"


class TestMarkingDone:
    def test_the_work_was_done_by_hand_and_the_plan_goes_on(self) -> None:
        machine = started(*CHAIN)
        give_up(machine)
        machine.submit(c.MarkDone("002", WILL, {"order": "PC-1"}))
        assert machine.state.task("002").context["order"] == "PC-1"
        assert machine.state.steps["L001"].status is StepStatus.SKIPPED
        machine.submit(c.Resume(WILL))
        assert machine.ready() == ["L002"]

    def test_the_goal_itself_may_be_marked_done(self) -> None:
        machine = started(*CHAIN)
        give_up(machine)
        machine.submit(c.Skip("L001", WILL))
        machine.submit(c.MarkDone("001", WILL))
        machine.submit(c.Resume(WILL))
        assert machine.state.status == "done"

    def test_an_unknown_task_is_not_found(self) -> None:
        machine = started(*CHAIN)
        for command in (c.MarkDone("404", WILL), c.EditContext("404", {}, WILL)):
            with pytest.raises(NotFound, match="404"):
                machine.submit(command)


def test_an_edited_context_is_what_later_templates_read() -> None:
    machine = started(*CHAIN)
    machine.submit(c.EditContext("002", {"x": 9}, WILL))
    assert machine.state.task("002").context["x"] == 9
    assert statuses(machine)["002"] == "Running"


class TestRunningAgain:
    def test_everything_that_follows_runs_anew_under_new_keys(self) -> None:
        machine = started(*CHAIN, SIDE)
        side = next(one for one in machine.flying.values() if one.work.step_id == "L009")
        del machine.flying[side.work.step_id, side.work.claim]
        for _ in range(3):
            succeed(machine)
        assert statuses(machine)["001"] == "Done"
        machine.submit(c.RerunFrom("L001", WILL))
        assert statuses(machine) == {
            "001": "Running",
            "002": "NotStarted",
            "003": "NotStarted",
            "009": "Running",
        }
        machine.flying[side.work.step_id, side.work.claim] = side
        machine.settle()
        assert machine.state.status == "done"
        assert [machine.state.steps[f"L00{n}"].firing for n in (1, 2, 3, 9)] == [2, 2, 2, 1]

    def test_a_branch_beside_the_goal_leaves_the_goal_alone(self) -> None:
        machine = started(on("L001", "001 Running", CODE, "001"), SIDE, *CHAIN[1:2])
        code = next(one for one in machine.flying.values() if one.work.step_id == "L001")
        machine.report(code, machine.outcome(code, {"x": 1}))
        fail(machine, TRANSIENT)
        machine.submit(c.RerunFrom("L009", WILL))
        assert statuses(machine)["001"] == "Done"
        machine.settle()
        assert machine.state.status == "done"

    def test_a_run_in_error_goes_on_at_once_when_nothing_else_failed(self) -> None:
        machine = started(*CHAIN)
        succeed(machine)
        give_up(machine)
        machine.submit(c.RerunFrom("L001", WILL))
        assert machine.state.status == "running"
        machine.settle()
        assert machine.state.status == "done"

    def test_an_error_that_is_left_still_shows(self) -> None:
        machine = started(*CHAIN, SIDE)
        one, two = machine.flying.values()
        machine.report(one, PERMANENT)
        machine.report(two, PERMANENT)
        machine.consult(0)
        machine.submit(c.RerunFrom("L001", WILL))
        assert machine.state.status == "error"
        assert statuses(machine)["001"] == "Error"
        assert machine.state.failed == ("L009",)
        machine.submit(c.Resume(WILL))
        machine.settle()
        assert machine.state.status == "done"

    def test_one_that_has_never_fired_may_be_the_first(self) -> None:
        machine = started(*CHAIN)
        give_up(machine)
        machine.submit(c.RerunFrom("L002", WILL))
        assert machine.state.steps["L002"].firing == 1

    def test_the_outcome_is_verified_anew(self) -> None:
        machine = started(
            on("L001", "001 Running", CODE, "001"), verify=(Check("keyed", {}, "result.x == 1"),)
        )
        succeed(machine)
        succeed(machine, {"x": 2})
        machine.submit(c.RerunFrom("L001", WILL))
        machine.settle()
        assert machine.state.status == "done"
        assert len(events(machine, e.VerificationStarted)) == 2

    def test_a_listener_that_is_reached_twice_runs_once(self) -> None:
        machine = started(
            on("L001", "001 Running", CODE, "002"),
            on("L002", "002 Done", CODE, "003"),
            on("L003", "002 003 Done", CALL, "001"),
        )
        succeed(machine)
        succeed(machine)
        fail(machine, TRANSIENT)
        machine.submit(c.RerunFrom("L001", WILL))
        machine.settle()
        assert machine.state.status == "done"
        assert machine.state.steps["L003"].firing == 2

    def test_what_still_runs_is_not_run_twice(self) -> None:
        machine = started(*CHAIN)
        with pytest.raises(NotAllowed, match="L001 is still running"):
            machine.submit(c.RerunFrom("L001", WILL))
        assert only(machine)

    def test_questions_that_follow_are_taken_back(self) -> None:
        machine = started(
            on("L001", "001 Running", CODE, "002"), on("L002", "002 Done", ASK, "001")
        )
        succeed(machine)
        asked = question(machine).request_id
        machine.submit(c.RerunFrom("L001", WILL))
        assert machine.state.questions[asked].status == "withdrawn"
        machine.settle()
        reply(machine, data={"colour": "red"})
        assert machine.settle().status == "done"

    def test_inputs_are_not_asked_twice(self) -> None:
        machine = started(*CHAIN, inputs=COLOUR)
        with pytest.raises(NotAllowed, match="edit the main task's context"):
            machine.submit(c.RerunFrom("inputs", WILL))


class TestSecrets:
    def test_a_secret_input_is_neither_edited_in_nor_marked_in(self) -> None:
        machine = Machine(compiled(*CHAIN, inputs=Form((Field("pin", FieldType.SECRET),))))
        with pytest.raises(InvalidAnswer, match="inputs are not valid"):
            machine.submit(c.StartRun("small", "go", {"pin": "4711"}, by=WILL))
        sealed = {"pin": f"secret:{'0' * 32}"}
        machine.submit(c.StartRun("small", "go", sealed, by=WILL))
        for command in (
            c.EditContext("001", {"pin": "4711"}, WILL),
            c.MarkDone("001", WILL, {"pin": "4711"}),
        ):
            with pytest.raises(InvalidAnswer, match="pin is a secret: only the form"):
                machine.submit(command)
        machine.submit(c.EditContext("002", {"pin": "4711"}, WILL))
        assert dict(machine.state.main_task.context) == sealed
