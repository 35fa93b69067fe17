"""Operations in plain words, as people read them before they consent."""

from __future__ import annotations

import pytest
from patch_cases import LISTENERS, begun, brought, inserted, set_args
from small_plans import on

from holdfast.i18n.message import Message
from holdfast.model.plan import AgentAction, PlanAction, WaitAction
from holdfast.model.values import Json, JsonObject
from holdfast.repair.words import described

FURTHER = (
    on("L7", "002 Done", AgentAction("helper", "Help."), "007"),
    on("L8", "002 Done", PlanAction("child", {"name": "x"}), "008"),
    on("L9", "002 Done", WaitAction(after="10m"), "009"),
)
PLAN = begun(*LISTENERS, *FURTHER).state.plan.plan


def output(listener_id: str = "L2", **context: Json) -> JsonObject:
    return {"op": "set_output", "listener_id": listener_id, "context": context}


def skip(listener_id: str) -> JsonObject:
    return {"op": "skip", "listener_id": listener_id}


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (
            set_args(computer_model="{001.context.model}", drop=("model",)),
            'L2 passes computer_model = "{001.context.model}" instead of '
            'model = "{001.context.model}"',
        ),
        (
            set_args(model="X1", count=5),
            'L2 passes model = "X1" instead of "{001.context.model}"; L2 passes count = 5 as well',
        ),
        (
            set_args(drop=("model",)),
            'L2 does not pass model = "{001.context.model}" any more',
        ),
        (
            output(order="{{result.id}}", day="{{result.day}}"),
            'L2 sets order of task 003 to "{{result.id}}" instead of "{{result.order_id}}"; '
            'L2 sets day of task 003 to "{{result.day}}" as well',
        ),
        (output(), "L2 does not set order of task 003 any more"),
        (
            {"op": "set_retry", "listener_id": "L2", "retry": {"attempts": 5, "initial": 2}},
            "L2 is retried with attempts = 5; L2 is retried with initial = 2",
        ),
        ({"op": "set_retry", "listener_id": "L2", "timeout": 60}, "L2 has 60 s each time"),
        (
            {"op": "set_retry", "listener_id": "L2", "timeout": None},
            "L2 has no time limit of its own any more",
        ),
        (
            {"op": "use_tool", "listener_id": "L5", "tool": "grant_freely", "args": {"who": 1}},
            'L5 calls grant_freely with {"who":1}, and not: calls grant_access with '
            '{"employee":"{001.context.name}"}',
        ),
        (inserted("query_badge"), "before L2 comes R1: calls query_badge with {}"),
        (
            {"op": "ask_first", "listener_id": "L2", "fields": [{"name": "a"}, {"name": "b"}]},
            "before L2 a person is asked for a, b",
        ),
        (
            {"op": "ask_first", "listener_id": "L2", "choice": {"title": "Go on?"}},
            "before L2 a person is asked to confirm: Go on?",
        ),
        (
            brought({"listener_type": "human", "title": "Well?"}),
            "task R1 is new: Beside; R1 is new, on 002 when Done: asks a person: Well?",
        ),
        (
            skip("L3"),
            "L3 is skipped, so this is not done: calls send_email with "
            '{"text":"Order {003.context.order}","to":"it@example.com"}',
        ),
        (skip("L4"), "L4 is skipped, so this is not done: asks a person: fine"),
        (skip("L6"), "L6 is skipped, so this is not done: runs the snippet result = {'x': 1}"),
        (skip("L7"), "L7 is skipped, so this is not done: asks the agent helper: Help."),
        (skip("L8"), 'L8 is skipped, so this is not done: runs the plan child with {"name":"x"}'),
        (skip("L9"), "L9 is skipped, so this is not done: waits for 10m"),
    ],
)
def test_an_operation_is_told_in_words(operation: JsonObject, words: str) -> None:
    (told,) = described(PLAN, [operation])
    assert told == words
    assert isinstance(told, Message), "in every language"


def test_each_is_told_as_the_plan_is_when_it_comes() -> None:
    first = set_args(model="X1")
    told = described(PLAN, [first, set_args(model="X2"), inserted("query_badge"), skip("R1")])
    assert told[1] == 'L2 passes model = "X2" instead of "X1"'
    assert told[3] == "R1 is skipped, so this is not done: calls query_badge with {}"


def test_what_stays_as_it_was_is_not_told() -> None:
    same = output(order="{{result.order_id}}", day="{{result.day}}")
    assert described(PLAN, [same]) == ('L2 sets day of task 003 to "{{result.day}}" as well',)
    assert described(PLAN, [set_args(model="{001.context.model}", count=5)]) == (
        "L2 passes count = 5 as well",
    )


def test_nothing_in_them_is_hidden_or_endless() -> None:
    (told,) = described(PLAN, [set_args(model="\u202eevil", **{"n" * 1_000: "x" * 1_000})])
    assert "⟨202E⟩evil" in told
    assert len(told) < 700
