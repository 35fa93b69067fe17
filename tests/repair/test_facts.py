"""What a run's events teach."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import Machine
from small_plans import WILL, on, only, started
from troubled_runs import (
    ABSENT,
    DOWN,
    GUESS,
    PLAN,
    REFUSED,
    RENAME,
    accept,
    all_facts_of,
    answer_call,
    begun,
    facts,
    fail_call,
    lived,
    proposal,
    repaired,
    retrying,
    seen,
    taught,
    wait,
)

from holdfast.core.plan.state import PlanState
from holdfast.model import commands as c
from holdfast.model import events as e
from holdfast.model.plan import Check, CodeAction, Output, TaskStatus, ToolAction
from holdfast.model.repair import Level, Look, Mend, RepairMode, RepairPolicy, Thought
from holdfast.model.retry import Retry
from holdfast.repair.facts import (
    NO_PAST,
    Fact,
    Left,
    Mended,
    Past,
    ThoughtFailed,
    Took,
    Tried,
    facts_of,
    in_trouble,
    past_of,
)
from holdfast.repair.lessons import key_of


def tries(machine: Machine) -> list[tuple[int, float, bool]]:
    return [(one.passed, one.since, one.won) for one in facts(machine, Tried)]


def test_a_run_that_never_fails_teaches_nothing() -> None:
    machine = begun()
    answer_call(machine)
    assert taught(machine) == ()
    assert not in_trouble(machine.state)


def test_each_further_attempt_says_how_long_the_failure_lasted() -> None:
    machine = begun(PLAN[0], retrying(4))
    fail_call(machine)
    for _ in range(2):
        wait(machine)
        fail_call(machine)
    wait(machine)
    answer_call(machine)
    assert tries(machine) == [(0, 0.5, False), (1, 1.5, False), (2, 3.5, True)]
    [first, *_] = facts(machine, Tried)
    assert (first.tool, first.cause, first.step_id) == ("keyed", "outage", "L002")
    assert first.fingerprint.startswith("fp1:")
    assert in_trouble(machine.state)


def test_slow_attempts_count_from_when_they_began() -> None:
    machine = begun(PLAN[0], retrying(3))
    fail_call(machine, after=30.0)
    wait(machine)
    fail_call(machine, after=30.0)
    wait(machine)
    answer_call(machine)
    assert tries(machine) == [(0, 0.5, False), (1, 31.5, True)]


def test_the_planners_retries_go_on_where_the_drivers_attempts_have_ended() -> None:
    machine = begun(PLAN[0], retrying(2))
    fail_call(machine)
    wait(machine)
    fail_call(machine)
    machine.consult(Retry(3, 60.0))
    wait(machine)
    answer_call(machine)
    assert tries(machine) == [(0, 0.5, False), (1, 60.5, True)]


def test_a_first_failure_that_only_the_planner_retries_counts_from_its_retry() -> None:
    machine = begun(PLAN[0], retrying(1))
    fail_call(machine)
    assert not lived(machine)[0].in_trouble
    machine.now += 5.0
    machine.consult(Retry(3, 60.0))
    wait(machine)
    answer_call(machine)
    assert tries(machine) == [(0, 60.0, True)]


def test_another_failure_begins_another_story() -> None:
    machine = begun(PLAN[0], retrying(4))
    fail_call(machine)
    for _ in range(2):
        wait(machine)
        fail_call(machine, REFUSED)
    wait(machine)
    answer_call(machine)
    assert tries(machine) == [(0, 1.0, False), (2, 3.0, True)]
    assert {one.cause for one in facts(machine, Tried)} == {"credentials"}
    [left] = facts(machine, Left)
    assert left.fingerprint != facts(machine, Tried)[0].fingerprint, "others wait for it in vain"


def test_what_is_given_up_is_left_and_what_a_person_resumes_did_not_recover_by_itself() -> None:
    machine = begun(PLAN[0], retrying(2))
    fail_call(machine)
    wait(machine)
    fail_call(machine)
    machine.consult(0)
    machine.now += 999.0
    machine.submit(c.Resume(WILL))
    machine.start_ready()
    answer_call(machine)
    assert tries(machine) == [(0, 0.5, False)]
    [left] = facts(machine, Left)
    assert (left.tool, left.step_id) == ("keyed", "L002")


def test_a_branch_of_the_plan_that_takes_the_failure_leaves_it() -> None:
    handled = on(
        "L002",
        "002 Done",
        ToolAction("keyed"),
        "001",
        retry=retrying(2).retry,
        failure_output=Output("001", TaskStatus.DONE),
    )
    machine = begun(PLAN[0], handled)
    fail_call(machine)
    wait(machine)
    fail_call(machine)
    assert [type(one) for one in taught(machine)] == [Tried, Left]


def test_a_step_that_a_person_skips_or_a_run_that_is_cancelled_leaves_its_failures() -> None:
    machine = begun(PLAN[0], retrying(2))
    fail_call(machine)
    machine.submit(c.Skip("L002", WILL))
    assert len(facts(machine, Left)) == 1
    machine = begun(PLAN[0], retrying(2))
    fail_call(machine)
    machine.submit(c.Cancel(WILL))
    assert len(facts(machine, Left)) == 1


def test_what_does_not_call_a_tool_has_no_curve() -> None:
    code = CodeAction("result = {}")
    retry = retrying(2).retry
    machine = begun(PLAN[0], on("L002", "002 Done", code, "001", retry=retry))
    fail_call(machine)
    wait(machine)
    answer_call(machine)
    assert taught(machine) == ()
    assert lived(machine)[0].in_trouble


def test_a_result_that_a_person_tells_of_is_no_attempt() -> None:
    lost = c.Lost("it went down")
    machine = begun(
        PLAN[0], on("L002", "002 Done", ToolAction("plain"), "001", retry=retrying(3).retry)
    )
    fail_call(machine)
    wait(machine)
    fail_call(machine, lost, after=1.0)
    machine.now += 500.0
    [question] = machine.state.open_questions
    machine.submit(c.Answer(question, WILL, "happened"))
    machine.start_ready()
    effect = only(machine)
    machine.report(effect, machine.outcome(effect, None))
    assert machine.state.status.value == "done"
    assert [type(one) for one in taught(machine)] == [Left]


def test_a_lost_call_that_may_be_repeated_counts_as_an_attempt() -> None:
    machine = begun(PLAN[0], retrying(3))
    fail_call(machine, c.Lost("no answer within 5 s"))
    wait(machine)
    fail_call(machine, c.Lost("no answer within 5 s"))
    wait(machine)
    answer_call(machine)
    assert tries(machine) == [(0, 0.5, False), (1, 1.5, True)]


def test_an_attempt_that_was_never_sent_is_none() -> None:
    machine = begun(PLAN[0], retrying(3))
    fail_call(machine)
    wait(machine)
    machine.now += 50.0
    fail_call(machine, c.NotSent())
    machine.now += 50.0
    machine.start_ready()
    answer_call(machine)
    assert tries(machine) == [(0, 100.5, True)]


def test_a_call_whose_output_cannot_be_determined_has_recovered_all_the_same() -> None:
    broken = on("L002", "002 Done", ToolAction("keyed"), "001", context={"x": "{{result.no}}"})
    machine = begun(PLAN[0], broken)
    fail_call(machine)
    wait(machine)
    effect = only(machine)
    machine.report(effect, machine.outcome(effect, {"email": "e"}))
    machine.consult(Retry(3, 60.0))
    machine.now += 60.0
    machine.submit(c.Tick())
    machine.start_ready()
    effect = only(machine)
    machine.report(effect, machine.outcome(effect, None))
    assert tries(machine) == [(0, pytest.approx(0.5, rel=0.2), True)]


def test_durations_are_learned_of_runs_in_trouble_only() -> None:
    machine = begun(PLAN[0], retrying(2))
    fail_call(machine)
    wait(machine)
    answer_call(machine, after=7.0)
    [took] = facts(machine, Took)
    assert (took.tool, took.seconds, took.run_id) == ("keyed", 7.0, "inst_000001")


VERIFIED = {"verify": (Check("plain", {}, "result.ok == true"),)}


def verify(machine: Machine, ok: object) -> None:
    effect = only(machine)
    machine.report(effect, c.Succeeded({"ok": ok}, ()))


def test_a_repair_whose_run_is_done_and_verified_leaves_a_lesson() -> None:
    machine = repaired(machine=begun(**VERIFIED), level=Level.LOOK)
    answer_call(machine)
    assert facts(machine, Mended) == []
    verify(machine, True)
    assert machine.state.status.value == "done"
    [mended] = facts(machine, Mended)
    fresh = begun()
    fail_call(fresh, ABSENT)
    failure = fresh.state.steps["L002"].failure
    assert failure is not None
    assert mended.key == key_of(fresh.state, "L002", "1", failure.fingerprint)
    assert mended.won
    assert (mended.level, mended.run_id) == (Level.LOOK, "inst_000001")
    assert mended.operations[0]["listener_id"] == "@listener"


def test_a_repair_of_which_the_outcome_was_not_verified_is_no_win() -> None:
    """A check that could not look proves nothing."""
    machine = repaired()
    past, _ = lived(machine)
    state = machine.state
    past, none = facts_of(past, state, 9.0, e.RepairProven("case_1", "k1"))
    assert none == ()
    unsure = e.RunCompleted({"verify.1": "verified", "verify.2": "unable_to_verify"})
    assert facts_of(past, state, 9.0, unsure)[1] == ()
    sure = e.RunCompleted({"verify.1": "verified"})
    assert len(facts_of(past, state, 9.0, sure)[1]) == 1


def test_it_does_not_matter_whether_a_repair_is_proven_before_the_run_is_done() -> None:
    machine = repaired()
    past, _ = lived(machine)
    proven, done = e.RepairProven("case_1", "k1"), e.RunCompleted()
    told = [[proven, done], [done, proven]]
    found = [all_facts_of(past, ((machine.state, 9.0, one) for one in both))[1] for both in told]
    assert found[0] == found[1]
    assert len(found[0]) == 1
    assert facts_of(past, machine.state, 9.0, e.RepairProven("case_9", "k9"))[1] == ()


def test_a_repair_that_does_not_help_is_a_loss() -> None:
    machine = repaired()
    fail_call(machine, ABSENT)
    machine.consult(0)
    [mended] = facts(machine, Mended)
    assert not mended.won
    assert mended.operations[0]["op"] == "set_args"


def test_what_succeeds_with_a_repair_did_not_recover_by_itself() -> None:
    machine = begun(
        PLAN[0],
        on("L002", "002 Done", ToolAction("keyed", {"mail": "m"}), "001", retry=retrying(2).retry),
    )
    fail_call(machine)
    wait(machine)
    fail_call(machine)
    asked = machine.consultations.pop(0)
    mend = Mend(GUESS, proposal(machine.state, RENAME))
    machine.submit(c.Advise(asked.listener_id, asked.firing, mend))
    machine.start_ready()
    answer_call(machine)
    assert tries(machine) == [(0, 0.5, False)]
    assert [one.won for one in facts(machine, Mended)] == [True]


def test_a_case_about_the_whole_plan_or_without_a_fingerprint_leaves_no_lesson() -> None:
    machine = started(on("L001", "002 Done", ToolAction("plain"), "001"))
    [case] = machine.state.repair.cases.values()
    assert case.listener_id == ""
    machine.diagnose(Look(GUESS, plan_proposal(machine.state)))
    accept(machine)
    answer_call(machine)
    assert machine.state.status.value == "done"
    assert facts(machine, Mended) == []


def plan_proposal(state: PlanState) -> Any:
    add = {
        "op": "add",
        "listeners": [
            {
                "listener_id": "R1",
                "listener_type": "tool",
                "tool": "plain",
                "trigger_task_id": "001",
                "trigger_condition": "Running",
                "success_output": {"task_id": "001", "status": "Done"},
            }
        ],
    }
    return proposal(state, add)


def test_operations_that_cannot_be_kept_leave_no_lesson() -> None:
    signed = {"op": "set_args", "listener_id": "L002", "set": {"email": "a {@main.context.x}"}}
    machine = repaired(signed)
    answer_call(machine)
    assert machine.state.status.value == "done"
    assert facts(machine, Mended) == []


def test_a_repair_that_does_not_say_which_version_of_the_tool_failed_leaves_no_lesson() -> None:
    machine = repaired(versions={"plain": "1"})
    answer_call(machine)
    assert facts(machine, Mended) == []


def thinking(outcome: Thought | None) -> Machine:
    """A model was asked about L002's failure; None: its process went down meanwhile."""
    machine = begun()
    fail_call(machine, ABSENT)
    machine.consult(0)
    machine.diagnose(Look(GUESS, thinks=True))
    if outcome is None:
        machine.crash()
    else:
        machine.submit(c.ReportDiagnosis("case_1", 1, outcome))
    return machine


