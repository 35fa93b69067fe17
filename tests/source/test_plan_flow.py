from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.form import Field, Form
from holdfast.model.plan import (
    Action,
    CodeAction,
    HumanAction,
    Listener,
    Output,
    Plan,
    Task,
    TaskStatus,
    ToolAction,
)
from holdfast.source.flow import flow_problems

WORK = ToolAction("work")


def on(
    trigger: str,
    condition: str = "Done",
    to: str = "001",
    status: str = "Done",
    action: Action = WORK,
    **more: Any,
) -> tuple[str, str, str, str, Action, dict[str, Any]]:
    """A listener on `trigger` that puts the task `to` into `status`; "" puts none."""
    return trigger, condition, to, status, action, more


def flow(tasks: str, *listeners: Any) -> list[str]:
    """The problems of a plan whose main task is 001 and whose listeners are L1, L2, …"""
    made = tuple(
        Listener(
            f"L{number}",
            tuple(trigger.split(",")),
            condition,
            action,
            success_output=Output(to, TaskStatus(status)) if to else None,
            **more,
        )
        for number, (trigger, condition, to, status, action, more) in enumerate(listeners, 1)
    )
    plan = Plan("p", "P", "001", tuple(Task(one) for one in tasks.split()), made)
    return [finding.message for finding in flow_problems(plan)]


def never(listener: str) -> str:
    return f"listener {listener} can never fire: no output brings about what its condition asks"


class TestReach:
    def test_a_chain_from_start_to_goal_is_fine(self) -> None:
        assert flow("001 002", on("001", "Running", "002"), on("002")) == []

    def test_a_task_that_no_output_names_is_unreachable_but_what_waits_for_it_is_not_blamed(
        self,
    ) -> None:
        assert flow("001 002 003", on("001", "Running"), on("002", to="003"), on("003")) == [
            "nothing ever reaches task 002: name it in an output, or remove it"
        ]

    def test_a_failure_output_reaches_too(self) -> None:
        failing = on("001", "Running", failure_output=Output("002", TaskStatus.SKIPPED))
        assert flow("001 002", failing) == []

    def test_a_goal_that_nobody_sets_done_is_never_met(self) -> None:
        assert flow("001 002", on("001", "Running", "002"), on("002", status="Error")) == [
            "no listener ever sets the main task 001 to Done: the plan cannot finish"
        ]

    def test_a_goal_that_does_not_exist_is_not_looked_for(self) -> None:
        assert flow("002", on("002", to="002")) == []

    @pytest.mark.parametrize(
        "condition",
        [
            "Error and Done",
            "002.status == Done",
            "Done == 002.status",
            "002.status in [Done]",
            "not (002.status != Done)",
            "002.status == 'Done' and 002.context.x > 1",
            "002.status not in [NotStarted, Running, Error, Retrying, Pending, Skipped, Cancelled]",
            "false",
            "not true",
        ],
    )
    def test_only_an_output_makes_done(self, condition: str) -> None:
        listeners = (
            on("001", "Running", "002", "Error"),
            on("002", condition),
            on("001", "Running"),
        )
        assert flow("001 002", *listeners) == [never("L2")]

    @pytest.mark.parametrize(
        "condition",
        [
            "Running",
            "Error",
            "002.status == Skipped",
            "002.status != Done",
            "002.status in [Done, Error]",
            "002.status not in [Done]",
            "002.status in [Done, 001.context.x]",
            "002.status in 001.context.list",
            "002.status == 001.status",
            "002.status < Done",
            "002.status == null",
            "002.context.ready",
            "002.status == Done or 002.context.x > 1",
            "values.x == 1",
            "true",
        ],
    )
    def test_anything_else_may_come_by_itself(self, condition: str) -> None:
        listeners = (
            on("001", "Running", "002", "Error"),
            on("002", condition),
            on("001", "Running"),
        )
        assert flow("001 002", *listeners) == []

    def test_every_trigger_counts_for_a_bare_status(self) -> None:
        first = (on("001", "Running", "002"), on("001", "Running", "003", "Error"))
        assert flow("001 002 003", *first, on("002,003")) == [never("L3")]
        assert flow("001 002 003", *first, on("002,003", "002.status == Done")) == []

    def test_of_listeners_that_never_fire_only_the_first_cause_is_told(self) -> None:
        assert flow(
            "001 002 003 004",
            on("001", "Running", "002", "Error"),
            on("002", "002.status == Done", "003"),
            on("003", to="004"),
            on("004"),
        ) == [never("L2")]

    def test_an_island_is_told_once(self) -> None:
        found = flow("001 002 003", on("001", "Running"), on("003", to="002"), on("002", to="003"))
        assert found == ["listener L2 can never fire: it waits for what only follows from itself"]

    def test_what_cannot_be_read_or_does_not_exist_is_left_to_others(self) -> None:
        assert flow("001 002", on("001", "Runing", "002"), on("002,009"), on("009", "x = 1")) == []
        assert (
            flow("001 002", on("001", "Running", "002"), on("002"), on("001", to="", status=""))
            == []
        )
        assert flow("001", on("001", "Running"), on("001", "Running", to="009")) == []


