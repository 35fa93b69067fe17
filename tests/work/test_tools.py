from __future__ import annotations

import asyncio
import threading
from datetime import date
from enum import StrEnum
from typing import Annotated, Any

import pytest
from pydantic import Field

from holdfast.errors import (
    CallerError,
    NotFound,
    PermanentError,
)
from holdfast.model.approval import ApprovalMode
from holdfast.work.tools import CallInfo, PythonTool, Tool, ToolRegistry, kept

CALL = CallInfo(key="inst_000001:L001:1:0", run_id="inst_000001", attempt=1)


class Model(StrEnum):
    AIR = "MacBook Air"
    PRO = "MacBook Pro"


async def apply_computer(
    employee: str, computer_model: Model, amount: Annotated[int, Field(ge=1)] = 1
) -> dict[str, Any]:
    """Orders a computer."""
    return {"order": f"{employee}/{computer_model}/{amount}"}


async def test_a_function_becomes_a_tool_with_a_schema() -> None:
    spec = PythonTool.from_function(apply_computer).spec
    assert (spec.name, spec.description) == ("apply_computer", "Orders a computer.")
    assert (spec.idempotent, spec.read_only) == (False, False)
    assert spec.approval.mode is ApprovalMode.AUTO
    assert spec.parameters["required"] == ["employee", "computer_model"]
    assert spec.parameters["additionalProperties"] is False
    amount = spec.parameters["properties"]["amount"]
    assert (amount["type"], amount["minimum"], amount["default"]) == ("integer", 1, 1)


async def test_arguments_arrive_as_the_signature_declares_them() -> None:
    seen = []

    async def plan(day: date, model: Model, copy: str = "x", schema: bool = False) -> None:
        seen.append((day, model, copy, schema))

    args = {"day": "2026-01-05", "model": "MacBook Air"}
    assert await PythonTool.from_function(plan).call(args, CALL) is None
    assert seen == [(date(2026, 1, 5), Model.AIR, "x", False)]


async def test_wrong_arguments_are_told_field_by_field_without_their_values() -> None:
    tool = PythonTool.from_function(apply_computer)
    with pytest.raises(PermanentError) as caught:
        await tool.call({"computer_model": "hunter2", "amount": 0, "colour": "red"}, CALL)
    message = str(caught.value)
    assert message.startswith("apply_computer was given wrong arguments: ")
    assert "employee: Field required" in message
    assert "computer_model: Input should be" in message
    assert "amount: Input should be greater than or equal to 1" in message
    assert "colour: Extra inputs are not permitted" in message
    assert "hunter2" not in message


async def test_the_callers_arguments_are_left_as_they_are() -> None:
    async def look(day: date, call: CallInfo) -> str:
        return call.key

    args = {"day": "2026-01-05"}
    await PythonTool.from_function(look).call(args, CALL)
    assert args == {"day": "2026-01-05"}


async def test_a_tool_that_asks_for_it_learns_which_call_it_is() -> None:
    async def send_email(to: str, info: CallInfo) -> list[Any]:
        return [to, info.key, info.run_id, info.attempt]

    tool = PythonTool.from_function(send_email)
    assert list(tool.spec.parameters["properties"]) == ["to"]
    result = await tool.call({"to": "will"}, CALL)
    assert result == ["will", "inst_000001:L001:1:0", "inst_000001", 1]
    with pytest.raises(PermanentError, match="info: Extra inputs"):
        await tool.call({"to": "will", "info": {}}, CALL)


async def test_a_plain_function_runs_beside_the_loop_and_an_async_one_on_it() -> None:
    def beside() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def on_it() -> bool:
        return beside()

    assert await PythonTool.from_function(beside).call({}, CALL) is False
    assert await PythonTool.from_function(on_it).call({}, CALL) is True


async def test_methods_and_callable_objects_are_tools_too() -> None:
    class Office:
        async def greet(self, name: str) -> str:
            return f"hello {name}"

        async def __call__(self, name: str) -> str:
            return f"welcome {name}"

    method, thing = PythonTool.from_function(Office().greet), PythonTool.from_function(Office())
    assert (method.spec.name, thing.spec.name) == ("greet", "Office")
    assert await method.call({"name": "Will"}, CALL) == "hello Will"
    assert await thing.call({"name": "Will"}, CALL) == "welcome Will"
    assert thing.spec.version == PythonTool.from_function(Office()).spec.version


async def test_a_result_that_is_not_json_is_refused() -> None:
    async def bad() -> Any:
        return {"when": date(2026, 1, 5)}

    with pytest.raises(PermanentError, match=r"bad ran, but .* \$\.when"):
        kept("bad", await PythonTool.from_function(bad).call({}, CALL))


