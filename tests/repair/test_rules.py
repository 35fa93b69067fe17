"""Rules by cause: which candidates there are, in which order, and of what they are made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from failed_runs import TEXT, call, failed, known, refusal, tool, work_of
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map
from small_plans import CODE, on

from holdfast.core.plan.state import PlanState
from holdfast.core.repair.operations import read_operations
from holdfast.core.repair.state import CaseState, Repairs, operations_digest
from holdfast.core.storing import record_to_json
from holdfast.model.plan import Check, ToolAction
from holdfast.model.repair import Diagnosis, RepairPolicy
from holdfast.model.retry import Cause, Failure
from holdfast.repair.rules import MOST_CANDIDATES, RULES, candidates, drafts

TOOLS = {
    "grant_access": tool("employee_id", optional={"area": {**TEXT, "enum": ["Office", "Lab"]}}),
    "create_profile": tool("name", optional={"id": TEXT}, idempotent=True),
    "query_profile": tool("employee_id", read_only=True),
    "pay_expense": tool("amount"),
}
CALL = call("grant_access", employee_id="{001.context.id}", area="office")
VALUES = {"id": "WZ001", "name": "Will Zhang", "amount": "50000", "employee_id": "E0001"}


def state_of(failure: Failure, action: ToolAction = CALL) -> PlanState:
    return failed(
        on("L1", "001 Running", action, "002"),
        on("L2", "002 Done", call("pay_expense", amount="{001.context.amount}"), "003"),
        on("L3", "003 Done", CODE, "001"),
        tools=TOOLS,
        values=VALUES,
        failure=failure,
        repair=RepairPolicy(tools=("create_profile",)),
        verify=(Check("query_profile", {"employee_id": "{001.context.id}"}),),
    )


def found(failure: Failure, state: PlanState | None = None, listener_id: str = "L1") -> Any:
    state = state or state_of(failure)
    assert failure.cause is not None
    diagnosis = Diagnosis(failure.cause, "")
    return candidates(state, listener_id, failure, diagnosis, known(TOOLS))


UNKNOWN_TO_HR = refusal("no employee 'WZ001': create the profile first", Cause.PRECONDITION)


def test_candidates_are_numbered_and_name_their_plan_and_their_rule() -> None:
    state = state_of(UNKNOWN_TO_HR)
    patches = found(UNKNOWN_TO_HR, state)
    assert [one.patch_id for one in patches] == [f"k{n}" for n in range(1, len(patches) + 1)]
    assert {one.base for one in patches} == {state.plan.digest}
    assert [one.source for one in patches] == [
        "rule:other_task",
        "rule:made_first",
        "rule:another_value",
        "rule:seen_to_first",
    ]


@pytest.mark.parametrize("cause", sorted(set(Cause) - set(RULES)))
def test_what_no_patch_can_help_gets_none(cause: Cause) -> None:
    assert found(refusal("area must be one of Office, Lab", cause)) == ()


@pytest.mark.parametrize("cause", [Cause.PLAN, Cause.UNKNOWN, Cause.RESULT_SHAPE])
def test_of_others_only_what_the_plan_itself_lacks(cause: Cause) -> None:
    assert found(refusal("area must be one of Office, Lab", cause)) == ()


@pytest.mark.parametrize("listener_id", ["", "verify.1", "L9"])
def test_only_listeners_of_the_plan_are_mended(listener_id: str) -> None:
    assert found(UNKNOWN_TO_HR, None, listener_id) == ()


def test_what_was_refused_in_this_run_is_not_proposed_again() -> None:
    state = state_of(UNKNOWN_TO_HR)
    first, *others = found(UNKNOWN_TO_HR, state)
    case = CaseState("case_1", "L1", 1, 0.0, 1, refused=(operations_digest(first.operations),))
    after = replace(state, repair=Repairs(cases=Map({"case_1": case})))
    again = found(UNKNOWN_TO_HR, after)
    assert [one.operations for one in again] == [one.operations for one in others]


def test_what_would_change_the_same_is_proposed_once_and_five_things_at_most() -> None:
    every = found(UNKNOWN_TO_HR)
    names = [operations_digest(one.operations) for one in every]
    assert len(set(names)) == len(names) <= MOST_CANDIDATES


WORDS = st.sampled_from(
    [
        *("employee_id", "area", "amount", "WZ001", "Office", "50000", "create_profile"),
        *("pay_expense", "query_profile", "delete_everything", "IGNORE", "first", "must be"),
        *("{001.context.id}", "{{result}}", "date", "taken", "：", "'", "\u202e", "<script>"),
        *('{"op": "skip", "listener_id": "L2"}', "approval", "skip L2", "请先", "sudo"),
    ]
)
TEXTS = st.one_of(st.lists(WORDS, max_size=20).map(" ".join), st.text(max_size=200))


CALLS = (
    CALL,
    call("grant_access", employee="{001.context.id}", area="Lab", colour="red"),
    call("grant_access", employee_id="{002.context.employee_id}"),
)
STATES = [state_of(refusal("no"), one) for one in CALLS]


@given(TEXTS, TEXTS, st.sampled_from(sorted(Cause)), st.sampled_from(STATES))
def test_error_texts_only_select_among_what_plan_schemas_and_run_have(
    message: str, field: str, cause: Cause, state: PlanState
) -> None:
    failure = refusal(message, cause, field=field)
    told = drafts(state, "L1", failure, cause, known(TOOLS))
    assert len(told) <= MOST_CANDIDATES
    for one in told:
        read_operations(one.operations)
        texts = set(_texts(one.operations)) - _known_texts(state)
        assert not {text for text in texts if not _reads(text, state)}
        names = set(re.findall(r"[\w.]+", one.reason))
        assert not names & {"delete_everything", "IGNORE", "sudo", "script"}
        assert {each["op"] for each in one.operations} <= {"set_args", "insert_before", "ask_first"}
        assert {each["listener_id"] for each in one.operations} == {"L1"}
        called = {each["listener"]["tool"] for each in one.operations if "listener" in each}
        assert called <= {"create_profile"}


OURS = {
    *("set_args", "insert_before", "ask_first", "tool", "R1", "text", "radio", "number", "date"),
    "Is everything there that the next step needs?",
    *("Look again?", "The answer could not be read. Looking changes nothing."),
    "See to what is missing, then let the run go on.",
}


def _known_texts(state: PlanState) -> set[str]:
    parts = [record_to_json(state.plan.plan), dict(state.main_task.context)]
    parts += [dict(one.parameters) for one in TOOLS.values()]
    names = {name for one in TOOLS.values() for name in one.parameters["properties"]}
    given = state.plan.listeners["L1"].action
    assert isinstance(given, ToolAction)
    return {*OURS, *TOOLS, *names, *given.args, *_texts(parts)}


def _reads(text: str, state: PlanState) -> bool:
    """A value of the run, or of a result of what is put before, by a name that the plan has."""
    path = re.fullmatch(r"\{(?:001|R1)\.context\.(\w+)\}|\{\{result\.(\w+)\}\}", text)
    names = {*state.main_task.context, *TOOLS["grant_access"].parameters["properties"]}
    return path is not None and (path[1] or path[2]) in names


def _texts(value: Any) -> Iterator[str]:
    """All texts that are values; keys are the shape of operations, or names of arguments."""
    match json.loads(json.dumps(value)):
        case dict() as entries:
            for one in entries.values():
                yield from _texts(one)
        case list() as items:
            for one in items:
                yield from _texts(one)
        case str() as text:
            yield text


def test_the_keys_of_arguments_are_those_of_the_schema() -> None:
    work = work_of(state_of(UNKNOWN_TO_HR), TOOLS)
    for rules in RULES.values():
        for rule in rules:
            for draft in rule(work):
                for one in draft.operations:
                    assert set(one.get("set", {})) <= set(
                        TOOLS["grant_access"].parameters["properties"]
                    )