def test_a_model_that_makes_nothing_of_a_case_is_told_of() -> None:
    [failed] = facts(thinking(Thought(reason="no answer within 60 s")), ThoughtFailed)
    assert (failed.case_id, failed.reason) == ("case_1", "no answer within 60 s")
    assert facts(thinking(Thought(GUESS)), ThoughtFailed) == []
    assert facts(thinking(None), ThoughtFailed) == []


def test_a_verification_that_recovers_is_an_attempt_and_one_that_fails_is_left() -> None:
    machine = begun(**VERIFIED)
    answer_call(machine)
    fail_call(machine)
    wait(machine)
    verify(machine, True)
    assert tries(machine) == [(0, pytest.approx(0.5, rel=0.2), True)]
    machine = begun(**VERIFIED)
    answer_call(machine)
    fail_call(machine)
    wait(machine)
    verify(machine, False)
    assert tries(machine) == []
    assert len(facts(machine, Left)) == 1


def test_events_that_teach_nothing_pass_by() -> None:
    machine = begun()
    state, at, event = seen(machine)[0]
    assert facts_of(NO_PAST, state, at, event) == (NO_PAST, ())
    unrelated = on("R1", "001 Running", CodeAction("result = {}"), None)
    assert past_of(started(unrelated).state) == Past()


