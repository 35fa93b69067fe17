"""Judging a patch: all that is wrong with it, what it would do, and what consent is bound to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patch_cases import (
    LISTENERS,
    POLICY,
    TOOLS,
    begun,
    brought,
    failed,
    inserted,
    known,
    patch_of,
    set_args,
    verdict_on,
)
from small_plans import on

from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import patched, read_operations
from holdfast.core.repair.state import repairs_with
from holdfast.core.storing import plan_digest
from holdfast.errors import HoldfastError
from holdfast.language.strict import digest
from holdfast.model.events import PlanPatched
from holdfast.model.plan import CodeAction, ToolAction
from holdfast.model.repair import Level, RepairLimits
from holdfast.model.values import JsonObject
from holdfast.repair import checks
from holdfast.repair.checks import PERSON, consent_of, judge, new_findings

RENAMED = set_args(computer_model="{001.context.model}", drop=("model",))


@pytest.fixture(scope="module")
def state() -> PlanState:
    return failed()


def problems(state: PlanState, *operations: JsonObject, **more: Any) -> tuple[str, ...]:
    return verdict_on(state, *operations, **{"by": PERSON, **more}).problems


class TestProblems:
    def test_a_sound_patch_has_none(self, state: PlanState) -> None:
        assert problems(state, RENAMED) == ()

    def test_its_shape_is_wrong_in_every_place_at_once(self, state: PlanState) -> None:
        found = problems(state, {"op": "remove"}, {"op": "skip"}, {"op": "set_args"})
        assert [one.split(":")[0] for one in found][:2] == [
            "operations[0].op",
            "operations[1].listener_id",
        ]
        assert len(found) >= 3

    def test_it_names_what_is_not_there(self, state: PlanState) -> None:
        (found,) = problems(state, set_args("L22", model="x"))
        assert found.startswith("operations[0].listener_id: there is no listener 'L22'")

    def test_it_is_for_another_plan(self, state: PlanState) -> None:
        patch = patch_of(state, RENAMED, base="0" * 64, source=PERSON)
        verdict = judge(state, patch, known(), by_model=False)
        told = "the run's plan has changed since the repair was proposed"
        assert verdict.problems == (told,)
        assert (verdict.success, verdict.consent) == (None, "")

    def test_the_run_has_been_repaired_as_often_as_may_be(self) -> None:
        policy = replace(POLICY, most=RepairLimits(patches=1))
        once = failed(begun(repair=policy))
        assert problems(once, RENAMED) == ()
        event = PlanPatched("p0", "case_1", "", "", ())
        patches = repairs_with(once.repair, patches=(event,))
        again = replace(once, repair=patches)
        assert problems(again, RENAMED) == ("the plan has been repaired 1 times already",)

    def test_an_author_cannot_allow_more_than_eight_patches(self, state: PlanState) -> None:
        event = PlanPatched("p0", "case_1", "", "", ())
        worn = replace(state, repair=repairs_with(state.repair, patches=(event,) * 8))
        assert problems(worn, RENAMED) == ("the plan has been repaired 8 times already",)

    def test_thirteen_operations_are_too_many(self, state: PlanState) -> None:
        (found,) = problems(state, *[RENAMED] * 13)
        assert found == "operations: a patch has at most 12 operations; this has 13"

    def test_so_are_nine_new_listeners(self, state: PlanState) -> None:
        new = [inserted("query_badge", new=f"R{n}", args={"name": "x"}) for n in range(9)]
        assert "operations: a patch adds at most 8 listeners; this adds 9" in problems(state, *new)

    def test_what_has_run_stays_as_it_is(self, state: PlanState) -> None:
        found = problems(state, set_args("L1", name="x"), RENAMED, set_args("L1", note="y"))
        ran = "L1 has run, and the past of a run stays as it is"
        assert found == (
            f"operations[0].listener_id: {ran}",
            f"operations[2].listener_id: {ran}",
        )

    def test_what_waits_for_advice_has_failed_too(self) -> None:
        assert problems(failed(given_up=False), RENAMED) == ()

    def test_an_id_is_taken_once(self, state: PlanState) -> None:
        (found,) = problems(state, inserted("query_badge", new="L3", args={"name": "x"}))
        assert found == "operations[0].listener.listener_id: the listener_id L3 is taken"

    def test_to_change_nothing_is_no_repair(self, state: PlanState) -> None:
        same = set_args(employee="{001.context.name}")
        assert problems(state, same) == ("the patch changes nothing",)

    def test_all_findings_come_at_once(self, state: PlanState) -> None:
        patch = patch_of(
            state,
            set_args("L1", name="x"),
            set_args(modle="x", drop=("model",)),
            inserted("wipe_disk"),
            base="elsewhere",
        )
        found = judge(state, patch, known(), by_model=True).problems
        assert {one.split(" ")[0] for one in found} == {
            "the",
            "operations[0].listener_id:",
            "operations[1]",
            "operations[2]",
        }

    @pytest.mark.parametrize("bad", [float("nan"), "\ud800", [[]] * 100_000, "x" * 10_000_000])
    def test_what_is_no_json_is_refused_with_its_place(self, bad: object, state: PlanState) -> None:
        (found,) = problems(state, set_args(model=bad))
        assert found.startswith("operations")

    def test_what_is_nested_too_deep_is_refused(self, state: PlanState) -> None:
        deep: Any = "x"
        for _ in range(100):
            deep = [deep]
        (found,) = problems(state, set_args(model=deep))
        assert "nested too deep" in found

    def test_of_very_many_the_first_are_told(self, state: PlanState) -> None:
        many = {f"a{number}": "{{result}}" for number in range(150)}
        found = problems(state, set_args(**many))
        assert len(found) == 100
        assert found[-1].endswith("more mistakes from here on; mend those above first")

    def test_a_message_is_no_longer_than_a_reader_can_use(self, state: PlanState) -> None:
        (found,) = problems(state, set_args(**{"n" * 5_000: "x"}))
        assert len(found) == 1_000


class TestThePlansChecker:
    def test_its_findings_name_the_operation_and_the_place(self, state: PlanState) -> None:
        (found,) = problems(state, set_args(modell="x"))
        assert found == (
            "operations[0] (set_args): L2.args.modell: order takes no argument 'modell'; "
            "did you mean 'model'?"
        )

    def test_what_was_wrong_before_is_not_the_patchs_fault(self) -> None:
        l3 = replace(LISTENERS[2], action=ToolAction("gone", {"a": "{008.context.x}"}))
        machine = begun(*LISTENERS[:2], l3, *LISTENERS[3:])
        state = failed(machine)
        assert problems(state, RENAMED) == ()
        first = inserted("query_badge", args={"name": "{001.context.name}"})
        assert problems(state, first, RENAMED) == (), "L3 has moved to another place"

    def test_the_same_mistake_of_another_listener_is(self) -> None:
        l3 = replace(LISTENERS[2], action=ToolAction("gone"))
        state = failed(begun(*LISTENERS[:2], l3, *LISTENERS[3:]))
        (found,) = problems(state, inserted("gone"))
        assert found == "operations[0] (insert_before): R1.tool: there is no tool 'gone'"

    def test_a_new_task_that_nothing_reaches_is_found(self, state: PlanState) -> None:
        lonely = {"op": "add", "tasks": [{"task_id": "R9", "name": "Lonely"}]}
        (found,) = problems(state, lonely)
        assert found.startswith("operations[0] (add): R9.task_id: nothing ever reaches task R9")

    def test_a_cycle_that_cannot_end_is_found(self, state: PlanState) -> None:
        code = {"listener_type": "code", "code_snippet": "result = 1", "repeat": True}
        there = {**code, "trigger_task_id": "R2", "listener_id": "R1"}
        back = {**code, "trigger_task_id": "R1", "listener_id": "R2"}
        ways = (brought(there, new="R1"), brought(back, new="R2"))
        assert any("can never fire" in one for one in problems(state, *ways))

    def test_what_the_plan_as_a_whole_has_wrong_names_no_operation(self, state: PlanState) -> None:
        left_out = {"op": "skip", "listener_id": "L6"}
        (found,) = problems(state, left_out)
        assert found == (
            "main_task_id: no listener ever sets the main task 001 to Done: the plan cannot finish"
        )

    def test_a_sound_plan_is_looked_at_once(self, state: PlanState) -> None:
        plan = state.plan.plan
        assert list(new_findings(plan, plan, known().catalog)) == []


class TestAbsences:
    """What a patch reads that nothing writes."""

    def test_a_name_that_is_in_no_context_is_found(self, state: PlanState) -> None:
        (found,) = problems(state, set_args(employee="{002.context.employe_id}"))
        assert found == (
            "operations[0] (set_args): L2 reads 002.context.employe_id, which nothing writes: did "
            "you mean employee_id?"
        )

    def test_what_there_is_instead_is_told(self, state: PlanState) -> None:
        (found,) = problems(state, set_args(employee="{004.context.message}"))
        assert found.endswith("which nothing writes: task 004 has nothing")

    @pytest.mark.parametrize(
        "path", ["001.context.model", "002.context", "002.status", "003.context.order"]
    )
    def test_what_is_or_comes_there_is_none(self, path: str, state: PlanState) -> None:
        assert problems(state, set_args("L3", text=f"{{{path}}}")) == ()

    def test_what_the_patch_brings_along_is_none(self, state: PlanState) -> None:
        look = inserted(
            "query_badge",
            args={"name": "{001.context.name}"},
            success_output={"context": {"badge": "{{result.badge}}"}},
        )
        assert problems(state, look, set_args(employee="{R1.context.badge}")) == ()

    def test_a_snippet_may_write_anything_into_its_task(self) -> None:
        code = on("L9", "002 Done", CodeAction("result = {'context': {'x': 1}}"), "003")
        state = failed(begun(*LISTENERS, code))
        assert problems(state, set_args("L3", text="{003.context.x}")) == ()

    def test_and_one_that_chooses_its_task_into_any(self) -> None:
        code = on("L9", "002 Done", CodeAction("result = {'target_task': '00' + '4'}"), "009")
        state = failed(begun(*LISTENERS, code))
        assert problems(state, set_args("L3", text="{003.context.x}")) == ()

    def test_of_the_main_task_the_inputs_and_the_engines_words_are_known(self) -> None:
        l6 = on("L6", "006 Done", ToolAction("order", {"employee": "x"}), "001")
        state = failed(begun(*LISTENERS[:5], l6))
        assert problems(state, set_args("L3", text="{001.context.retry_count}")) == ()
        (found,) = problems(state, set_args("L3", text="{001.context.zip}"))
        assert found.endswith("nothing writes: task 001 has day, model, name, pieces, pin")


class TestRehearsal:
    def test_it_is_played_once_well_and_once_with_the_same_failure(self, state: PlanState) -> None:
        verdict = verdict_on(state, RENAMED, rehearse=True)
        assert verdict.success is not None
        assert verdict.failure is not None
        assert verdict.success.reached
        called = [one.tool for one in verdict.success.calls]
        assert called == ["order", "send_email", "grant_access", "query_profile"]
        assert not verdict.failure.reached
        assert [one.step_id for one in verdict.failure.calls] == ["L2"]

    def test_what_was_seen_of_a_tool_is_what_it_returns(self, state: PlanState) -> None:
        verdict = verdict_on(state, RENAMED, rehearse=True, seen={"order": {"order_id": 7}})
        assert verdict.success is not None
        (mail,) = (one for one in verdict.success.calls if one.tool == "send_email")
        assert mail.args["text"] == "Order 7"

    def test_where_nothing_has_failed_the_first_change_is_what_fails(self) -> None:
        state = begun().state
        verdict = verdict_on(state, set_args("L3", text="Hello"), rehearse=True)
        assert verdict.failure is not None
        assert not verdict.failure.reached

    def test_a_patch_of_tasks_alone_has_nothing_that_fails(self) -> None:
        code = on("L9", "002 Done", CodeAction("result = {'target_task': '00' + '4'}"), "009")
        state = failed(begun(*LISTENERS, code))
        task = {"op": "add", "tasks": [{"task_id": "R9", "name": "Perhaps"}]}
        verdict = verdict_on(state, task, rehearse=True, by=PERSON)
        assert verdict.problems == ()
        assert verdict.failure == verdict.success

    def test_a_goal_that_is_not_reached_is_told(self, state: PlanState) -> None:
        waits = {"op": "ask_first", "listener_id": "L2", "choice": {"title": "Go on?"}}
        assert verdict_on(state, waits, rehearse=True, by=PERSON).warnings == ()
        verdict = verdict_on(state, RENAMED, rehearse=True, seen={"order": {"id": 7}})
        assert "in the rehearsal the goal is not reached" in verdict.warnings

    def test_so_is_one_that_was_broken_off(
        self, state: PlanState, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        few = {"most": 1}
        play = checks.rehearsal_of
        monkeypatch.setattr(checks, "rehearsal_of", lambda *of, **by: play(*of, **{**by, **few}))
        verdict = verdict_on(state, RENAMED, rehearse=True)
        assert verdict.warnings == ("the rehearsal was broken off after too many steps",)

    def test_what_cannot_be_rehearsed_is_refused(
        self, state: PlanState, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stuck(*of: object, **by: object) -> None:
            raise HoldfastError("a table has no such move")

        monkeypatch.setattr(checks, "rehearsal_of", stuck)
        verdict = verdict_on(state, RENAMED, rehearse=True)
        assert verdict.problems == ("it cannot be rehearsed: a table has no such move",)
        assert verdict.consent == ""

    def test_judging_leaves_the_run_as_it_is(self, state: PlanState) -> None:
        before = dict(state.__dict__)
        verdict_on(state, RENAMED, rehearse=True)
        assert state.__dict__ == before


class TestConsent:
    def consent(self, state: PlanState, *operations: JsonObject, **more: Any) -> str:
        tools = more.pop("tools", None)
        patch = patch_of(state, *operations, source=PERSON, **more)
        verdict = judge(state, patch, known(tools), by_model=False, rehearse=False)
        assert verdict.problems == ()
        return verdict.consent

    def test_the_digest_names_the_plan_that_results(self, state: PlanState) -> None:
        plan = patched(state.plan.plan, read_operations([RENAMED]))
        assert verdict_on(state, RENAMED).digest == plan_digest(plan)

    def test_consent_is_bound_to_everything_that_was_shown(self, state: PlanState) -> None:
        patch = patch_of(state, RENAMED)
        verdict = verdict_on(state, RENAMED)
        shown = {
            "run": "inst_000001",
            "case": "case_1",
            "base": state.plan.digest,
            "operations": [RENAMED],
            "digest": verdict.digest,
            "versions": {"order": "o1"},
            "fresh": list(verdict.fresh),
            "values": verdict.values,
        }
        assert verdict.consent == digest(shown)
        assert verdict.consent == consent_of("inst_000001", patch, verdict)

    def test_another_version_of_a_tool_needs_another_consent(self, state: PlanState) -> None:
        newer = {**TOOLS, "order": replace(TOOLS["order"], version="o9")}
        assert self.consent(state, RENAMED) != self.consent(state, RENAMED, tools=newer)

    def test_of_a_tool_that_is_not_concerned_it_does_not(self, state: PlanState) -> None:
        newer = {**TOOLS, "send_email": replace(TOOLS["send_email"], version="m9")}
        assert self.consent(state, RENAMED) == self.consent(state, RENAMED, tools=newer)

    def test_so_do_another_case_and_another_run(self, state: PlanState) -> None:
        other = replace(state, run_id="inst_000002")
        first = self.consent(state, RENAMED)
        assert (
            len({first, self.consent(state, RENAMED, case_id="c2"), self.consent(other, RENAMED)})
            == 3
        )

    def test_words_about_a_patch_are_no_part_of_it(self, state: PlanState) -> None:
        assert self.consent(state, RENAMED) == self.consent(state, RENAMED, reason="at last")

    def test_the_tools_of_all_that_is_concerned_have_their_versions(self, state: PlanState) -> None:
        use = {
            "op": "use_tool",
            "listener_id": "L3",
            "tool": "order_again",
            "args": {"employee": "{001.context.name}"},
        }
        look = inserted("query_badge", args={"name": "x"})
        verdict = verdict_on(state, use, look)
        assert verdict.versions == {
            "order": "o1",
            "order_again": "o2",
            "query_badge": "q2",
            "send_email": "m1",
        }

    def test_a_tool_that_is_gone_has_none(self) -> None:
        l3 = replace(LISTENERS[2], action=ToolAction("gone"))
        state = failed(begun(*LISTENERS[:2], l3, *LISTENERS[3:]))
        skipped = verdict_on(state, {"op": "skip", "listener_id": "L3"}, by=PERSON)
        assert skipped.versions == {"gone": ""}

    def test_what_has_problems_has_nothing_to_consent_to(self, state: PlanState) -> None:
        verdict = verdict_on(state, set_args(modell="x"))
        assert verdict.problems
        assert verdict.consent == ""


class TestWarnings:
    def test_new_values_are_shown_as_what_they_are(self, state: PlanState) -> None:
        new = set_args(size="XXL\u202e")
        assert verdict_on(state, new, by="model:m").warnings == (
            'L2.size = "XXL⟨202E⟩" is the model\'s own value',
        )
        assert verdict_on(state, new).warnings == ('L2.size = "XXL⟨202E⟩" is a new value',)
        assert verdict_on(state, RENAMED).warnings == ()

    @pytest.mark.parametrize(
        ("by", "most"), [("model:m", 20), ("rule:r", 200), ("lesson:l", 200), (PERSON, 200)]
    )
    def test_every_new_value_is_shown_and_what_has_too_many_is_refused(
        self, by: str, most: int, state: PlanState
    ) -> None:
        def bringing(n: int) -> JsonObject:
            tags = [f"t{each}" for each in range(n)]
            new = inserted("query_badge", args={"name": "{001.context.name}", "tags": tags})
            return {**new, "task": {"task_id": "R1"}}

        told = verdict_on(state, bringing(most), by=by)
        assert told.problems == ()
        assert [f'"t{each}"' in one for each, one in enumerate(told.warnings)] == [True] * most
        refused = f"a patch brings at most {most} new values; this brings {most + 1}"
        assert verdict_on(state, bringing(most + 1), by=by).problems == (refused,)


OPERATIONS = st.lists(
    st.one_of(
        st.builds(
            lambda id_, name, value: set_args(id_, **{name: value}),
            st.sampled_from(["L1", "L2", "L3", "L5", "L9"]),
            st.sampled_from(["employee", "model", "size", "text", "count"]),
            st.sampled_from(["{001.context.name}", "{002.context.x}", "new", 5, True, "{", None]),
        ),
        st.builds(
            lambda id_: {"op": "skip", "listener_id": id_},
            st.sampled_from(["L1", "L2", "L3", "L4", "L6"]),
        ),
        st.builds(
            lambda id_, tool, new: inserted(tool, id_, new=new, args={"name": "x"}),
            st.sampled_from(["L2", "L3", "R1"]),
            st.sampled_from(["query_badge", "wipe_disk", "order", "nothing"]),
            st.sampled_from(["R1", "R2", "L3"]),
        ),
        st.builds(
            lambda id_: {"op": "ask_first", "listener_id": id_, "choice": {"title": "Go on?"}},
            st.sampled_from(["L2", "L4", "L6"]),
        ),
        st.dictionaries(st.text(max_size=5), st.none() | st.text(max_size=5), max_size=2),
    ),
    max_size=5,
)

STATE = failed()


@given(OPERATIONS)
def test_a_model_is_never_allowed_more_than_a_person(operations: list[JsonObject]) -> None:
    by_person = verdict_on(STATE, *operations, by=PERSON, rehearse=True)
    by_model = verdict_on(STATE, *operations, by="model:m", rehearse=True)
    assert set(by_person.problems) <= set(by_model.problems)
    assert by_model.level is Level.ACT or by_model.level == by_person.level


@given(OPERATIONS)
def test_there_is_consent_exactly_where_there_is_no_problem(operations: list[JsonObject]) -> None:
    verdict = verdict_on(STATE, *operations, rehearse=True)
    assert bool(verdict.consent) is not bool(verdict.problems)
    assert (verdict.success is None) is bool(verdict.problems)