@pytest.mark.parametrize(
    ("name", "options", "read_only", "idempotent"),
    [
        ("query_profile", {}, True, True),
        ("check_outbound_status", {}, True, True),
        ("query_and_fix", {"read_only": False}, False, False),
        ("grant_access", {}, False, False),
        ("grant_access", {"idempotent": True}, False, True),
        ("list_people", {"read_only": True}, True, True),
        ("query_once", {"idempotent": False}, True, False),
    ],
)
def test_a_name_tells_whether_a_tool_only_looks_unless_its_author_does(
    name: str, options: dict[str, bool], read_only: bool, idempotent: bool
) -> None:
    spec = PythonTool.from_function(apply_computer, name=name, **options).spec  # type: ignore[arg-type]
    assert (spec.read_only, spec.idempotent) == (read_only, idempotent)


def test_the_version_changes_with_the_source_and_the_schema() -> None:
    def one(a: int) -> int:
        return a

    def two(a: int) -> int:
        return a + 1

    first, again, other = (PythonTool.from_function(fn, name="t") for fn in (one, one, two))
    assert first.spec.version == again.spec.version != other.spec.version


def test_a_function_without_source_at_hand_still_has_a_version() -> None:
    made: dict[str, Any] = {}
    exec("def f(a: int): return a\ndef g(a: int): return a * 2", made)
    versions = {PythonTool.from_function(made[n], name="t").spec.version for n in "fgf"}
    assert len(versions) == 2


def test_an_author_may_say_that_a_tool_has_changed() -> None:
    def one(a: int) -> int:
        return a

    versions = [PythonTool.from_function(one, version=own).spec.version for own in ("", "1", "2")]
    assert len(set(versions)) == 3
    assert PythonTool.from_function(one, version="1").spec.version == versions[1]


def test_what_cannot_be_called_by_name_is_refused() -> None:
    def loose(*names: str) -> None: ...
    def unnamed(a: int, /) -> None: ...
    def open_ended(**rest: int) -> None: ...

    for fn in (loose, unnamed, open_ended):
        with pytest.raises(CallerError, match="passed by name"):
            PythonTool.from_function(fn)


def test_annotations_nobody_can_read_are_refused_with_the_reason() -> None:
    def lost(a: NoSuchThing) -> None: ...  # type: ignore[name-defined]  # noqa: F821
    def odd(a: threading.Thread) -> None: ...

    with pytest.raises(CallerError, match=r"tool 'lost': .*NoSuchThing"):
        PythonTool.from_function(lost)
    with pytest.raises(CallerError, match=r"tool 'odd': .*Thread"):
        PythonTool.from_function(odd)


def test_an_unknown_approval_is_refused() -> None:
    with pytest.raises(CallerError, match="approval is 'sometimes': write auto"):
        PythonTool.from_function(apply_computer, approval="sometimes")


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.add(PythonTool.from_function(apply_computer))
    registry.add(PythonTool.from_function(apply_computer, name="query_stock"))
    return registry


def test_a_registry_finds_tools_by_name(registry: ToolRegistry) -> None:
    tool: Tool = registry.get("apply_computer")
    assert tool.spec.name == "apply_computer"
    assert "query_stock" in registry
    assert "query_stork" not in registry
    assert [spec.name for spec in registry.specs()] == list(registry)
    assert len(registry) == 2


def test_a_name_nearly_right_gets_a_hint(registry: ToolRegistry) -> None:
    with pytest.raises(NotFound, match="no tool is named 'aply_computer'; 'apply_computer' is"):
        registry.get("aply_computer")
    with pytest.raises(NotFound, match=r"no tool is named 'zzz'$"):
        registry.get("zzz")


def test_a_name_is_given_once(registry: ToolRegistry) -> None:
    with pytest.raises(CallerError, match="already is a tool named 'query_stock'"):
        registry.add(PythonTool.from_function(lambda: 7, name="query_stock"))


def test_missing_arguments_are_the_required_ones_that_are_absent(registry: ToolRegistry) -> None:
    missing = registry.missing_arguments
    assert missing("apply_computer", {}) == ["employee", "computer_model"]
    assert missing("apply_computer", {"employee": "张三", "x": 1}) == ["computer_model"]
    assert missing("apply_computer", {"employee": None, "computer_model": "a"}) == []


async def test_a_thread_that_raises_stop_iteration_comes_to_an_end() -> None:
    def exhausted() -> str:
        return next(iter(()))

    tool = PythonTool.from_function(exhausted)
    with pytest.raises(RuntimeError, match="exhausted raised StopIteration"):
        await asyncio.wait_for(tool.call({}, CALL), 30)
