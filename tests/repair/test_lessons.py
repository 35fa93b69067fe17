"""What repaired one run, kept for others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine import Machine
from small_plans import on
from troubled_runs import PLAN, RENAME, begun

from holdfast.core.repair.operations import patched, read_operations
from holdfast.model.plan import Listener, Plan, ToolAction
from holdfast.model.repair import LessonState, Level
from holdfast.model.values import JsonObject
from holdfast.repair.lessons import (
    RUNS_KEPT,
    Learned,
    id_of,
    key_of,
    lesson_of,
    offered,
    place_of,
    said,
    together,
    told,
)
from holdfast.repair.relative import absolute, relative

KEYED = ToolAction("keyed", {"mail": "{002.context.email}"})
NOW = 1_800_000_000.0
FP = "fp1:0123456789abcdef"


def key(machine: Machine, listener_id: str = "L002", version: str = "1") -> str:
    return key_of(machine.state, listener_id, version, FP)


def renumbered() -> Machine:
    """The same plan, with other numbers and one more step at its end."""
    return begun(
        on("A", "001 Running", ToolAction("plain"), "020", context={"email": "{{result.email}}"}),
        on("B", "020 Done", ToolAction("keyed", {"mail": "{020.context.email}"}), "001"),
    )


def test_a_key_says_where_a_lesson_fits() -> None:
    place = place_of(key(begun()))
    assert (place.plan_id, place.tool, place.version) == ("small", "keyed", "1")
    assert place.fingerprint == FP


def test_a_listener_is_known_by_what_it_is_and_not_by_its_number() -> None:
    assert key(begun()) == key(renumbered(), "B")


@pytest.mark.parametrize(
    "other",
    [
        on("L002", "002 Done", ToolAction("keyed", {"email": "{002.context.email}"}), "001"),
        on("L002", "002 Done", ToolAction("keyed", {"mail": "{001.context.email}"}), "001"),
        on("L002", "002 Done", KEYED, "001", timeout=9.0),
        on("L002", "002 Skipped", KEYED, "001"),
        on("L002", "002 Done", KEYED, "003"),
    ],
)
def test_another_listener_has_another_key(other: Listener) -> None:
    assert key(begun()) != key(Machine(started_plan(PLAN[0], other)))


def started_plan(*listeners: Listener) -> Any:
    return begun(*listeners).plan


def test_another_version_of_the_tool_has_another_key() -> None:
    assert key(begun()) != key(begun(), version="2")


def kept(*operations: JsonObject, machine: Machine | None = None) -> tuple[JsonObject, ...]:
    found = relative(operations, (machine or begun()).state, "L002")
    assert found is not None
    return found


def test_ids_stand_relative_to_the_listener_that_failed() -> None:
    [rename] = kept(RENAME)
    assert rename == {
        "op": "set_args",
        "listener_id": "@listener",
        "set": {"email": "{@trigger1.context.email}"},
        "drop": ["mail"],
    }


INSERT: JsonObject = {
    "op": "insert_before",
    "listener_id": "L002",
    "task": {"task_id": "R1", "name": "Prepared"},
    "listener": {
        "listener_id": "R1",
        "listener_type": "tool",
        "tool": "plain",
        "args": {"task_id": "002", "whose": ["{002.context.email}", 7, None, True]},
        "success_output": {"context": {"id": "{{result.id}}"}},
    },
}
ADD: JsonObject = {
    "op": "add",
    "tasks": [{"task_id": "R2", "name": "Told"}],
    "listeners": [
        {
            "listener_id": "R9",
            "listener_type": "tool",
            "tool": "plain",
            "trigger_task_id": ["001", "R1"],
            "trigger_condition": "001.status == Done and R1.context.id != '002.status'",
            "success_output": {"task_id": "R2", "status": "Done"},
        }
    ],
}


def test_what_is_new_is_numbered_and_texts_keep_what_is_none_of_our_names() -> None:
    insert, add = kept(INSERT, ADD)
    assert insert["task"]["task_id"] == insert["listener"]["listener_id"] == "@new1"
    args = insert["listener"]["args"]
    assert args == {"task_id": "002", "whose": ["{@trigger1.context.email}", 7, None, True]}
    assert insert["listener"]["success_output"] == {"context": {"id": "{{result.id}}"}}
    [listener] = add["listeners"]
    assert (listener["listener_id"], listener["success_output"]["task_id"]) == ("@new3", "@new2")
    assert listener["trigger_task_id"] == ["@main", "@new1"]
    condition = "@main.status == Done and @new1.context.id != '002.status'"
    assert listener["trigger_condition"] == condition


def test_a_lesson_fits_a_plan_with_other_numbers() -> None:
    machine = renumbered()
    operations = absolute(kept(INSERT, RENAME), machine.state, "B")
    assert operations is not None
    plan = patched(machine.plan.plan, read_operations(operations))
    assert triggers(plan) == {"A": ("001",), "R1": ("020",), "B": ("R1",)}
    [changed] = (one for one in plan.listeners if one.listener_id == "B")
    assert changed.action == ToolAction("keyed", {"email": "{020.context.email}"})


def triggers(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {one.listener_id: one.trigger_task_id for one in plan.listeners}


def test_new_ids_give_way_to_those_that_are_taken() -> None:
    taken = on("R1", "R2 Done", ToolAction("plain"), "003")
    machine = begun(*PLAN, taken)
    operations = absolute(kept(INSERT), machine.state, "L002")
    assert operations is not None
    assert operations[0]["listener"]["listener_id"] == "R3"
    assert "R3" in triggers(patched(machine.plan.plan, read_operations(operations)))


def test_a_task_and_a_listener_of_one_name_are_told_apart() -> None:
    twins = (
        on("L001", "001 Running", ToolAction("plain"), "R1"),
        on("R1", "R1 Done", ToolAction("keyed"), "001"),
    )
    operation = {
        "op": "set_args",
        "listener_id": "R1",
        "set": {"email": "{R1.context.email}"},
    }
    found = relative([operation], begun(*twins).state, "R1")
    assert found is not None
    [other] = found
    assert other["listener_id"] == "@listener"
    assert other["set"] == {"email": "{@trigger1.context.email}"}


def test_a_question_before_the_listener_is_kept_under_its_usual_name_or_a_new_one() -> None:
    ask: JsonObject = {"op": "ask_first", "listener_id": "L002", "fields": [{"name": "email"}]}
    use: JsonObject = {
        "op": "set_args",
        "listener_id": "L002",
        "set": {"mail": "{ask_L002.context.email}"},
    }
    assert kept(ask, use)[1]["set"] == {"mail": "{@ask.context.email}"}
    own = {**ask, "task_id": "Q"}
    assert kept(own)[0]["task_id"] == "@new1"
    found = absolute(kept(ask, use), renumbered().state, "B")
    assert found is not None
    assert found[1]["set"] == {"mail": "{ask_B.context.email}"}


def test_a_value_of_the_run_is_read_where_it_stands() -> None:
    operation = {
        "op": "use_tool",
        "listener_id": "L002",
        "tool": "plain",
        "args": {
            "to": "will@example.com",
            "more": [{"cc": "will@example.com"}, "eve", "nobody", 5, 4_000, True, None],
        },
    }
    [found] = kept(operation)
    assert found["args"] == {
        "to": "{@trigger1.context.email}",
        "more": [{"cc": "{@trigger1.context.email}"}, "eve", "nobody", 5, 4_000, True, None],
    }
    [inserted] = kept({**INSERT, "listener": {**INSERT["listener"], "args": operation["args"]}})
    assert inserted["listener"]["args"] == found["args"]


def test_the_goal_is_read_rather_than_another_task() -> None:
    machine = begun()
    (main, context), email = ("001", {"told": "will@example.com", "odd name": "x" * 9}), "told"
    tasks = machine.state.tasks
    object.__setattr__(
        machine.state, "tasks", tasks.set(main, tasks[main]._replace(context=context))
    )
    operation = {
        "op": "set_args",
        "listener_id": "L002",
        "set": {"a": "will@example.com", "b": "x" * 9},
    }
    [found] = kept(operation, machine=machine)
    assert found["set"] == {"a": f"{{@main.context.{email}}}", "b": "x" * 9}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "set_args", "listener_id": "L002", "set": {"a": "{@main.context.email}"}},
        {"op": "skip", "listener_id": "@listener"},
    ],
)
def test_operations_with_signs_of_their_own_leave_no_lesson(operation: JsonObject) -> None:
    assert relative([operation], begun().state, "L002") is None


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "set_args", "listener_id": "L002", "set": {"a": "{007.context.email}"}},
        {"op": "set_args", "listener_id": "L001", "set": {"a": 1}},
    ],
)
def test_a_lesson_about_what_this_plan_lacks_does_not_fit(operation: JsonObject) -> None:
    assert absolute(kept(operation), renumbered().state, "B") is None


def test_a_lesson_about_a_further_trigger_needs_one() -> None:
    operations = (
        {"op": "set_args", "listener_id": "@listener", "set": {"a": "{@trigger2.status}"}},
    )
    assert absolute(operations, renumbered().state, "B") is None


def test_code_and_words_with_a_meaning_stay_as_they_are() -> None:
    code = "result = context['002']  # {002.context.email}"
    listener = {"listener_id": "R1", "listener_type": "code", "code_snippet": code}
    [found] = kept({**INSERT, "listener": listener})
    assert found["listener"]["code_snippet"] == code


@given(st.permutations([INSERT, ADD, RENAME]))
def test_what_was_made_relative_is_itself_again_in_its_own_run(found: list[JsonObject]) -> None:
    state = begun().state
    back = absolute(kept(*found), state, "L002")
    assert back is not None
    assert len(triggers(patched(state.plan.plan, read_operations(back)))) == 4
    assert [one["op"] for one in back] == [one["op"] for one in found]
    assert kept(*back) == kept(*found)


OPERATIONS = ({"op": "skip", "listener_id": "@listener"},)
BLANK = Learned('["p","l","t","1","f"]', OPERATIONS, Level.RENAME)


def learned(wins: int, losses: int = 0) -> Learned:
    found = BLANK
    for number in range(wins + losses):
        found = told(found, f"inst_{number}", NOW + number, won=number < wins)
    return found


def test_three_wins_without_a_loss_prove_a_lesson() -> None:
    states = [learned(wins).state for wins in range(5)]
    assert states == [LessonState.TRIAL] * 3 + [LessonState.PROVEN] * 2


def test_a_loss_retires_it_however_often_it_has_won() -> None:
    assert learned(9, 1).state is LessonState.RETIRED
    assert told(learned(0, 1), "inst_7", NOW, won=True).state is LessonState.RETIRED


def test_a_person_has_the_last_word_until_a_person_says_otherwise() -> None:
    pinned = said(learned(1), LessonState.PINNED, NOW)
    assert told(pinned, "inst_8", NOW + 9, won=False).state is LessonState.PINNED
    retired = said(pinned, LessonState.RETIRED, NOW + 1)
    assert retired.state is LessonState.RETIRED
    assert said(retired, LessonState.PINNED, NOW).state is LessonState.RETIRED, "it was before"
    assert said(retired, LessonState.TRIAL, NOW + 2).state is LessonState.TRIAL
    assert pinned.last == NOW


def test_the_newest_runs_are_kept() -> None:
    found = learned(RUNS_KEPT + 5)
    assert found.wins == RUNS_KEPT + 5
    assert lesson_of(found).runs == tuple(f"inst_{n}" for n in range(RUNS_KEPT + 4, 4, -1))
    assert found.last == NOW + RUNS_KEPT + 4
    assert BLANK.last == 0.0


def test_a_lesson_for_another_version_of_its_tool_is_retired() -> None:
    assert lesson_of(learned(3), "1").state is LessonState.PROVEN
    assert lesson_of(learned(3), "2").state is LessonState.RETIRED
    assert lesson_of(learned(3)).state is LessonState.PROVEN
    assert lesson_of(learned(3)).level is Level.RENAME


def test_the_best_is_offered_first_and_what_is_retired_is_not() -> None:
    trial, better = learned(1), learned(2)
    proven = learned(4)
    pinned, retired = said(learned(1), LessonState.PINNED, NOW), learned(3, 1)
    found = offered([trial, retired, better, proven, pinned])
    assert [(one.state.value, one.wins) for one in found] == [
        *(("pinned", 1), ("proven", 4), ("trial", 2), ("trial", 1))
    ]


def test_a_lesson_is_called_after_its_key_and_operations() -> None:
    assert id_of("k", OPERATIONS) == id_of("k", list(OPERATIONS))
    assert len({id_of("k", OPERATIONS), id_of("l", OPERATIONS), id_of("k", ())}) == 3


histories = st.lists(
    st.tuples(st.sampled_from("abcdefghijklmnop"), st.floats(0, 1e9), st.booleans()), max_size=20
)
words = st.lists(st.tuples(st.sampled_from(LessonState), st.floats(0, 1e9)), max_size=3)


def after(
    history: list[tuple[str, float, bool]], spoken: list[tuple[LessonState, float]]
) -> Learned:
    found = BLANK
    for run_id, at, won in history:
        found = told(found, run_id, at, won=won)
    for state, at in spoken:
        found = said(found, state, at)
    return found


@given(histories, words, histories, words)
def test_parts_come_to_the_same_as_the_whole(one: Any, word: Any, other: Any, later: Any) -> None:
    whole = after([*one, *other], [*word, *later])
    assert together(after(one, word), after(other, later)) == whole
    assert together(after(other, later), after(one, word)) == whole
