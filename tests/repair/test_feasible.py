"""A patch of which something cannot be carried out is judged all the same, all of it at once."""

from __future__ import annotations

import pytest
from patch_cases import brought, failed, inserted, known, patch_of, set_args, verdict_on

from holdfast.core.plan.state import PlanState
from holdfast.model.values import JsonObject
from holdfast.repair.checks import PERSON, judge
from holdfast.repair.feasible import feasible

GONE = set_args("L22", model="x")


@pytest.fixture(scope="module")
def state() -> PlanState:
    return failed()


def problems(state: PlanState, *operations: JsonObject, by: str = PERSON) -> tuple[str, ...]:
    verdict = verdict_on(state, *operations, by=by)
    assert (verdict.digest, verdict.consent) == ("", "")
    return verdict.problems


def places(told: tuple[str, ...]) -> list[str]:
    return sorted(one.partition(" ")[0].rstrip(":").partition(".")[0] for one in told)


class TestAllAtOnce:
    def test_beside_an_unknown_listener(self, state: PlanState) -> None:
        told = problems(
            state,
            GONE,
            set_args("L1", name="x"),
            set_args(modell="x"),
            inserted("wipe_disk", "L3"),
            {"op": "set_retry", "listener_id": "L3", "timeout": 9_000},
            by="model:written",
        )
        assert {f"operations[{place}]" for place in range(5)} <= set(places(told))

    def test_beside_an_operation_that_cannot_be_read(self, state: PlanState) -> None:
        told = problems(state, {"op": "remove"}, set_args(modell="x"), set_args("L1", name="x"))
        assert places(told) == ["operations[0]", "operations[1]", "operations[2]"]
        assert "did you mean 'model'?" in "".join(told)

    def test_beside_what_is_no_operation_at_all(self, state: PlanState) -> None:
        told = problems(state, "rename it", set_args(modell="x"))  # type: ignore[arg-type]
        assert places(told) == ["operations[0]", "operations[1]"]

    def test_beside_an_id_that_is_taken(self, state: PlanState) -> None:
        told = problems(
            state, inserted("query_badge", new="L3", args={"name": "x"}), set_args(modell="x")
        )
        assert places(told) == ["operations[0]", "operations[1]"]

    def test_a_secret_is_found_wherever_it_stands(self, state: PlanState) -> None:
        told = problems(state, GONE, set_args(token="secret:0123456789abcdef"))
        assert any("secret" in one for one in told)

    def test_whatever_the_order(self, state: PlanState) -> None:
        one, other = (set_args(modell="x"), GONE), (GONE, set_args(modell="x"))
        assert places(problems(state, *one)) == places(problems(state, *other))


class TestNotTheFaultOf:
    """What is wrong only for want of an operation that cannot be carried out is not told."""

    def test_what_changes_what_it_would_bring(self, state: PlanState) -> None:
        first = inserted("query_badge", "L22", args={"name": "{001.context.name}"})
        told = problems(state, first, set_args("R1", note="x"))
        assert places(told) == ["operations[0]"]

    def test_what_reads_what_it_would_bring(self, state: PlanState) -> None:
        first = inserted("query_badge", "L22", args={"name": "{001.context.name}"})
        assert len(problems(state, first, set_args(day="{R1.context.day}"))) == 1

    def test_what_rests_on_that_in_its_turn(self, state: PlanState) -> None:
        first = inserted("query_badge", "L22", args={"name": "{001.context.name}"})
        second = inserted("query_badge", "R1", new="R2", args={"name": "{001.context.name}"})
        told = problems(state, first, second, set_args("R2", note="x"))
        assert places(told) == ["operations[0]"]

    def test_what_asks_before_one_that_is_not_there(self, state: PlanState) -> None:
        ask: JsonObject = {"op": "ask_first", "listener_id": "L22", "fields": [{"name": "day"}]}
        told = problems(state, ask, set_args(day="{ask_L22.context.day}"))
        assert places(told) == ["operations[0]"]

    def test_what_cannot_be_read_and_what_rests_on_it(self, state: PlanState) -> None:
        listener = {"listener_type": "tool", "tool": "query_badge", "args": {}, "colour": "red"}
        unreadable = brought(listener)
        told = problems(state, unreadable, set_args("R1", note="x"), {"op": "add", "tasks": "none"})
        assert places(told) == ["operations[0]", "operations[2]"]

    def test_what_fails_only_without_it(self, state: PlanState) -> None:
        both: JsonObject = {
            "op": "set_args",
            "listener_id": "L2",
            "set": {"colour": "grey"},
            "drop": ["gone"],
        }
        told = problems(state, both, set_args(drop=("colour",)), set_args("L3", note="x"))
        assert "operations[0]" in places(told)
        assert "operations[1]" not in places(told)
        assert any("operations[2]" in one for one in told)

    def test_the_whole_plan_which_may_be_right_with_it(self, state: PlanState) -> None:
        told = problems(state, {"op": "skip", "listener_id": "L6"}, GONE)
        assert places(told) == ["operations[1]"], "that nothing ends the plan is left out"

    def test_a_patch_of_which_nothing_is_left_to_judge(self, state: PlanState) -> None:
        assert places(problems(state, GONE)) == ["operations[0]"]


def test_a_patch_without_obstacles_is_all_left(state: PlanState) -> None:
    raw = (set_args(count=2), inserted("query_badge", "L3", args={"name": "x"}))
    found = feasible(state.plan.plan, raw)
    assert (list(found.read), list(found.left), found.problems) == ([0, 1], [0, 1], ())


def test_thirteen_are_too_many_to_look_at(state: PlanState) -> None:
    verdict = judge(state, patch_of(state, *[GONE] * 13), known(), by_model=False)
    assert verdict.problems == ("operations: a patch has at most 12 operations; this has 13",)
