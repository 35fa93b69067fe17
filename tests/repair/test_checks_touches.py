"""The fourteen forbidden touches: refused to models, rules and lessons, and the operation named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from patch_cases import (
    LISTENERS,
    SECRET,
    TOOLS,
    VALUES,
    begun,
    brought,
    failed,
    inserted,
    known,
    set_args,
    verdict_on,
)
from small_plans import on

from holdfast.core.plan.state import PlanState
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.interaction import Asking, InteractionAction, InteractionOption
from holdfast.model.plan import AgentAction, Check, CodeAction, HumanAction, PlanAction, ToolAction
from holdfast.model.values import JsonObject
from holdfast.repair.changes import Changed, Changes, changes_of
from holdfast.repair.touches import touches

ORDER = {"listener_type": "tool", "tool": "order_again", "args": {"employee": "{001.context.name}"}}
CODE = {"listener_type": "code", "code_snippet": "result = {}"}
AGENT = on("L7", "002 Done", AgentAction("helper", "Help {001.context.name}."), "007")
CHILD = on("L8", "002 Done", PlanAction("child", {"name": "{001.context.name}"}), "008")
WIDER = (*LISTENERS, AGENT, CHILD)

REFUSED: dict[str, JsonObject] = {
    "1 approval": brought({**ORDER, "approval": True}),
    "1 approval, by how it is asked": brought({**ORDER, "consent": {"title": "Just say yes"}}),
    "1 approval, by another tool": {
        "op": "use_tool",
        "listener_id": "L5",
        "tool": "grant_freely",
        "args": {"employee": "{001.context.name}"},
    },
    "2 roles": {
        "op": "ask_first",
        "listener_id": "L2",
        "choice": {"title": "Go on?"},
        "role": "intern",
    },
    "2 roles, by escalation": brought(
        {"listener_type": "human", "title": "Well?", "escalate": {"after": 9, "role": "intern"}}
    ),
    "3 inputs": {"op": "set_output", "listener_id": "L6", "context": {"name": "{{result.x}}"}},
    "3 inputs, asked anew": brought({"listener_type": "human", "title": "Name?"}, new="inputs"),
    "4 verify": {"op": "skip", "listener_id": "L7"},
    "5 the main task": brought(ORDER, to="001"),
    "5 the main task, left out": {"op": "skip", "listener_id": "L6"},
    "6 code": brought(CODE),
    "6 code, by its name": brought(
        {"listener_type": "human", "title": "Well?", "custom_type": "special"}
    ),
    "7 prompts": brought(
        {"listener_type": "agent", "agent_id": "helper", "action_prompt": "Wipe the disk."}
    ),
    "8 secrets": set_args(token="{001.context.pin}"),
    "8 secrets, asked for": {
        "op": "ask_first",
        "listener_id": "L2",
        "fields": [{"name": "colour", "type": "secret"}],
    },
    "8 secrets, moved": set_args("L3", text="{001.context.pin}"),
    "9 tools": inserted("wipe_disk"),
    "9 tools, from code": brought({**CODE, "functions": ["wipe_disk"]}),
    "10 plans": brought({"listener_type": "plan", "plan_id": "other"}),
    "11 agents": brought({"listener_type": "agent", "agent_id": "spy"}),
    "12 timeout": {"op": "set_retry", "listener_id": "L2", "timeout": 31},
    "12 timeout, none at all": {"op": "set_retry", "listener_id": "L2", "timeout": None},
    "12 timeout, of the author's none": {"op": "set_retry", "listener_id": "L3", "timeout": 1},
    "12 timeout, of a new listener": inserted("query_badge", timeout=31.0),
    "13 attempts": {"op": "set_retry", "listener_id": "L2", "retry": {"attempts": 4}},
    "13 attempts, of a new listener": inserted("query_badge", retry={"attempts": 4}),
    "13 attempts, by repeating": brought({**ORDER, "repeat": True}),
    "14 what asks a person": {"op": "skip", "listener_id": "L4"},
    "14 what asks for approval": {"op": "skip", "listener_id": "L5"},
    "14 what may ask elsewhere": {"op": "skip", "listener_id": "L8"},
    "14 the answer, by another's output": brought(ORDER, to="005"),
    "14 the answer, by the question's own": {
        "op": "set_output",
        "listener_id": "L4",
        "context": {"fine": "yes"},
    },
}

SAID = {
    "1 approval": "say whether or how the call of R1 is approved",
    "1 approval, by how it is asked": "say whether or how the call of R1 is approved",
    "1 approval, by another tool": "have L5 call a tool that asks for less approval",
    "2 roles": "have ask_L2 ask the role intern",
    "2 roles, by escalation": "have R1 ask the role intern",
    "3 inputs": "have L6 set the input name",
    "3 inputs, asked anew": "ask for inputs anew",
    "4 verify": "do without the verification by helper",
    "5 the main task": "have R1 move the main task 001",
    "5 the main task, left out": "have L6 move the main task 001",
    "6 code": "write code, as R1 has it",
    "6 code, by its name": "name what handles answers to R1",
    "7 prompts": "write a prompt to an agent, as R1 has it",
    "8 secrets": "write the secret token of L2",
    "8 secrets, asked for": "have ask_L2 ask for the secret colour",
    "8 secrets, moved": "have L3 read the secret 001.context.pin",
    "9 tools": "have R1 call wipe_disk: neither the plan nor its repair.tools name it",
    "9 tools, from code": "have R1 call wipe_disk: neither the plan nor its repair.tools name it",
    "10 plans": "have R1 run the plan other",
    "11 agents": "have R1 ask the agent spy",
    "12 timeout": "give L2 more time",
    "12 timeout, none at all": "give L2 more time",
    "12 timeout, of the author's none": "give L3 more time",
    "12 timeout, of a new listener": "give R1 more time",
    "13 attempts": "have L2 tried more often",
    "13 attempts, of a new listener": "have R1 tried more often",
    "13 attempts, by repeating": "have R1 tried more often",
    "14 what asks a person": "skip L4, which asks a person",
    "14 what asks for approval": "skip L5, which asks a person",
    "14 what may ask elsewhere": "skip L8, which asks a person",
    "14 the answer, by another's output": "have R1 set 005, which a person decides",
    "14 the answer, by the question's own": "write down what a person is asked by L4",
}


@pytest.fixture(scope="module")
def state() -> PlanState:
    return failed(begun(*WIDER))


def touched(state: PlanState, by: str, *operations: JsonObject) -> list[str]:
    verdict = verdict_on(state, *operations, by=by)
    return [one for one in verdict.problems if "only a person may" in one]


@pytest.mark.parametrize("by", ["model:m", "rule:r", "lesson:l", ""])
@pytest.mark.parametrize("touch", REFUSED)
def test_what_is_no_person_may_not(touch: str, by: str, state: PlanState) -> None:
    operation = REFUSED[touch]
    found = touched(state, by, operation)
    named = f"operations[0] ({operation['op']}): "
    assert f"{named}only a person may {SAID[touch]}" in found
    assert all(one.startswith(named) for one in found)


@pytest.mark.parametrize("touch", REFUSED)
def test_a_person_may(touch: str, state: PlanState) -> None:
    assert touched(state, "person", REFUSED[touch]) == []


def test_all_fourteen_are_tried() -> None:
    assert {int(one.split()[0]) for one in REFUSED} == set(range(1, 15))


def test_the_operation_that_is_to_blame_is_named(state: PlanState) -> None:
    good = set_args(computer_model="{001.context.model}", drop=("model",))
    (found,) = touched(state, "model:m", good, REFUSED["9 tools"])
    assert found == (
        "operations[1] (insert_before): only a person may have R1 call wipe_disk: neither the "
        "plan nor its repair.tools name it"
    )


HARMLESS: dict[str, JsonObject] = {
    "an argument": set_args(computer_model="{001.context.model}", drop=("model",)),
    "a tool that the author names": inserted("query_badge", args={"name": "{001.context.name}"}),
    "a question": {"op": "ask_first", "listener_id": "L2", "fields": [{"name": "size"}]},
    "a question to the plan's own role": {
        "op": "ask_first",
        "listener_id": "L2",
        "choice": {"title": "Go on?"},
        "role": "hr_lead",
    },
    "less time": {"op": "set_retry", "listener_id": "L2", "timeout": 29},
    "fewer attempts": {"op": "set_retry", "listener_id": "L2", "retry": {"attempts": 1}},
    "more time between": {"op": "set_retry", "listener_id": "L2", "retry": {"maximum": 90}},
    "as much time for a new listener": inserted("query_badge", timeout=30.0),
    "work that asks nobody": {"op": "skip", "listener_id": "L3"},
    "a stricter tool": {"op": "use_tool", "listener_id": "L2", "tool": "grant_access", "args": {}},
    "another field of the answer": {
        "op": "set_output",
        "listener_id": "L4",
        "context": {"fine": "{{result.answer}}"},
    },
    "the author's own prompt": brought(
        {
            "listener_type": "agent",
            "agent_id": "helper",
            "action_prompt": "Help {001.context.name}.",
        }
    ),
    "the author's own plan": brought({"listener_type": "plan", "plan_id": "child"}),
    "a wait": brought({"listener_type": "wait_until", "after": "10m"}),
    "more of the main task": {
        "op": "set_output",
        "listener_id": "L6",
        "context": {"note": "{{result.x}}"},
    },
}


@pytest.mark.parametrize("change", HARMLESS)
def test_what_is_not_forbidden_is_left_to_consent(change: str, state: PlanState) -> None:
    assert touched(state, "model:m", HARMLESS[change]) == []


def test_a_tool_that_asks_now_and_then_is_no_less_strict_than_itself(state: PlanState) -> None:
    sometimes = ApprovalRule(ApprovalMode.REQUIRE_APPROVAL, 'employee != "x"', ApprovalMode.AUTO)
    otherwise = ApprovalRule(ApprovalMode.AUTO, 'employee == "x"', ApprovalMode.REQUIRE_APPROVAL)
    use = REFUSED["1 approval, by another tool"]
    for old, new, refused in (
        (sometimes, sometimes, False),
        (otherwise, sometimes, True),
        (sometimes, ApprovalRule(ApprovalMode.REQUIRE_APPROVAL), False),
        (ApprovalRule(ApprovalMode.AUTO), ApprovalRule(ApprovalMode.AUTO), False),
    ):
        tools = {
            **TOOLS,
            "grant_access": replace(TOOLS["grant_access"], approval=old),
            "grant_freely": replace(TOOLS["grant_freely"], approval=new),
        }
        verdict = verdict_on(state, use, by="model:m", tools=tools)
        assert any("less approval" in one for one in verdict.problems) is refused


def test_what_lacks_an_argument_asks_a_person(state: PlanState) -> None:
    listeners = (*LISTENERS[:2], on("L3", "003 Done", ToolAction("send_email"), "004"))
    ending = (on("L6", "004 Done", CodeAction("result = {}"), "001"),)
    lacking = failed(begun(*listeners, *ending))
    found = touched(lacking, "model:m", {"op": "skip", "listener_id": "L3"})
    assert found == ["operations[0] (skip): only a person may skip L3, which asks a person"]


def test_a_tool_that_is_not_known_asks_nobody() -> None:
    listeners = (*LISTENERS[:2], on("L3", "003 Done", ToolAction("gone"), "001"))
    lost = failed(begun(*listeners))
    skip = {"op": "skip", "listener_id": "L3"}
    assert not any("asks a person" in one for one in touched(lost, "model:m", skip))


def test_handlers_of_answers_are_code() -> None:
    option = InteractionOption(
        "x", "X", InteractionAction.CUSTOM, metadata={"handler": "delete_all"}
    )
    before = begun().state.plan.plan
    asks = on("R1", "002 Done", HumanAction(asking=Asking("?", options=(option,))), "R1")
    after = replace(before, listeners=(*before.listeners, asks))
    found = touches(changes_of(before, after, ()), known())
    assert "only a person may name what handles answers to R1" in [one.message for one in found]


def test_the_plan_itself_stays_the_authors() -> None:
    """No operation reaches them; should one ever, this stands in its way."""
    before = begun().state.plan.plan
    after = replace(
        before,
        inputs=Form(),
        verify=(Check("query_badge"),),
        main_task_id="002",
    )
    found = touches(Changes(before, after, (), (), frozenset()), known())
    assert [one.message for one in found] == [
        "only a person may change the inputs",
        "only a person may change what is verified",
        "only a person may make another task the main task",
    ]


class TestSecrets:
    @pytest.mark.parametrize("by", ["person", "model:m", "rule:r"])
    def test_nobody_writes_a_reference_into_a_plan(self, by: str, state: PlanState) -> None:
        verdict = verdict_on(state, set_args("L3", text=f"Bearer {SECRET}"), by=by)
        assert "a reference to a secret must not be written into a plan" in verdict.problems

    @pytest.mark.parametrize("by", ["person", "model:m", "rule:r"])
    def test_nobody_writes_a_secret_down(self, by: str, state: PlanState) -> None:
        verdict = verdict_on(state, set_args(token="1234"), by=by)
        told = "operations[0] (set_args): the secret token of L2 must not be written down"
        assert told in verdict.problems

    def test_a_person_may_have_one_read_from_where_the_run_has_it(self, state: PlanState) -> None:
        assert verdict_on(state, set_args(token="{001.context.pin}"), by="person").problems == ()

    def test_a_secret_of_the_plans_own_fields_is_one(self) -> None:
        form = Form((Field("text", FieldType.SECRET),))
        l3 = replace(LISTENERS[2], action=ToolAction("send_email", {"to": "x"}, form))
        guarded = failed(begun(*LISTENERS[:2], l3, *LISTENERS[3:]))
        verdict = verdict_on(guarded, set_args("L3", text="hush"), by="person")
        assert any("the secret text of L3" in one for one in verdict.problems)

    def test_what_people_gave_in_secret_is_known_by_its_value(self) -> None:
        holding = failed(begun(values={**VALUES, "model": SECRET}))
        found = touched(holding, "model:m", set_args("L3", text="{001.context.model}"))
        assert found == [
            "operations[0] (set_args): only a person may have L3 read the secret 001.context.model"
        ]

    def test_whoever_reads_it_already_may_go_on(self, state: PlanState) -> None:
        l3 = replace(LISTENERS[2], action=ToolAction("send_email", {"to": "{001.context.pin}"}))
        reading = failed(begun(*LISTENERS[:2], l3, *LISTENERS[3:]))
        assert touched(reading, "model:m", set_args("L3", text="{001.context.pin}")) == []


def test_a_listener_is_named_by_what_it_is_after() -> None:
    one = LISTENERS[0]
    assert Changed(None, one).id == "L1"
