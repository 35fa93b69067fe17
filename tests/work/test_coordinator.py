from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from holdfast.errors import CallerError
from holdfast.language.strict import strict_json
from holdfast.model.agent import Agent
from holdfast.model.form import Field, FieldType, Form
from holdfast.model.plan import Plan
from holdfast.work.conversations import Coordinator
from holdfast.work.coordinator import AppCoordinator, Context
from holdfast.work.knowledge import Knowledge, Passage
from holdfast.work.tools import PythonTool, ToolRegistry


def query_sales(region: str) -> str:
    """Looks up the sales of a region."""
    return region


def wipe() -> None:
    """Deletes everything."""


def move_money(amount: int) -> None:
    """Moves money."""


ANALYST = Agent("analyst", name="Analyst", description="Reads numbers.")
WRITER = Agent("writer", name="Writes reports")
ORDER = Plan(
    "order_computer",
    "Order a computer",
    "001",
    (),
    (),
    description="From choice to delivery",
    inputs=Form((Field("name", FieldType.TEXT, label="姓名"),)),
)


@pytest.fixture
def tools() -> ToolRegistry:
    registry = ToolRegistry()
    registry.add(PythonTool.from_function(query_sales))
    registry.add(PythonTool.from_function(wipe, approval="DISABLED"))
    rule = {"mode": "DISABLED", "when": "amount > 100"}
    registry.add(PythonTool.from_function(move_money, approval=rule))
    return registry


@pytest.fixture
def knowledge() -> Iterator[Knowledge]:
    opened = Knowledge()
    opened.add("sales", "华东区的销售额。", "销售")
    opened.add("leave", "年假十五天。")
    yield opened
    opened.close()


async def test_an_application_without_anything_has_an_empty_context() -> None:
    coordinator: Coordinator = AppCoordinator(ToolRegistry())
    assert await coordinator.get_context_async("帮我分析销售数据") == Context()


async def test_rules_are_handed_on_and_knowledge_is_found_for_the_input(
    tools: ToolRegistry, knowledge: Knowledge
) -> None:
    coordinator = AppCoordinator(tools, ["Never guess."], knowledge)
    context = await coordinator.get_context_async("帮我分析销售数据")
    assert context.rules == ("Never guess.",)
    [found] = context.knowledge
    assert (found["doc_id"], found["title"], found["text"]) == ("sales", "销售", "华东区的销售额。")
    assert (await coordinator.get_context_async("hello")).knowledge == ()


async def test_one_rule_need_not_be_a_list(tools: ToolRegistry) -> None:
    context = await AppCoordinator(tools, "Never guess.").get_context_async("hi")
    assert context.rules == ("Never guess.",)


async def test_all_that_a_task_may_name_is_listed_with_its_kind(tools: ToolRegistry) -> None:
    coordinator = AppCoordinator(tools, agents=lambda: [ANALYST, WRITER], plans=lambda: [ORDER])
    offers = (await coordinator.get_context_async("hi")).tools
    assert [(one["kind"], one["name"], one["description"]) for one in offers] == [
        ("tool", "query_sales", "Looks up the sales of a region."),
        ("tool", "move_money", "Moves money."),
        ("agent", "analyst", "Reads numbers."),
        ("agent", "writer", "Writes reports"),
        ("plan", "order_computer", "Order a computer. From choice to delivery"),
    ]
    assert offers[0]["parameters"]["required"] == ["region"]
    assert list(offers[-1]["parameters"]["properties"]) == ["name"]
    assert "parameters" not in offers[2]


async def test_the_context_is_strict_json(tools: ToolRegistry, knowledge: Knowledge) -> None:
    coordinator = AppCoordinator(tools, ["r"], knowledge, lambda: [ANALYST], lambda: [ORDER])
    context = await coordinator.get_context_async("销售")
    for part in (context.rules, context.knowledge, context.tools):
        assert strict_json(part) == list(part)
    assert Context.of(context) == context


async def test_what_is_registered_later_is_listed_later(tools: ToolRegistry) -> None:
    agents: list[Agent] = []
    coordinator = AppCoordinator(tools, agents=lambda: agents)
    before = (await coordinator.get_context_async("hi")).tools
    agents.append(ANALYST)
    after = (await coordinator.get_context_async("hi")).tools
    assert [one["name"] for one in after[len(before) :]] == ["analyst"]


async def test_searching_leaves_the_loop_free(tools: ToolRegistry) -> None:
    threads: list[int] = []

    class Watched(Knowledge):
        def search(self, query: str, limit: int = 5) -> list[Passage]:
            threads.append(threading.get_ident())
            return super().search(query, limit)

    knowledge = Watched()
    await AppCoordinator(tools, knowledge=knowledge).get_context_async("hi")
    knowledge.close()
    assert threads
    assert threading.get_ident() not in threads


async def test_knowledge_that_cannot_be_searched_is_an_error(
    tools: ToolRegistry, knowledge: Knowledge
) -> None:
    knowledge.close()
    with pytest.raises(CallerError, match="is closed"):
        await AppCoordinator(tools, knowledge=knowledge).get_context_async("销售")


@pytest.mark.parametrize(
    "raw",
    [
        {"rules": ["r"], "knowledge": ({"text": "k"},), "tools": "t"},
        SimpleNamespace(rules=("r",), knowledge=[{"text": "k"}], tools={"t": 0}.keys()),
    ],
)
def test_a_coordinator_of_ones_own_may_return_any_such_object(raw: object) -> None:
    assert Context.of(raw) == Context(("r",), ({"text": "k"},), ("t",))


def test_what_is_missing_or_no_json_does_not_stop_it() -> None:
    class Rule:
        def __str__(self) -> str:
            return "a rule \ud800"

    assert Context.of(None) == Context()
    assert Context.of({"rules": [Rule()], "tools": 7}) == Context(("a rule \ufffd",), (), (7,))
