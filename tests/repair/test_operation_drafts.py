"""Drafts are operations as the core reads them."""

from __future__ import annotations

from dataclasses import replace

from failed_runs import call
from small_plans import CODE, compiled, on

from holdfast.core.repair.operations import patched, read_operations
from holdfast.i18n.message import Message, msg
from holdfast.model.form import Field, FieldType
from holdfast.model.plan import Task
from holdfast.repair.drafts import (
    ask_first,
    confirm_first,
    free_id,
    insert_before,
    set_args,
    set_output,
)

PLAN = compiled(
    on("L1", "001 Running", call("order", a=1), "002"), on("L2", "002 Done", CODE, "001")
).plan


def test_each_operation_can_be_read_and_carried_out() -> None:
    field = Field("size", FieldType.NUMBER, default=5, integer=True)
    insertion = insert_before("L1", "R1", "made", "make", {"b": 2}, {"id": "{{result.id}}"})
    for operations in (
        set_args("L1", {"b": "{R1.context.id}"}, ["a"]) + insertion,
        set_output("L1", {"id": "{{result.id}}"}),
        ask_first("L1", [field]),
        confirm_first("L1", "Really?", "See to it."),
        insert_before("L1", "R1", "made", "make", {}, {}),
    ):
        assert patched(PLAN, read_operations(operations)) != PLAN


def test_where_nothing_changes_there_is_no_operation() -> None:
    assert set_args("L1", {}) == ()
    assert ask_first("L1", []) == ()


def test_messages_become_plain_texts() -> None:
    (operation,) = confirm_first("L1", msg("Look again?"), msg("Look again?"))
    assert not isinstance(operation["choice"]["title"], Message)
    assert operation["choice"]["title"] == "Look again?"


def test_a_new_id_is_one_that_nothing_has() -> None:
    assert free_id(PLAN) == "R1"
    taken = replace(PLAN, tasks=(*PLAN.tasks, Task("R1"), Task("R3")))
    taken = replace(
        taken, listeners=(*PLAN.listeners, replace(PLAN.listeners[0], listener_id="R2"))
    )
    assert free_id(taken) == "R4"
