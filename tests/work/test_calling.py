"""The executor's own look at a call: what was not consented to, or is disabled, does not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from holdfast.core.interactions.calls import bind_consent, call_name
from holdfast.errors import ForbiddenError
from holdfast.forms.secrets import reference_of
from holdfast.model import commands as c
from holdfast.model import effects as f
from holdfast.model.approval import ApprovalMode, ApprovalRule
from holdfast.model.retry import Failure, FailureKind
from holdfast.model.values import Json, JsonObject
from holdfast.work.driver import call_tool, is_plain, outcome_of_call
from holdfast.work.tools import CallInfo, PythonTool, ToolRegistry, ToolSpec

WORK = f.Work("chat_000001", "c1", 1, 1, 7, "chat_000001:c1:1:0")
DISABLED = ApprovalRule(ApprovalMode.DISABLED)
DISABLED_ABOVE = ApprovalRule(ApprovalMode.DISABLED, "amount > 10")


class Till:
    """One tool, and what it has really paid."""

    def __init__(self, approval: ApprovalRule | str = "require") -> None:
        self.paid: list[int] = []
        self.tools = ToolRegistry()
        self.tools.add(PythonTool.from_function(self.pay, approval=approval))

    async def pay(self, amount: int) -> int:
        self.paid.append(amount)
        return amount

    def consented(self, amount: int = 5) -> f.CallTool:
        """The call to which a person has agreed."""
        version = self.tools.get("pay").spec.version
        call = call_name(WORK.run_id, WORK.step_id, WORK.firing)
        consent = bind_consent(call, "pay", version, {"amount": amount})
        return f.CallTool(WORK, "pay", {"amount": amount}, False, consent)


@pytest.fixture
def till() -> Till:
    return Till()


async def test_what_was_consented_to_runs(till: Till) -> None:
    assert await call_tool(till.tools, till.consented()) == 5
    assert till.paid == [5]


async def test_a_further_attempt_of_the_same_firing_runs(till: Till) -> None:
    again = replace(WORK, attempt=2, claim=9)
    assert await call_tool(till.tools, replace(till.consented(), work=again)) == 5


@pytest.mark.parametrize(
    "other",
    [
        {"args": {"amount": 6}},
        {"args": {"amount": 5, "to": "Will Zhang"}},
        {"args": {}},
        {"consent": "forged"},
        {"consent": ""},
        {"work": replace(WORK, run_id="chat_000002")},
        {"work": replace(WORK, step_id="c2")},
        {"work": replace(WORK, firing=2)},
    ],
)
async def test_consent_to_another_call_runs_nothing(till: Till, other: dict[str, Any]) -> None:
    with pytest.raises(ForbiddenError, match="does not fit what would run"):
        await call_tool(till.tools, replace(till.consented(), **other))
    assert till.paid == []


async def test_consent_to_another_version_of_the_tool_runs_nothing(till: Till) -> None:
    call = till.consented()
    newer = ToolRegistry()
    newer.add(PythonTool.from_function(till.pay, approval="require", version="2"))
    assert newer.get("pay").spec.version != till.tools.get("pay").spec.version
    with pytest.raises(ForbiddenError, match="consent to pay does not fit"):
        await call_tool(newer, call)
    assert till.paid == []


async def test_a_call_that_needed_no_consent_runs() -> None:
    till = Till("auto")
    assert await call_tool(till.tools, replace(till.consented(), consent=None)) == 5


@pytest.mark.parametrize("consented", [True, False])
async def test_a_disabled_tool_does_not_run_whatever_was_agreed_to(consented: bool) -> None:
    till = Till(DISABLED)
    call = till.consented()
    with pytest.raises(ForbiddenError, match="the tool pay is disabled"):
        await call_tool(till.tools, call if consented else replace(call, consent=None))
    assert till.paid == []


async def test_a_tool_may_be_disabled_for_some_arguments_only() -> None:
    till = Till(DISABLED_ABOVE)
    assert await call_tool(till.tools, till.consented(10)) == 10
    with pytest.raises(ForbiddenError, match="disabled"):
        await call_tool(till.tools, till.consented(11))
    assert till.paid == [10]


class Careless:
    """A tool of somebody's own, which takes its arguments apart."""

    def __init__(self, *secrets: str) -> None:
        self.spec = ToolSpec("careless", "", {})
        self.secrets = secrets

    async def call(self, args: JsonObject, call: CallInfo) -> Any:
        taken = cast(dict[str, Any], args)
        taken.pop("who")
        for one in taken.values():
            one.clear()
        return "done"


@pytest.mark.parametrize("secrets", [(), ("canary",)])
@pytest.mark.parametrize("args", [{"who": "Will Zhang"}, {"who": "Will Zhang", "rows": [1, 2]}])
async def test_arguments_that_a_tool_takes_apart_stay_whole(
    args: dict[str, Any], secrets: tuple[str, ...]
) -> None:
    tools = ToolRegistry()
    tools.add(Careless(*secrets))
    call = f.CallTool(WORK, "careless", args, True)
    for _ in range(2):
        assert await call_tool(tools, call) == "done"
    assert args["who"] == "Will Zhang"
    assert args.get("rows", [1, 2]) == [1, 2]


def test_plain_arguments_have_nothing_to_fill_in_and_nothing_to_take_apart() -> None:
    assert is_plain({})
    assert is_plain({"a": "text", "b": 1, "c": 1.5, "d": True, "e": None})
    ref = reference_of(bytes(16))
    others: list[Mapping[str, Json]] = [
        {"a": ref},
        {"a": f"Bearer {ref}"},
        {ref: 1},
        {"a": []},
        {"a": {"b": 1}},
    ]
    assert not any(map(is_plain, others))


@pytest.mark.parametrize("named", ["soon", ["permanent"], {"permanent": 1}, None, 7])
def test_a_class_of_error_that_is_none_leaves_the_tool_its_words(till: Till, named: Json) -> None:
    result = {"success": False, "error": "out of paper", "error_class": named}
    outcome = outcome_of_call(till.consented(), result, lambda _: None)
    assert outcome == c.Failed(Failure(FailureKind.TRANSIENT, "out of paper"), result=result)
