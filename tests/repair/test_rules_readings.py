"""What a plan reads from the wrong place."""

from __future__ import annotations

from typing import Any

from failed_runs import TEXT, call, failed, known, proposed, refusal, sound, takes, work_of
from small_plans import CODE, on

from holdfast.core.plan.state import PlanState
from holdfast.model.approval import ToolFacts
from holdfast.model.plan import Action, PlanAction
from holdfast.model.repair import Level
from holdfast.model.retry import Cause
from holdfast.repair.diagnoses import diagnosis_of
from holdfast.repair.failed_work import FailedWork
from holdfast.repair.rules_readings import elsewhere, misread

BUY = ToolFacts({}, "1")
SHIP = takes(order_id=TEXT)
TOOLS = {"buy": BUY, "ship": SHIP}


def shipping(action: Action, result: Any = None, **values: Any) -> PlanState:
    """Something is bought, then it is to be shipped."""
    given = {"id": "PC-1"} if result is None else result
    context = {name: f"{{{{result.{name}}}}}" for name in given}
    return failed(
        on("L1", "001 Running", call("buy"), "002", context=context),
        on("L2", "002 Done", action, "003"),
        on("L3", "003 Done", CODE, "001"),
        tools=TOOLS,
        results=(given,),
        values=values,
        failure=refusal("nobody is asked any more"),
    )


def unsent(state: PlanState) -> tuple[list[tuple[dict[str, Any], ...]], Cause]:
    work = work_of(state, TOOLS)
    found = diagnosis_of(state, work.id, work.failure, (), known(TOOLS))
    operations = [tuple(dict(each) for each in one.operations) for one in misread(work)]
    return operations, found.cause


def reads(**args: Any) -> tuple[dict[str, Any], ...]:
    return ({"op": "set_args", "listener_id": "L2", "set": args},)


class TestMisread:
    def test_what_a_task_lacks_is_read_from_the_one_that_has_it(self) -> None:
        action = call("ship", order_id="{001.context.order_id}")
        state = shipping(action, {"order_id": "PC-1"})
        assert unsent(state) == ([reads(order_id="{002.context.order_id}")], Cause.ARGUMENT)
        (best,) = sound(state, TOOLS)
        assert best.verdict.level is Level.RENAME
        assert (
            best.patch.reason
            == "{001.context.order_id} is not there, but {002.context.order_id} is"
        )

    def test_a_value_that_the_tool_does_not_take_is_not_meant(self) -> None:
        action = call("ship", order_id="{001.context.order_id}")
        state = shipping(action, {"order_id": 7})
        ((operation,),), _ = unsent(state)
        assert operation["op"] == "ask_first"
        assert operation["fields"][0]["name"] == "order_id"

    def test_in_the_middle_of_a_text_any_value_may_stand(self) -> None:
        action = call("ship", order_id="order {001.context.order_id}")
        state = shipping(action, {"order_id": 7})
        assert unsent(state)[0] == [reads(order_id="order {002.context.order_id}")]

    def test_each_of_several_places_is_offered(self) -> None:
        action = call("ship", order_id="{002.context.order_id}")
        state = shipping(action, {"nested": {"order_id": "PC-1"}}, order_id="PC-2")
        assert unsent(state)[0] == [
            reads(order_id="{001.context.order_id}"),
            reads(order_id="{002.context.nested.order_id}"),
        ]
        assert [one.shown.get("guessed") for one in sound(state, TOOLS)] == [True, True]

    def test_what_nobody_has_is_asked_beside_what_is_read_elsewhere(self) -> None:
        tools = {"buy": BUY, "ship": takes(order_id=TEXT, to=TEXT)}
        action = call("ship", order_id="{001.context.order_id}", to="{001.context.address}")
        state = shipping(action, {"order_id": "PC-1"})
        (draft,) = misread(work_of(state, tools))
        set_args, ask = draft.operations
        assert set_args["set"] == {"order_id": "{002.context.order_id}"}
        assert [one["name"] for one in ask["fields"]] == ["to"]
        assert "nothing in this run has {001.context.address}" in draft.reason

    def test_what_is_lost_and_cannot_be_asked_is_left_to_a_person(self) -> None:
        state = shipping(PlanAction("other", {"order": "{001.context.nowhere}"}))
        assert unsent(state)[0] == []

    def test_a_child_plans_values_are_read_elsewhere_too(self) -> None:
        state = shipping(PlanAction("other", {"order": "{001.context.id}"}))
        assert unsent(state)[0] == [reads(order="{002.context.id}")]

    def test_where_all_is_there_nothing_is_proposed(self) -> None:
        state = shipping(call("ship", order_id="{002.context.id}"))
        assert unsent(state) == ([], Cause.ARGUMENT)


class TestElsewhere:
    def test_only_another_value_of_that_name_is_offered(self) -> None:
        action = call("ship", order_id="{001.context.order_id}")
        state = shipping(action, {"order_id": "PC-1"}, order_id="PC-9")
        (draft,) = elsewhere(work_of(state, TOOLS), ["order_id"])
        assert draft.operations == reads(order_id="{002.context.order_id}")
        same = shipping(action, {"order_id": "PC-1"}, order_id="PC-1")
        assert list(elsewhere(work_of(same, TOOLS), ["order_id"])) == []

    def test_the_name_that_it_was_read_under_counts_too(self) -> None:
        action = call("ship", order_id="{001.context.id}")
        state = shipping(action, {"id": "PC-1", "order_id": "PC-2"}, id="PC-9")
        found = [one.operations for one in elsewhere(work_of(state, TOOLS), ["order_id"])]
        assert found == [
            reads(order_id="{002.context.order_id}"),
            reads(order_id="{002.context.id}"),
        ]

    def test_a_literal_may_stand_for_what_the_run_has(self) -> None:
        state = shipping(call("ship", order_id="PC-0"), {"order_id": "PC-1"})
        (draft,) = elsewhere(work_of(state, TOOLS), ["order_id"])
        assert draft.operations == reads(order_id="{002.context.order_id}")


def test_a_run_whose_plan_shows_no_fault_and_whose_cause_is_unknown_gets_no_proposal() -> None:
    state = shipping(call("ship", order_id="{002.context.id}"))
    work = work_of(state, TOOLS)
    unknown = refusal("who knows", Cause.UNKNOWN)
    assert isinstance(FailedWork(state, work.id, unknown, known(TOOLS)), FailedWork)
    assert (
        proposed(
            failed(
                on("L1", "001 Running", call("ship", order_id="PC-1"), "001"),
                tools=TOOLS,
                failure=unknown,
            ),
            TOOLS,
        )
        == []
    )
