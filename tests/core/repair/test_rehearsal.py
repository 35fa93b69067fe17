"""A rehearsal tells calls, questions, what stays, and whether a run would reach its goal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from machine import Machine
from small_plans import (
    ASK,
    CALL,
    CALLING_CODE,
    CHILD,
    CODE,
    COLOUR,
    CONFIRM,
    GUARDED,
    KEYED,
    PERMANENT,
    WILL,
    compiled,
    give_up,
    on,
    only,
    question,
    started,
    succeed,
)

from holdfast.core.plan.compiled import CompiledPlan
from holdfast.core.repair.rehearsal import MOST_STARTS, rehearse, rehearse_plan
from holdfast.core.run.tables import StepStatus
from holdfast.errors import InvalidAnswer
from holdfast.model import commands as c
from holdfast.model.approval import ApprovalMode, ApprovalRule, ToolFacts
from holdfast.model.form import Field, FieldType, Form, Option
from holdfast.model.interaction import Asking, InteractionAction, InteractionOption, InteractionType
from holdfast.model.plan import (
    AgentAction,
    Check,
    HumanAction,
    Output,
    PlanAction,
    TaskStatus,
    ToolAction,
    WaitAction,
    WhilePaused,
)
from holdfast.model.repair import Rehearsal
from holdfast.model.retry import Failure, FailureKind

NOW = 1_700_000_000.0
TOOLS = {
    "plain": ToolFacts({}, "1"),
    "keyed": ToolFacts({}, "1", idempotent=True),
    "look": ToolFacts({}, "1", read_only=True),
    "guarded": ToolFacts({}, "1", approval=ApprovalRule(ApprovalMode.REQUIRE_APPROVAL)),
    "disabled": ToolFacts({}, "1", approval=ApprovalRule(ApprovalMode.DISABLED)),
    "picky": ToolFacts(
        {"type": "object", "properties": {"size": {"type": "string"}}, "required": ["size"]}, "1"
    ),
}


def rehearsed(plan: CompiledPlan, values: dict[str, Any] | None = None, **more: Any) -> Rehearsal:
    return rehearse_plan(plan, values or {}, TOOLS.get, now=NOW, **more)


def names(rehearsal: Rehearsal) -> list[tuple[str, str]]:
    return [(one.step_id, one.tool) for one in rehearsal.calls]


def test_calls_are_told_in_their_order_with_arguments_as_far_as_they_are_known() -> None:
    plan = compiled(
        on(
            "L1",
            "001 Running",
            ToolAction("plain", {"name": "{001.context.name}"}),
            "002",
            context={"id": "{{result.employee.id}}"},
        ),
        on("L2", "002 Done", ToolAction("keyed", {"to": "for {002.context.id}", "n": 1}), "001"),
    )
    told = rehearsed(plan, {"name": "Will Zhang"})
    assert [(one.tool, dict(one.args)) for one in told.calls] == [
        ("plain", {"name": "Will Zhang"}),
        ("keyed", {"to": "for ‹L1.employee.id›", "n": 1}),
    ]
    assert (told.reached, told.status, told.cut) == (True, "done", False)
    assert (told.questions, told.stays, told.open_conditions) == ((), (), ())


def test_what_looks_does_not_act() -> None:
    plan = compiled(
        on("L1", "001 Running", ToolAction("look"), "002"), on("L2", "002 Done", CALL, "001")
    )
    assert [one.acts for one in rehearsed(plan).calls] == [False, True]


def test_an_approval_is_asked_before_its_call_and_is_imagined_as_given() -> None:
    plan = compiled(on("L1", "001 Running", GUARDED, "002"), on("L2", "002 Done", CALL, "001"))
    told = rehearsed(plan)
    assert [one.asks for one in told.calls] == [True, False]
    assert (told.questions, told.reached) == ((), True)


def test_people_are_asked_what_is_missing_and_what_the_plan_wants_to_know() -> None:
    plan = compiled(
        on("L1", "001 Running", ToolAction("picky"), "002"),
        on("L2", "002 Done", ASK, "003", context={"colour": "{{result.colour}}"}),
        on("L3", "003 Done", CONFIRM, "004", context={"said": "{{result.option}}"}),
        on(
            "L4",
            "004 Done",
            ToolAction("plain", {"in": "{003.context.colour}", "and": "{004.context.said}"}),
            "001",
        ),
        inputs=Form((Field("name"),)),
    )
    told = rehearsed(plan)
    assert told.questions == ("Small: task 001", "picky needs more", "Which?", "Really?")
    assert [dict(one.args) for one in told.calls] == [
        {"size": "‹L1.size›"},
        {"in": "‹L2.colour›", "and": "confirm"},
    ]
    assert told.reached


def test_inputs_that_no_form_would_take_are_refused() -> None:
    plan = compiled(inputs=Form((Field("age", FieldType.NUMBER),)))
    with pytest.raises(InvalidAnswer):
        rehearsed(plan, {"age": "old"})


def test_of_choices_the_first_is_taken() -> None:
    ways = (Option("air", "By air"), Option("sea", "By sea"))
    own = (Option("else", "Something else", requires_input=True),)
    form = Form(
        (
            Field("way", FieldType.SELECT, options=ways),
            Field("ways", FieldType.MULTISELECT, options=ways),
            Field("other", FieldType.RADIO, options=own),
            Field("sure", FieldType.BOOLEAN),
            Field("count", FieldType.NUMBER),
            Field("note", default="none"),
            Field("why", visible_if="values.sure == false"),
        )
    )
    wanted = {name: f"{{{{result.{name}}}}}" for name in ("way", "ways", "other", "sure", "count")}
    plan = compiled(
        on("L1", "001 Running", HumanAction(form), "002", context={"all": "{{result}}", **wanted}),
        on("L2", "002 Done", ToolAction("plain", {"all": "{002.context.all}"}), "001"),
    )
    (call,) = rehearsed(plan).calls
    assert call.args["all"] == {
        "way": "air",
        "ways": ["air"],
        "other": "‹L1.other›",
        "sure": True,
        "count": "‹L1.count›",
        "note": "none",
    }


def choice(*options: InteractionOption, form: Form = Form()) -> CompiledPlan:  # noqa: B008
    asking = Asking("Which?", type=InteractionType.USER_CHOICE, options=options)
    context = {"said": "{{result}}"}
    return compiled(
        on("L1", "001 Running", HumanAction(form, asking), "002", context=context),
        on("L2", "002 Done", ToolAction("plain", {"said": "{002.context.said}"}), "001"),
    )


NO = InteractionOption("decline", "No", InteractionAction.REJECT_WITH_REASON)


def said(plan: CompiledPlan) -> Any:
    (call,) = rehearsed(plan).calls
    return call.args["said"]


def test_the_first_option_that_goes_on_is_chosen() -> None:
    yes = InteractionOption("tea", "Tea", InteractionAction.APPROVE_AND_EXECUTE)
    assert said(choice(NO, yes)) == {"option": "tea"}


def test_an_option_that_requires_words_gets_a_placeholder() -> None:
    yes = InteractionOption(
        "tea", "Tea", InteractionAction.APPROVE_AND_EXECUTE, requires_input=True
    )
    assert said(choice(yes)) == {"option": "tea", "feedback": "‹L1›"}


def test_a_choice_that_fills_in_a_form_keeps_what_its_author_attached() -> None:
    yes = InteractionOption(
        "tea",
        "Tea",
        InteractionAction.APPROVE_AND_EXECUTE,
        requires_input=True,
        metadata={"warm": True},
    )
    assert said(choice(yes, form=COLOUR)) == {
        "colour": "‹L1.colour›",
        "warm": True,
        "option": "tea",
    }


def test_a_choice_that_a_handler_decides_goes_on() -> None:
    custom = InteractionOption("mine", "Mine", InteractionAction.CUSTOM)
    assert said(choice(custom)) == {"option": "mine"}


def test_a_question_without_a_way_on_is_answered_as_it_can_be() -> None:
    told = rehearsed(choice(NO))
    assert (told.questions, told.status, told.reached) == (("Which?",), "error", False)


def test_what_was_done_stays_and_only_the_rest_is_called() -> None:
    machine = started(on("L1", "001 Running", CALL, "002"), on("L2", "002 Done", KEYED, "001"))
    succeed(machine)
    give_up(machine)
    machine.submit(c.Resume(WILL))
    told = rehearse(machine.state, TOOLS.get, now=NOW)
    assert (names(told), told.stays, told.reached) == ([("L2", "keyed")], ("L1",), True)


def test_what_fires_again_does_not_stay() -> None:
    machine = started(
        on("L1", "001 Running", CALL, "002"),
        on("L2", "002 Done", CALL, "003", repeat=True),
        on("L3", "003 Done", CONFIRM, "002"),
    )
    succeed(machine)
    succeed(machine)
    told = rehearse(machine.state, TOOLS.get, now=NOW)
    assert (names(told), told.stays) == ([("L2", "plain")], ("L1",))


def test_under_four_eyes_each_question_has_a_person_of_its_own() -> None:
    machine = Machine(
        compiled(
            on("L1", "001 Running", GUARDED, "002"),
            on("L2", "001 Running", GUARDED, "003"),
            on("L3", "001 Running", ASK, "001"),
        ),
        wanted_by={WILL: "started"},
    )
    machine.submit(c.StartRun("small", "go", by=WILL))
    for listener_id in ("L3", "L1", "L2"):
        machine.start(listener_id)
    told = rehearse(machine.state, TOOLS.get, now=NOW)
    assert (names(told), told.questions) == ([("L1", "guarded"), ("L2", "guarded")], ("Which?",))
    assert told.reached


def test_the_given_state_is_not_changed() -> None:
    machine = started(on("L1", "001 Running", GUARDED, "002"), on("L2", "002 Done", CALL, "001"))
    before, version = machine.state, machine.state.version
    once = rehearse(before, TOOLS.get, now=NOW)
    assert (before.version, before.steps["L1"].status) == (version, StepStatus.WAITING)
    assert machine.state == machine.replayed
    assert rehearse(before, TOOLS.get, now=NOW) == once


def test_what_is_under_way_is_heard_of_and_not_called_again() -> None:
    machine = started(
        on("L1", "001 Running", KEYED, "002", context={"id": "{{result.id}}"}),
        on("L2", "001 Running", CALLING_CODE, "003"),
        on("L3", "001 Running", CHILD, "004"),
        on("L4", "002 Done", ToolAction("keyed", {"id": "{002.context.id}"}), "005"),
        on("L5", "003 Done", CALL, "006"),
        on("L6", "004 Done", CALL, "001"),
    )
    call = machine.flying["L2", machine.state.steps["L2"].claim]
    machine.report(call, c.CallWanted(0, "plain", {"n": 1}))
    told = rehearse(machine.state, TOOLS.get, now=NOW)
    assert sorted(names(told)) == [("L4", "keyed"), ("L5", "plain"), ("L6", "plain")]
    assert {one.step_id: dict(one.args) for one in told.calls}["L4"] == {"id": "‹L1.id›"}
    assert told.reached
    assert told.stays == ()


def test_the_failing_listener_fails_each_time_and_the_planner_gives_up() -> None:
    plan = compiled(on("L1", "001 Running", CALL, "002"), on("L2", "002 Done", KEYED, "001"))
    machine = started(*plan.plan.listeners)
    succeed(machine)
    told = rehearse(machine.state, TOOLS.get, now=NOW, failing="L2")
    assert (names(told), told.status, told.reached) == ([], "error", False)
    give_up(machine)
    machine.submit(c.Resume(WILL))
    told = rehearse(machine.state, TOOLS.get, now=NOW, failing="L2")
    assert (names(told), told.status, told.reached) == ([("L2", "keyed")], "error", False)


@pytest.mark.parametrize("action", [CODE, CHILD, AgentAction("hr", "hire"), CALL])
def test_work_of_any_kind_may_fail(action: Any) -> None:
    machine = started(on("L1", "001 Running", action, "001"))
    told = rehearse(machine.state, TOOLS.get, now=NOW, failing="L1")
    assert (told.status, told.reached) == ("error", False)


def test_a_failure_that_the_plan_handles_leads_on() -> None:
    handled = replace(
        on("L1", "001 Running", CALL, "002"), failure_output=Output("003", TaskStatus.DONE)
    )
    machine = started(handled, on("L2", "003 Done", CALL, "001"), on("L3", "002 Done", CALL, "001"))
    told = rehearse(machine.state, TOOLS.get, now=NOW, failing="L1")
    assert (names(told), told.reached) == ([("L2", "plain")], True)
    assert told.open_conditions == ("L3: Done (002 is Running)",)


def test_other_branches_go_on_while_a_person_is_asked() -> None:
    branches = (
        on("L1", "001 Running", GUARDED, "002"),
        on("L2", "001 Running", CALL, "003"),
        on("L3", "003 Done", KEYED, "001"),
    )
    assert names(rehearsed(compiled(*branches))) == [
        ("L2", "plain"),
        ("L3", "keyed"),
        ("L1", "guarded"),
    ]
    held = compiled(*branches, while_paused=WhilePaused.HOLD)
    assert names(rehearsed(held)) == [("L2", "plain"), ("L1", "guarded"), ("L3", "keyed")]


def test_the_more_urgent_starts_first() -> None:
    plan = compiled(
        on("L1", "001 Running", CALL, "002"), on("L2", "001 Running", KEYED, "001", priority=1)
    )
    assert names(rehearsed(plan)) == [("L2", "keyed"), ("L1", "plain")]


def test_child_runs_and_agents_are_calls_by_their_names() -> None:
    plan = compiled(
        on(
            "L1", "001 Running", PlanAction("badge", {"n": 1}), "002", context={"b": "{{result.b}}"}
        ),
        on("L2", "002 Done", AgentAction("hr", "greet {002.context.b}"), "001"),
    )
    told = rehearsed(plan)
    assert [(one.tool, dict(one.args), one.acts) for one in told.calls] == [
        ("plan:badge", {"n": 1}, True),
        ("agent:hr", {"prompt": "greet ‹L1.b›"}, True),
        ("agent:hr", told.calls[2].args, False),
    ]
    assert "Check the outcome" in told.calls[2].args["prompt"]
    assert (told.reached, told.status) == (True, "done")


def test_an_agents_check_may_fail_as_well() -> None:
    machine = started(on("L1", "001 Running", AgentAction("hr", "greet"), "001"))
    told = rehearse(machine.state, TOOLS.get, now=NOW, failing="verify.hr")
    assert (told.status, told.reached) == ("error", False)


def test_checks_are_made_but_what_they_say_is_left_open() -> None:
    check = Check("keyed", {"n": 1}, "result.count > 0")
    plan = compiled(on("L1", "001 Running", CALL, "001"), verify=(check,))
    told = rehearsed(plan)
    assert [(one.tool, one.acts) for one in told.calls] == [("plain", True), ("keyed", False)]
    assert (told.reached, told.status) == (True, "done")
    machine = started(on("L1", "001 Running", CALL, "001"), verify=(check,))
    told = rehearse(machine.state, TOOLS.get, now=NOW, failing="verify.1")
    assert (told.reached, told.status) == (False, "error")


def test_waits_are_over_at_once_in_their_order() -> None:
    plan = compiled(
        on("L1", "001 Running", WaitAction(after="2d"), "002"),
        on("L2", "001 Running", WaitAction(after="1d"), "003"),
        on("L3", "002 Done", CALL, "001"),
        on("L4", "003 Done", KEYED, "004"),
    )
    told = rehearsed(plan)
    assert (names(told), told.reached) == ([("L4", "keyed"), ("L3", "plain")], True)


def test_a_wait_for_a_moment_that_nobody_knows_yet_is_over_too() -> None:
    plan = compiled(
        on("L1", "001 Running", CALL, "002", context={"at": "{{result.at}}"}),
        on("L2", "002 Done", WaitAction(until="{002.context.at}"), "003"),
        on("L3", "003 Done", KEYED, "001"),
    )
    told = rehearsed(plan)
    assert (names(told), told.reached) == ([("L1", "plain"), ("L3", "keyed")], True)


def test_a_wait_that_cannot_be_read_fails() -> None:
    plan = compiled(on("L1", "001 Running", WaitAction(until="{002.context.at}"), "001 Done"))
    assert (rehearsed(plan).status, rehearsed(plan).reached) == ("error", False)


def test_a_retry_that_waits_is_made_when_its_time_comes() -> None:
    machine = started(on("L1", "001 Running", KEYED, "001"))
    machine.report(only(machine), c.Failed(Failure(FailureKind.TRANSIENT, "busy")))
    told = rehearse(machine.state, TOOLS.get, now=machine.now)
    assert (names(told), told.reached) == ([("L1", "keyed")], True)


def test_a_listener_that_is_before_the_planner_is_given_up() -> None:
    machine = started(on("L1", "001 Running", CALL, "001"))
    machine.report(only(machine), PERMANENT)
    told = rehearse(machine.state, TOOLS.get, now=NOW)
    assert (names(told), told.status) == ([], "error")


def test_what_may_not_run_ends_the_play() -> None:
    absent = compiled(on("L1", "001 Running", ToolAction("nowhere"), "001"))
    disabled = compiled(on("L1", "001 Running", ToolAction("disabled"), "001"))
    for told in map(rehearsed, (absent, disabled)):
        assert (told.calls, told.status, told.reached) == ((), "error", False)


def test_conditions_that_stay_open_are_told_in_words() -> None:
    last = on("L2", "002 Done", CALL, "001")
    plan = compiled(
        on("L1", "001 Running", CODE, "002 Running"),
        *(replace(last, listener_id=f"L{number:02}") for number in range(2, 30)),
    )
    told = rehearsed(plan)
    assert (told.reached, told.status) == (False, "error")
    assert len(told.open_conditions) == 8
    assert told.open_conditions[0] == "L02: Done (002 is Running)"


def test_what_went_back_to_be_done_again_has_yet_to_fire() -> None:
    machine = started(
        on("L1", "001 Running", CALL, "002"),
        on("L2", "002 Done", CALL, "003"),
        on("L3", "003 Done", CONFIRM, "001"),
    )
    succeed(machine)
    succeed(machine)
    machine.submit(c.RerunFrom("L1", WILL))
    told = rehearse(machine.state, TOOLS.get, now=NOW, failing="L1")
    assert told.open_conditions == (
        "L2: Done (002 is Error)",
        "L3: Done (003 is NotStarted)",
    )
    assert (told.stays, told.status) == ((), "error")


def test_a_cycle_is_cut() -> None:
    plan = compiled(
        on("L1", "001 Running", CALL, "002"),
        on("L2", "002 Done", CALL, "003", repeat=True),
        on("L3", "003 Done", CALL, "002", repeat=True),
    )
    told = rehearsed(plan, most=20)
    assert (len(told.calls), told.cut, told.status) == (20, True, "running")
    assert rehearsed(plan).cut
    assert not rehearsed(compiled(on("L1", "001 Running", CALL, "001")), most=1).cut


@pytest.mark.parametrize(("more", "cut"), [(0, False), (1, True)])
def test_two_thousand_starts_are_played_and_no_more(more: int, cut: bool) -> None:
    long = (on(f"L{n}", f"{n} Done", CALL, f"{n + 1}") for n in range(2, MOST_STARTS + more))
    first, last = on("L1", "001 Running", CALL, "2"), f"{MOST_STARTS + more} Done"
    told = rehearsed(compiled(first, *long, on("end", last, CALL, "001")))
    assert MOST_STARTS == 2_000
    assert (len(told.calls), told.cut, told.reached) == (MOST_STARTS, cut, not cut)


def test_a_run_that_is_over_or_has_not_begun_does_nothing() -> None:
    machine = started(on("L1", "001 Running", CALL, "001"))
    succeed(machine)
    told = rehearse(machine.state, TOOLS.get, now=NOW)
    assert told == Rehearsal(stays=("L1",), reached=True, status="done")


def test_a_question_whose_time_is_over_has_no_answer() -> None:
    asking = Asking("Which?", timeout_seconds=30)
    machine = started(on("L1", "001 Running", HumanAction(COLOUR, asking), "001"))
    told = rehearse(machine.state, TOOLS.get, now=machine.now + 31)
    assert (told.questions, told.status) == ((), "error")
    told = rehearse(machine.state, TOOLS.get, now=machine.now)
    assert (told.questions, told.reached) == (("Which?",), True)


def test_the_oldest_question_is_answered_first_and_a_repairs_is_left_alone() -> None:
    machine = started(
        on("L1", "001 Running", replace(ASK, asking=Asking("First?")), "002"),
        on("L2", "001 Running", replace(ASK, asking=Asking("Second?")), "001"),
    )
    assert rehearse(machine.state, TOOLS.get, now=NOW).questions == ("First?", "Second?")
    state = machine.state
    for question_id in state.open_questions:
        one = state.questions[question_id]
        if one.request.title == "First?":
            state = replace(
                state, questions=state.questions.set(question_id, replace(one, purpose="repair"))
            )
    assert rehearse(state, TOOLS.get, now=NOW).questions == ("Second?",)


def spent(*listeners: Any, results: int = 1) -> Any:
    """A run in which the first calls have succeeded, and what is then called."""
    machine = started(*listeners)
    for _ in range(results):
        succeed(machine)
    return machine


def times(machine: Any) -> dict[str, int]:
    told = rehearse(machine.state, TOOLS.get, now=NOW)
    return {one.step_id: one.times for one in told.calls}


def test_a_call_that_repeats_an_effect_says_how_often_it_was_made() -> None:
    machine = spent(
        on("L1", "001 Running", CALL, "002"),
        on("L2", "002 Done", CALL, "003"),
        on("L3", "003 Done", GUARDED, "004"),
        on("L4", "004 Done", CALL, "005"),
        on("L5", "005 Done", ToolAction("look"), "006"),
        on("L6", "006 Done", KEYED, "001"),
        results=2,
    )
    assert times(machine) == {"L3": 0, "L4": 2, "L5": 0, "L6": 0}


@pytest.mark.parametrize("tool", ["keyed", "look"])
def test_to_look_again_and_to_call_again_under_a_key_repeats_nothing(tool: str) -> None:
    call = ToolAction(tool)
    plan = compiled(
        on("L1", "001 Running", call, "002"),
        on("L2", "002 Done", CONFIRM, "003"),
        on("L3", "003 Done", call, "001"),
    )
    machine = Machine(plan, tools=dict(TOOLS))
    machine.submit(c.StartRun("small", "go", by=WILL))
    machine.start_ready()
    succeed(machine)
    assert times(machine) == {"L3": 0}


def test_a_call_that_failed_took_no_effect() -> None:
    handled = replace(
        on("L1", "001 Running", CALL, "002"), failure_output=Output("003", TaskStatus.DONE)
    )
    machine = started(
        handled, on("L2", "003 Done", GUARDED, "004"), on("L3", "004 Done", CALL, "1")
    )
    machine.report(only(machine), PERMANENT)
    machine.start_ready()
    assert times(machine) == {"L2": 0, "L3": 0}


def test_a_result_that_only_waits_to_be_concluded_counts() -> None:
    machine = started(on("L1", "001 Running", CALL, "002"), on("L2", "002 Done", CALL, "001"))
    machine.report(only(machine), c.Lost("no answer"))
    machine.submit(c.Answer(question(machine).request_id, WILL, "happened"))
    assert times(machine) == {"L2": 1}


def test_a_call_under_way_counts_and_so_does_one_whose_outcome_is_unknown() -> None:
    machine = started(
        on("L1", "001 Running", CALL, "002"),
        on("L2", "001 Running", ASK, "003"),
        on("L3", "003 Done", CALL, "001"),
    )
    assert times(machine) == {"L3": 1}
    machine.report(only(machine), c.Lost("no answer"))
    told = rehearse(machine.state, TOOLS.get, now=NOW)
    assert told.questions == ("Which?", "Did plain happen?")
    assert {one.step_id: one.times for one in told.calls} == {"L3": 1}


def test_a_cycle_counts_each_round() -> None:
    machine = spent(
        on("L1", "001 Running", CALL, "002"),
        on("L2", "002 Done", CALL, "003", repeat=True),
        on("L3", "003 Done", CALL, "002", repeat=True),
        results=5,
    )
    assert times(machine)["L2"] == 6, "five that succeeded and one under way"


def test_the_calls_of_a_snippet_count() -> None:
    machine = started(
        on("L1", "001 Running", CALLING_CODE, "002"),
        on("L2", "001 Running", ASK, "003"),
        on("L3", "003 Done", CALL, "001"),
    )
    machine.report(only(machine), c.CallWanted(0, "plain", {"n": 1}))
    assert times(machine) == {"L3": 1}
    machine.report(only(machine), c.CallReturned(0, {"x": 1}))
    assert times(machine) == {"L3": 1}
    machine.report(only(machine), c.CallWanted(1, "plain", {"n": 2}))
    assert times(machine) == {"L3": 2}


class TestWhatStopsIt:
    def test_is_told_with_its_reason(self) -> None:
        action = ToolAction("plain", {"name": "{001.context.stafff_id}"})
        told = rehearsed(compiled(on("L1", "001 Running", action, "001")), {"staff_id": "S9"})
        assert (told.reached, told.calls) == (False, ())
        (why,) = told.stopped
        assert why.startswith("L1: {001.context.stafff_id}: ")
        assert "did you mean 'staff_id'?" in why

    def test_is_everything_that_failed_by_itself(self) -> None:
        plan = compiled(
            on("L1", "001 Running", ToolAction("disabled"), "002"),
            on("L2", "001 Running", ToolAction("nowhere"), "003"),
        )
        first, second = rehearsed(plan).stopped
        assert first == "L1: the tool disabled is disabled"
        assert second.startswith("L2: there is no tool nowhere in the process")

    def test_is_not_what_is_imagined_to_fail(self) -> None:
        lasting = started(
            on("L1", "001 Running", CHILD, "002"), on("L2", "001 Running", KEYED, "003")
        )
        for listener_id in ("L1", "L2"):
            told = rehearse(lasting.state, TOOLS.get, now=lasting.now, failing=listener_id)
            assert (told.reached, told.stopped) == (False, ())

    def test_is_not_what_had_failed_before(self) -> None:
        lasting = started(on("L1", "001 Running", KEYED, "001"))
        give_up(lasting)
        told = rehearse(lasting.state, TOOLS.get, now=lasting.now)
        assert (told.status, told.stopped) == ("error", ())

    def test_is_the_same_again_where_it_is_tried_again(self) -> None:
        action = ToolAction("plain", {"name": "{001.context.nothing}"})
        lasting = started(on("L1", "001 Running", action, "001"))
        assert rehearse(lasting.state, TOOLS.get, now=lasting.now).stopped == ()
        lasting.consult(0)
        lasting.submit(c.Resume(WILL))
        (why,) = rehearse(lasting.state, TOOLS.get, now=lasting.now).stopped
        assert why.startswith("L1: {001.context.nothing}: ")

    def test_a_plan_that_goes_through_is_stopped_by_nothing(self) -> None:
        assert rehearsed(compiled(on("L1", "001 Running", CALL, "001"))).stopped == ()
