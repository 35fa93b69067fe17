"""Child runs: their words, their pauses, their errors, and what becomes of orphans."""

from __future__ import annotations

from machine import Machine
from small_plans import (
    CALL,
    CHILD,
    KEYED,
    WILL,
    events,
    give_up,
    on,
    only,
    started,
    statuses,
)

from holdfast.core.run.tables import StepStatus
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model import events as e
from holdfast.model.plan import PlanAction, WhilePaused

KID = "inst_000001.L001.1"


def parent(**more: object) -> Machine:
    return started(on("L001", "001 Running", CHILD, "001", context={"x": "{{result.x}}"}, **more))


def last_effects(machine: Machine, command: c.Command) -> tuple[f.Effect, ...]:
    return machine.submit(command).effects


def test_a_child_has_a_name_that_can_be_foretold_and_its_result_is_concluded() -> None:
    machine = parent()
    assert list(machine.children) == [KID]
    machine.hear(KID, "done", {"x": 5})
    machine.start_ready()
    effect = only(machine)
    assert isinstance(effect, f.Conclude)
    machine.report(effect, machine.outcome(effect, None))
    assert machine.state.status == "done"
    assert machine.state.main_task.context["x"] == 5


def test_values_that_do_not_render_start_no_child() -> None:
    action = PlanAction("child", {"who": "{001.context.nobody}"})
    machine = started(on("L001", "001 Running", action, "001"))
    assert not machine.children
    assert machine.consultations


def test_a_paused_child_pauses_its_parent_until_it_goes_on() -> None:
    machine = parent()
    machine.hear(KID, "pause")
    assert machine.state.status == "pause"
    machine.hear(KID, "running")
    assert machine.state.status == "running"


def test_a_paused_child_holds_other_branches_where_the_plan_says_so() -> None:
    machine = started(
        on("L001", "001 Running", CHILD, "002"),
        on("L002", "001 Running", CALL, "003"),
        on("L003", "003 Done", CALL, "001"),
        while_paused=WhilePaused.HOLD,
    )
    machine.hear(KID, "pause")
    effect = only(machine)
    machine.report(effect, machine.outcome(effect, {"x": 1}))
    assert not machine.start_ready()
    machine.hear(KID, "running")
    assert machine.start_ready()


def test_two_paused_children_are_counted() -> None:
    machine = started(
        on("L001", "001 Running", CHILD, "002"), on("L002", "001 Running", CHILD, "3")
    )
    one, two = machine.children
    machine.hear(one, "pause")
    machine.hear(two, "pause")
    machine.hear(one, "running")
    assert machine.state.status == "pause"


def test_a_word_is_heard_once_and_only_from_ones_own_child() -> None:
    machine = parent()
    machine.hear(KID, "pause")
    word = c.HearChild(KID, machine.children[KID].seq, "L001", 1, "done")
    assert not machine.submit(word).events
    assert not machine.submit(c.HearChild("stranger", 9, "L001", 1, "done")).events
    assert not machine.submit(c.HearChild(KID, 9, "L404", 1, "done")).events


def test_a_child_in_error_fails_its_listener_and_is_resumed_with_it() -> None:
    machine = parent()
    machine.hear(KID, "error")
    assert machine.state.status == "error"
    assert "as it said" in machine.state.main_task.context["error_info"]["message"]
    effects = last_effects(machine, c.Resume(WILL))
    assert effects == (f.ResumeChild(KID, WILL),)
    assert machine.state.steps["L001"].resuming
    machine.settle()
    assert machine.state.status == "done"
    assert list(machine.children) == [KID], "no second child was born"


def test_a_child_that_was_resumed_by_itself_takes_its_parent_along() -> None:
    machine = parent()
    machine.hear(KID, "error")
    machine.hear(KID, "running")
    assert machine.state.failed == ()
    assert machine.state.steps["L001"].status is StepStatus.RUNNING
    assert machine.state.status == "running"
    machine.hear(KID, "error")
    assert machine.state.failed == ("L001",)
    machine.hear(KID, "done", {"x": 5})
    assert machine.state.steps["L001"].status is StepStatus.READY
    machine.settle()
    assert machine.state.status == "done"


def test_a_run_that_failed_otherwise_too_stays_where_it_is() -> None:
    machine = started(
        on("L001", "001 Running", CHILD, "001"), on("L002", "001 Running", CALL, "002")
    )
    give_up(machine)
    machine.hear(KID, "error")
    machine.hear(KID, "running")
    assert machine.state.failed == ("L002",)
    assert machine.state.status == "error"


