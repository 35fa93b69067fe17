"""What people gave to an earlier version of a tool: kept where it still fits, else asked anew."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from conversation_machine import executing
from immutables import Map
from machine import Machine
from react_machine import begun
from small_plans import on, only, question, reply, started

from holdfast.core.interactions.calls import without_outdated
from holdfast.core.run.state import QuestionState, RunState, StepState
from holdfast.model.commands import Missing, ToolFacts
from holdfast.model.conversation import SubTask
from holdfast.model.form import Field, Form
from holdfast.model.interaction import InteractionRequest, InteractionType
from holdfast.model.plan import ToolAction

OLD, NEW = "1", "2"


def facts(version: str = NEW, closed: bool = True, /, **properties: Any) -> ToolFacts:
    return ToolFacts(
        {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": not closed,
        },
        version,
    )


def asked_for(*names: str, version: str = OLD, seq: int = 5, step: str = "L1") -> QuestionState:
    form = Form(tuple(Field(name) for name in names))
    kind, context = InteractionType.MISSING_INFO, {"tool_version": version} if version else {}
    request = InteractionRequest(f"q{seq}", "r", kind, "?", context=context, form=form)
    return QuestionState(request, step, 1, "missing", 0.0, seq)


def left(
    tool: ToolFacts, args: dict[str, Any], *asked: QuestionState, claim: int = 0
) -> dict[str, Any]:
    """What of `args`, all of them provided by people, the tool still gets."""
    questions = {one.request.request_id: one for one in asked}
    step = StepState(provided=args, claim=claim)
    state = RunState("r", steps=Map({"L1": step}), questions=Map(questions))
    return dict(without_outdated(state, "L1", {**args, "own": 1}, tool))


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("given", "tool", "kept"),
    [
        ({"a": "x"}, facts(a=TEXT, own=WHOLE), True),
        ({"a": "x"}, facts(b=TEXT, own=WHOLE), False),
        ({"a": "x"}, facts(NEW, False, b=TEXT), True),
        ({"a": "x"}, facts(a=WHOLE, own=WHOLE), False),
        ({"a": 3}, facts(a={"type": "integer", "minimum": 10}, own=WHOLE), False),
        ({"a": "x"}, facts(a={"enum": ["y"]}, own=WHOLE), False),
        ({"a": [1]}, facts(a={"type": "object"}, own=WHOLE), True),
        ({"a": "x"}, facts(OLD, a=WHOLE, own=WHOLE), True),
    ],
)
def test_what_the_tool_as_it_is_now_does_not_take_is_left_out(
    given: dict[str, Any], tool: ToolFacts, kept: bool
) -> None:
    assert left(tool, given, asked_for("a")) == ({**given, "own": 1} if kept else {"own": 1})


def test_the_last_question_that_asked_for_it_counts() -> None:
    tool = facts(a=WHOLE, own=WHOLE)
    again = asked_for("a", version=NEW, seq=7)
    assert "a" in left(tool, {"a": "x"}, asked_for("a"), again, asked_for("b", seq=9))
    assert "a" not in left(tool, {"a": "x"}, asked_for("a"), replace(again, step_id="L2"))


def test_what_may_have_been_sent_since_stays_as_it_is() -> None:
    assert "a" in left(facts(b=TEXT), {"a": "x"}, asked_for("a", seq=5), claim=6)
    assert "a" not in left(facts(b=TEXT), {"a": "x"}, asked_for("a", seq=5), claim=4)


def test_a_question_of_an_earlier_holdfast_names_no_version() -> None:
    assert "a" not in left(facts(b=TEXT), {"a": "x"}, asked_for("a", version=""))


def test_what_nobody_was_asked_for_stays() -> None:
    assert left(facts(b=TEXT), {"a": "x"}) == {"a": "x", "own": 1}


PICKY = ToolAction("picky", {})


def deploy(machine: Machine, **properties: Any) -> None:
    machine.tools["picky"] = facts(**properties)


def test_a_plan_asks_anew_and_says_why() -> None:
    machine = started(on("L001", "001 Running", PICKY, "001"))
    deploy(machine, dimension=TEXT)
    reply(machine, data={"size": "XL"})
    machine.start_ready()
    asked = question(machine)
    assert [field.name for field in asked.form.fields] == ["dimension"]
    assert "changed since this was answered: size" in asked.message
    reply(machine, data={"dimension": "60x60"})
    machine.start_ready()
    assert only(machine).args == {"dimension": "60x60"}  # type: ignore[union-attr]


def test_what_the_tool_itself_asked_for_is_asked_anew_too() -> None:
    machine = started(on("L001", "001 Running", ToolAction("picky", {"size": "M"}), "001"))
    machine.report(only(machine), Missing(Form((Field("colour"),)), "1"))
    deploy(machine, size=TEXT, dimension=TEXT)
    reply(machine, data={"colour": "red"})
    machine.start_ready()
    asked = question(machine)
    assert [field.name for field in asked.form.fields] == ["dimension"]
    assert asked.context["args"] == {"size": "M"}
    reply(machine, data={"dimension": "60x60"})
    machine.start_ready()
    assert only(machine).args == {"size": "M", "dimension": "60x60"}  # type: ignore[union-attr]
    assert machine.state.status == "running"


def test_an_agents_call_is_asked_anew() -> None:
    chat = begun()
    call = chat.want("picky")
    chat.calls(call)
    chat.tools["picky"] = facts(dimension=TEXT)
    chat.answer(None, size="XL")
    chat.start("c1")
    asked = chat.question()
    assert [field.name for field in asked.form.fields] == ["dimension"]
    assert "changed since this was answered: size" in asked.message
    chat.answer(None, dimension="60x60")
    chat.start("c1")
    assert chat.out("c1").args == {"dimension": "60x60"}
    chat.returns("c1", "fits")
    assert chat.result(call).content == "fits"


def test_a_task_of_a_conversation_is_asked_anew() -> None:
    talk = executing(SubTask("pay it", type="pay", args={"note": "soon"}, route="tool")).fill()
    talk.tools["pay"] = facts(note=TEXT, amount={"type": "integer", "minimum": 10})
    talk.answer("provide", amount=7)
    talk.fill()
    asked = talk.question()
    assert asked.message.endswith("changed since this was answered: amount")
    talk.answer("provide", amount=12)
    talk.fill()
    assert talk.out("pay it").args == {"note": "soon", "amount": 12}
