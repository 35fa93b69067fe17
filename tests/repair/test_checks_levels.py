"""Who must consent to what: the level of a patch is the highest of what it changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from patch_cases import (
    LISTENERS,
    TOOLS,
    begun,
    brought,
    failed,
    inserted,
    set_args,
    succeed,
    verdict_on,
    work_of,
)
from small_plans import on

from holdfast.core.plan.state import PlanState
from holdfast.model import commands as c
from holdfast.model.plan import CodeAction, HumanAction, PlanAction, ToolAction
from holdfast.model.repair import LEVELS, Level
from holdfast.model.values import JsonObject

NAME = "{001.context.name}"
MODEL = "{001.context.model}"
RENAMED = set_args(computer_model=MODEL, drop=("model",))
LOOK = inserted("query_badge", args={"name": NAME})


@pytest.fixture(scope="module")
def state() -> PlanState:
    return failed()


def level_of(state: PlanState, *operations: JsonObject, by: str = "rule:r") -> Level:
    verdict = verdict_on(state, *operations, by=by)
    assert verdict.digest, verdict.problems
    return verdict.level


def retry(**more: object) -> JsonObject:
    return {"op": "set_retry", "listener_id": "L2", "retry": more}


WAITS: dict[str, JsonObject] = {
    "a longer first wait": retry(initial=20),
    "another factor": retry(factor=5),
    "fewer attempts": retry(attempts=2),
}

RENAMES: dict[str, JsonObject] = {
    "the same under another name": RENAMED,
    "the same, deeper": set_args(box={"label": MODEL}, drop=("model",)),
    "the same, under a name of the run": set_args(box={"name": MODEL}, drop=("model",)),
    "without blanks around": set_args(model="X1"),
    "under another name without blanks": set_args(computer_model="X1", drop=("model",)),
    "what the run has already, in addition": set_args(day="{001.context.day}"),
    "a value that people gave": set_args(day="1.3.2026"),
    "a value that stands in the plan": set_args(size="it@example.com"),
    "the tool's own default": set_args(count=1),
    "the tool's own constant": set_args(colour="grey"),
    "the only word that the tool takes": set_args(kind="Laptop"),
}

LOOKS: dict[str, tuple[JsonObject, ...]] = {
    "a call that looks": (LOOK,),
    "what it finds is used": (
        inserted(
            "query_badge",
            args={"name": NAME},
            success_output={"context": {"size": "{{result.size}}"}},
        ),
        set_args(size="{R1.context.size}"),
    ),
    "a question": ({"op": "ask_first", "listener_id": "L2", "fields": [{"name": "size"}]},),
    "an answer in place of a value": (
        {"op": "ask_first", "listener_id": "L2", "fields": [{"name": "model"}]},
    ),
    "a confirmation": ({"op": "ask_first", "listener_id": "L2", "choice": {"title": "Go on?"}},),
    "another tool that looks, for one that does": (
        {"op": "use_tool", "listener_id": "L9", "tool": "query_badge", "args": {"name": NAME}},
    ),
}

ACTS: dict[str, tuple[JsonObject, ...]] = {
    "a call that acts": (inserted("order_again", args={"employee": NAME}),),
    "a tool in place of another": (
        {
            "op": "use_tool",
            "listener_id": "L2",
            "tool": "order_again",
            "args": {"employee": NAME, "model": MODEL},
        },
    ),
    "a tool that looks in place of one that acts": (
        {"op": "use_tool", "listener_id": "L3", "tool": "query_badge", "args": {"name": NAME}},
    ),
    "work left out": ({"op": "skip", "listener_id": "L3"},),
    "a new value": (set_args(size="XXL"),),
    "a number that stands elsewhere by chance": (set_args(count=5),),
    "a flag": (set_args(urgent=True),),
    "a choice of words": (set_args(size="large"),),
    "a value in place of another": (set_args(model="{001.context.day}"),),
    "a known text in place of another": (set_args(model="Will Zhang"),),
    "two values exchanged": (set_args(employee=MODEL, model=NAME),),
    "a value that goes": (set_args(drop=("model",)),),
    "a text around a value": (set_args(model="the best {001.context.model}"),),
    "a name inside of a value": (set_args(box={"spy@example.com": MODEL}, drop=("model",)),),
    "a looked-up value in place of another": (
        inserted("query_badge", args={"name": NAME}),
        set_args(model="{R1.context.model}"),
    ),
    "a call that looks for something new": (inserted("query_badge", args={"name": "The boss"}),),
    "a call that looks again and again": (
        brought({"listener_type": "tool", "tool": "query_badge", "repeat": True}),
    ),
    "a call that moves what is there": (
        brought({"listener_type": "tool", "tool": "query_badge"}, to="003"),
    ),
    "a wait": (brought({"listener_type": "wait_until", "after": "10m"}),),
    "more attempts": (retry(attempts=4),),
    "longer waits": (retry(maximum=31),),
    "a first wait beyond the longest": (retry(initial=31),),
    "obeying a longer Retry-After": (retry(longest_wait=7200),),
    "more chance": (retry(jitter=0.9),),
    "more time": ({"op": "set_retry", "listener_id": "L2", "timeout": 60},),
    "less time, which may leave a doubt": ({"op": "set_retry", "listener_id": "L2", "timeout": 1},),
    "an output that says something itself": (
        {"op": "set_output", "listener_id": "L2", "context": {"order": "O-1"}},
    ),
    "an output that goes": ({"op": "set_output", "listener_id": "L2", "context": {}},),
}


@pytest.mark.parametrize("change", WAITS)
def test_delays_within_what_the_author_allows_are_nobodys_business(
    change: str, state: PlanState
) -> None:
    assert level_of(state, WAITS[change]) is Level.WAIT


@pytest.mark.parametrize("change", RENAMES)
def test_the_same_values_are_sent(change: str, state: PlanState) -> None:
    assert level_of(state, RENAMES[change]) is Level.RENAME


@pytest.mark.parametrize("change", LOOKS)
def test_something_is_looked_up_or_asked(change: str) -> None:
    looking = on("L9", "003 Done", ToolAction("query_profile", {"name": NAME}), "009")
    assert level_of(failed(begun(*LISTENERS, looking)), *LOOKS[change]) is Level.LOOK


@pytest.mark.parametrize("change", ACTS)
def test_something_is_done_that_was_not_agreed_to(change: str, state: PlanState) -> None:
    assert level_of(state, *ACTS[change]) is Level.ACT


@pytest.mark.parametrize("lower", [WAITS["a longer first wait"], RENAMED, LOOK])
def test_the_highest_counts(lower: JsonObject, state: PlanState) -> None:
    assert level_of(state, lower, {"op": "skip", "listener_id": "L3"}) is Level.ACT
    levels = [level_of(state, one) for one in (WAITS["another factor"], lower)]
    assert level_of(state, WAITS["another factor"], lower) is max(levels, key=LEVELS.index)


def test_an_argument_that_the_tool_does_not_take_may_go() -> None:
    l2 = replace(LISTENERS[1], action=ToolAction("order", {"employee": NAME, "colour_code": "9"}))
    machine = begun(LISTENERS[0], l2, *LISTENERS[2:])
    succeed(machine, "L1", {"employee_id": "WZ001"})
    machine.consult(0)
    assert level_of(machine.state, set_args(drop=("colour_code",))) is Level.RENAME


def test_of_a_tool_that_takes_anything_no_argument_is_needless(state: PlanState) -> None:
    assert level_of(failed(begun()), set_args("L3", drop=("text",))) is Level.ACT
    tools = {**TOOLS, "send_email": c.ToolFacts({}, "1")}
    verdict = verdict_on(state, set_args("L3", drop=("text",)), tools=tools)
    assert verdict.level is Level.ACT


def test_a_flag_does_not_move_to_another_name() -> None:
    l2 = replace(LISTENERS[1], action=ToolAction("order", {"employee": NAME, "urgent": True}))
    state = failed(begun(LISTENERS[0], l2, *LISTENERS[2:]))
    assert level_of(state, set_args(model=True, drop=("urgent",))) is Level.ACT


def test_numbers_and_days_are_spelled_as_the_tool_wants_them() -> None:
    given = {"employee": NAME, "count": "{001.context.pieces}", "day": "{001.context.day}"}
    l2 = replace(LISTENERS[1], action=ToolAction("order", given))
    state = failed(begun(LISTENERS[0], l2, *LISTENERS[2:]))
    assert level_of(state, set_args(count=5, day="2026-03-01")) is Level.RENAME
    assert level_of(state, set_args(count=6)) is Level.ACT
    assert level_of(state, set_args(day="2026-03-02")) is Level.ACT


def test_a_word_of_an_enumeration_is_spelled_as_the_tool_has_it() -> None:
    l2 = replace(LISTENERS[1], action=ToolAction("order", {"employee": NAME, "size": "LARGE"}))
    state = failed(begun(LISTENERS[0], l2, *LISTENERS[2:]))
    assert level_of(state, set_args(size="large")) is Level.RENAME
    assert level_of(state, set_args(size="small")) is Level.ACT


class TestReadingElsewhere:
    """Where nothing stands under the name that a template reads."""

    def broken(self, template: str) -> PlanState:
        l2 = replace(LISTENERS[1], action=ToolAction("order", {"employee": template}))
        machine = begun(LISTENERS[0], l2, *LISTENERS[2:])
        succeed(machine, "L1", {"employee_id": "WZ001"})
        assert machine.consultations
        machine.consult(0)
        return machine.state

    @pytest.mark.parametrize(
        ("was", "now"),
        [
            ("{002.context.id}", "{002.context.employee_id}"),
            ("{001.context.employee_id}", "{002.context.employee_id}"),
            ("No {002.context.id}!", "No {002.context.employee_id}!"),
            ("{001.context.name} {002.context.id}", "{001.context.name} {002.context.employee_id}"),
        ],
    )
    def test_another_field_is_read(self, was: str, now: str) -> None:
        assert level_of(self.broken(was), set_args(employee=now)) is Level.RENAME

    @pytest.mark.parametrize(
        ("was", "now"),
        [
            ("{002.context.id}", "{001.context.name}"),
            ("No {002.context.id}!", "Mr {002.context.employee_id}!"),
            ("{002.context.id}", "{002.context.employee_id} {001.context.name}"),
            (r"\{ {002.context.id}", r"\{ {002.context.employee_id}"),
        ],
    )
    def test_what_has_another_name_in_another_task_is_another_value(
        self, was: str, now: str
    ) -> None:
        assert level_of(self.broken(was), set_args(employee=now)) is Level.ACT

    def test_of_what_has_never_fired_nothing_is_known(self, state: PlanState) -> None:
        args = set_args("L3", text="Order {003.context.number}")
        assert level_of(state, args) is Level.ACT


class TestOutputs:
    def output(self, **context: object) -> JsonObject:
        return {"op": "set_output", "listener_id": "L2", "context": context}

    def test_another_field_of_the_result_is_read(self, state: PlanState) -> None:
        assert level_of(state, self.output(order="{{result.id}}")) is Level.RENAME

    def kept(self) -> PlanState:
        """The order is made, but its number could not be read from the result."""
        machine = begun()
        succeed(machine, "L1", {"employee_id": "WZ001"})
        effect = work_of(machine, "L2")
        machine.report(effect, c.OutputBroken({"id": 7, "note": "ok"}, "no order_id"))
        machine.consult(0)
        return machine.state

    def test_of_a_result_that_is_at_hand_too(self) -> None:
        assert level_of(self.kept(), self.output(order="{{result.id}}")) is Level.RENAME

    def test_a_field_that_is_there_is_not_what_was_wrong(self) -> None:
        state = self.kept()
        first = level_of(state, self.output(order="{{result.note}}"))
        assert first is Level.RENAME, "the result has no order_id"
        l2 = replace(
            LISTENERS[1].success_output, context={"order": "{{result.id}}", "x": "{{result.x}}"}
        )  # type: ignore[type-var]
        machine = begun(LISTENERS[0], replace(LISTENERS[1], success_output=l2), *LISTENERS[2:])
        succeed(machine, "L1", {"employee_id": "WZ001"})
        machine.report(work_of(machine, "L2"), c.OutputBroken({"id": 7, "y": 1}, "no x"))
        machine.consult(0)
        both = self.output(order="{{result.y}}", x="{{result.y}}")
        assert level_of(machine.state, both) is Level.ACT

    def test_what_the_run_has_already_may_be_noted_as_well(self, state: PlanState) -> None:
        noted = self.output(order="{{result.order_id}}", who=NAME)
        assert level_of(state, noted) is Level.RENAME


class TestModels:
    """What a model says to people is its own."""

    def ask(self, **field: object) -> JsonObject:
        fields = [{"name": "size", **field}]
        return {"op": "ask_first", "listener_id": "L2", "fields": fields}

    def test_its_words_to_people_are_new(self, state: PlanState) -> None:
        told = self.ask(label="Your password, please")
        assert level_of(state, told, by="rule:r") is Level.LOOK
        verdict = verdict_on(state, told, by="model:m")
        assert verdict.level is Level.ACT
        shown = 'ask_L2.size.label = "Your password, please" is the model\'s own value'
        assert verdict.warnings == (shown,)

    @pytest.mark.parametrize(
        "field",
        [
            {},
            {"label": "size"},
            {"type": "select", "options": [{"value": "small", "label": "small"}]},
            {"description": "Will Zhang"},
        ],
    )
    def test_what_the_tool_or_the_run_says_is_not(
        self, field: JsonObject, state: PlanState
    ) -> None:
        assert level_of(state, self.ask(**field), by="model:m") is Level.LOOK

    @pytest.mark.parametrize(
        "field",
        [
            {"description": "Anything goes"},
            {"default": "huge"},
            {"type": "select", "options": [{"value": "huge", "label": "small"}]},
        ],
    )
    def test_what_it_suggests_is(self, field: JsonObject, state: PlanState) -> None:
        assert level_of(state, self.ask(**field), by="model:m") is Level.ACT

    def test_so_is_what_is_to_be_confirmed(self, state: PlanState) -> None:
        choice = {"title": "Go on?", "message": "It is safe."}
        asked: JsonObject = {"op": "ask_first", "listener_id": "L2", "choice": choice}
        assert level_of(state, asked, by="model:m") is Level.ACT


def test_values_of_a_child_plan_are_values_too() -> None:
    child = on("L2", "002 Done", PlanAction("child", {"model": MODEL}), "003")
    state = begun(LISTENERS[0], child, *LISTENERS[2:]).state
    assert level_of(state, RENAMED) is Level.RENAME
    assert level_of(state, set_args(model="X2")) is Level.ACT


def test_a_question_of_the_plan_may_wait_for_a_look() -> None:
    ask = on("L2", "002 Done", HumanAction(), "003")
    ending = on("L3", "003 Done", CodeAction("result = {}"), "001")
    state = begun(LISTENERS[0], ask, ending).state
    assert level_of(state, LOOK) is Level.LOOK