def test_a_cancelled_child_fails_its_listener_and_the_next_firing_has_its_own_child() -> None:
    machine = parent()
    machine.hear(KID, "cancelled")
    assert machine.state.status == "error"
    machine.submit(c.Resume(WILL))
    machine.start_ready()
    assert set(machine.children) == {KID, "inst_000001.L001.2"}


def test_the_word_to_resume_is_repeated_after_a_crash() -> None:
    machine = parent()
    machine.hear(KID, "error")
    machine.submit(c.Resume(WILL))
    effects = last_effects(machine, c.Recover())
    assert effects == (f.ResumeChild(KID, WILL),)


def test_even_a_quarantined_run_repeats_it() -> None:
    machine = parent()
    machine.hear(KID, "error")
    machine.submit(c.Resume(WILL))
    for _ in range(3):
        effects = last_effects(machine, c.Recover())
    assert machine.state.status == "error"
    assert effects == (f.ResumeChild(KID, WILL),)
    machine.hear(KID, "running")
    machine.submit(c.Resume(WILL))
    machine.settle()
    assert machine.state.status == "done"


def test_a_run_whose_child_works_lost_nothing_in_a_crash() -> None:
    machine = parent()
    before = machine.state
    machine.crash()
    assert machine.state == before


def test_a_crash_beside_a_working_child_touches_only_what_was_in_flight() -> None:
    machine = started(
        on("L001", "001 Running", CHILD, "002"), on("L002", "001 Running", KEYED, "003")
    )
    assert last_effects(machine, c.Recover()) == ()
    assert machine.ready() == ["L002"]


def test_a_conclusion_in_flight_at_a_crash_is_drawn_again() -> None:
    machine = parent()
    machine.hear(KID, "done", {"x": 5})
    machine.start_ready()
    machine.crash()
    machine.settle()
    assert machine.state.status == "done"


def test_skipping_the_listener_cancels_the_child_that_nobody_waits_for() -> None:
    machine = parent()
    machine.hear(KID, "error")
    effects = last_effects(machine, c.Skip("L001", WILL, "by hand"))
    assert effects == (f.CancelChild(KID, WILL, "by hand"),)
    machine.hear(KID, "done", {"x": 5})
    assert machine.state.steps["L001"].status is StepStatus.SKIPPED


def test_marking_its_task_done_cancels_it_too() -> None:
    machine = parent()
    machine.hear(KID, "error")
    effects = last_effects(machine, c.MarkDone("001", WILL))
    assert effects == (f.CancelChild(KID, WILL, "mark_done"),)


class TestCancelling:
    def test_children_are_cancelled_with_their_parent(self) -> None:
        machine = parent()
        machine.hear(KID, "pause")
        effects = last_effects(machine, c.Cancel(WILL, "enough"))
        assert effects == (f.CancelChild(KID, WILL, "enough"),)
        assert machine.state.status == "cancelling"
        machine.hear(KID, "cancelled")
        assert machine.state.status == "cancelled"

    def test_also_those_in_error(self) -> None:
        machine = parent()
        machine.hear(KID, "error")
        effects = last_effects(machine, c.Cancel(WILL, "enough"))
        assert effects == (f.CancelChild(KID, WILL, "enough"),)
        assert machine.state.status == "cancelled"

    def test_the_word_is_repeated_after_a_crash(self) -> None:
        machine = parent()
        machine.submit(c.Cancel(WILL, "enough"))
        assert last_effects(machine, c.Recover()) == (f.CancelChild(KID, WILL, "cancelled"),)

    def test_a_child_that_finishes_first_counts(self) -> None:
        machine = parent()
        machine.submit(c.Cancel(WILL))
        machine.hear(KID, "done", {"x": 5})
        assert machine.state.status == "cancelled"
        assert statuses(machine) == {"001": "Done"}

    def test_even_when_its_result_cannot_be_rendered(self) -> None:
        machine = parent()
        machine.submit(c.Cancel(WILL))
        machine.hear(KID, "done", {})
        assert machine.state.status == "cancelled"
        assert events(machine, e.ListenerFailed)[0].kept

    def test_a_child_that_is_never_heard_of_is_let_go_after_the_grace(self) -> None:
        machine = parent()
        machine.hear(KID, "pause")
        machine.submit(c.Cancel(WILL))
        machine.fire_timer()
        assert machine.state.status == "cancelled"
        assert machine.state.paused_children == 0

    def test_a_child_that_fails_meanwhile_and_comes_back_starts_nothing(self) -> None:
        machine = started(
            on("L001", "001 Running", CHILD, "002"), on("L002", "001 Running", CALL, "003")
        )
        machine.submit(c.Cancel(WILL))
        machine.hear(KID, "error")
        machine.hear(KID, "running")
        assert machine.state.steps["L001"].status is StepStatus.FAILED
        machine.settle()
        assert machine.state.status == "cancelled"