class TestSnippetsThatChoose:
    def test_reach_the_tasks_they_spell_out(self) -> None:
        snippet = "result = {'target_task': '002' if x else '003', 'target_status': 'Done'}"
        choosing = on("001", "Running", "", action=CodeAction(snippet))
        assert flow("001 002 003", choosing, on("002"), on("003")) == []
        assert flow("001 002 003 004", choosing, on("002"), on("003"), on("004")) == [
            "nothing ever reaches task 004: name it in an output, or remove it"
        ]

    def test_that_spell_out_none_may_reach_any(self) -> None:
        choosing = on("001", "Running", "", action=CodeAction("result = {'target_task': t}"))
        assert flow("001 002 003", choosing, on("002"), on("003", to="002"), choosing) == []
        assert flow("001 002", choosing, on("002", "true and false")) == [never("L2")]

    def test_may_change_the_status_of_their_output(self) -> None:
        action = CodeAction("result = {'target_status': s}")
        assert flow("001 002", on("001", "Running", "002", "Error", action), on("002")) == []

    def test_that_do_not_choose_reach_nothing_by_reading(self) -> None:
        reading = CodeAction("result = {'x': context['002']}")
        assert flow("001 002", on("001", "Running", action=reading)) == [
            "nothing ever reaches task 002: name it in an output, or remove it"
        ]

    def test_that_python_cannot_read_may_reach_any(self) -> None:
        broken = CodeAction("result = {'target_task': '002'")
        assert flow("001 002", on("001", "Running", action=broken)) == []


def again(*args: Any, **more: Any) -> Any:
    return on(*args, **more, repeat=True)


START = on("001", "Running", "002")
END = on("002", "002.context.enough == true")


class TestEndlessCycles:
    def test_two_that_fire_each_other_for_ever(self) -> None:
        (only,) = flow("001 002 003", START, END, again("002", to="003"), again("003", to="002"))
        assert only.startswith("the cycle L3 → L4 → L3 can never end")

    def test_one_that_fires_itself_for_ever(self) -> None:
        (only,) = flow("001 002", START, END, again("002", "002.status == Done", "002"))
        assert only.startswith("the cycle L3 → L3 can never end")

    def test_a_long_one_is_shown_in_part(self) -> None:
        ids = [f"{number:03d}" for number in range(2, 12)]
        ring = [again(one, to=ids[(i + 1) % len(ids)]) for i, one in enumerate(ids)]
        (only,) = flow(" ".join(["001", *ids]), START, END, *ring)
        assert "the cycle L3 → L4 → L5 → L6 → L7 → L8 → … → L3 can never end" in only

    def test_each_is_told_once_however_many_ways_lead_around(self) -> None:
        found = flow(
            "001 002 003 004",
            START,
            END,
            again("002", to="003"),
            again("003", to="002"),
            again("003", to="002"),
            again("002", to="004"),
            again("004", to="004"),
        )
        assert [one.split(" can")[0] for one in found] == [
            "the cycle L3 → L4 → L3",
            "the cycle L7 → L7",
        ]

    def test_a_larger_cycle_around_one_that_was_told_is_not_told_again(self) -> None:
        (only,) = flow(
            "001 002 003 004 005 006",
            START,
            END,
            again("002", to="006"),
            again("003,005", "003.status == Done or 005.status == Done", "004"),
            again("004", to="005"),
            again("005,006", "005.status == Done or 006.status == Done", "003"),
        )
        assert only.startswith("the cycle L4 → L5 → L4 can never end")

    def test_a_join_of_two_branches_that_both_come_back(self) -> None:
        (only,) = flow(
            "001 002 003 004",
            START,
            END,
            again("002", to="003"),
            again("002", to="004"),
            again("003,004", "003.status == Done && 004.status == Done", "002"),
        )
        assert "can never end" in only

    @pytest.mark.parametrize(
        "closing",
        [
            on("003", to="002"),
            again("003", "Done and 003.context.x < 3", "002"),
            again("003", "Done and values.x", "002"),
            again("003", "Error", "002"),
            again("003,002", "003.status == Done and 002.status == Error", "002"),
            again("003", to="002", status="Skipped"),
            again("003", to="002", approval=True),
            again("003", to="002", action=HumanAction()),
            again("003", to="002", action=ToolAction("work", fields=Form((Field("x"),)))),
            again("003", to="002", action=CodeAction("result = {'target_task': '001'}")),
            again("003", "x = 1", "002"),
            again("003", to=""),
            again("003", to="001"),
        ],
    )
    def test_whatever_may_end_a_cycle_is_trusted(self, closing: Any) -> None:
        assert flow("001 002 003", START, END, again("002", to="003"), closing) == []

    def test_the_main_task_done_ends_every_cycle(self) -> None:
        assert flow("001 002", START, again("002"), again("001", to="002")) == []

    def test_a_task_that_anything_may_move_proves_nothing(self) -> None:
        found = flow(
            "001 002 003 004",
            START,
            END,
            on("002", to="", action=CodeAction("result = {'target_task': t}")),
            again("002", to="003"),
            again("003,004", "003.status == Done and 004.status == Done", "002"),
        )
        assert found == []
