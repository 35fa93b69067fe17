"""A patched plan is compiled as far as the patch concerns it, and comes to the same as a whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from case_stories import BEFORE, RENAME, proposal
from dice import Dice
from hypothesis import given, settings
from hypothesis import strategies as st
from machine import Machine
from random_operations import PatchMaker, sound_plan
from small_plans import CALL, CODE, PERMANENT, WILL, compiled, on

from holdfast.core.plan.compiled import CompiledListener, CompiledPlan
from holdfast.core.plan.decide import decide
from holdfast.core.plan.recompiled import recompiled
from holdfast.core.repair.operations import added, operations_from_json, patched, touched
from holdfast.model import commands as c
from holdfast.model.plan import AgentAction, Check, ToolAction
from holdfast.model.repair import Diagnosis, Level, Look
from holdfast.model.retry import Cause, GiveUp
from holdfast.model.values import JsonObject


def after(before: CompiledPlan, *raw: JsonObject) -> CompiledPlan:
    operations = operations_from_json(raw)
    concerned = (*touched(operations), *added(operations))
    return recompiled(before, patched(before.plan, operations), "after", concerned)


def content(one: CompiledListener) -> Any:
    return one.listener, one.check, one.wanted, one.target, one.running, one.is_code, one.tool


def tables(plan: CompiledPlan) -> Any:
    """All that a compiled plan knows, in its order."""

    def told(found: Mapping[str, Any]) -> dict[str, list[Any]]:
        return {task_id: [content(one) for one in found[task_id]] for task_id in sorted(found)}

    return (
        [(one, content(plan.listeners[one])) for one in plan.listeners],
        [(one, content(plan.own[one])) for one in plan.own],
        told(plan.by_trigger),
        {status: told(tasks) for status, tasks in plan.watching.items()},
        plan.task_ids,
        plan.verify_ids,
    )


def whole(plan: CompiledPlan) -> CompiledPlan:
    return CompiledPlan(plan.plan, plan.digest)


class TestTheSame:
    @settings(max_examples=150, deadline=None)
    @given(st.binary(min_size=60, max_size=300))
    def test_as_compiling_the_whole_plan_whatever_the_patches(self, script: bytes) -> None:
        dice = Dice(script)
        plan = sound_plan(dice)
        made = CompiledPlan(plan, "before")
        maker = PatchMaker(dice, plan, skips=True)
        for _ in range(1 + dice.number(3)):
            made = after(made, *maker.operations())
            assert tables(made) == tables(whole(made))

    def test_what_an_agent_is_told_of_its_part_follows_the_patch(self) -> None:
        before = compiled(
            on("L1", "001 Running", AgentAction("hr", "Look"), "002"),
            on("L2", "002 Done", CODE, "001"),
        )
        first = {**BEFORE, "listener_id": "L1"}
        made = after(before, first)
        assert tables(made) == tables(whole(made))
        assert "- R1 Prepared" in str(content(made.own["verify.hr"]))

    def test_an_agent_that_takes_part_no_more_looks_at_nothing(self) -> None:
        before = compiled(
            on("L1", "001 Running", AgentAction("hr", "Look"), "002"),
            on("L2", "002 Done", CODE, "001"),
        )
        made = after(before, {"op": "skip", "listener_id": "L1"})
        assert (before.verify_ids, made.verify_ids) == (("verify.hr",), ())

    def test_the_plan_before_stays_as_it_was(self) -> None:
        before = chain(5)
        told = tables(before)
        after(before, {**BEFORE, "listener_id": "L3"})
        assert tables(before) == told

    def test_listeners_that_one_task_triggers_stay_in_their_order(self) -> None:
        fan = [on(f"L{n}", "001 Running", CALL, f"10{n}") for n in range(4)]
        made = after(
            compiled(*fan),
            {**BEFORE, "listener_id": "L2"},
            {"op": "set_args", "listener_id": "L0", "set": {"n": 1}},
        )
        assert [one.id for one in made.by_trigger["001"]] == ["L0", "L1", "R1", "L3"]


def test_what_a_patch_leaves_alone_is_shared() -> None:
    before = chain(50)
    made = after(before, {**BEFORE, "listener_id": "L30"}, {**RENAME, "listener_id": "L31"})
    anew = [one for one in made.listeners if made.listeners[one] is not before.listeners.get(one)]
    assert anew == ["R1", "L30", "L31"]


def chain(length: int, **plan: Any) -> CompiledPlan:
    first = on("L0", "001 Running", ToolAction("plain", {"old": "x"}), "t0")
    middle = (
        on(f"L{n}", f"t{n - 1} Done", ToolAction("plain", {"old": "x"}), f"t{n}")
        for n in range(1, length)
    )
    return compiled(first, *middle, on("end", f"t{length - 1} Done", CODE, "001"), **plan)


def failed(length: int, place: int) -> Machine:
    """All before the place is done, and what stands there has failed; the planner gave up."""
    machine = Machine(chain(length, verify=(Check("plain"),)))
    machine.submit(c.StartRun("small", "go", by=WILL))
    machine.start_ready()
    for _ in range(place):
        (effect,) = machine.flying.values()
        machine.report(effect, machine.outcome(effect, {"x": 1}))
        machine.start_ready()
    (effect,) = machine.flying.values()
    machine.report(effect, PERMANENT)
    asked = machine.consultations.pop(0)
    machine.submit(c.Advise(asked.listener_id, asked.firing, GiveUp()))
    return machine


SLACK = 20
"""Frames that may differ: far fewer than one for each listener more."""


def frames(work: Callable[[], object]) -> int:
    """How many functions of Python are entered, generators at each of their values."""
    entered = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return entered


def applying(length: int, place: int, operation: JsonObject) -> int:
    """What it takes to decide the yes of a person, on the loop."""
    machine = failed(length, place)
    operation = {**operation, "listener_id": f"L{place}"}
    found = proposal(machine.state, operation, level=Level.RENAME)
    look = Look(Diagnosis(Cause.ARGUMENT, "a guess"), found)
    machine.submit(c.ReportDiagnosis("case_1", 0, look))
    (question,) = machine.state.open_questions
    state, moment = machine.state, c.Moment(machine.now, b"x")
    answer = c.Answer(question, WILL, "apply")
    decide(state, answer, moment)  # parses what is parsed once
    return frames(lambda: decide(state, answer, moment))


class TestOnTheLoop:
    @pytest.mark.parametrize("operation", [RENAME, BEFORE], ids=["changed", "inserted"])
    def test_to_apply_a_patch_takes_the_same_however_long_the_plan_is(
        self, operation: JsonObject
    ) -> None:
        assert applying(400, 3, operation) < applying(20, 3, operation) + SLACK

    @pytest.mark.parametrize("operation", [RENAME, BEFORE], ids=["changed", "inserted"])
    def test_and_however_much_of_it_is_done(self, operation: JsonObject) -> None:
        assert applying(400, 300, operation) < applying(400, 3, operation) + SLACK

    def test_only_what_it_concerns_is_compiled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        machine = failed(60, 3)
        found = proposal(machine.state, {**BEFORE, "listener_id": "L3"})
        look = Look(Diagnosis(Cause.ARGUMENT, "a guess"), found)
        machine.submit(c.ReportDiagnosis("case_1", 0, look))
        made: list[str] = []
        build = CompiledListener.__init__

        def noted(self: CompiledListener, listener: Any, check: Any = None) -> None:
            made.append(listener.listener_id)
            build(self, listener, check)

        monkeypatch.setattr(CompiledListener, "__init__", noted)
        (question,) = machine.state.open_questions
        answer = c.Answer(question, WILL, "apply")
        decide(machine.state, answer, c.Moment(machine.now, b"x"))
        assert sorted(made) == ["L3", "R1", "R1"], "R1 once more, to see whether it fires"