def stories() -> list[Machine]:
    """Runs of every kind above, to their ends."""
    made = [thinking(Thought(reason="no answer"))]
    for most in (1, 2, 4):
        machine = begun(PLAN[0], retrying(most))
        fail_call(machine)
        for outcome in (DOWN, REFUSED, DOWN):
            if machine.consultations:
                machine.consult(Retry(9, 60.0))
            wait(machine)
            fail_call(machine, outcome, after=3.0)
        if machine.consultations:
            machine.consult(Retry(9, 60.0))
        wait(machine)
        answer_call(machine)
        made.append(machine)
    for level in (Level.RENAME, Level.ACT):
        machine = repaired(level=level)
        answer_call(machine)
        made.append(machine)
    machine = repaired()
    fail_call(machine, ABSENT)
    machine.consult(0)
    made.append(machine)
    made.append(side_by_side())
    return made


def side_by_side() -> Machine:
    """Two calls are in flight, and a snippet; one of them fails, and then the other succeeds."""
    machine = begun(
        PLAN[0],
        on("L002", "002 Done", ToolAction("keyed"), "003", retry=retrying(2).retry),
        on("L003", "002 Done", ToolAction("plain"), "004"),
        on("L004", "002 Done", CodeAction("result = {}"), "005"),
        on("L005", "003 004 003.status == Done and 004.status == Done", ToolAction("plain"), "001"),
    )
    machine.now += 4.0
    by_step = {one.work.step_id: one for one in machine.flying.values()}
    machine.report(by_step["L002"], DOWN)
    machine.now += 3.0
    for step_id in ("L004", "L003"):
        machine.report(by_step[step_id], machine.outcome(by_step[step_id], {"x": 1}))
    machine.settle()
    return machine


def test_a_call_that_was_in_flight_when_the_trouble_began_took_as_long_as_it_did() -> None:
    machine = side_by_side()
    assert [(one.tool, one.seconds) for one in facts(machine, Took)][:2] == [
        *(("plain", 7.0), ("keyed", 0.0))
    ]


@given(st.integers(0, 7), st.lists(st.integers(1, 6), max_size=30))
def test_folding_in_any_batches_is_folding_at_once(which: int, sizes: list[int]) -> None:
    whole = seen(STORIES[which])
    past, found, rest = NO_PAST, [], list(whole)
    for size in [*sizes, len(rest)]:
        batch, rest = rest[:size], rest[size:]
        past, more = all_facts_of(past, batch)
        found += more
    assert (past, tuple(found)) == all_facts_of(NO_PAST, whole)


STORIES = stories()


def test_a_fold_that_begins_with_the_trouble_yields_the_same_facts() -> None:
    for machine in STORIES:
        whole = seen(machine)
        assert any(in_trouble(state) for state, _, _ in whole)
        later = [
            place
            for place, (state, _, _) in enumerate(whole[1:])
            if in_trouble(state) and not in_trouble(whole[place][0])
        ]
        [first] = later
        state, _, _ = whole[first]
        found: tuple[Fact, ...]
        _, found = all_facts_of(past_of(state), whole[first:])
        assert found == taught(machine)


def test_repairs_are_off_where_the_author_wants_none() -> None:
    machine = begun(repair=RepairPolicy(mode=RepairMode.OFF))
    fail_call(machine, ABSENT)
    machine.consult(0)
    assert not in_trouble(machine.state)
    assert taught(machine) == ()


def test_a_call_that_cannot_be_made_at_all_is_no_attempt() -> None:
    machine = begun(PLAN[0], on("L002", "002 Done", ToolAction("absent"), "001"))
    for _ in range(2):
        machine.consult(Retry(9, 60.0))
        wait(machine)
    assert tries(machine) == []
    assert list(lived(machine)[0].troubles) == ["L002"]
